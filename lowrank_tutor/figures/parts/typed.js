// What may a reader type? A sentence of a few words; words without numbers of their own get some from their spelling.
//
//   const own = typed(data);                          // most (words), words (what is wrong, in words), known (spelling: index)
//   own.parse("so what"); own.numbers("cat", keys, values);   // words; the numbers of one: its rows of tables, or made up
//   own.remark(["my", "cat"]);                        // ["own"] if numbers of some are made up
//   own.field(place, (words) => move({ words }));     // a text field and a button; show(text) writes a new sentence
const typed = ({ words, most, known, reach }) => {
  const split = (text) => String(text).split(/\s+/).filter(Boolean);
  const spelling = (word) => word.toLowerCase().replace(/[^\p{L}\p{M}\p{N}]/gu, "");
  const say = (template, value) => { throw new Error(fill(template, { value })); };

  const parse = (text) => {
    const found = split(text);
    if (found.length === 0) say(words.empty);
    if (found.length > most) say(words.many, found.length);
    found.forEach((word) => {
      const strange = word.replace(/[\p{L}\p{M}\p{N}\p{P}\p{Sc}\p{Sm}\u200c\u200d]/gu, "");
      if (strange || !/[\p{L}\p{N}]/u.test(word)) say(words.strange, labels.short(word));
      if (word.length > 24) say(words.long, labels.short(word));
    });
    return found;
  };

  /** Standard normal numbers that depend on the letters alone, rounded and clipped. */
  const drawn = (word, count) => {
    const mix = (hash, letter) => Math.imul(hash ^ letter.codePointAt(0), 16777619); // Fowler, Noll and Vo's hash
    const next = lowrankLinalg.normal([...spelling(word)].reduce(mix, 2166136261));
    return Array.from({ length: count }, () => clamp(Math.round(next() * 10) / 10, -reach, reach));
  };

  const place = (word) => known.indexOf(spelling(word)); // among the known, or -1
  const numbers = (word, ...tables) =>
    place(word) < 0 ? drawn(word, 2 * tables.length) : tables.flatMap((rows) => rows[place(word)]);
  const remark = (tokens) => (tokens.every((word) => place(word) >= 0) ? [] : ["own"]);

  const field = (place, use) => {
    let used = null; // what stands there, but for what is being typed
    const input = controls.element("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    const send = () => use(split(input.value));
    input.addEventListener("keydown", (event) => event.key === "Enter" && send());
    const label = controls.element("label", { class: "typed" }, words.field, input);
    controls.button(controls.box(place, "control"), words.use, send).before(label);
    return { show: (text) => text === used || (input.value = used = text), clear: () => (used = null) };
  };

  return { split, parse, numbers, remark, field };
};
