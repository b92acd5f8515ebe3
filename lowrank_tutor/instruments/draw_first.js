// A guess first, then the truth: a number, a mark on a line, a word, or a curve. The words are in draw_first.py.
const drawFirst = ({ place, data, move, tell }) => {
  const { kind, truth, answer, question, x, note, words } = data;
  let state = { guess: null, shown: false };

  const commit = async () => {
    const guess = state.shown ? null : own.read();
    if (guess === null) return tell(state.shown ? sentence() : words.first);
    await move({ guess });
  };
  const asking = controls.element("p", { tabindex: -1 }, controls.element("b", {}, question));
  place.append(asking);
  const own = guesses.ways[kind](controls.box(place), controls.box(place, "single"), data, commit);
  const buttons = controls.box(place, "instrument-buttons");
  const readout = controls.element("dl", {});
  place.append(readout);
  controls.button(buttons, words.commit, commit);
  controls.button(buttons, words.show, () => move({ shown: true }));

  const sentence = () => {
    const { guess, shown } = state, { sentences } = words;
    if (!shown) return words.first;
    const said = guess === null ? fill(sentences.shown, { truth: answer })
      : fill(sentences[own.said(guess)], { guess: own.write(guess), truth: answer, gap: own.far(own.gap(guess)) });
    return [said, own.reading?.(guess), note].filter(Boolean).join(" ");
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
      const { guess, shown } = state;
      own.draw(state);
      buttons.hidden = shown; // and those to start again, or to copy a link, are there then: begun()
      if (held) asking.focus({ preventScroll: true }); // what was pressed is gone, and here no key does any harm
      readout.replaceChildren();
      if (guess === null) return;
      const value = controls.element("data", { "data-name": "gap", value: own.gap(guess) }, own.far(own.gap(guess)));
      const named = [controls.element("dt", {}, words.gap), controls.element("dd", {}, value)];
      readout.append(controls.element("div", {}, ...named));
    },
    numbers: () => (state.guess === null ? {} : { gap: own.gap(state.guess) }),
    table: () => ({ truth, ...(kind === "curve" ? { x } : {}) }),
    values: () => ({ words: sentence() }),
    clear: () => own.clear(),
    begun: () => state.shown,
  };
};
