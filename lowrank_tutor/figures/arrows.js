// The columns of a 2 x 2 matrix and a unit vector, to be dragged. Its sentences are in arrows.py.
const TURN = Math.PI / 180;
const COLORS = ["teal", "violet"];
const { dot, scaled, sum, written } = vectors;
const times = ([[a, b], [c, d]], [x, y]) => [a * x + b * y, c * x + d * y];
const columnOf = (a, j) => a.map((row) => row[j]);
const onCircle = (theta) => [Math.cos(theta), Math.sin(theta)];
const angle = ([x, y]) => Math.atan2(y, x);
const degrees = (theta) => ((Math.round(theta / TURN) % 360) + 360) % 360;
const square = (r) => ({ x: [-r, r], y: [-r, r] });
const around = Array.from({ length: 121 }, (_, i) => onCircle(i * 3 * TURN));
const imageOf = ({ a, theta }) => times(a, onCircle(theta));
const rankOf = ({ s }) => s.filter((one) => one > 2 * 2 ** -52 * s[0]).length;
const isRound = ({ s }) => s[0] - s[1] < 0.01 * s[0]; // then every direction is a singular one

/** A direction that is half a degree from a singular one is taken for it. */
const near = (theta, svd) => {
  const off = angle(columnOf(svd.v, 0)) - theta;
  const least = off - (Math.round((2 * off) / Math.PI) * Math.PI) / 2;
  return isRound(svd) || Math.abs(least) > 0.75 * TURN ? theta : theta + least;
};

const grid = (value) => Math.round(value * 10) / 10; // so that two columns can lie on one line
/** The place on the line of the other column that is nearest, if it is one of the grid: there the rank is 1. */
const onLine = (other, point) => {
  const [p, q] = other;
  const [a, b] = scaled(other, dot(other, point) / (dot(other, other) || 1)).map(grid);
  return Math.abs(a * q - b * p) < 1e-9 ? [[a, b]] : [];
};

/** The mark of a right angle between p and q. */
const corner = (p, q, size) => {
  const [e, f] = [p, q].map((one) => scaled(one, size / (Math.hypot(...one) || 1)));
  return [e, sum(e, f), f];
};
const isRight = (p, q) => {
  const lengths = Math.hypot(...p) * Math.hypot(...q);
  return lengths > 1e-12 && Math.abs(dot(p, q)) <= 0.005 * lengths;
};

/** The columns, and what their sums reach. */
const drawColumns = (outputs, { a }, reach, reached) => {
  outputs.resize(square(reached));
  outputs.axes({});
  vectors.axes(outputs, reached);
  const ellipse = around.map((point) => times(a, point));
  outputs.area("ellipse", ellipse, "gray");
  outputs.line("edge", ellipse, "gray");
  COLORS.forEach((color, j) => {
    const tip = columnOf(a, j);
    outputs.arrow("column " + j, [0, 0], tip, color);
    outputs.text("name " + j, scaled(tip, 0.55), ["a\u2081", "a\u2082"][j], color);
    const text = written(tip, ".2f");
    outputs.place("column " + j, tip, { value: tip[0], min: -reach, max: reach, text });
  });
};

/** Half the length and half the width of the ellipse. */
const drawHalves = (outputs, { s, u }, reached) =>
  ["\u03c3\u2081", "\u03c3\u2082"].forEach((name, i) => {
    const axis = columnOf(u, i),
      up = axis[1] < 0 ? -1 : 1; // a sign of its own would let it jump
    const [a, b] = scaled(axis, up * (s[i] + (14 * reached) / 136)); // pixels
    outputs.line("half " + i, [[0, 0], scaled(axis, up * s[i])], "ink dashed");
    outputs.text("name of half " + i, [a, b - (4 * reached) / 136], name, "ink middle");
    ["half ", "name of half "].forEach((what) => outputs.hide(what + i, s[i] < reached / 50));
  });

/** The input and its perpendicular. */
const drawInput = (inputs, { theta }) => {
  const x = onCircle(theta),
    other = [-x[1], x[0]];
  inputs.line("circle", around, "gray");
  inputs.arrow("other", [0, 0], other, "ink thin dashed");
  inputs.arrow("x", [0, 0], x, "ink");
  inputs.line("corner", corner(x, other, 0.14), "ink thin");
  inputs.text("name", scaled(x, 0.55), "x", "ink");
  const value = degrees(theta);
  inputs.place("x", x, { value, min: 0, max: 360, text: value + " degrees" });
};

/** The images of both. */
const drawImages = (outputs, { a, theta }, reached) => {
  const [image, second] = [0, Math.PI / 2].map((more) => times(a, onCircle(theta + more)));
  outputs.arrow("second", [0, 0], second, "ink thin dashed");
  outputs.arrow("image", [0, 0], image, "ink");
  const [dx, dy] = scaled(image, (22 * reached) / 136 / (Math.hypot(...image) || 1)); // 22 pixels, off the ring of a column
  outputs.text("name", sum(image, [dx, dy - (4 * reached) / 136]), "Ax", "ink middle");
  outputs.line("corner", corner(image, second, 0.08 * reached), "ink");
  outputs.hide("corner", !isRight(image, second));
};

