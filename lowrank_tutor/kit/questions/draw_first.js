// A guess first, then the truth: a mark on a line, a word, or a curve. The words are in prediction.py. Each time it is
// drawn, the figure sends the event "guess", which bubbles and has both in words: a page can unfold what explains it.
const drawFirst = ({ figure, place, data, move, tell }) => {
  const { kind, truth, answer, question, x, then, words } = data;
  let state = { guess: null, shown: false };

  const answered = async (partial) => {
    await move(partial);
    if (!state.shown) return;
    tell(sentence()); // at once: this is what the reader has asked for
    carryOn(figure, then);
  };
  const commit = () => {
    const guess = state.shown ? null : own.read();
    if (guess === null) tell(state.shown ? sentence() : words.first);
    else answered({ guess });
  };
  place.append(element("p", { class: "eyebrow" }, words.eyebrow));
  const asking = element("p", { tabindex: -1, class: "question" }, question);
  place.append(asking);
  const own = predictions.ways[kind](
    controls.box(place),
    controls.box(place, "single"),
    data,
    commit,
  );
  const buttons = controls.box(place, "instrument-buttons asked");
  if (kind !== "choice") controls.button(buttons, words.commit, commit).className = "primary"; // there each answer is a button
  controls.button(buttons, words.show, () => answered({ shown: true }));

  const sentence = () => {
    const { guess, shown } = state,
      { sentences } = words;
    if (!shown) return words.first;
    return guess === null
      ? fill(sentences.shown, { truth: answer })
      : fill(sentences[own.said(guess)], {
          guess: own.write(guess),
          truth: answer,
          gap: own.far(own.gap(guess)),
          why: data.replies[guess] ?? "",
        });
  };

  return {
    clean: ({ guess, shown }) => {
      check.one("shown", shown, [true, false]);
      return guess === null ? { guess, shown } : { guess: own.rule(guess), shown: true };
    },
    draw: (wished) => {
      if (state.shown && !wished.shown) own.clear();
      const held = state.shown !== wished.shown && place.contains(document.activeElement);
      state = wished;
      own.draw(state);
      buttons.hidden = state.shown; // and those to start again, or to copy a link, are there then: begun()
      if (held) asking.focus({ preventScroll: true }); // what was pressed is gone, and here no key does any harm
      const you = state.guess === null ? "" : own.write(state.guess);
      const detail = { you, answer: state.shown && kind !== "curve" ? answer : "" }; // that of a curve is too long
      figure.dispatchEvent(new CustomEvent("guess", { bubbles: true, detail }));
    },
    numbers: () =>
      state.guess === null ? {} : { gap: own.gap(state.guess), grade: own.grade(state.guess) },
    table: () => ({ truth, ...(kind === "curve" ? { x } : {}) }),
    values: () => ({ words: sentence() }),
    clear: () => own.clear(),
    begun: () => state.shown,
  };
};
