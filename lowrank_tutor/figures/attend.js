// One word attends: its query can be turned, arcs are its weights, and springs hold what it gets. Its sentences are in attend.py.
const attend = ({ place, data, move, morph }) => {
  const { tokens, far, sharpest } = data,
    { matmul, softmax } = lowrankLinalg;
  const roomy = matchMedia("(min-width: 601px)").matches;
  const [asked, keys, values] = data.maps.map((map) =>
    matmul(data.numbers, map).map((row) => Array.from(row)),
  );
  let state = null,
    weights = [],
    output = [0, 0];

  const pair = (point) => "(" + point.map((part) => format(part, ".1f")).join(", ") + ")";

  const spoken = arcs(place, {
    title: "Choose the word that listens",
    label: "the word that asks",
    wide: roomy ? 600 : 344,
    high: roomy ? 108 : 76,
    large: roomy ? 22 : 17.5,
    choose: (row) => morph({ row, query: asked[row] }),
  });
  const panels = controls.box(place, "panels"),
    HIGH = roomy ? 288 : 220,
    margin = [12, 12, 34, 40];
  const panel = (title) =>
    stage.panel(controls.titled(panels, title), { label: title, height: HIGH, margin });
  const dial = panel("Query and keys: drag the arrow"),
    hung = panel("Values, and what the word gets");
  const turn = (query) => move({ query: vectors.tenths(query, far) });
  dial.paint(turn);
  const showQuery = vectors.tip(dial, "query", {
    label: "tip of the query",
    color: "ink",
    reach: far,
    at: () => state.query,
    put: turn,
  });

  // What few ask for
  const more = place.appendChild(
    element("details", { class: "more" }, element("summary", {}, "More")),
  );
  const sharpness = controls.range(more, {
    label: "sharpness",
    min: 0,
    max: sharpest,
    step: 0.1,
    input: (value) => move({ sharpness: value }),
  });

  /** Limits that hold all the points and the origin, as wide for a unit across as for one up. */
  const around = (points, room) => {
    const [wide, tall] = [288 - margin[1] - margin[3], HIGH - margin[0] - margin[2]];
    const ends = [0, 1].map((i) => {
      const parts = [0, ...points.map((point) => point[i])];
      return [Math.min(...parts), Math.max(...parts)];
    });
    const unit =
      room * Math.max(0.01, ...ends.map(([low, high], i) => (high - low) / [wide, tall][i]));
    const [x, y] = ends.map(([low, high], i) => {
      const half = (unit * [wide, tall][i]) / 2;
      return [(low + high) / 2 - half, (low + high) / 2 + half];
    });
    return { x, y };
  };
  const frame = (panel, limits) => {
    const ticks = ([low, high]) => [-4, -2, 0, 2, 4].filter((tick) => tick > low && tick < high);
    panel.resize(limits);
    panel.axes({
      x: ticks(limits.x),
      y: ticks(limits.y),
      xTitle: "creature",
      yTitle: "what happens",
    });
  };
  const name = (panel, points, keepOff) => {
    const taken = keepOff.map(([x, y]) => [x - 9, y - 9, x + 9, y + 9]);
    const written = tokens.map((word) => labels.short(word));
    const free = labels.place(points.map(panel.pixel), written, weights, taken, [
      margin[3],
      0,
      300,
      HIGH - margin[2],
    ]);
    panel.dots("words", points, "gray");
    tokens.forEach((token, i) => {
      panel.text(
        "word " + i,
        free[i] ? panel.point(free[i]) : [0, 0],
        labels.short(token),
        "ink middle",
      );
      panel.hide("word " + i, !free[i]);
    });
  };
  /** A spring between two points, in pixels: straight ends, and coils between them. */
  const spring = (from, to) => {
    const [a, b] = [from, to].map(hung.pixel),
      length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
    const [ux, uy] = [(b[0] - a[0]) / length, (b[1] - a[1]) / length],
      coils = 12,
      high = Math.min(5, length / 12);
    return Array.from({ length: coils + 3 }, (_, i) => {
      const along =
        length *
        [0, ...Array.from({ length: coils + 1 }, (_, j) => 0.12 + (0.76 * j) / coils), 1][i];
      const aside = i < 2 || i > coils ? 0 : i % 2 ? high : -high;
      return hung.point([a[0] + ux * along - uy * aside, a[1] + uy * along + ux * aside]);
    });
  };

  spoken.words(tokens);
  frame(dial, around([[-far, -far], [far, far], ...keys], 1)); // wherever the query may go
  frame(hung, around(values, 1.3));
  return {
    eases: { query: 0 },
    clean: ({ row, query, sharpness }) => ({
      row: check.whole("row", row, 0, tokens.length - 1),
      query: check.list("query", query, 2, -far, far),
      sharpness: check.number("sharpness", sharpness, 0, sharpest),
    }),
    draw: (wished) => {
      state = wished;
      const scores = keys.map(
        ([x, y]) => (state.sharpness * (x * state.query[0] + y * state.query[1])) / Math.SQRT2,
      );
      weights = Array.from(softmax(scores));
      output = vectors.average(values, weights);
      spoken.draw(state.row, weights, weights, "ink");
      name(dial, keys, [dial.pixel(state.query)]);
      dial.arrow("query", [0, 0], state.query, "ink");
      showQuery();
      values.forEach((value, i) => {
        hung.line("spring " + i, spring(value, output), "ink spring").style.strokeWidth =
          0.4 + 6 * weights[i];
      });
      name(hung, values, [hung.pixel(output)]);
      hung.dots("output", [output], "ink large");
      sharpness.show(state.sharpness, "scores times " + format(state.sharpness, ".1f"));
    },
    numbers: () => ({ share: Math.max(...weights), creature: output[0], happens: output[1] }),
    table: () => ({ keys, values, weights }),
    values: () => {
      const top = Math.max(...weights),
        level = top - Math.min(...weights) < 1e-6;
      const most = level ? "all alike" : "“" + tokens[weights.indexOf(top)] + "”";
      return { word: tokens[state.row], most, asks: pair(state.query), gets: pair(output) };
    },
    remarks: () => (Math.hypot(...state.query) * state.sharpness === 0 ? ["nothing"] : []),
  };
};
