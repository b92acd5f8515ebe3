// Drag two vectors whose score of rank 1 is the signed area of a rectangle. Its sentences are in score.py.
const REST = 400; // milliseconds without a change, after which the next one begins
const INNER = 240; // pixels across the rectangle's plane
const PLANE =
  "Drag s and h. The thick lines are their shadows. Along a dashed line the shadow stays the same.";
const AREA =
  "The score is the area a times b in unit squares, negative if a and b have different signs.";
const { dot, scaled, sum } = vectors;
const across = ([x, y]) => scaled([-y, x], 1 / Math.max(Math.abs(x), Math.abs(y)));
const near = (x, y) => Math.abs(x - y) <= 1e-9 * Math.max(1, Math.abs(x), Math.abs(y));
const footOn = (row, tip) => scaled(row, dot(row, tip) / dot(row, row));

/** The part of a line through a point that lies in the square. */
const chord = (from, along, reach) => {
  const met = (by, i) => [-1, 1].map((to) => (to * reach - from[i]) / by).sort((a, b) => a - b);
  const ends = along.map((by, i) => (by ? met(by, i) : [-Infinity, Infinity]));
  const [low, up] = [Math.max(ends[0][0], ends[1][0]), Math.min(ends[0][1], ends[1][1])];
  return [low, up].map((t) => sum(from, scaled(along, t)));
};

/** A vector, the line of its row, and its shadow on it. */
const drawVector = (plane, name, tip, { row, line, color }, reach) => {
  const [from, to] = chord([0, 0], row, reach);
  plane.line("line " + name, [from, to], color + " thin");
  const beside = sum(scaled(to, 0.86), scaled(across(row), -0.25));
  plane.text("line name " + name, beside, line, color + " middle");
  plane.line("same " + name, chord(tip, across(row), reach), color + " thin dashed");
  plane.arrow(name, [0, 0], tip, color);
  plane.line("shadow " + name, [[0, 0], footOn(row, tip)], color + " shade");
  plane.text("name " + name, sum(scaled(tip, 0.55), [0.15, 0.15]), name, color);
};

/** The plane of the rectangle: one unit is as long on both axes, so that unit squares can be counted. */
const areaPanel = (place, sides) => {
  const [far, deep] = [Math.max(sides[0], sides[1] / 1.2), Math.max(sides[1], sides[0] / 2)];
  const unit = 10 ** Math.floor(Math.log10(far / 2.5));
  const area = stage.panel(controls.titled(place, AREA), {
    label: AREA,
    width: INNER + 44,
    height: 40 + (INNER * deep) / far,
    margin: [6, 8, 34, 36],
  });
  const ticks = (most) => {
    const count = Math.floor(most / unit);
    return Array.from({ length: 2 * count + 1 }, (_, i) => (i - count) * unit);
  };
  return ({ score: size, a, b }) => {
    // A small area is seen from nearby: there are two distances, so that a larger one looks larger.
    const close = Math.abs(a) < 0.36 * far && Math.abs(b) < 0.36 * deep;
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
    const sign = size < 0 ? "violet" : "ink",
      zero = [0, 0],
      right = [a, 0],
      top = [0, b];
    area.rect("area", zero, [a, b], sign);
    area.line("edge", [right, [a, b], top], sign + " thin");
    area.line("a", [zero, right], "teal shade");
    area.line("b", [zero, top], "ink shade");
    const up = b < 0 ? -1 : 1,
      aside = a < 0 ? -1 : 1,
      em = (2 * wide * 13) / INNER;
    area.text("name a", [a / 2, (up < 0 ? 0.35 : -1.05) * em], "a", "teal middle");
    area.text("name b", [-aside * 0.5 * em, b / 2 - 0.3 * em], "b", "ink middle");
    const beyond = clamp(b + (up < 0 ? -1.15 : 0.4) * em, -high + 0.3 * em, high - 0.9 * em),
      middle = clamp(a / 2, -wide + 3 * em, wide - 3 * em);
    area.text("size", [middle, beyond], "area " + format(size, ".2f"), sign + " middle");
    area.separate("size", "name a", "name b");
  };
};

const score = ({ place, data, move }) => {
  const { u, v, w, reach } = data;
  // The state now, that before this change, and when it changed.
  let state = null,
    before = null,
    at = 0;
  const both = {
    s: { row: u, line: "u", color: "teal" },
    h: { row: v, line: "v", color: "ink" },
  };
  const numbers = () => {
    const whole = state.s.reduce(
      (all, one, i) => all + state.h.reduce((row, other, j) => row + one * w[i][j] * other, 0),
      0,
    );
    return { score: whole, a: dot(u, state.s), b: dot(v, state.h) };
  };

  const panels = controls.box(place, "panels");
  const plane = stage.panel(controls.titled(panels, PLANE), {
    label: PLANE,
    width: 300,
    height: 300,
    margin: [8, 8, 8, 8],
    x: [-reach, reach],
    y: [-reach, reach],
  });
  const drawArea = areaPanel(
    panels,
    [u, v].map(([a, b]) => 1.04 * reach * (Math.abs(a) + Math.abs(b))),
  );

  /** Beside its dashed line of before this change a tip is held there. */
  const tipOf = (name, { row, color }) => {
    const put = (point) => move({ [name]: vectors.tenths(point, reach) });
    const drag = (point) => {
      const rest = performance.now() - at > REST ? state : before;
      const held = sum(point, footOn(row, sum(rest[name], scaled(point, -1))));
      const fits = held.every((value) => Math.abs(value) <= reach);
      if (fits && plane.snap(point, [held]) === held) move({ [name]: held });
      else put(point);
    };
    const label = "tip of " + name;
    return vectors.tip(plane, name, { label, color, reach, at: () => state[name], put, drag });
  };
  const tips = Object.entries(both).map(([name, look]) => [name, look, tipOf(name, look)]);

  return {
    clean: ({ s, h }) => ({
      s: check.list("s", s, 2, -reach, reach),
      h: check.list("h", h, 2, -reach, reach),
    }),
    draw: (wished) => {
      if (!state || performance.now() - at > REST) before = state || wished;
      [state, at] = [wished, performance.now()];
      for (const [name, look, showTip] of tips) {
        drawVector(plane, name, state[name], look, reach);
        showTip();
      }
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
