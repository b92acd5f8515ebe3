// A curve is drawn, point by point or in one go; the truth then unfolds across it. predictions.js says what is returned.
predictions.ways.curve = (asked, holder, data) => {
  const { question, truth, x, limits, log, spec, titles, words } = data,
    [low, high] = limits;
  const across = [x[0], x[x.length - 1]],
    size = (high - low) / 100;
  const wider = [-0.04, 1.04].map((share) => stage.whole(share, across, log)); // so that no number meets another
  const panel = stage.panel(holder, {
    label: question,
    width: 336,
    height: 236,
    margin: [22, 8, 34, 50],
    x: wider,
    xLog: log,
    y: limits,
  });
  const middle = x.map(() => (low + high) / 2),
    over = (values) => values.map((value, i) => [x[i], value]);
  const off = (guess) => guess.map((value, i) => Math.abs(value - truth[i]));
  let draft = middle,
    touched = false;
  const put = (i, value) => {
    const rounded = Number((low + Math.round((value - low) / size) * size).toPrecision(12));
    [draft, touched] = [draft.map((old, j) => (j === i ? clamp(rounded, low, high) : old)), true];
    show();
  };
  const show = () => {
    panel.line("guess", over(draft), "teal");
    draft.forEach((value, i) =>
      panel.place("at " + i, [x[i], value], {
        value,
        min: low,
        max: high,
        text: predictions.written(value, data),
      }),
    );
  };
  const parts = x.map((one) => stage.part(one, across, log));
  const xs = parts.some((one, i) => one - parts[i - 1] < 0.09) ? predictions.ticks(across, log) : x;
  const paint = ([value, height]) => {
    const part = stage.part(Math.max(value, log ? 1e-300 : value), across, log);
    put(
      parts.reduce(
        (best, one, i) => (Math.abs(one - part) < Math.abs(parts[best] - part) ? i : best),
        0,
      ),
      height,
    );
  };
  panel.paint((point) => panel.svg.querySelector(".handle[hidden]") || paint(point));
  x.forEach((one, i) =>
    panel.handle("at " + i, {
      label: words.at + predictions.tick("g")(one),
      color: "teal",
      drag: paint,
      step: (dx, dy) => put(i, draft[i] + (dx + dy) * size),
      end: (which) => put(i, which < 0 ? low : high),
    }),
  );
  return {
    rule: (guess) => check.list("guess", guess, x.length, ...limits),
    gap: (guess) => off(guess).reduce((sum, one) => sum + one, 0) / x.length,
    grade: (guess) =>
      Number(off(guess).reduce((sum, one) => sum + one, 0) / x.length <= NEAR * (high - low)) / 2,
    far: predictions.apart(data),
    write: () => "", // too long to be said
    said: () => "curve",
    read: () => (touched ? draft : null),
    clear: () => ([draft, touched] = [middle, false]),
    draw: ({ guess, shown }) => {
      draft = guess || draft;
      const format = (value, axis) => predictions.tick(axis === "y" ? spec : "g")(value),
        [xTitle, yTitle] = titles;
      panel.axes({ x: xs, y: predictions.ticks(limits), xTitle, yTitle, format });
      show();
      predictions.hideHandles(panel, shown);
      panel.line("truth", over(truth), "ink unfold").setAttribute("pathLength", 1);
      const above = high + 4 * size; // of the frame, where no curve runs
      panel.text("truth words", [x[0], above], words.truth.slice(0, -2), "ink");
      panel.text("guess words", [x[x.length - 1], above], words.guess.slice(0, -2), "teal end");
      const hidden = {
        truth: !shown,
        guess: shown && !guess,
        "truth words": !shown,
        "guess words": !guess,
      };
      Object.entries(hidden).forEach(([one, hidden]) => panel.hide(one, hidden));
      if (guess) panel.line("guess", over(guess), "teal dashed");
    },
  };
};
