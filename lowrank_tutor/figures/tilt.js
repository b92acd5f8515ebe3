// A picture that can be tilted, and its spectrum, which can be cut. Its sentences are in tilt.py.
const FLOOR = 1e-4; // weights below that are drawn on the axis

/** Whether a sheet is empty, but for what rounding leaves. */
const isEmpty = (s, i) => s[i] <= 1e-9 * s[0];

/** Let a picture be turned by its own corners: tilted() says how it stands, in degrees, turn(degrees) moves it. */
const turnable = (canvas, tilted, turn) => {
  const around = (event) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    return [event.clientX - left - width / 2, event.clientY - top - height / 2];
  };
  canvas.classList.add("turn");
  stage.follow(
    canvas,
    around,
    ([x, y], [from, before]) => {
      const turned = ((Math.atan2(y, x) - from) * 180) / Math.PI;
      turn(((turned + 540) % 360) - 180 + before);
    },
    (event) => {
      const [x, y] = around(event);
      return [Math.atan2(y, x), tilted()];
    },
    true,
  );
};

/** The picture, which can be turned, the sum of its first sheets, and the last of these. */
const sheetPictures = (place, size, tilted, turn) => {
  const row = controls.box(place, "pictures");
  const original = layerPictures.canvas(row, "picture", size);
  const total = layerPictures.canvas(row, "sum", size);
  const newest = layerPictures.layer(row, "sheet", size);
  turnable(original.canvas, tilted, turn);
  return {
    original,
    draw: (found, k) => {
      layerPictures.grays(total, layerPictures.sum(found, k));
      total.title(k === 1 ? "one sheet" : "sum of " + k + " sheets");
      const empty = isEmpty(found.s, k - 1);
      newest.title("sheet " + k + (empty ? " is empty" : " alone"));
      newest.show(...[found.u, found.v].map((part) => part[k - 1].map((x) => (empty ? 0 : x))));
    },
  };
};

/** The weights of the sheets, and the cut: kept() is where it stands, enough() where it is held, cut(k) moves it. */
const weightPanel = (place, size, { kept, enough, cut }) => {
  const panel = stage.panel(place, {
    label: "weights of the sheets, and the cut",
    width: 320,
    height: 216,
    margin: [10, 8, 34, 56],
    x: [0.9, 1.15 * size],
    xLog: true,
    y: [FLOOR * 0.7, 1.6],
    yLog: true,
  });
  const small = { 0.0001: "10\u207b\u2074", 0.001: "10\u207b\u00b3" };
  panel.axes({
    x: [1, 10, 100],
    y: [1e-4, 1e-3, 1e-2, 0.1, 1],
    xTitle: "sheet",
    yTitle: "weight",
    format: (value) => small[value] || String(value),
  });
  panel.handle("cut", {
    label: "cut: sheets kept",
    color: "ink",
    axis: "x",
    drag: (at) => cut(panel.snap(at, [[enough() + 0.5, at[1]]])[0] - 0.5),
    step: (dx, dy) => cut(kept() + dx + dy),
    end: (which) => cut(which < 0 ? 1 : size),
  });
  panel.grab("cut");
  return (s, k) => {
    const points = s.flatMap((weight, i) =>
      isEmpty(s, i) ? [] : [[i + 1, Math.max(FLOOR, weight / s[0])]],
    );
    const few = points.filter(([i]) => i <= k);
    panel.dots("kept", few, "teal");
    panel.dots("rest", points.slice(few.length), "gray small");
    panel.place("cut", [k + 0.5, 0.01], {
      value: k,
      min: 1,
      max: size,
      text: k + " of 160 sheets",
    });
  };
};

/** The numbers that the sheets kept need, beside those of the picture. */
const numbersBar = (place, size) => {
  const full = size * size,
    label = "numbers kept";
  const bar = stage.panel(controls.titled(place, label), {
    label,
    width: 320,
    height: 62,
    margin: [24, 26, 18, 8],
    x: [0, 2 * full],
    y: [0, 1],
  });
  const written = (count) => count.toLocaleString("en");
  bar.axes({ x: [0, 2 * full], format: written });
  return (kept) => {
    bar.rect("kept", [0, 0], [kept, 1], (kept > full ? "orange" : "teal") + " solid");
    bar.line(
      "full",
      [0, 1.4].map((y) => [full, y]),
      "ink",
    );
    bar.text("words", [full, 1.7], "the picture itself: " + written(full), "ink middle");
  };
};

/** The pictures that are drawn by rule, and one that came as numbers. */
const firstPictures = ({ size, attention }) => {
  const { shapes, noise, fromGrays } = samplePictures;
  return {
    ...shapes,
    noise: noise(size),
    attention: fromGrays(attention.flat(), attention.length),
  };
};

