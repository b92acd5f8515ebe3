// Where do guess and truth stand, if both are numbers? On a line, the truth lower, and between them the gap.
const ruler = (holder, data) => {
  const { question, truth, answer, log, spec, titles, words } = data;
  const size = { width: 336, height: 112, margin: [40, 30, 34, 30] };
  const panel = stage.panel(holder, { label: question, xLog: log, ...size });
  let limits = null;
  const mark = (name, value, height, text, color) => {
    const part = stage.part(value, limits, log);
    panel.line(name, [[value, 0], [value, height]], color);
    panel.text(name + " words", [value, height], text, color + (part < 0.3 ? "" : part > 0.7 ? " end" : " middle"));
  };
  return {
    panel,
    limit: (wished) => {
      limits = wished;
      panel.resize({ x: limits });
      const round = guesses.ticks(limits, log), last = stage.part(round[round.length - 1], limits, log);
      const far = data.limits && last < 0.85; // from the end of the line, which is then written, too
      panel.axes({ x: far ? [...round, limits[1]] : round, xTitle: titles[0], format: guesses.tick(spec) });
    },
    reveal: ({ guess, shown }) => {
      if (shown) mark("truth", truth, 1.05, words.truth + answer, "orange");
      if (guess !== null) {
        mark("guess", guess, 1.52, words.guess + guesses.written(guess, data), "teal");
        panel.line("gap", [[guess, 0.5], [truth, 0.5]], "orange unfold").setAttribute("pathLength", 1);
      }
      ["truth", "truth words"].forEach((one) => panel.hide(one, !shown));
      ["guess", "guess words", "gap"].forEach((one) => panel.hide(one, guess === null));
    },
  };
};
