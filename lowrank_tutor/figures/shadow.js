// A point and a line to be dragged, and the shadow that one number keeps of two. Its sentences are in shadow.py.
const TURN = Math.PI / 180;
const { scaled, sum } = vectors;
const direction = (theta) => [Math.cos(theta), Math.sin(theta)];
const unless = (value) => (Math.abs(value) < 1e-12 ? 0 : value); // or a sine would write "-0.00"
const curve = Array.from({ length: 91 }, (_, i) => [i, Math.cos(i * TURN)]);

/** What the line keeps of x: along it, aside of it (positive to the left), and the share of the length. */
const shadowOf = ({ x, theta }) => {
  const w = direction(theta),
    length = Math.hypot(...x),
    along = unless(w[0] * x[0] + w[1] * x[1]),
    aside = unless(w[0] * x[1] - w[1] * x[0]);
  return {
    x,
    theta,
    w,
    length,
    along,
    aside,
    foot: scaled(w, along),
    angle: Math.atan2(Math.abs(aside), Math.abs(along)) / TURN,
    share: length ? Math.abs(along) / length : 1,
  };
};

/** Write beside a place of an arrow, on the side that the direction (dx, dy) shows. */
const beside = (plane, name, where, [dx, dy], text, color) => {
  const [a, b] = plane.pixel(where),
    far = 13 / (Math.hypot(dx, dy) || 1);
  const anchor = Math.abs(dx) * far < 4 ? " middle" : dx < 0 ? " end" : "";
  plane.text(name, plane.point([a + far * dx, b - far * dy + 4]), text, color + anchor);
};

/** The line, x, and its shadow; ahead and left say on which side of the origin, and of the line, x was last. */
const drawPlane = (plane, { x, theta, w, foot, aside, share }, [ahead, left], reach, wide) => {
  const up = scaled([-w[1], w[0]], left),
    back = scaled(w, -ahead);
  vectors.axes(plane, wide);
  const edge = scaled(w, (0.98 * wide) / Math.max(...w.map(Math.abs)));
  plane.line("line", [scaled(edge, -1), edge], "teal thin");
  plane.line("aside", [foot, x], "orange dashed");
  plane.arrow("x", [0, 0], x, "ink");
  plane.arrow("shadow", [0, 0], foot, "teal");
  const [before, over] = [back, up].map((way) => scaled(way, 0.05 * reach));
  const start = sum(foot, before);
  plane.line("corner", [start, sum(start, over), sum(foot, over)], "orange thin");
  plane.hide("corner", Math.abs(aside) < 0.12 * reach);
  beside(plane, "name x", scaled(x, 0.5), sum(back, up), "x", "ink");
  const words = "\u03a0x: " + format(share, ".0%");
  beside(plane, "name shadow", scaled(foot, 0.6), scaled(up, -1), words, "teal");
  const value = Math.round(theta / TURN);
  const said = { value, min: -180, max: 180, text: value + " degrees" };
  plane.place("line", scaled(w, 0.94 * wide), said);
};

/** The share of the length that is kept at this angle. */
const drawLoss = (loss, { angle: degrees, share: kept }) => {
  const at = [degrees, kept];
  loss.line("across", [[0, kept], at, [degrees, 0]], "teal thin dotted");
  loss.text(
    "share",
    [Math.min(degrees + 9, 84), Math.max(kept + 0.05, 0.19)],
    format(kept, ".0%"),
    "teal middle",
  );
  const text = fill("{degrees:.0f} degrees, {kept:.0%} of the length kept", { degrees, kept });
  loss.place("angle", at, { value: Math.round(degrees), min: 0, max: 90, text });
};

const shadow = ({ place, data, move }) => {
  const { reach } = data;
  const wide = 1.22 * reach; // a shadow may be farther out in one coordinate than its point
  let now = null, // what shadowOf found
    ahead = 1,
    left = 1; // on which side of the origin, and of the line, x was last

  const panels = controls.box(place, "panels");
  const open = (label, options) =>
    stage.panel(controls.titled(panels, label), { label, width: 300, ...options });
  const plane = open("Drag x, or turn the line", {
    height: 300,
    margin: [4, 4, 4, 4],
    x: [-wide, wide],
    y: [-wide, wide],
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
    const off = left * clamp(Math.round(degrees), 0, 90) * TURN;
    const to = now.theta + (ahead < 0 ? Math.PI - off : off);
    move({ x: scaled(direction(to), Math.min(now.length || reach / 2, reach)) });
  };
  plane.handle("line", {
    label: "direction of the line, the row of F",
    color: "teal",
    large: 15,
    drag: ([x, y]) => turn(Math.round(Math.atan2(y, x) / TURN) * TURN),
    step: (dx, dy) => turn(now.theta + (dx + dy) * TURN),
    end: (which) => turn(which < 0 ? 0 : Math.PI / 2),
  });
  const showX = vectors.tip(plane, "x", {
    label: "tip of x",
    color: "ink",
    reach,
    at: () => now.x,
    put,
    drag: (point) => put(plane.snap(point, [[0, 0], now.foot])),
  });
  loss.handle("angle", {
    label: "angle between x and the line",
    color: "ink",
    large: 15,
    drag: ([degrees]) => openTo(degrees),
    step: (dx, dy) => openTo(now.angle + dx + dy),
    end: (which) => openTo(which < 0 ? 0 : 90),
  });
  loss.grab("angle");

  return {
    clean: ({ x, theta }) => ({
      x: check.list("x", x, 2, -reach, reach),
      theta: check.number("theta", theta, -100, 100),
    }),
    draw: (state) => {
      now = shadowOf(state);
      const { along, aside } = now;
      if (Math.abs(along) > 1e-6) ahead = Math.sign(along);
      if (Math.abs(aside) > 1e-6) left = Math.sign(aside);
      drawPlane(plane, now, [ahead, left], reach, wide);
      showX();
      drawLoss(loss, now);
    },
    eases: { x: 0, theta: 0 },
    numbers: () => ({
      share: now.share,
      angle: now.angle,
      along: now.along,
      left_out: Math.abs(now.aside),
    }),
    table: () => ({ w: [now.w], x: now.x, curve }),
    values: () => ({ more: now.share - Math.cos((now.angle + 1) * TURN) }),
    remarks: () => {
      const { length, share, angle } = now;
      if (length === 0) return ["zero"];
      if (share > 0.99995) return ["kept"];
      return share < 0.01 ? ["lost"] : angle <= 89 ? ["steep"] : [];
    },
  };
};