/** How long the image of each direction is. */
const drawLengths = (curve, now, reached) => {
  const [largest, least] = now.svd.s,
    apart = Math.min(least, largest - least) > reached / 12; // or one name hides another
  curve.resize({ y: [0, reached] });
  curve.axes({
    x: [0, 45, 90, 135, 180],
    y: [0, ...(apart ? [least] : []), ...(largest ? [largest] : [])],
    xTitle: "direction of x in degrees",
    format: (value, axis) =>
      axis === "x" || !value ? String(value) : value === largest ? "σ₁" : "σ₂",
  });
  const lengths = Array.from({ length: 91 }, (_, i) => [
    2 * i,
    Math.hypot(...times(now.a, onCircle(2 * i * TURN))),
  ]);
  curve.line("lengths", lengths, "ink");
  const at = (((now.theta / TURN) % 180) + 180) % 180,
    place = [at, Math.hypot(...imageOf(now))],
    value = Math.round(at);
  curve.line("down", [[at, 0], place], "ink thin dotted");
  curve.place("angle", place, { value, min: 0, max: 180, text: value + " degrees" });
};

const arrows = ({ place, data, move }) => {
  const { form, reach } = data;
  const ellipse = form === "ellipse";
  const now = { a: [], theta: 0, svd: null }; // the state, and the decomposition of its matrix

  // What there is to see
  const panels = controls.box(place, ellipse ? "panels" : "panels single"); // one picture stands in the middle
  const panel = (label, options) =>
    stage.panel(controls.titled(panels, label), { label, ...options });
  const plane = (label, r) =>
    panel(label, { width: 288, height: 288, margin: [8, 8, 8, 8], ...square(r) });
  const inputs = ellipse && plane("inputs of length 1: drag x", 1.35);
  const sums = "all x₁a₁ + x₂a₂ with x₁² + x₂² ≤ 1: drag the tips";
  const outputs = plane(ellipse ? "their outputs Ax: drag the columns" : sums, reach);
  const curve =
    ellipse &&
    panel("length of Ax for each direction of x", {
      height: 170,
      margin: [10, 20, 34, 34],
      x: [0, 180],
      y: [0, reach],
    });
  const matrix = controls.box(panels).appendChild(element("p", { class: "matrix" }));

  // What can be taken hold of
  const put = (j, point) => {
    const far = Math.hypot(...point) / (0.7 * reach); // then the ellipse stays in sight
    const tip = scaled(point, 1 / Math.max(1, far)).map(grid);
    move({ a: now.a.map((row, i) => row.map((old, l) => (l === j ? tip[i] : old))) });
  };
  COLORS.forEach((color, j) =>
    outputs.handle("column " + j, {
      label: "tip of the " + ["first", "second"][j] + " column",
      color,
      drag: (point) => put(j, outputs.snap(point, onLine(columnOf(now.a, 1 - j), point))),
      step: (dx, dy) => put(j, sum(columnOf(now.a, j), [dx / 10, dy / 10])),
    }),
  );
  const turn = (theta) => move({ theta: near(angle(onCircle(theta)), now.svd) });
  const byKeys = {
    color: "ink",
    step: (dx, dy) => turn(now.theta + (dx + dy) * TURN),
    large: 15,
    end: (which) => turn(which < 0 ? 0 : Math.PI / 2),
  };
  if (ellipse) {
    inputs.handle("x", {
      label: "input x of length 1",
      drag: (point) => turn(angle(point)),
      ...byKeys,
    });
    curve.handle("angle", {
      label: "direction of x",
      drag: ([x]) => turn(x * TURN),
      ...byKeys,
    });
    curve.grab("angle");
  }

  return {
    clean: ({ a, theta }) => {
      if (!Array.isArray(a) || a.length !== 2) check.fail("a", "two rows", a);
      return {
        a: a.map((row) => check.list("a", row, 2, -100, 100)),
        theta: check.number("theta", theta, -100, 100),
      };
    },
    draw: (state) => {
      const svd = lowrankLinalg.svd(state.a);
      Object.assign(now, state, { svd });
      const reached = Math.max(reach, 1.02 * svd.s[0]);
      drawColumns(outputs, now, reach, reached);
      const entry = (value, j) => element("b", { class: COLORS[j] }, format(value, ".3g"));
      const entries = now.a.flatMap((row) => row.map(entry));
      matrix.replaceChildren("A = ", element("span", {}, ...entries));
      if (ellipse) {
        drawInput(inputs, now);
        drawImages(outputs, now, reached);
        drawLengths(curve, now, reached);
      } else drawHalves(outputs, svd, reached);
      outputs.separate("name", "name of half 0", "name of half 1", "name 0", "name 1");
    },
    eases: { a: 0, theta: 0 },
    numbers: () => ({
      sigma_1: now.svd.s[0],
      sigma_2: now.svd.s[1],
      rank: rankOf(now.svd),
      ...(ellipse ? { length: Math.hypot(...imageOf(now)) } : {}),
    }),
    table: () => ({ a: now.a }),
    values: () => ({ degrees: degrees(now.theta) }),
    remarks: () => {
      const { s } = now.svd,
        rank = rankOf(now.svd),
        length = Math.hypot(...imageOf(now));
      if (rank < 2) return [rank ? "flat" : "zero"];
      if (!ellipse || isRound(now.svd)) return [];
      if (length > 0.9999 * s[0]) return ["longest"];
      return length < 1.0001 * s[1] ? ["shortest"] : [];
    },
  };
};
