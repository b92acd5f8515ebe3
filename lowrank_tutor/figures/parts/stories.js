// Stories that a reader chooses, or writes, for the figures of the storyteller.
/** A story as the model reads it: its words, and its marks apart. */
const spelled = (text) =>
  text
    .split(/([.?:])|\s+/)
    .filter(Boolean)
    .join(" ");
/**
 * A combobox by the pattern of ARIA. It offers the words that begin like the one before the caret, or all after a space;
 * done() is called at Enter.
 */
const offerWords = (field, vocabulary, done) => {
  const id = "words-" + Math.random().toString(36).slice(2);
  const list = element("div", { id, role: "listbox", "aria-label": "words", hidden: true });
  let at = -1;
  const begun = () =>
    field.value
      .slice(0, field.selectionStart)
      .split(/[\s.?:]/)
      .at(-1);
  const mark = (i) => {
    list.children[at]?.setAttribute("aria-selected", false);
    at = i;
    const option = list.children[at];
    option?.setAttribute("aria-selected", true);
    option?.scrollIntoView({ block: "nearest" });
    stage.write(field, { "aria-activedescendant": option?.id ?? "" });
  };
  const show = (words) => {
    const look = { role: "option", "aria-selected": "false" };
    const options = words.map((word, i) => element("span", { ...look, id: id + "-" + i }, word));
    list.replaceChildren(...options);
    list.hidden = !words.length;
    list.scrollTop = 0;
    stage.write(field, { "aria-expanded": !list.hidden });
    mark(-1);
  };
  const open = () => {
    const start = begun().toLowerCase();
    const fits = (word) => word.toLowerCase().startsWith(start) && word !== begun();
    show(vocabulary.filter((word) => word !== "<s>" && fits(word)));
  };
  const take = ({ textContent: word }) => {
    const end = field.selectionStart;
    field.setRangeText(word + " ", end - begun().length, end, "end");
    open();
  };
  const keys = {
    ArrowDown: () => (list.hidden ? open() : mark((at + 1) % list.children.length)),
    ArrowUp: () => mark((at < 1 ? list.children.length : at) - 1),
    Escape: () => show([]),
    Enter: () => {
      if (at >= 0) return take(list.children[at]);
      show([]);
      done();
    },
  };
  const attributes = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": false };
  stage.write(field, { ...attributes, "aria-controls": id });
  field.addEventListener("input", open);
  field.addEventListener("click", () => {
    const atEnd = field.selectionStart === field.value.length;
    // A whole word: another may follow
    if (atEnd && vocabulary.includes(begun())) field.value += " ";
    open();
  });
  field.addEventListener("blur", () => show([]));
  field.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  // The field keeps the focus
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", ({ target }) => target !== list && take(target));
  return list;
};
/** A story's words on a line, one of which a reader chooses: choose(i) marks it, and shows whom it listens to. */
const askedWords = (line, words, choose) => {
  stage.write(line, {
    role: "radiogroup",
    "aria-label": "The story: choose a word to see whom it listens to",
  });
  const spoken = words.map((word, i) => {
    const onclick = () => {
      spoken[i].focus();
      choose(i);
    };
    const onkeydown = ({ key }) => spoken[i + { ArrowLeft: -1, ArrowRight: 1 }[key]]?.click();
    // The first alone is a stop of the Tab key
    const look = { role: "radio", "aria-checked": "false", tabindex: -i, onclick, onkeydown };
    return element("span", look, word);
  });
  return spoken;
};
/** Another story of a list, and with `own` a field for the reader's; returns what shows the story in use. */
const storyChoice = (place, { tales, vocabulary, own, move }) => {
  const box = controls.box(place, "instrument-buttons");
  let now = "";
  controls.button(box, "another story", () =>
    move({ story: tales[(tales.indexOf(now) + 1) % tales.length] }),
  );
  const label = "a story of your own";
  const field = element("input", { type: "text", "aria-label": label, autocomplete: "off" });
  const done = () => spelled(field.value) !== now && move({ story: spelled(field.value) });
  field.addEventListener("blur", done);
  if (own) {
    const words = offerWords(field, vocabulary, done);
    box.append(element("div", { class: "own" }, element("label", {}, "your own: ", field), words));
  }
  return (story) => (field.value = now = story);
};
const checkStory = (story, vocabulary) => {
  const said = story.split(" "),
    strange = said.find((word) => !vocabulary.includes(word));
  if (strange !== undefined) check.fail("story", "of the words that the model knows", strange);
  if (said.length > 40) check.fail("story", "at most 40 words", said.length);
};
