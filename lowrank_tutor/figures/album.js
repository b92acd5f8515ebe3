// An album that is written over: what a state of fixed size gives back. Its data and sentences are in album.py.
// Pixels of a side of a picture, and pictures of a row; pixels from one to the next, and of the album, shown larger.
const SIDE = 8;
const PIXELS = SIDE * SIDE;
const STEP = SIDE + 3;
const WIDE = SIDE * STEP - 3;
// Pixels that the last sheet's column and row stand off, and are wide.
const EDGE = 8,
  THICK = 5;
const READ =
  "What each key reads now, the oldest first. Teal frame: nearest to its own picture; orange: to another";
const KEPT = {
  state: "The state, {d} by 64. Left and above: the sheet that was written last",
  cache: "The cache: a row for each picture, and a key of {d} numbers beside it",
  best: "The best state, {d} by 64",
};
const { matmul, svd } = lowrankLinalg;

/** The first d numbers of each key, made a direction of length 1. */
const keysOf = (normal, d) =>
  normal.map((key) => {
    const part = key.slice(0, d),
      length = Math.hypot(...part);
    return part.map((x) => x / length);
  });

const emptyState = (keys, values) => keys[0].map(() => values[0].map(() => 0));
const add = (rows, key, change) =>
  rows.forEach((row, i) => change.forEach((y, j) => (row[j] += key[i] * y)));

/** The state with the least error: the pseudo-inverse of the keys times the values. */
const bestState = (keys, values) => {
  const { u, s, v } = svd(keys);
  const rows = emptyState(keys, values);
  s.forEach((size, l) => {
    const column = (a, by) => a.map((row) => row[l] / by);
    add(rows, column(v, 1), vectors.average(values, column(u, size)));
  });
  return { rows };
};

/** The state after one picture after another was written, and the sheet that was written last. */
const writtenState = (keys, values, delta) => {
  const rows = emptyState(keys, values);
  let sheet = null;
  keys.forEach((key, t) => {
    const [before] = matmul([key], rows);
    const change = values[t].map((value, j) => value - (delta ? before[j] : 0));
    add(rows, key, change);
    sheet = { key, change };
  });
  return { rows, sheet };
};

/** What is kept, what the keys read of it, and whether this is nearest to their own pictures. */
const readAlbum = (keys, values, method) => {
  const cache = method === "cache";
  const kept = cache
    ? { rows: values }
    : method === "best"
      ? bestState(keys, values)
      : writtenState(keys, values, method === "delta");
  const read = cache ? values : matmul(keys, kept.rows);
  const right = read.map((row, t) => {
    const far = (value) => row.reduce((sum, x, j) => sum + (x - value[j]) ** 2, 0);
    return values.every((value, i) => i === t || far(value) > far(values[t]));
  });
  return { ...kept, read, right };
};

/** Thumbnails on a canvas, their frames above it; a press on the album writes it up to there. */
const thumbnails = (layer, count, darkest, write) => {
  const canvas = element("canvas", {
    width: WIDE,
    height: WIDE,
    role: "img",
    "aria-label": READ,
  });
  layer.append(canvas);
  const viewBox = [0, 0, WIDE, WIDE].join(" ");
  const frames = stage.make("svg", { viewBox, "aria-hidden": "true" }, layer);
  const rects = Array.from({ length: count }, (_, t) => {
    const [x, y] = [t % SIDE, Math.floor(t / SIDE)].map((at) => at * STEP - 0.6);
    return stage.make("rect", { x, y, width: SIDE + 1.2, height: SIDE + 1.2 }, frames);
  });
  frames.classList.add("paint");
  stage.follow(
    frames,
    (event) => {
      const box = frames.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top].map((at) =>
        clamp(Math.floor((at * SIDE) / box.width), 0, SIDE - 1),
      );
    },
    ([across, down]) => write(down * SIDE + across + 1),
    () => null,
    true,
  );
  const pen = canvas.getContext("2d");
  return ({ read, right }) => {
    const image = pen.createImageData(WIDE, WIDE);
    read.forEach((values, t) =>
      values.forEach((value, j) => {
        const x = (t % SIDE) * STEP + (j % SIDE),
          y = Math.floor(t / SIDE) * STEP + Math.floor(j / SIDE),
          gray = 255 - 255 * clamp(value / darkest, 0, 1);
        image.data.set([gray, gray, gray, 255], 4 * (y * WIDE + x));
      }),
    );
    pen.putImageData(image, 0, 0);
    rects.forEach((rect, t) =>
      stage.write(rect, { class: t < read.length ? (right[t] ? "teal" : "orange") : "gray empty" }),
    );
  };
};