const tilt = ({ place, data, move, tell }) => {
  const { size } = data;
  const decompose = background((input, linalg) => ({ ...input, ...linalg.layers(input.rows) }));
  const { fromGrays, turned } = samplePictures;
  const sources = firstPictures(data);
  // What is wished, and what the worker was asked for; the picture that was decomposed, and the error of each cut.
  let state = {},
    asked = "",
    pending = null,
    found = null,
    errors = [];
  const cut = (k) => move({ k: clamp(Math.round(k), 1, size) });
  const enough = () => errors.findIndex((error) => error <= data.enough);

  // What there is to see: the picture is turned by its own corners, its spectrum cut by a drag anywhere on it
  place.append(element("p", {}, "Turn the picture by hand or with the slider. Then drag the cut."));
  const turn = (degrees) => move({ tilt: clamp(Math.round(degrees), 0, data.max_tilt) });
  const pictures = sheetPictures(place, size, () => state.tilt, turn);
  const slider = controls.range(place, {
    label: "tilt",
    min: 0,
    max: data.max_tilt,
    step: 1,
    input: turn,
  });
  controls.player(controls.box(place), {
    words: "Build it up",
    stations: [1, 2, 4, 8, 16, 32, 64],
    seconds: 10,
    at: () => state.k,
    input: (k) => move({ k: Math.floor(k) }),
  });
  const panels = controls.box(place, "panels");
  const [spectrum, side] = [controls.box(panels), controls.box(panels)];
  const drawWeights = weightPanel(spectrum, size, { kept: () => state.k, enough, cut });
  const drawBar = numbersBar(side, size);

  // What can be chosen
  const others = side.appendChild(element("details", {}, element("summary", {}, "other pictures")));
  const choice = controls.choice(others, {
    label: "picture",
    options: { ...data.pictures, own: "your own" },
    input: (picture) => move({ picture }),
  });
  choice.offer("own", false);
  photo.offer(others, size, tell, (grays) => {
    sources.own = fromGrays(grays, size);
    asked = ""; // a second photo is another picture of the same name
    choice.offer("own", true);
    move({ picture: "own" });
  });

  // What is computed
  const key = (wished) => wished.picture + " " + wished.tilt;
  const prepare = async (wished) => {
    const { picture, tilt: degrees } = wished;
    sources[picture] ??= fromGrays(await photo.fromAddress(data[picture], size), size); // it came with the page
    if (asked !== key(wished)) return pending; // something else was asked for meanwhile
    const rows = turned(sources[picture], degrees, size, data.fine);
    layerPictures.grays(pictures.original, rows);
    const answer = await decompose({ rows, picture, degrees });
    if (asked === key(wished)) pending = null;
    if (answer === found) return; // it answered several
    found = answer;
    errors = lowrankLinalg.errors(found.s);
    draw();
  };
  const draw = () => {
    if (!found) return;
    pictures.draw(found, state.k);
    drawWeights(found.s, state.k);
    drawBar(2 * size * state.k);
  };

  return {
    clean: ({ picture, tilt: degrees, k }) => {
      check.one("picture", picture, [...Object.keys(data.pictures), "own"]);
      if (picture === "own" && !sources.own) {
        throw new Error("There is no picture of your own yet: choose a file first.");
      }
      return {
        picture,
        tilt: check.number("tilt", degrees, 0, data.max_tilt),
        k: check.whole("k", k, 1, size),
      };
    },
    draw: (wished) => {
      state = wished;
      slider.show(state.tilt, format(state.tilt, ".3g") + "\u00b0");
      choice.show(state.picture);
      if (asked === key(state)) {
        draw();
        return pending;
      }
      asked = key(state);
      return (pending = prepare(state));
    },
    numbers: () =>
      errors.length === 0
        ? {}
        : {
            relative_error: errors[state.k],
            numbers_kept: 2 * size * state.k,
            layers_for_5_percent: enough(),
          },
    table: () => ({ picture: found.rows.map((values) => Array.from(values)) }),
    values: () => ({ subject: data.subjects[found.picture], tilt: found.degrees }),
    remarks: () => {
      const { s, rows } = found;
      if (s[0] === 0) return ["black"];
      if (rows.every((row) => row.every((gray) => gray === rows[0][0]))) return ["even"];
      return state.k > size / 2 ? ["beyond"] : [];
    },
    eases: { tilt: 1, k: 1 },
    share: (all) =>
      all.picture !== "own"
        ? [all, ""]
        : [
            { ...all, picture: "window" },
            "Your picture stays on this machine, so the link shows the window in its place.",
          ],
  };
};
