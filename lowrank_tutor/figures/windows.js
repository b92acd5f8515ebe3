// Windows over a sentence and a query among its keys, to be dragged. Its sentences are in windows.py.
const windows = ({ place, data, move }) => {
  const { reach, most, sharpest, fine } = data;
  const COLORS = { exact: "ink", mixed: "teal" }, NAMES = { exact: "exact", mixed: "windows" };
  const even = (k, n) => Array.from({ length: k }, (_, i) => Math.floor(i * n / k));
  const own = typed(data), { split } = own, { dot, average, mean } = vectors;
  const percent = (share) => format(share, ".0%"), { short } = labels;
  let rows = 0; // how many words the list has axes for
  let state = null, tokens = [], keys = [], values = [], ends = [], members = [], means = [], weights = {}, output = {};

  const compute = () => {
    tokens = split(state.words);
    const all = tokens.map((word) => own.numbers(word, data.keys, data.values));
    [keys, values] = [all.map((four) => four.slice(0, 2)), all.map((four) => four.slice(2))];
    ends = [...state.borders.slice(1), tokens.length];
    members = tokens.map((_, i) => ends.findIndex((end) => i < end));
    means = [keys, values].map((rows) => ends.map((end, j) => mean(rows.slice(state.borders[j], end))));
    const logit = (key) => state.sharpness * dot(key, state.query) / Math.SQRT2;
    const attend = (some) => lowrankLinalg.softmax(some.map(logit));
    weights = { exact: attend(keys), mixed: attend(means[0]) };
    output = { exact: average(values, weights.exact), mixed: average(means[1], weights.mixed) };
  };
  const gap = () =>
    Math.hypot(...[0, 1].map((j) => output.exact[j] - output.mixed[j])) / (Math.hypot(...output.exact) || 1);

  // What there is to see, and to take hold of
  const panels = controls.box(place, "panels");
  const roomy = matchMedia("(min-width: 601px)").matches; // a phone shows all of it on two screens
  const HIGH = { plane: roomy ? 284 : 192, list: 264, result: 152 };
  const size = { width: 300, margin: [8, 8, 8, 8] }, inner = (name) => (HIGH[name] - 16) / 284;
  const open = (name, label, more) =>
    stage.panel(controls.titled(panels, label), { label, ...size, height: HIGH[name], ...more });
  const wide = reach / inner("plane"), axes = { x: [-wide, wide], y: [-reach, reach] }; // square units
  const looks = "Keys. Drag the query: it looks at keys in its direction. Teal: the mean key of each window.";
  const bars = "Weights. Narrow bars: exact. Teal: through windows, shared equally by the words. Drag the borders.";
  const plane = open("plane", looks, axes), list = open("list", bars, { margin: [4, 44, 32, 78] });
  const result = open("result", "Values, and what the query gets, exactly and through windows");
  const shown = controls.element("b");
  const between = "The line between what the query gets exactly and through windows. Gray: the values.";
  panels.lastChild.firstChild.replaceChildren(shown, between);
  const side = controls.box(panels);
  const showQuery = vectors.tip(plane, "query", {
    label: "tip of the query", color: "ink", reach, at: () => state.query,
    put: (point) => move({ query: vectors.tenths(point, reach) }),
  });
  const shift = (j, to) => {
    const borders = state.borders.slice();
    borders[j] = clamp(Math.round(to), borders[j - 1] + 1, ends[j] - 1);
    move({ borders });
  };
  const grips = list.svg.getElementsByClassName("handle"); // those that are not needed now are hidden
  const placeBorders = () => {
    for (let j = grips.length + 1; j < ends.length; j++) {
      list.handle("border " + j, {
        label: "border " + j + ", between windows", color: "orange", axis: "y", large: 3,
        drag: ([, y]) => shift(j, y),
        share: j % 2 ? 0.66 : 0.4, // knobs of neighbors stand apart
        step: (dx, dy) => shift(j, state.borders[j] + dx - dy), end: (which) => shift(j, which * most),
      });
    }
    [...grips].forEach((grip, i) => grip.toggleAttribute("hidden", i + 1 >= ends.length));
    state.borders.slice(1).forEach((at, i) => list.place("border " + (i + 1), [0.5, at], {
      value: at, min: state.borders[i] + 1, max: ends[i + 1] - 1,
      text: "between " + tokens[at - 1] + " and " + tokens[at],
    }));
  };
  const sliders = controls.box(place, "sliders");
  const sharpness = controls.range(sliders, {
    label: "sharpness", min: 0, max: sharpest, step: 0.1, input: (value) => move({ sharpness: value }),
  });
  const count = controls.range(sliders, {
    label: "windows", min: 1, max: most, step: 1, input: (k) => move({ borders: even(k, tokens.length) }),
  });
  const counter = sliders.lastChild.querySelector("input");
  const field = own.field(side, (typed) =>
    move({ words: typed.join(" "), borders: even(Math.min(4, typed.length) || 1, typed.length) }));
  side.append(controls.element("p", {}, "Words of the first sentence have numbers chosen by hand: right for a creature, "
    + "up for what happens. Others get random ones, drawn from their spelling."));

  // What is drawn
  const drawPoints = (panel, rows, centers, height, named = []) => {
    const taken = named.map(([word, at]) => labels.box(word, panel.pixel(at)));
    const free = labels.place(rows.map(panel.pixel), tokens.map((word) => short(word)), weights.exact, taken, [0, 0, 300, height]);
    const twin = (i) => rows.findIndex((row, j) => tokens[j] === tokens[i] && String(row) === String(rows[i])) < i;
    const each = Array.from({ length: most }, (_, i) => i);
    each.forEach((i) => { // all lines before all words: none is struck through
      panel.line("spoke " + i, rows[i] ? [rows[i], centers[members[i]]] : [], "teal thin");
      panel.hide("spoke " + i, !rows[i]);
    });
    panel.dots("tokens", rows, "gray");
    panel.dots("means", centers, "teal");
    each.forEach((i) => { // a word that is there twice, on one point, is written once
      panel.text("word " + i, free[i] ? panel.point(free[i]) : [0, 0], short(tokens[i]), "gray middle");
      panel.hide("word " + i, !free[i] || twin(i));
    });
  };
  const drawList = () => {
    const n = tokens.length;
    if (n !== rows) list.resize({ y: [n, 0] });
    if (n !== rows) list.axes({ x: [0, 0.5, 1], xTitle: "weight (right: of a whole window)", format: percent });
    rows = n;
    for (let j = 0; j < most; j++) {
      const [from, to] = [state.borders[j] || 0, ends[j] || 0], share = weights.mixed[j] / (to - from) || 0;
      list.rect("mixed " + j, [0, from], [share, to], "teal");
      list.line("edge " + j, [[0, from], [share, from], [share, to], [0, to]], "teal thin");
      list.text("total " + j, [1.24, (from + to) / 2 + n / 58], percent(weights.mixed[j] || 0), "teal end");
      ["mixed ", "edge ", "total "].forEach((name) => list.hide(name + j, j >= ends.length));
    }
    for (let i = 0; i < most; i++) {
      list.rect("exact " + i, [0, i + 0.3], [weights.exact[i] || 0, i + 0.7], "ink solid");
      list.text("word " + i, [-0.03, i + 0.5 + n / 58], short(tokens[i]), "ink end");
      ["exact ", "word "].forEach((name) => list.hide(name + i, i >= n));
    }
  };
  const drawResult = () => {
    const all = [...values, [0, 0]], tall = inner("result");
    const [[x, wide], [y, high]] = [0, 1].map((j) => {
      const [low, up] = [Math.min, Math.max].map((pick) => pick(...all.map((row) => row[j])));
      return [(low + up) / 2, (up - low) / 2];
    });
    const half = 1.2 * Math.max(high, wide * tall, 0.1);
    result.resize({ x: [x - half / tall, x + half / tall], y: [y - half, y + half] });
    result.line("axes", [[x - half / tall, 0], [x + half / tall, 0], [0, 0], [0, y - half], [0, y + half]],
      "gray thin dotted");
    const upper = output.exact[1] >= output.mixed[1] ? "exact" : "mixed"; // its name stands above, the other's below
    const named = Object.keys(COLORS).map((way) =>
      [NAMES[way], [output[way][0], output[way][1] + (way === upper ? 0.13 : -0.27) * half], way]);
    result.line("gap", [output.exact, output.mixed], "orange"); // before the words, too
    drawPoints(result, values, means[1], HIGH.result, named);
    named.forEach(([word, at, way]) => {
      result.dots(way, [output[way]], COLORS[way] + " large");
      result.text("name " + way, at, word, COLORS[way] + " middle");
    });
  };

  return {
    clean: (wished) => {
      const found = own.parse(wished.words), { borders } = wished;
      const rule = "whole numbers from 0, each larger than the one before and below " + found.length;
      const fits = Array.isArray(borders) && borders[0] === 0 && borders.every((border, i) =>
        Number.isInteger(border) && border < found.length && (i === 0 || border > borders[i - 1]));
      return {
        borders: fits ? borders : check.fail("borders", rule, borders),
        sharpness: check.number("sharpness", wished.sharpness, 0, sharpest),
        query: check.list("query", wished.query, 2, -reach, reach), words: found.join(" "),
      };
    },
    draw: (wished) => {
      state = wished;
      compute();
      vectors.axes(plane, wide, reach);
      drawPoints(plane, keys, means[0], HIGH.plane);
      plane.arrow("query", [0, 0], state.query, "ink");
      showQuery();
      drawList();
      placeBorders();
      drawResult();
      sharpness.show(state.sharpness, "scores times " + format(state.sharpness, ".3g"));
      stage.write(counter, { max: tokens.length });
      count.show(ends.length, ends.length + " for " + tokens.length + " words");
      stage.say(shown, "Gap: " + format(gap(), ".1%"));
      field.show(state.words);
    },
    numbers: () => ({ gap: gap(), weights_exact: weights.exact.length, weights_mixed: weights.mixed.length }),
    table: () => ({ keys, values }),
    eases: { query: 0, sharpness: 0 },
    glow: () => (gap() < fine && ends.length < tokens.length ? "gap" : ""),
    clear: field.clear,
    values: () => {
      const at = weights.exact.indexOf(Math.max(...weights.exact)), window = members[at];
      const size = ends[window] - state.borders[window];
      return { most: tokens[at], share: weights.exact[at], through: weights.mixed[window] / size };
    },
    remarks: () => {
      const made = own.remark(tokens);
      if (ends.length === tokens.length) return ["each", ...made];
      if (ends.length === 1) return ["single", ...made];
      if (state.sharpness === 0 || Math.hypot(...state.query) === 0) return ["votes", ...made];
      return [...(gap() < fine ? ["near"] : []), ...made];
    },
  };
};