/** What is kept, as a picture with the last sheet at its edges. */
const drawKept = (map, state, { rows, sheet }) => {
  const tall = state.method === "cache" ? 1 : PIXELS / rows.length;
  const full = (numbers) => Math.max(...numbers.map(Math.abs)) || 1;
  const most = full(rows.flat()),
    scales = sheet && [sheet.key, sheet.change].map(full);
  layerPictures.signs(
    map,
    (i) => {
      const y = Math.floor(i / (PIXELS + EDGE)) - EDGE,
        x = (i % (PIXELS + EDGE)) - EDGE;
      if (x >= 0 && y >= 0) return (rows[Math.floor(y / tall)] || [])[x] / most || 0;
      if (!sheet || (x < 0 && y < 0)) return 0;
      if (y >= 0) return x + EDGE < THICK ? sheet.key[Math.floor(y / tall)] / scales[0] : 0;
      return y + EDGE < THICK ? sheet.change[x] / scales[1] : 0;
    },
    (PIXELS + EDGE) ** 2,
    1,
  );
  map.title(fill(KEPT[state.method] || KEPT.state, state));
};

const album = ({ place, data, move }) => {
  const { widths, methods } = data;
  const grays = data.grays.map((row) => [...row].map((gray) => parseInt(gray, 36))),
    count = grays.length;
  // Two digits for each number.
  const normal = data.keys.map((row) => row.match(/../g).map((code) => (code - 50) / 16));
  let state = null,
    now = null; // what readAlbum found

  const panels = controls.box(place, "panels");
  const left = controls.titled(panels, READ),
    layer = controls.box(left, "frames");
  const write = (written) => move({ written });
  const drawThumbnails = thumbnails(layer, count, data.most, write);
  const slider = controls.range(left, {
    label: "pictures written",
    min: 1,
    max: count,
    step: 1,
    input: write,
  });
  const row = controls.box(left, "control");
  const more = controls.button(row, "Write one more", () => write(state.written + 1));
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
  const map = layerPictures.canvas(side, KEPT.state, PIXELS + EDGE);
  map.box.classList.add("state");
  // A phone shows the two at once.
  if (!matchMedia("(min-width: 601px)").matches) layer.after(map.box);

  const kept = () =>
    state.method === "cache" ? state.written * (state.d + PIXELS) : state.d * PIXELS;

  return {
    clean: ({ written, d, method }) => ({
      written: check.whole("written", written, 1, count),
      d: check.one("d", d, widths),
      method: check.one("method", method, Object.keys(methods)),
    }),
    draw: (wished) => {
      state = wished;
      const { written, d, method } = state;
      now = readAlbum(keysOf(normal.slice(0, written), d), grays.slice(0, written), method);
      drawThumbnails(now);
      drawKept(map, state, now);
      slider.show(written);
      rule.show(method);
      width.show(String(d));
      more.disabled = written === count;
    },
    numbers: () => ({
      given_back: now.right.filter(Boolean).length,
      error:
        Math.hypot(...now.read.flatMap((row, t) => row.map((x, j) => x - grays[t][j]))) /
        Math.hypot(...grays.slice(0, state.written).flat()),
      kept: kept(),
      holds: Math.floor(kept() / (state.d + PIXELS)),
    }),
    table: () => ({ read: now.read }),
    remarks: () =>
      ({ cache: ["cache"], best: ["best"], delta: ["old"], sum: ["noisy"] })[state.method],
  };
};
