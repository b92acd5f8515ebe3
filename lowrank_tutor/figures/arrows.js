// The columns of a 2 x 2 matrix and a unit vector, to be dragged. Its sentences are in arrows.py.
const arrows = ({ place, data, move }) => {
  const { form, reach } = data;
  const ellipse = form === "ellipse";
  const TURN = Math.PI / 180;
  let state = null,
    svd = null;
  const times = ([[a, b], [c, d]], [x, y]) => [a * x + b * y, c * x + d * y];
  const onCircle = (theta) => [Math.cos(theta), Math.sin(theta)];
  const { dot, scaled, written } = vectors;
  const column = (j) => [state.a[0][j], state.a[1][j]];
  const angle = ([x, y]) => Math.atan2(y, x);
  const degrees = (theta) => ((Math.round(theta / TURN) % 360) + 360) % 360;
  const box = (r) => ({ x: [-r, r], y: [-r, r] });
  const around = Array.from({ length: 121 }, (_, i) => onCircle(i * 3 * TURN));

  // What there is to see
  const panels = controls.box(place, ellipse ? "panels" : "panels single"); // one picture stands in the middle
  const square = { width: 288, height: 288, margin: [8, 8, 8, 8] };
  const plane = (label, options) =>
    stage.panel(controls.titled(panels, label), { label, ...options });
  const inputs = ellipse && plane("inputs of length 1: drag x", { ...square, ...box(1.35) });
  const sums = "all x₁a₁ + x₂a₂ with x₁² + x₂² ≤ 1: drag the tips";
  const outputs = plane(ellipse ? "their outputs Ax: drag the columns" : sums, {
    ...square,
    ...box(reach),
  });
  const curve =
    ellipse &&
    plane("length of Ax for each direction of x", {
      height: 170,
      margin: [10, 20, 34, 34],
      x: [0, 180],
      y: [0, reach],
    });
  const side = controls.box(panels);
  const matrix = side.appendChild(element("p", { class: "matrix" }));

  // What can be taken hold of
  const grid = (value) => Math.round(value * 10) / 10; // so that two columns can lie on one line
  const put = (j, [x, y]) => {
    const far = Math.hypot(x, y) / (0.7 * reach); // then the ellipse stays in sight
    const [p, q] = scaled([x, y], 1 / Math.max(1, far)).map(grid);
    move({ a: [0, 1].map((i) => [0, 1].map((l) => (l === j ? [p, q][i] : state.a[i][l]))) });
  };
  [0, 1].forEach((j) =>
    outputs.handle("column " + j, {
      label: "tip of the " + ["first", "second"][j] + " column",
      color: ["teal", "violet"][j],
      drag: (point) => put(j, outputs.snap(point, onLine(j, point))),
      step: (dx, dy) => put(j, [column(j)[0] + dx / 10, column(j)[1] + dy / 10]),
    }),
  );
  /** A direction that is half a degree from a singular one is taken for it. */
  const near = (theta) => {
    if (svd.s[0] - svd.s[1] < 0.01 * svd.s[0]) return theta; // every direction is one
    const [x, y] = [svd.v[0][0], svd.v[1][0]];
    const right = [0, 1, 2, 3].map((quarter) => angle([x, y]) + (quarter * Math.PI) / 2);
    const off = right.map((one) => Math.atan2(Math.sin(one - theta), Math.cos(one - theta)));
    const least = off.reduce((best, one) => (Math.abs(one) < Math.abs(best) ? one : best), 9);
    return Math.abs(least) <= 0.75 * TURN ? theta + least : theta;
  };
  const turn = (theta) => move({ theta: near(Math.atan2(Math.sin(theta), Math.cos(theta))) });
  /** The place on the line of the other column that is nearest: there the rank is 1. */
  const onLine = (j, [x, y]) => {
    const [p, q] = column(1 - j),
      share = (p * x + q * y) / (p * p + q * q || 1);
    const [a, b] = [share * p, share * q].map(grid);
    return Math.abs(a * q - b * p) < 1e-9 ? [[a, b]] : [];
  };
  const byKeys = {
    step: (dx, dy) => turn(state.theta + (dx + dy) * TURN),
    large: 15,
    end: (which) => turn(which < 0 ? 0 : Math.PI / 2),
  };
  if (ellipse) {
    inputs.handle("x", {
      label: "input x of length 1",
      color: "ink",
      drag: (point) => turn(angle(point)),
      ...byKeys,
    });
    curve.handle("angle", {
      label: "direction of x",
      color: "ink",
      drag: ([x]) => turn(x * TURN),
      ...byKeys,
    });
    curve.grab("angle");
  }

  // What is drawn
  const corner = (p, q, size) => {
    // the mark of a right angle between p and q
    const [e, f] = [p, q].map((one) => scaled(one, size / (Math.hypot(...one) || 1)));
    return [e, [e[0] + f[0], e[1] + f[1]], f];
  };
  const isRight = (p, q) => {
    const lengths = Math.hypot(...p) * Math.hypot(...q);
    return lengths > 1e-12 && Math.abs(dot(p, q)) <= 0.005 * lengths;
  };
  /** The images of x and of its perpendicular. */
  const both = () => [0, Math.PI / 2].map((more) => times(state.a, onCircle(state.theta + more)));
  const drawHalves = (reached) =>
    [0, 1].forEach((i) => {
      const [x, y] = svd.u.map((row) => row[i]),
        up = y < 0 ? -1 : 1; // a sign of its own would let it jump
      const tip = scaled([x, y], up * svd.s[i]),
        [a, b] = scaled([x, y], up * (svd.s[i] + (14 * reached) / 136)); // pixels
      outputs.line("half " + i, [[0, 0], tip], "ink dashed");
      outputs.text(
        "name of half " + i,
        [a, b - (4 * reached) / 136],
        ["\u03c3\u2081", "\u03c3\u2082"][i],
        "ink middle",
      );
      ["half ", "name of half "].forEach((name) => outputs.hide(name + i, svd.s[i] < reached / 50));
    });
  const drawTurn = (reached) => {
    const x = onCircle(state.theta),
      other = [-x[1], x[0]];
    const [image, second] = both();
    inputs.line("circle", around, "gray");
    inputs.arrow("other", [0, 0], other, "ink thin dashed");
    inputs.arrow("x", [0, 0], x, "ink");
    inputs.line("corner", corner(x, other, 0.14), "ink thin");
    inputs.text("name", scaled(x, 0.55), "x", "ink");
    outputs.arrow("second", [0, 0], second, "ink thin dashed");
    outputs.arrow("image", [0, 0], image, "ink");
    const [dx, dy] = scaled(image, (22 * reached) / 136 / (Math.hypot(...image) || 1)); // 22 pixels, off the ring of a column
    outputs.text("name", [image[0] + dx, image[1] + dy - (4 * reached) / 136], "Ax", "ink middle");
    outputs.line("corner", corner(image, second, 0.08 * reached), "ink");
    outputs.hide("corner", !isRight(image, second));
    const half = Array.from({ length: 91 }, (_, i) => 2 * i);
    const lengths = half.map((turned) => [
      turned,
      Math.hypot(...times(state.a, onCircle(turned * TURN))),
    ]);
    curve.resize({ y: [0, reached] });
    const [largest, least] = svd.s,
      apart = Math.min(least, largest - least) > reached / 12; // or one name hides another
    const format = (value, axis) =>
      axis === "x" || !value ? String(value) : value === largest ? "σ₁" : "σ₂";
    const ticks = [0, ...(apart ? [least] : []), ...(largest ? [largest] : [])];
    curve.axes({ x: [0, 45, 90, 135, 180], y: ticks, xTitle: "direction of x in degrees", format });
    curve.line("lengths", lengths, "ink");
    const at = (((state.theta / TURN) % 180) + 180) % 180;
    const long = Math.hypot(...image);
    curve.line(
      "down",
      [
        [at, 0],
        [at, long],
      ],
      "ink thin dotted",
    );
    inputs.place("x", x, {
      value: degrees(state.theta),
      min: 0,
      max: 360,
      text: degrees(state.theta) + " degrees",
    });
    curve.place("angle", [at, long], {
      value: Math.round(at),
      min: 0,
      max: 180,
      text: Math.round(at) + " degrees",
    });
  };
  const draw = () => {
    const reached = Math.max(reach, 1.02 * svd.s[0]);
    outputs.resize(box(reached));
    outputs.axes({});
    vectors.axes(outputs, reached);
    outputs.area(
      "ellipse",
      around.map((point) => times(state.a, point)),
      "gray",
    );
    outputs.line(
      "edge",
      around.map((point) => times(state.a, point)),
      "gray",
    );
    [0, 1].forEach((j) => {
      const tip = column(j),
        color = ["teal", "violet"][j];
      outputs.arrow("column " + j, [0, 0], tip, color);
      outputs.text("name " + j, scaled(tip, 0.55), ["a\u2081", "a\u2082"][j], color);
      outputs.place("column " + j, tip, {
        value: tip[0],
        min: -reach,
        max: reach,
        text: written(tip, ".2f"),
      });
    });
    if (!ellipse) drawHalves(reached);
    const entry = (value, j) =>
      element("b", { class: ["teal", "violet"][j] }, format(value, ".3g"));
    matrix.replaceChildren(
      "A = ",
      element("span", {}, ...state.a.flatMap((row) => row.map(entry))),
    );
    if (ellipse) drawTurn(reached);
    outputs.separate("name", "name of half 0", "name of half 1", "name 0", "name 1");
  };

  const rank = () => svd.s.filter((s) => s > 2 * 2 ** -52 * svd.s[0]).length;
  return {
    clean: ({ a, theta }) => {
      if (!Array.isArray(a) || a.length !== 2) check.fail("a", "two rows", a);
      return {
        a: a.map((row) => check.list("a", row, 2, -100, 100)),
        theta: check.number("theta", theta, -100, 100),
      };
    },
    draw: (wished) => {
      state = wished;
      svd = lowrankLinalg.svd(state.a);
      draw();
    },
    eases: { a: 0, theta: 0 },
    numbers: () => ({
      sigma_1: svd.s[0],
      sigma_2: svd.s[1],
      rank: rank(),
      ...(ellipse ? { length: Math.hypot(...times(state.a, onCircle(state.theta))) } : {}),
    }),
    table: () => ({ a: state.a }),
    values: () => ({ degrees: degrees(state.theta) }),
    remarks: () => {
      if (rank() < 2) return [rank() ? "flat" : "zero"];
      if (!ellipse || svd.s[0] - svd.s[1] < 0.01 * svd.s[0]) return [];
      const length = Math.hypot(...times(state.a, onCircle(state.theta)));
      return length > 0.9999 * svd.s[0]
        ? ["longest"]
        : length < 1.0001 * svd.s[1]
          ? ["shortest"]
          : [];
    },
  };
};
