// A cloud of points to be dragged, and its first direction with and without centering. Its sentences are in cloud.py.
const cloud = ({ place, data, move, morph }) => {
  const { points: shape, reach } = data;
  const TURN = Math.PI / 180;
  let center = null,
    points = null,
    first = null;

  const panel = stage.panel(controls.box(place, "single"), {
    label: "a cloud of points: drag its mean",
    width: 320,
    height: 320,
    margin: [8, 8, 8, 8],
    x: [-reach, reach],
    y: [-reach, reach],
  });
  const put = (point) => move({ center: vectors.tenths(point, reach) });
  const showCenter = vectors.tip(panel, "center", {
    label: "mean of the cloud",
    color: "teal",
    reach,
    at: () => center,
    put,
    drag: (point) => put(panel.snap(point, [[0, 0]])),
  });
  controls.button(place, "Put the mean at the origin", () => morph({ center: [0, 0] }));

  /** The first right singular vector, and the share of the sum of squares that it takes. */
  const direction = (rows) => {
    const { s, v } = lowrankLinalg.svd(rows);
    return { axis: [v[0][0], v[1][0]], share: s[0] ** 2 / (s[0] ** 2 + s[1] ** 2) };
  };
  const centered = direction(shape); // wherever the cloud is pulled
  const apart = () => {
    const [p, q] = [first.centered.axis, first.raw.axis];
    return (
      Math.atan2(Math.abs(p[0] * q[1] - p[1] * q[0]), Math.abs(p[0] * q[0] + p[1] * q[1])) / TURN
    );
  };
  const draw = () => {
    vectors.axes(panel, reach);
    panel.dots(
      "points",
      points.filter((p) => p.every((at) => Math.abs(at) <= reach)),
      "gray small",
    );
    const to = (from, [x, y], length) => [from[0] + x * length, from[1] + y * length];
    const up = ([x, y]) => (y < 0 ? [-x, -y] : [x, y]);
    const axis = up(first.centered.axis),
      minus = (p) => p.map((x) => -x);
    // Toward the mean; near the origin away from the other arrow, whose name it would cover.
    const way = Math.hypot(...center) > 0.3 * reach ? center : minus(axis);
    const raw = vectors.dot(first.raw.axis, way) < 0 ? minus(first.raw.axis) : first.raw.axis;
    const tips = [to(center, axis, 0.4 * reach), to([0, 0], raw, 0.5 * reach)];
    panel.arrow("pca", center, tips[0], "teal");
    panel.arrow("raw", [0, 0], tips[1], "violet");
    const name = (which, tip, [x, y], text, color, slant = 0.4) => {
      const side = x < -slant ? " end" : x > slant ? "" : " middle",
        [a, b] = panel.pixel(to(tip, [x, y], 0.05 * reach));
      const low = { " end": 100, " middle": 50, "": 8 }[side],
        within = [clamp(a, low, low + 212), clamp(b + 4, 14, 314)];
      panel.text(which, panel.point(within), text, color + side);
    };
    name("pca name", tips[0], axis, "PCA", "teal");
    const turn = raw[0] * raw[1] < 0 ? [raw[1], -raw[0]] : [-raw[1], raw[0]]; // beside the arrow, off the points at its tip
    const aside = turn[0] * raw[0] > 0 ? minus(turn) : turn;
    name("raw name", to([0, 0], raw, 0.25 * reach), aside, "not centered", "violet", 0);
    showCenter();
  };

  return {
    clean: (state) => ({ center: check.list("center", state.center, 2, -reach, reach) }),
    draw: (state) => {
      center = state.center;
      points = shape.map(([x, y]) => [x + center[0], y + center[1]]);
      first = { centered, raw: direction(points) };
      draw();
    },
    numbers: () => ({
      apart: apart(),
      share_pca: first.centered.share,
      share_raw: first.raw.share,
    }),
    table: () => ({ points }),
    eases: { center: 0 },
    remarks: () => (center[0] === 0 && center[1] === 0 ? ["home"] : apart() > 80 ? ["across"] : []),
  };
};
