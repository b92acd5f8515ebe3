// Drag two vectors whose score of rank 1 is the signed area of a rectangle. Its sentences are in score.py.
const score = ({ place, data, move }) => {
  const { u, v, w, reach } = data;
  const { dot, scaled, sum } = vectors;
  const TITLES = [
    "Drag s and h. The thick lines are their shadows. Along a dashed line the shadow stays the same.",
    "The score is the area a times b in unit squares, negative if a and b have different signs.",
  ];
  const across = ([x, y]) => scaled([-y, x], 1 / Math.max(Math.abs(x), Math.abs(y)));
  const near = (x, y) => Math.abs(x - y) <= 1e-9 * Math.max(1, Math.abs(x), Math.abs(y));
  const VECTORS = {
    s: { row: u, name: "u", color: "teal" },
    h: { row: v, name: "v", color: "ink" },
  };
  const numbers = () => {
    const whole = state.s.reduce(
      (all, one, i) => all + state.h.reduce((row, other, j) => row + one * w[i][j] * other, 0),
      0,
    );
    return { score: whole, a: dot(u, state.s), b: dot(v, state.h) };
  };
  const REST = 400; // milliseconds without a change, after which the next one begins
  let state = null,
    before = null,
    at = 0; // the state now, that before this change, and when it changed

  // What there is to see: one unit is as long on both axes of the rectangle, so that unit squares can be counted
  const panels = controls.box(place, "panels");
  const [left, right] = TITLES.map((title) => controls.titled(panels, title));
  const plane = stage.panel(left, {
    label: TITLES[0],
    width: 300,
    height: 300,
    margin: [8, 8, 8, 8],
    x: [-reach, reach],
    y: [-reach, reach],
  });
  const most = [u, v].map(([a, b]) => 1.04 * reach * (Math.abs(a) + Math.abs(b)));
  const [far, deep] = [Math.max(most[0], most[1] / 1.2), Math.max(most[1], most[0] / 2)];
  const inner = 240,
    unit = 10 ** Math.floor(Math.log10(far / 2.5));
  const area = stage.panel(right, {
    label: TITLES[1],
    width: inner + 44,
    height: 40 + (inner * deep) / far,
    margin: [6, 8, 34, 36],
  });
  const ticks = (most) => {
    const count = Math.floor(most / unit);
    return Array.from({ length: 2 * count + 1 }, (_, i) => (i - count) * unit);
  };

  // What can be taken hold of: beside its dashed line of before this change a tip is held there
  const fits = (point) => point.every((value) => Math.abs(value) <= reach);
  const showTip = Object.fromEntries(
    Object.entries(VECTORS).map(([name, { row, color }]) => {
      const put = (point) => move({ [name]: vectors.tenths(point, reach) });
      const drag = (point) => {
        const rest = performance.now() - at > REST ? state : before;
        const way = sum(rest[name], scaled(point, -1));
        const held = sum(point, scaled(row, dot(row, way) / dot(row, row)));
        if (fits(held) && plane.snap(point, [held]) === held) move({ [name]: held });
        else put(point);
      };
      return [
        name,
        vectors.tip(plane, name, {
          label: "tip of " + name,
          color,
          reach,
          at: () => state[name],
          put,
          drag,
        }),
      ];
    }),
  );

  // What is drawn
  /** Return the part of a line through a point that lies in the square. */
  const chord = (from, along) => {
    const met = (by, i) => [-1, 1].map((to) => (to * reach - from[i]) / by).sort((a, b) => a - b);
    const ends = along.map((by, i) => (by ? met(by, i) : [-Infinity, Infinity]));
    const [low, up] = [Math.max(ends[0][0], ends[1][0]), Math.min(ends[0][1], ends[1][1])];
    return [low, up].map((t) => sum(from, scaled(along, t)));
  };
  const drawVector = (name) => {
    const { row, color } = VECTORS[name],
      tip = state[name];
    const foot = scaled(row, dot(row, tip) / dot(row, row));
    const line = chord([0, 0], row);
    plane.line("line " + name, line, color + " thin");
    const beside = sum(scaled(line[1], 0.86), scaled(across(row), -0.25));
    plane.text("line name " + name, beside, VECTORS[name].name, color + " middle");
    plane.line("same " + name, chord(tip, across(row)), color + " thin dashed");
    plane.arrow(name, [0, 0], tip, color);
    plane.line("shadow " + name, [[0, 0], foot], color + " shade");
    plane.text("name " + name, sum(scaled(tip, 0.55), [0.15, 0.15]), name, color);
    showTip[name]();
  };
  const drawArea = ({ score: size, a, b }) => {
    // A small area is seen from nearby: there are two distances, so that a larger one looks larger.
    const close = Math.abs(a) < 0.36 * far && Math.abs(b) < 0.36 * deep,
      sign = size < 0 ? "violet" : "ink";
    const [wide, high] = scaled([far, deep], close ? 0.4 : 1);
    area.resize({ x: [-wide, wide], y: [-high, high] });
    area.axes({
      x: ticks(wide),
      y: ticks(high),
      xTitle: "a = u · s",
      yTitle: "b = v · h",
      format: (value) => (Math.round(value / unit) % (close ? 2 : 5) ? "" : format(value, ".3g")),
    });
    vectors.axes(area, wide, high);
    area.rect("area", [0, 0], [a, b], sign);
    area.line(
      "edge",
      [
        [a, 0],
        [a, b],
        [0, b],
      ],
      sign + " thin",
    );
    area.line(
      "a",
      [
        [0, 0],
        [a, 0],
      ],
      "teal shade",
    );
    area.line(
      "b",
      [
        [0, 0],
        [0, b],
      ],
      "ink shade",
    );
    const up = b < 0 ? -1 : 1,
      aside = a < 0 ? -1 : 1,
      em = (2 * wide * 13) / inner;
    area.text("name a", [a / 2, (up < 0 ? 0.35 : -1.05) * em], "a", "teal middle");
    area.text("name b", [-aside * 0.5 * em, b / 2 - 0.3 * em], "b", "ink middle");
    const beyond = clamp(b + (up < 0 ? -1.15 : 0.4) * em, -high + 0.3 * em, high - 0.9 * em);
    area.text(
      "size",
      [clamp(a / 2, -wide + 3 * em, wide - 3 * em), beyond],
      "area " + format(size, ".2f"),
      sign + " middle",
    );
    area.separate("size", "name a", "name b");
  };

  return {
    clean: ({ s, h }) => ({
      s: check.list("s", s, 2, -reach, reach),
      h: check.list("h", h, 2, -reach, reach),
    }),
    draw: (wished) => {
      if (!state || performance.now() - at > REST) before = state || wished;
      [state, at] = [wished, performance.now()];
      ["s", "h"].forEach(drawVector);
      plane.separate("line name s", "line name h", "name s", "name h");
      drawArea(numbers());
    },
    numbers,
    eases: { s: 0, h: 0 },
    table: () => ({ u: [u], v: [v], w }),
    remarks: () => {
      const { a, b } = numbers();
      if (near(a, 0) || near(b, 0)) return ["zero"];
      const moved = [...state.s, ...state.h].join() !== [...before.s, ...before.h].join();
      return moved && near(a, dot(u, before.s)) && near(b, dot(v, before.h)) ? ["same"] : [];
    },
  };
};
