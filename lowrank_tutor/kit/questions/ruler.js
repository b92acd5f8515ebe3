// A line on which guess and truth stand, the truth lower, and the gap between them.
const ruler = (holder, data) => {
  const { question, truth, answer, log, spec, titles, words } = data;
  const roomy = matchMedia("(min-width: 601px)").matches; // there it is as long as the figure is wide
  holder.classList.toggle("single", !roomy);
  const size = { width: roomy ? 640 : 336, height: 104, margin: [36, 30, 34, 30] };
  const panel = stage.panel(holder, { label: question, xLog: log, ...size });
  let limits = null;
  const LETTER = 7; // pixels that a letter is wide, about
  /** Draw a mark with its words: away from the other mark, whose line may be taller, if there is room for them. */
  const mark = (name, value, height, text, color, other) => {
    const [x] = panel.pixel([value, 0]),
      long = LETTER * text.length;
    const room = { "": size.width - x, " end": x, " middle": 2 * Math.min(x, size.width - x) };
    const sides = [" middle", ...(value < other ? [" end", ""] : ["", " end"])];
    if (other !== null) [sides[0], sides[1]] = [sides[1], sides[0]];
    const best = sides.find((side) => room[side] >= long) ?? (x < size.width / 2 ? "" : " end");
    panel.line(
      name,
      [
        [value, 0],
        [value, height],
      ],
      color,
    );
    panel.text(name + " words", [value, height], text, color + best);
  };
  return {
    panel,
    limit: (wished) => {
      limits = wished;
      panel.resize({ x: limits });
      const round = predictions.ticks(limits, log),
        last = stage.part(round[round.length - 1], limits, log);
      const far = last < 0.85; // from the end of the line, which is then written, too
      panel.line(
        "base",
        limits.map((limit) => [limit, 0]),
        "gray thin",
      );
      panel.axes({
        x: far ? [...round, limits[1]] : round,
        xTitle: titles[0],
        format: predictions.tick(spec),
      });
    },
    reveal: ({ guess, shown }) => {
      if (shown) mark("truth", truth, 1.05, words.truth + answer, "ink", guess);
      if (guess !== null) {
        mark("guess", guess, 1.52, words.guess + predictions.written(guess, data), "teal", truth);
        panel
          .line(
            "gap",
            [
              [guess, 0.5],
              [truth, 0.5],
            ],
            "orange unfold",
          )
          .setAttribute("pathLength", 1);
      }
      ["truth", "truth words"].forEach((one) => panel.hide(one, !shown));
      ["guess", "guess words", "gap"].forEach((one) => panel.hide(one, guess === null));
    },
  };
};
