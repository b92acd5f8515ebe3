// A point and a line to be dragged, and the shadow that one number keeps of two. Its sentences are in shadow.py.
const shadow = ({ place, data, move }) => {
  const { reach } = data;
  const TURN = Math.PI / 180,
    WIDE = 1.22 * reach; // a shadow may be farther out in one coordinate than its point
  let state = null,
    ahead = 1,
    left = 1; // on which side of the origin, and of the line, x was last
  const w = () => [Math.cos(state.theta), Math.sin(state.theta)];
  const unless = (value) => (Math.abs(value) < 1e-12 ? 0 : value); // or a sine would write "-0.00"
  const along = () => unless(w()[0] * state.x[0] + w()[1] * state.x[1]);
  const aside = () => unless(w()[0] * state.x[1] - w()[1] * state.x[0]); // positive to the left of the row
  const length = () => Math.hypot(...state.x);
  const angle = () => Math.atan2(Math.abs(aside()), Math.abs(along())) / TURN;
  const share = () => (length() ? Math.abs(along()) / length() : 1);
  const { scaled, sum } = vectors;
  const curve = Array.from({ length: 91 }, (_, i) => [i, Math.cos(i * TURN)]);

  const panels = controls.box(place, "panels");
  const open = (label, options) =>
    stage.panel(controls.titled(panels, label), { label, width: 300, ...options });
  const plane = open("Drag x, or turn the line", {
    height: 300,
    margin: [4, 4, 4, 4],
    x: [-WIDE, WIDE],
    y: [-WIDE, WIDE],
  });
  const loss = open("Share of the length kept: drag the point", {
    height: 250,
    margin: [22, 18, 34, 46],
    x: [0, 90],
    y: [0, 1],
  });
  loss.axes({
    x: [0, 15, 30, 45, 60, 75, 90],
    y: [0, 0.25, 0.5, 0.75, 1],
    xTitle: "angle between x and the line",
    format: (value, axis) => (axis === "x" ? value + "°" : format(value, ".0%")),
  });
  loss.line("curve", curve, "teal");

  const put = (point) => move({ x: vectors.tenths(point, reach) });
  const turn = (theta) => move({ theta: Math.atan2(Math.sin(theta), Math.cos(theta)) });
  /** Turn x, which keeps its length and its side, until it stands at this angle to the line. */
  const openTo = (degrees) => {
    const to =
      state.theta +
      (ahead < 0 ? Math.PI : 0) +
      ahead * left * clamp(Math.round(degrees), 0, 90) * TURN;
    move({ x: scaled([Math.cos(to), Math.sin(to)], Math.min(length() || reach / 2, reach)) });
  };
  plane.handle("line", {
    label: "direction of the line, the row of F",
    color: "teal",
    large: 15,
    drag: ([x, y]) => turn(Math.round(Math.atan2(y, x) / TURN) * TURN),
    step: (dx, dy) => turn(state.theta + (dx + dy) * TURN),
    end: (which) => turn(which < 0 ? 0 : Math.PI / 2),
  });
  const showX = vectors.tip(plane, "x", {
    label: "tip of x",
    color: "ink",
    reach,
    at: () => state.x,
    put,
    drag: (point) => put(plane.snap(point, [[0, 0], scaled(w(), along())])),
  });
  loss.handle("angle", {
    label: "angle between x and the line",
    color: "ink",
    large: 15,
    drag: ([degrees]) => openTo(degrees),
    step: (dx, dy) => openTo(angle() + dx + dy),
    end: (which) => openTo(which < 0 ? 0 : 90),
  });
  loss.grab("angle");

  /** Write beside a place of an arrow, on the side that the direction (dx, dy) shows. */
  const beside = (name, where, [dx, dy], text, color) => {
    const [a, b] = plane.pixel(where),
      far = 13 / (Math.hypot(dx, dy) || 1);
    const anchor = Math.abs(dx) * far < 4 ? " middle" : dx < 0 ? " end" : "";
    plane.text(name, plane.point([a + far * dx, b - far * dy + 4]), text, color + anchor);
  };
  const drawPlane = () => {
    const row = w(),
      foot = scaled(row, along()),
      up = scaled([-row[1], row[0]], left),
      far = Math.abs(aside());
    vectors.axes(plane, WIDE);
    const edge = scaled(row, (0.98 * WIDE) / Math.max(...row.map(Math.abs)));
    plane.line("line", [scaled(edge, -1), edge], "teal thin");
    plane.line("aside", [foot, state.x], "orange dashed");
    plane.arrow("x", [0, 0], state.x, "ink");
    plane.arrow("shadow", [0, 0], foot, "teal");
    const step = 0.05 * reach,
      back = scaled(row, -ahead * step),
      over = scaled(up, step);
    const from = (...parts) => parts.reduce(sum, foot);
    plane.line("corner", [from(back), from(back, over), from(over)], "orange thin");
    plane.hide("corner", far < 0.12 * reach);
    beside(
      "name x",
      scaled(state.x, 0.5),
      [-ahead * row[0] + up[0], -ahead * row[1] + up[1]],
      "x",
      "ink",
    );
    beside(
      "name shadow",
      scaled(foot, 0.6),
      scaled(up, -1),
      "\u03a0x: " + format(share(), ".0%"),
      "teal",
    );
    showX();
    const turned = Math.round(state.theta / TURN),
      said = { value: turned, min: -180, max: 180 };
    plane.place("line", scaled(row, 0.94 * WIDE), { ...said, text: turned + " degrees" });
  };
  const drawLoss = () => {
    const degrees = angle(),
      kept = share();
    const text = fill("{degrees:.0f} degrees, {kept:.0%} of the length kept", { degrees, kept });
    loss.line(
      "across",
      [
        [0, kept],
        [degrees, kept],
        [degrees, 0],
      ],
      "teal thin dotted",
    );
    loss.text(
      "share",
      [Math.min(degrees + 9, 84), Math.max(kept + 0.05, 0.19)],
      format(kept, ".0%"),
      "teal middle",
    );
    loss.place("angle", [degrees, kept], { value: Math.round(degrees), min: 0, max: 90, text });
  };

  return {
    clean: ({ x, theta }) => ({
      x: check.list("x", x, 2, -reach, reach),
      theta: check.number("theta", theta, -100, 100),
    }),
    draw: (wished) => {
      state = wished;
      if (Math.abs(along()) > 1e-6) ahead = Math.sign(along());
      if (Math.abs(aside()) > 1e-6) left = Math.sign(aside());
      drawPlane();
      drawLoss();
    },
    eases: { x: 0, theta: 0 },
    numbers: () => ({
      share: share(),
      angle: angle(),
      along: along(),
      left_out: Math.abs(aside()),
    }),
    table: () => ({ w: [w()], x: state.x, curve }),
    values: () => ({ more: share() - Math.cos((angle() + 1) * TURN) }),
    remarks: () => {
      if (length() === 0) return ["zero"];
      if (share() > 0.99995) return ["kept"];
      return share() < 0.01 ? ["lost"] : angle() <= 89 ? ["steep"] : [];
    },
  };
};
