// A spectrum whose bars and cut can be dragged, and the picture that has it. Its sentences are in spectrum.py.
const spectrum = ({ place, data, move, morph }) => {
  const { size, scale, presets } = data;
  const count = data.u[0].length,
    every = Math.ceil(count / 12);
  // Rounded directions are no longer perpendicular. Those of Q are, so the picture has exactly these bars.
  const [u, v] = [data.u, data.v].map((rounded) => lowrankLinalg.qr(rounded).q);
  let state = null,
    errors = [];

  const row = controls.box(place, "pictures");
  const all = layerPictures.canvas(row, "picture with these bars", size);
  const kept = layerPictures.canvas(row, "picture with these bars", size);
  const panels = controls.box(place, "panels");
  const panelIn = (label, options) =>
    stage.panel(controls.titled(panels, label), {
      label,
      width: 336,
      height: 210,
      x: [0.5, count + 0.5],
      ...options,
    });
  const bars = panelIn("singular values: drag the bars", { margin: [16, 2, 34, 26], y: [0, 1.05] });
  const curve = panelIn("relative error of each cut: drag the cut", {
    margin: [16, 4, 34, 42],
    x: [-0.3, count + 0.3],
    y: [0, 1.05],
  });

  /** Raise or lower one bar. A spectrum never rises, so bars before it are lifted and bars after it are pushed down. */
  const put = (at, height) => {
    const value = clamp(Math.round(height * 100) / 100, 0, Math.max(1, state.s[0]));
    move({
      s: state.s.map((s, i) => (i < at ? Math.max(s, value) : i > at ? Math.min(s, value) : value)),
    });
  };
  const index = Array.from({ length: count }, (_, i) => i);
  const paint = ([x, y]) => put(clamp(Math.round(x), 1, count) - 1, y);
  bars.paint(paint);
  index.forEach((i) =>
    bars.handle("bar " + i, {
      label: "singular value " + (i + 1),
      color: "teal",
      bar: true,
      drag: paint,
      step: (dx, dy) => put(i, state.s[i] + (dx + dy) / 100),
      end: (which) => put(i, which < 0 ? 0 : 1),
    }),
  );
  const cut = (k) => move({ k: clamp(Math.round(k), 1, count) });
  curve.handle("cut", {
    label: "cut: sheets kept",
    color: "ink",
    axis: "x",
    share: 0.93,
    large: 3,
    drag: ([x]) => cut(x),
    step: (dx, dy) => cut(state.k + dx + dy),
    end: (which) => cut(which < 0 ? 1 : count),
  });
  curve.grab("cut");
  const buttons = controls.box(place, "control");
  buttons.append("Bars like");
  Object.entries(presets).forEach(([name, s]) =>
    controls.button(buttons, name, () => morph({ s })),
  );

  /** Show the sum of all sheets, and on the way there that of the first k. */
  const drawPictures = ({ s, k }) => {
    const gray = new Float64Array(size * size);
    index.forEach((i) => {
      for (let row = 0, l = 0; row < size; row++) {
        const weight = scale * s[i] * u[row][i];
        for (let column = 0; column < size; column++) gray[l++] += weight * v[column][i];
      }
      if (i === k - 1) layerPictures.grays(kept, gray);
    });
    layerPictures.grays(all, gray);
    kept.title("its sheets 1 to " + k);
  };
  const draw = () => {
    const { s, k } = state,
      top = 1.05 * Math.max(1, s[0]);
    bars.resize({ y: [0, top] });
    const ticks = index.map((i) => i + 1).filter((i) => i % every === 0);
    bars.axes({
      x: ticks,
      y: [0, top / 2.1, top / 1.05],
      xTitle: "sheet",
      format: (value) => format(value, ".2g"),
    });
    index.forEach((i) => {
      bars.rect("bar " + i, [i + 0.72, 0], [i + 1.28, s[i]], (i < k ? "teal" : "gray") + " solid");
      bars.place("bar " + i, [i + 1, s[i]], {
        value: s[i],
        min: 0,
        max: Math.max(1, s[0]),
        text: format(s[i], ".2f"),
      });
    });
    const points = errors.map((error, i) => [i, error]);
    curve.axes({
      x: ticks,
      y: [0, 0.25, 0.5, 0.75, 1],
      xTitle: "sheets kept",
      format: (value, axis) => (axis === "y" ? 100 * value + "%" : String(value)),
    });
    curve.line("curve", points, "orange thin");
    curve.dots("dots", points, "orange");
    const beside = [Math.min(k + 0.55, 0.75 * count), Math.min(1, errors[k] + 0.08)];
    curve.text("error", beside, format(errors[k], ".1%"), "orange");
    curve.place("cut", [k, 0], { value: k, min: 1, max: count, text: k + " of " + count });
    drawPictures(state);
  };

  return {
    clean: ({ s, k }) => ({
      s: check.list("s", s, count, 0, 1000).sort((a, b) => b - a),
      k: check.whole("k", k, 1, count),
    }),
    draw: (wished) => {
      state = wished;
      errors = lowrankLinalg.errors(state.s);
      draw();
    },
    eases: { s: 0, k: 1 },
    numbers: () => ({ relative_error: errors[state.k] }),
    table: () => ({ s: state.s }),
    values: () => ({ n: count, rank: state.s.filter((s) => s > 0).length }),
    remarks: () => {
      if (state.s[0] === 0) return ["zero"];
      if (state.s[state.k - 1] === 0) return ["exact"];
      return state.s[0] === state.s[count - 1] ? ["flat"] : [];
    },
  };
};
