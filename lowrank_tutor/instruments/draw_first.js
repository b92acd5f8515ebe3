// Guess first, then see: a number, a mark on a line, a word, or a curve. Words: draw_first.py; hands: guesses.js.
const drawFirst = ({ place, data, move, tell }) => {
  const { kind, truth, answer, question, choices, x, limits, log, spec, note, words } = data;
  const isCurve = kind === "curve", isChoice = kind === "choice";
  let state = { guess: null, shown: false };

  const commit = async () => {
    const guess = state.shown ? null : own.read();
    if (guess === null) return tell(state.shown ? sentence() : words.first);
    await move({ guess });
    if (state.shown) show.focus(); // the button pressed is gone
  };
  const holder = controls.element("div", { class: "single" }), asked = controls.element("div", {});
  place.append(controls.element("p", {}, controls.element("b", {}, question)), asked, holder);
  const own = guesses.make(asked, holder, data, commit);
  const buttons = controls.element("div", { class: "instrument-buttons" });
  const readout = controls.element("dl", {});
  place.append(buttons, readout);
  const done = controls.button(buttons, words.commit, commit);
  const show = controls.button(buttons, words.show, () => move({ shown: true }));

  const gap = (guess) => {
    if (isChoice) return Number(guess !== truth);
    if (isCurve) return guess.reduce((sum, value, i) => sum + Math.abs(value - truth[i]), 0) / x.length;
    return log ? Math.max(guess / truth, truth / guess) : Math.abs(guess - truth);
  };
  const far = (value) => {
    if (isChoice) return words.hits[value];
    if (log && !isCurve) return words.factor + format(value, ".3g");
    return guesses.isPercent(spec) ? format(100 * value, ".3g") + words.points : guesses.written(value, data);
  };
  const sentence = () => {
    const { guess, shown } = state, { sentences } = words;
    if (!shown) return words.first;
    const written = guess === null || isCurve ? "" : isChoice ? guess : guesses.written(guess, data);
    const values = { guess: written, truth: answer, gap: guess === null ? "" : far(gap(guess)) };
    const said = guess === null ? "shown" : written === answer ? "correct" : isChoice || isCurve ? kind
      : guess < truth ? "low" : "high";
    return [fill(sentences[said], values), note].join(" ").trim();
  };

  const rules = {
    number: (guess) => check.number("guess", guess, -1e15, 1e15),
    mark: (guess) => check.number("guess", guess, ...limits),
    choice: (guess) => check.one("guess", String(guess), choices), // an address cannot tell 5 from "5"
    curve: (guess) => check.list("guess", guess, x.length, ...limits),
  };
  return {
    clean: ({ guess, shown }) => {
      check.one("shown", shown, [true, false]);
      return guess === null ? { guess, shown } : { guess: rules[kind](guess), shown: true };
    },
    draw: (wished) => {
      if (state.shown && !wished.shown) own.clear();
      state = wished;
      const { guess, shown } = state;
      own.draw(state);
      done.hidden = shown;
      readout.replaceChildren();
      if (guess === null) return;
      const value = controls.element("data", { "data-name": "gap", value: gap(guess) }, far(gap(guess)));
      const named = [controls.element("dt", {}, words.gap), controls.element("dd", {}, value)];
      readout.append(controls.element("div", {}, ...named));
    },
    numbers: () => (state.guess === null ? {} : { gap: gap(state.guess) }),
    table: () => ({ truth, ...(isCurve ? { x } : {}) }),
    values: () => ({ words: sentence() }),
  };
};
