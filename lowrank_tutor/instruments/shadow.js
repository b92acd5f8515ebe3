// Drag a point and a line: what one number keeps of two. Python's shadow.py says what it teaches, and has its words.
const shadow = ({ place, data, move }) => {
  const { words, reach } = data;
  const TURN = Math.PI / 180, ARM = 0.94 * reach; // where the line can be taken hold of
  let state = null;
  const w = () => [Math.cos(state.theta), Math.sin(state.theta)];
  const along = () => w()[0] * state.x[0] + w()[1] * state.x[1];
  const scaled = ([x, y], by) => [x * by, y * by];
  const written = ([x, y]) => "x " + format(x, ".1f") + ", y " + format(y, ".1f");

  const panel = stage.panel(controls.box(place, "single"), {
    label: words.plane, width: 320, height: 320, margin: [8, 8, 8, 8], x: [-reach, reach], y: [-reach, reach],
  });
  const put = (point) => move({ x: point.map((value) => clamp(Math.round(value * 10) / 10, -reach, reach)) });
  const turn = (theta) => move({ theta: Math.atan2(Math.sin(theta), Math.cos(theta)) });
  panel.handle("line", {
    label: words.line, color: "violet", large: 15, drag: ([x, y]) => turn(Math.round(Math.atan2(y, x) / TURN) * TURN),
    step: (dx, dy) => turn(state.theta + (dx + dy) * TURN), end: (which) => turn(which < 0 ? 0 : Math.PI / 2),
  });
  panel.handle("x", {
    label: words.x, color: "teal", drag: put, step: (dx, dy) => put([state.x[0] + dx / 10, state.x[1] + dy / 10]),
  });

  const draw = () => {
    const row = w(), foot = scaled(row, along()), turned = Math.round(state.theta / TURN);
    const aside = [state.x[0] - foot[0], state.x[1] - foot[1]], far = Math.hypot(...aside);
    panel.line("axis x", [[-reach, 0], [reach, 0]], "gray thin dotted");
    panel.line("axis y", [[0, -reach], [0, reach]], "gray thin dotted");
    panel.line("line", [scaled(row, -0.98 * reach), scaled(row, 0.98 * reach)], "violet thin");
    panel.line("aside", [foot, state.x], "orange dashed");
    panel.arrow("x", [0, 0], state.x, "teal");
    panel.arrow("shadow", [0, 0], foot, "violet");
    const [back, up] = [scaled(row, -Math.sign(along() || 1) * 0.05 * reach), scaled(aside, 0.05 * reach / (far || 1))];
    const from = (...parts) => parts.reduce(([a, b], [c, d]) => [a + c, b + d], foot);
    panel.line("corner", [from(back), from(back, up), from(up)], "orange thin");
    panel.hide("corner", far < 0.12 * reach);
    panel.text("name x", scaled(state.x, 0.5), "x", "teal");
    panel.text("name shadow", scaled(foot, 0.6), "Px", "violet");
    panel.place("x", state.x, { value: state.x[0], min: -reach, max: reach, text: written(state.x) });
    panel.place("line", scaled(row, ARM), { value: turned, min: -180, max: 180, text: turned + words.degrees });
  };

  return {
    clean: ({ x, theta }) => ({
      x: check.list("x", x, 2, -reach, reach), theta: check.number("theta", theta, -100, 100),
    }),
    draw: (wished) => {
      state = wished;
      draw();
    },
    numbers: () => ({
      along: along(), left_out: Math.hypot(state.x[0] - along() * w()[0], state.x[1] - along() * w()[1]),
    }),
    table: () => ({ w: [w()], x: state.x }),
    remarks: () => {
      const length = Math.hypot(...state.x);
      if (length === 0) return [];
      const share = Math.abs(along()) / length;
      return share > 0.99995 ? ["kept"] : share < 0.01 ? ["lost"] : [];
    },
  };
};
