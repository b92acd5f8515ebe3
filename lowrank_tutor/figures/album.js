// An album that is written over: what a state of fixed size gives back. Its data and sentences are in album.py.
const album = ({ place, data, move }) => {
  const { widths, methods } = data,
    SIDE = 8,
    SIZE = 64,
    GAP = 3,
    STEP = SIDE + GAP;
  const READ =
    "What each key reads now, the oldest first. Teal frame: nearest to its own picture; orange: to another";
  const KEPT = {
    state: "The state, {d} by 64. Left and above: the sheet that was written last",
    cache: "The cache: a row for each picture, and a key of {d} numbers beside it",
    best: "The best state, {d} by 64",
  };
  const grays = data.grays.map((row) => [...row].map((gray) => parseInt(gray, 36))),
    count = grays.length;
  const normal = data.keys.map((row) => row.match(/../g).map((code) => (code - 50) / 16)); // two digits each
  const zeros = () => Array.from({ length: SIZE }, () => 0);
  let state = null,
    table = [],
    read = [],
    right = [],
    last = null; // the sheet that was written last

  const keysOf = (d, written) =>
    normal.slice(0, written).map((key) => {
      const part = key.slice(0, d),
        length = Math.hypot(...part);
      return part.map((x) => x / length);
    });
  const { matmul } = lowrankLinalg;
  const add = (key, change) =>
    key.forEach((x, i) => change.forEach((y, j) => (table[i][j] += x * y)));
  /** The state with the least error: the pseudo-inverse of the keys times the values. */
  const best = (keys) => {
    const { u, s, v } = lowrankLinalg.svd(keys),
      written = grays.slice(0, keys.length);
    s.forEach((size, l) =>
      add(
        v.map((row) => row[l]),
        vectors.average(
          written,
          u.map((row) => row[l] / size),
        ),
      ),
    );
  };
  const compute = ({ written, d, method }) => {
    const keys = keysOf(d, written);
    table = Array.from({ length: d }, zeros);
    if (method === "best") best(keys);
    else
      keys.forEach((key, t) => {
        const [before] = method === "delta" ? matmul([key], table) : [zeros()];
        const change = grays[t].map((value, j) => value - before[j]);
        add(key, change);
        last = { key, change };
      });
    read = method === "cache" ? grays.slice(0, written) : matmul(keys, table);
    right = read.map((row, t) => {
      const far = (i) => row.reduce((sum, x, j) => sum + (x - grays[i][j]) ** 2, 0);
      const own = far(t);
      return keys.every((_, i) => i === t || far(i) > own);
    });
  };

  // Thumbnails on a canvas, their frames above it
  const panels = controls.box(place, "panels");
  const wide = SIDE * STEP - GAP; // pixels of the canvas, which is shown larger
  const left = controls.titled(panels, READ),
    layer = controls.box(left, "frames");
  const canvas = element("canvas", {
    width: wide,
    height: wide,
    role: "img",
    "aria-label": READ,
  });
  layer.append(canvas);
  const frames = stage.make(
    "svg",
    { viewBox: [0, 0, wide, wide].join(" "), "aria-hidden": "true" },
    layer,
  );
  const rects = grays.map((_, t) =>
    stage.make(
      "rect",
      {
        x: (t % SIDE) * STEP - 0.6,
        y: Math.floor(t / SIDE) * STEP - 0.6,
        width: SIDE + 1.2,
        height: SIDE + 1.2,
      },
      frames,
    ),
  );
  const pen = canvas.getContext("2d");
  frames.classList.add("paint");
  stage.follow(
    frames,
    (event) => {
      // a press on the album writes it up to there
      const box = frames.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top].map((at) =>
        clamp(Math.floor((at * SIDE) / box.width), 0, SIDE - 1),
      );
    },
    ([across, down]) => move({ written: down * SIDE + across + 1 }),
    () => null,
    true,
  );
  const slider = controls.range(left, {
    label: "pictures written",
    min: 1,
    max: count,
    step: 1,
    input: (written) => move({ written }),
  });
  const row = controls.box(left, "control");
  const more = controls.button(row, "Write one more", () =>
    move({ written: Math.min(count, state.written + 1) }),
  );
  const side = controls.box(panels);
  const rule = controls.choice(side, {
    label: "rule",
    options: methods,
    input: (method) => move({ method }),
  });
  const width = controls.choice(side, {
    label: "numbers in a key",
    options: Object.fromEntries(widths.map((d) => [d, String(d)])),
    input: (d) => move({ d: Number(d) }),
  });
  const EDGE = 8,
    THICK = 5; // pixels that the last sheet's column and row stand off, and are wide
  const map = layerPictures.canvas(side, KEPT.state, SIZE + EDGE);
  map.box.classList.add("state");
  if (!matchMedia("(min-width: 601px)").matches) layer.after(map.box); // a phone shows the two at once

  const draw = () => {
    const image = pen.createImageData(wide, wide);
    read.forEach((values, t) =>
      values.forEach((value, j) => {
        const x = (t % SIDE) * STEP + (j % SIDE),
          y = Math.floor(t / SIDE) * STEP + Math.floor(j / SIDE);
        const at = 4 * (y * wide + x),
          gray = 255 - 255 * clamp(value / data.most, 0, 1);
        [0, 1, 2, 3].forEach((channel) => (image.data[at + channel] = channel === 3 ? 255 : gray));
      }),
    );
    pen.putImageData(image, 0, 0);
    rects.forEach((rect, t) =>
      stage.write(rect, { class: t < read.length ? (right[t] ? "teal" : "orange") : "gray empty" }),
    );
    const full = (rows) => Math.max(...rows.flat().map(Math.abs)) || 1;
    const rows = state.method === "cache" ? read : table,
      tall = state.method === "cache" ? 1 : SIZE / table.length;
    const sheet = { sum: last, delta: last }[state.method];
    const most = full(rows),
      scales = sheet && [full([sheet.key]), full([sheet.change])];
    layerPictures.signs(
      map,
      (i) => {
        const y = Math.floor(i / (SIZE + EDGE)) - EDGE,
          x = (i % (SIZE + EDGE)) - EDGE;
        if (x >= 0 && y >= 0) return (rows[Math.floor(y / tall)] || [])[x] / most || 0;
        if (!sheet || (x < 0 && y < 0)) return 0;
        if (y >= 0) return x + EDGE < THICK ? sheet.key[Math.floor(y / tall)] / scales[0] : 0;
        return y + EDGE < THICK ? sheet.change[x] / scales[1] : 0;
      },
      (SIZE + EDGE) ** 2,
      1,
    );
    map.title(fill(KEPT[state.method] || KEPT.state, state));
  };

  const kept = () => (state.method === "cache" ? state.written * (state.d + SIZE) : state.d * SIZE);

  return {
    clean: ({ written, d, method }) => ({
      written: check.whole("written", written, 1, count),
      d: check.one("d", d, widths),
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
      error:
        Math.hypot(...read.flatMap((row, t) => row.map((x, j) => x - grays[t][j]))) /
        Math.hypot(...grays.slice(0, read.length).flat()),
      kept: kept(),
      holds: Math.floor(kept() / (state.d + SIZE)),
    }),
    table: () => ({ read }),
    remarks: () =>
      ({ cache: ["cache"], best: ["best"], delta: ["old"], sum: ["noisy"] })[state.method],
  };
};
