// An album that is written over: what a state of fixed size gives back. Python's album.py has data and words.
const album = ({ place, data, move }) => {
  const { words, widths, methods } = data, SIDE = 8, SIZE = 64, GAP = 3, STEP = SIDE + GAP;
  const grays = data.grays.map((row) => row.split(" ").map(Number)), count = grays.length;
  const mean = grays[0].map((_, j) => grays.reduce((sum, row) => sum + row[j], 0) / count);
  const values = grays.map((row) => row.map((gray, j) => gray - mean[j]));
  const zeros = () => Array.from({ length: SIZE }, () => 0);
  let state = null, table = [], read = [], right = [];

  const keysOf = (d, written) => data.keys.slice(0, written).map((key) => {
    const part = key.slice(0, d), length = Math.hypot(...part);
    return part.map((x) => x / length);
  });
  const readBy = (key) => {
    const out = zeros();
    key.forEach((x, i) => table[i].forEach((entry, j) => (out[j] += x * entry)));
    return out;
  };
  const add = (key, change) => key.forEach((x, i) => change.forEach((y, j) => (table[i][j] += x * y)));
  /** V S^-1 U^T applied to the values: the state with the least error. */
  const best = (keys) => {
    const { u, s, v } = lowrankLinalg.layers(keys);
    s.forEach((sigma, l) => {
      if (sigma < 1e-10 * s[0]) return;
      const along = zeros();
      keys.forEach((_, t) => values[t].forEach((value, j) => (along[j] += u[l][t] * value / sigma)));
      add(Array.from(v[l]), along);
    });
  };
  const compute = ({ written, d, method }) => {
    const keys = keysOf(d, written);
    table = Array.from({ length: d }, zeros);
    if (method === "best") best(keys);
    else keys.forEach((key, t) => {
      const before = method === "delta" ? readBy(key) : [];
      add(key, values[t].map((value, j) => value - (before[j] || 0)));
    });
    read = method === "cache" ? values.slice(0, written) : keys.map(readBy);
    right = read.map((row, t) => {
      const far = (i) => row.reduce((sum, x, j) => sum + (x - values[i][j]) ** 2, 0);
      const own = far(t);
      return keys.every((_, i) => i === t || far(i) > own);
    });
  };

  // Thumbnails on a canvas, their frames above it
  const panels = controls.box(place, "panels");
  const wide = SIDE * STEP - GAP; // pixels of the canvas, which is shown larger
  const holder = controls.titled(panels, words.pictures), layer = controls.box(holder, "frames");
  const canvas = controls.element("canvas", { width: wide, height: wide, role: "img", "aria-label": words.pictures });
  layer.append(canvas);
  const frames = stage.make("svg", { viewBox: [0, 0, wide, wide].join(" "), "aria-hidden": "true" }, layer);
  const rects = grays.map((_, t) => stage.make("rect", {
    x: (t % SIDE) * STEP - 0.6, y: Math.floor(t / SIDE) * STEP - 0.6, width: SIDE + 1.2, height: SIDE + 1.2,
  }, frames));
  const pen = canvas.getContext("2d");
  const map = layerPictures.canvas(panels, words.state, SIZE);
  map.box.style.maxWidth = "18rem";
  const side = controls.box(place);
  const slider = controls.range(side, {
    label: words.written, min: 1, max: count, step: 1, input: (written) => move({ written }),
  });
  const row = controls.box(side, "control");
  const more = controls.button(row, words.more, () => move({ written: Math.min(count, state.written + 1) }));
  const rule = controls.choice(side, { label: words.method, options: methods, input: (method) => move({ method }) });
  const width = controls.choice(side, {
    label: words.d, options: Object.fromEntries(widths.map((d) => [d, String(d)])), input: (d) => move({ d: Number(d) }),
  });

  const draw = () => {
    const image = pen.createImageData(wide, wide);
    read.forEach((values, t) => values.forEach((value, j) => {
      const x = (t % SIDE) * STEP + j % SIDE, y = Math.floor(t / SIDE) * STEP + Math.floor(j / SIDE);
      const at = 4 * (y * wide + x), gray = 255 - 255 * clamp((value + mean[j]) / 99, 0, 1);
      [0, 1, 2, 3].forEach((channel) => (image.data[at + channel] = channel === 3 ? 255 : gray));
    }));
    pen.putImageData(image, 0, 0);
    rects.forEach((rect, t) => stage.write(rect, { class: t < read.length ? (right[t] ? "teal" : "orange") : "none" }));
    const tall = SIZE / table.length;
    const spread = Array.from({ length: SIZE }, (_, i) => table[Math.floor(i / tall)]).flat();
    const most = Math.max(...spread.map(Math.abs)) || 1;
    layerPictures.signs(map, (i) => spread[i], SIZE * SIZE, most);
  };

  return {
    clean: ({ written, d, method }) => ({
      written: check.whole("written", written, 1, count), d: check.one("d", d, widths),
      method: check.one("method", method, Object.keys(methods)),
    }),
    draw: (wished) => {
      state = wished;
      compute(state);
      draw();
      slider.show(state.written);
      rule.show(state.method);
      width.show(String(state.d));
      more.disabled = state.written === count;
    },
    numbers: () => ({
      given_back: right.filter(Boolean).length,
      kept: state.method === "cache" ? state.written * (state.d + SIZE) : state.d * SIZE,
    }),
    table: () => ({ read: read.map((row) => row.map((value, j) => value + mean[j])) }),
    remarks: () => ({ cache: ["cache"], best: ["best"], delta: ["old"], sum: ["noisy"] })[state.method],
  };
};
