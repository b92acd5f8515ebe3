// Vectors, most of them of a plane, and a handle at the tip of one.
const vectors = (() => {
  const dot = ([a, b], [c, d]) => a * c + b * d;
  const scaled = ([x, y], by) => [x * by, y * by];
  const sum = ([a, b], [c, d]) => [a + c, b + d];
  const average = (rows, weights) =>
    rows[0].map((_, j) => rows.reduce((total, row, i) => total + weights[i] * row[j], 0));
  const written = ([x, y], spec = ".1f") => "x " + format(x, spec) + ", y " + format(y, spec);
  /** The nearest point whose coordinates are tenths, and at most `reach` from zero. */
  const tenths = (point, reach) =>
    point.map((part) => clamp(Math.round(part * 10) / 10, -reach, reach));
  /** A handle that stands at() and asks to be put() elsewhere; what is returned places it there, and says where. */
  const tip = (panel, name, { label, color, reach, at, put, drag = put }) => {
    panel.handle(name, {
      label,
      color,
      drag,
      step: (dx, dy) => put(sum(at(), [dx / 10, dy / 10])),
    });
    return () =>
      panel.place(name, at(), { value: at()[0], min: -reach, max: reach, text: written(at()) });
  };
  const axes = (panel, wide, high = wide) => {
    panel.line(
      "axis x",
      [
        [-wide, 0],
        [wide, 0],
      ],
      "gray thin dotted",
    );
    panel.line(
      "axis y",
      [
        [0, -high],
        [0, high],
      ],
      "gray thin dotted",
    );
  };

  return { dot, scaled, sum, average, written, tenths, tip, axes };
})();
