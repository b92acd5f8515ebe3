// What a story asks for, what answers it, and how the model reads it, as in lowrank_tutor.storyteller (language.py).
/** The word that follows from a story so far, and the job that it tests; two empty words if none does. */
const storyAnswer = (said, kinds) => {
  const triples = said.slice(2).map((third, i) => [said[i], said[i + 1], third]);
  // From the last word back
  const [one, two, three, four, five, six] = said.slice(-6).reverse();
  const nothing = ["", ""];
  const named = (word) => kinds.name.includes(word),
    reasoned = (deed) => kinds.deed.indexOf(deed);
  if (named(two) && ["wears", "has"].includes(one)) {
    if (three === "now") return nothing;
    const told = triples
      .filter(([name, verb]) => name === two && verb === one)
      .map(([, , thing]) => thing);
    return told.length ? [told.at(-1), new Set(told).size > 1 ? "new fact" : "far fact"] : nothing;
  }
  if (one === "?" && four === "who") {
    const owners = triples.filter(
      ([name, ...fact]) => named(name) && fact.join() === [three, two].join(),
    );
    return owners.length ? [owners.at(-1)[0], "who"] : nothing;
  }
  if (one === "it" && two === "mostly") {
    const days = triples.filter(([it]) => it === "it").map(([, day]) => day);
    const often = kinds.weather.map((day) => days.filter((one) => one === day).length),
      most = Math.max(...often);
    return often.filter((times) => times === most).length === 1
      ? [kinds.weather[often.indexOf(most)], "most"]
      : nothing;
  }
  const animal = (word) => kinds.animal.includes(word) || kinds.animals.includes(word);
  const agrees =
    animal(one) &&
    two === "the" &&
    three === "near" &&
    animal(four) &&
    ["old", "little"].includes(five) &&
    six === "the";
  if (agrees) return [kinds[kinds.animals.includes(four) ? "do" : "does"][0], "agreement"];
  if (one === "because" && reasoned(two) >= 0)
    return [kinds.animals.includes(three) ? "they" : "it", "reference"];
  if (["was", "were"].includes(one) && three === "because" && reasoned(four) >= 0) {
    return [kinds.mood[reasoned(four)], "reason"];
  }
  const tune = said.slice(0, Math.max(0, said.indexOf(":"))),
    at = tune.indexOf(one);
  return at >= 0 && at < tune.length - 1 && kinds.note.includes(one)
    ? [tune[at + 1], "copy"]
    : nothing;
};
/** The words that answer as well as this one: verbs of its number, or itself. */
const rightWords = (word, job, kinds) => {
  if (job === "agreement") return [kinds.does, kinds.do].find((kind) => kind.includes(word));
  return word ? [word] : [];
};

/** A story under all cuts: run(cut, k) has tables, their error, and next(row), the logits of the word after a row. */
const readStory = (model, story, vocabulary, own = {}) => {
  const said = ["<s>", ...story.split(" ")],
    ids = said.map((word) => vocabulary.indexOf(word)),
    size = vocabulary.length,
    once = memory();
  const run = (cut, k) =>
    once(k && cut + k, () => {
      const { tables, logits } = (k && own[cut]) || model.cut(ids, cut, k, true);
      const error = k ? model.error(tables, run(cut, 0).tables) : 0;
      const next = (row = logits.length / size - 1) => logits.slice(row * size, (row + 1) * size);
      return { k, tables, error, next };
    });
  return { story, said, n: said.length, once, run, exact: run("", 0).tables };
};
const likeliest = (vocabulary, logits) => vocabulary[logits.indexOf(Math.max(...logits))];
