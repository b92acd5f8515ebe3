// A spectrum whose bars and cut can be dragged, and the picture that has it. Its sentences are in spectrum.py.
/** Rounded directions are no longer perpendicular. Those of Q, by columns, are, so the picture has exactly these bars. */
const perpendicular = (rounded) => lowrankLinalg.qr(lowrankLinalg.transpose(rounded)).q;

const drawBars = (bars, { s, k }, ticks) => {
  const top = Math.max(1, s[0]);
  bars.resize({ y: [0, 1.05 * top] });
  bars.axes({
    x: ticks,
    y: [0, top / 2, top],
    xTitle: "sheet",
    format: (value) => format(value, ".2g"),
  });
  s.forEach((value, i) => {
    bars.rect("bar " + i, [i + 0.72, 0], [i + 1.28, value], (i < k ? "teal" : "gray") + " solid");
    const text = format(value, ".2f");
    bars.place("bar " + i, [i + 1, value], { value, min: 0, max: top, text });
  });
};

const drawErrors = (curve, errors, k) => {
  const points = errors.map((error, i) => [i, error]),
    count = errors.length - 1;
  curve.line("curve", points, "orange thin");
  curve.dots("dots", points, "orange");
  const beside = [Math.min(k + 0.55, 0.75 * count), Math.min(1, errors[k] + 0.08)];
  curve.text("error", beside, format(errors[k], ".1%"), "orange");
  curve.place("cut", [k, 0], { value: k, min: 1, max: count, text: k + " of " + count });
};

const spectrum = ({ place, data, move, morph }) => {
  const { size, scale, presets } = data;
  const [u, v] = [data.u, data.v].map(perpendicular),
    count = u.length;
  let state = null,
    errors = [];

  const row = controls.box(place, "pictures");
  const [all, kept] = [0, 1].map(() => layerPictures.canvas(row, "picture with these bars", size));
  const panels = controls.box(place, "panels");
  const panelIn = (label, options) =>
    stage.panel(controls.titled(panels, label), {
      label,
      width: 336,
      height: 210,
      y: [0, 1.05],
      ...options,
    });
  const bars = panelIn("singular values: drag the bars", {
    margin: [16, 2, 34, 26],
    x: [0.5, count + 0.5],
  });
  const curve = panelIn("relative error of each cut: drag the cut", {
    margin: [16, 4, 34, 42],
    x: [-0.3, count + 0.3],
  });
  const ticks = u.map((_, i) => i + 1).filter((i) => i % Math.ceil(count / 12) === 0);
  curve.axes({
    x: ticks,
    y: [0, 0.25, 0.5, 0.75, 1],
    xTitle: "sheets kept",
    format: (value, axis) => (axis === "y" ? 100 * value + "%" : String(value)),
  });

  /** Raise or lower one bar. A spectrum never rises, so bars before it are lifted and bars after it are pushed down. */
  const put = (at, height) => {
    const value = clamp(Math.round(height * 100) / 100, 0, Math.max(1, state.s[0]));
    move({
      s: state.s.map((s, i) => (i < at ? Math.max(s, value) : i > at ? Math.min(s, value) : value)),
    });
  };
  const paint = ([x, y]) => put(clamp(Math.round(x), 1, count) - 1, y);
  bars.paint(paint);
  u.forEach((_, i) =>
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

  return {
    clean: ({ s, k }) => ({
      s: check.list("s", s, count, 0, 1000).sort((a, b) => b - a),
      k: check.whole("k", k, 1, count),
    }),
    draw: (wished) => {
      state = wished;
      const { s, k } = state;
      errors = lowrankLinalg.errors(s);
      drawBars(bars, state, ticks);
      drawErrors(curve, errors, k);
      const sheets = { u, s: s.map((one) => scale * one), v };
      layerPictures.grays(all, layerPictures.sum(sheets, count));
      layerPictures.grays(kept, layerPictures.sum(sheets, k));
      kept.title("its sheets 1 to " + k);
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
