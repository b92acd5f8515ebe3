// One word attends: its query can be turned, arcs are its weights, and springs hold what it gets. Its sentences are in attend.py.
const MARGIN = [12, 12, 34, 40];
const COILS = 12;
const pair = (point) => "(" + point.map((part) => format(part, ".1f")).join(", ") + ")";

/** Limits that hold all the points and the origin, as wide for a unit across as for one up. */
const limitsAround = (points, high, room) => {
  const [top, right, bottom, left] = MARGIN;
  const size = [288 - right - left, high - top - bottom];
  const ends = [0, 1].map((i) => {
    const parts = [0, ...points.map((point) => point[i])];
    return [Math.min(...parts), Math.max(...parts)];
  });
  const unit = room * Math.max(0.01, ...ends.map(([low, up], i) => (up - low) / size[i]));
  const [x, y] = ends.map(([low, up], i) =>
    [-1, 1].map((way) => (low + up + way * unit * size[i]) / 2),
  );
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

/** Draw a point for each word, with its name where there is room; words of more weight choose first. */
const nameWords = (panel, high, words, points, weights, keepOff) => {
  const [x, y] = panel.pixel(keepOff);
  const inside = [MARGIN[3], 0, 300, high - MARGIN[2]];
  const places = labels.place(
    points.map(panel.pixel),
    words,
    weights,
    [[x - 9, y - 9, x + 9, y + 9]],
    inside,
  );
  panel.dots("words", points, "gray");
  words.forEach((word, i) => {
    const free = places[i];
    panel.text("word " + i, free ? panel.point(free) : [0, 0], word, "ink middle");
    panel.hide("word " + i, !free);
  });
};

/** A spring between two points of a panel: straight ends, and coils between them. */
const spring = (panel, ...ends) => {
  const [[a, b], [c, d]] = ends.map(panel.pixel),
    length = Math.hypot(c - a, d - b) || 1;
  const [ux, uy] = [(c - a) / length, (d - b) / length],
    high = Math.min(5, length / 12);
  const coils = Array.from({ length: COILS + 1 }, (_, i) => 0.12 + (0.76 * i) / COILS);
  return [0, ...coils, 1].map((share, i) => {
    const along = length * share,
      aside = i < 2 || i > COILS ? 0 : i % 2 ? high : -high;
    return panel.point([a + ux * along - uy * aside, b + uy * along + ux * aside]);
  });
};

const attend = ({ place, data, move, morph }) => {
  const { tokens, far, sharpest } = data,
    { matmul, softmax } = lowrankLinalg;
  const roomy = matchMedia("(min-width: 601px)").matches;
  const [asked, keys, values] = data.maps.map((map) => matmul(data.numbers, map));
  const words = tokens.map((token) => labels.short(token));
  let state = null,
    weights = [],
    output = [0, 0];

  const spoken = arcs(place, {
    title: "Choose the word that listens",
    label: "the word that asks",
    wide: roomy ? 600 : 344,
    high: roomy ? 108 : 76,
    large: roomy ? 22 : 17.5,
    choose: (row) => morph({ row, query: asked[row] }),
  });
  const panels = controls.box(place, "panels"),
    height = roomy ? 288 : 220;
  const panel = (title) =>
    stage.panel(controls.titled(panels, title), { label: title, height, margin: MARGIN });
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

  spoken.words(tokens);
  frame(dial, limitsAround([[-far, -far], [far, far], ...keys], height, 1)); // wherever the query may go
  frame(hung, limitsAround(values, height, 1.3));
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
      weights = softmax(scores);
      output = vectors.average(values, weights);
      spoken.draw(state.row, weights, weights, "ink");
      nameWords(dial, height, words, keys, weights, state.query);
      dial.arrow("query", [0, 0], state.query, "ink");
      showQuery();
      values.forEach((value, i) => {
        hung.line("spring " + i, spring(hung, value, output), "ink spring").style.strokeWidth =
          0.4 + 6 * weights[i];
      });
      nameWords(hung, height, words, values, weights, output);
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
