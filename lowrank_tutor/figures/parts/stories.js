// Stories that a reader chooses, or writes, for the figures of the storyteller.
/** Another story of a list, and with `own` a field for the reader's; returns what shows the story in use. */
const storyChoice = (place, { tales, own, move }) => {
  const box = controls.box(place, "instrument-buttons");
  let now = "";
  controls.button(box, "another story", () =>
    move({ story: tales[(tales.indexOf(now) + 1) % tales.length] }),
  );
  const field = element("input", {
    type: "text",
    "aria-label": "a story of your own",
    autocomplete: "off",
  });
  field.addEventListener("change", () =>
    move({
      story: field.value
        .split(/([.?:])|\s+/)
        .filter(Boolean)
        .join(" "),
    }),
  );
  if (own) box.append(element("label", {}, "your own: ", field));
  return (story) => (field.value = now = story);
};
/** The words that answer as well as this one: verbs of its number, or itself. */
const rightWords = (word, job, kinds) => {
  if (job === "agreement") return [kinds.does, kinds.do].find((kind) => kind.includes(word));
  return word ? [word] : [];
};
const checkStory = (story, vocabulary) => {
  const said = story.split(" "),
    strange = said.find((word) => !vocabulary.includes(word));
  if (strange !== undefined) check.fail("story", "of the words that the model knows", strange);
  if (said.length > 40) check.fail("story", "at most 40 words", said.length);
};
