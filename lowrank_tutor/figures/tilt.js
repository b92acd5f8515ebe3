// A picture that can be tilted, and its spectrum, which can be cut. Its sentences are in tilt.py.
const tilt = ({ place, data, move, tell }) => {
  const { size } = data;
  const FLOOR = 1e-4; // weights below that are drawn on the axis
  const decompose = background((input, linalg) => ({ ...input, ...linalg.layers(input.rows) }));
  const sources = {
    ...samplePictures.shapes,
    noise: samplePictures.noise(size),
    attention: samplePictures.fromGrays(data.attention.flat(), data.attention.length),
  };
  const sum = new Float64Array(size * size); // of the first `summed` sheets
  let state = {},
    asked = "",
    pending = null; // what is wished, and what the worker was asked for
  let found = null,
    errors = [],
    summed = 0; // the picture that was decomposed, with its sheets; the error of each cut

  // What there is to see: the picture is turned by its own corners, its spectrum cut by a drag anywhere on it
  place.append(element("p", {}, "Turn the picture by hand or with the slider. Then drag the cut."));
  const row = controls.box(place, "pictures");
  const original = layerPictures.canvas(row, "picture", size);
  const total = layerPictures.canvas(row, "sum", size);
  const newest = layerPictures.layer(row, "sheet", size);
  const around = (event) => {
    const { left, top, width, height } = original.canvas.getBoundingClientRect();
    return [event.clientX - left - width / 2, event.clientY - top - height / 2];
  };
  let held = [0, 0]; // where it was taken hold of: how far from upright, and from the tilt
  original.canvas.classList.add("turn");
  stage.follow(
    original.canvas,
    around,
    ([x, y]) => {
      const turned = ((Math.atan2(y, x) - held[0]) * 180) / Math.PI;
      move({ tilt: clamp(Math.round(((turned + 540) % 360) - 180 + held[1]), 0, data.max_tilt) });
    },
    (event) => {
      const [x, y] = around(event);
      held = [Math.atan2(y, x), state.tilt];
    },
    true,
  );
  const slider = controls.range(place, {
    label: "tilt",
    min: 0,
    max: data.max_tilt,
    step: 1,
    input: (degrees) => move({ tilt: degrees }),
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
  const panel = stage.panel(spectrum, {
    label: "weights of the sheets, and the cut",
    width: 320,
    height: 216,
    margin: [10, 8, 34, 56],
    x: [0.9, 1.15 * size],
    xLog: true,
    y: [FLOOR * 0.7, 1.6],
    yLog: true,
  });
  panel.axes({
    x: [1, 10, 100],
    y: [1e-4, 1e-3, 1e-2, 0.1, 1],
    xTitle: "sheet",
    yTitle: "weight",
    format: (value) =>
      String(value).replace("0.0001", "10\u207b\u2074").replace("0.001", "10\u207b\u00b3"),
  });
  const cut = (k) => move({ k: clamp(Math.round(k), 1, size) });
  const enough = () => errors.findIndex((error) => error <= data.enough);
  panel.handle("cut", {
    label: "cut: sheets kept",
    color: "ink",
    axis: "x",
    drag: (at) => cut(panel.snap(at, [[enough() + 0.5, at[1]]])[0] - 0.5),
    step: (dx, dy) => cut(state.k + dx + dy),
    end: (which) => cut(which < 0 ? 1 : size),
  });
  panel.grab("cut");
  const bar = stage.panel(controls.titled(side, "numbers kept"), {
    label: "numbers kept",
    width: 320,
    height: 62,
    margin: [24, 26, 18, 8],
    x: [0, 2 * size * size],
    y: [0, 1],
  });
  bar.axes({ x: [0, 2 * size * size], format: (value) => value.toLocaleString("en") });

  // What can be chosen
  const others = side.appendChild(element("details", {}, element("summary", {}, "other pictures")));
  const choice = controls.choice(others, {
    label: "picture",
    options: { ...data.pictures, own: "your own" },
    input: (picture) => move({ picture }),
  });
  choice.offer("own", false);
  photo.offer(others, size, tell, (grays) => {
    sources.own = samplePictures.fromGrays(grays, size);
    asked = ""; // a second photo is another picture of the same name
    choice.offer("own", true);
    move({ picture: "own" });
  });

  // What is computed
  const key = (wished) => wished.picture + " " + wished.tilt;
  const prepare = async (wished) => {
    const { picture, tilt: degrees } = wished;
    if (!sources[picture]) {
      // it came with the page
      sources[picture] = samplePictures.fromGrays(
        await photo.fromAddress(data[picture], size),
        size,
      );
      if (asked !== key(wished)) return pending; // something else was asked for meanwhile
    }
    const turned = samplePictures.turned(sources[picture], degrees, size, data.fine);
    show(turned);
    const answer = await decompose({ rows: turned, picture, degrees });
    if (asked === key(wished)) pending = null;
    if (answer === found) return undefined; // it answered several
    found = answer;
    let tail = 0;
    const tails = found.s.reduceRight((all, s) => [(tail += s * s), ...all], [0]);
    errors = tails.map((part) => Math.sqrt(part / (tails[0] || 1)));
    sum.fill(0);
    summed = 0;
    return draw();
  };
  const show = (turned) =>
    layerPictures.grays(
      original,
      turned.flatMap((values) => Array.from(values)),
    );

  /** Bring the sum to k layers: a drag adds or takes away only what lies between. */
  const addUp = (k) => {
    while (summed !== k) {
      const sign = summed < k ? 1 : -1,
        at = summed < k ? summed++ : --summed;
      const u = found.u[at],
        v = found.v[at],
        weight = sign * found.s[at];
      for (let i = 0; i < size; i++) {
        const w = weight * u[i],
          start = i * size;
        if (w) for (let j = 0; j < size; j++) sum[start + j] += w * v[j];
      }
    }
  };
  const isZero = (weight) => weight <= 1e-9 * found.s[0]; // but for what rounding leaves
  const draw = () => {
    if (!found) return;
    const { k } = state;
    addUp(k);
    layerPictures.grays(total, sum);
    total.title(k === 1 ? "one sheet" : "sum of " + k + " sheets");
    const empty = isZero(found.s[k - 1]),
      { u, v } = found;
    newest.title("sheet " + k + (empty ? " is empty" : " alone"));
    newest.show(...[u[k - 1], v[k - 1]].map((part) => (empty ? part.map(() => 0) : part)));
    const points = found.s.flatMap((s, i) =>
      isZero(s) ? [] : [[i + 1, Math.max(FLOOR, s / found.s[0])]],
    );
    panel.dots(
      "kept",
      points.filter(([i]) => i <= k),
      "teal",
    );
    panel.dots(
      "rest",
      points.filter(([i]) => i > k),
      "gray small",
    );
    panel.place("cut", [k + 0.5, 0.01], {
      value: k,
      min: 1,
      max: size,
      text: k + " of 160 sheets",
    });
    const kept = 2 * size * k,
      full = size * size;
    bar.rect("kept", [0, 0], [kept, 1], kept > full ? "orange solid" : "teal solid");
    bar.line(
      "full",
      [
        [full, 0],
        [full, 1.4],
      ],
      "ink",
    );
    bar.text(
      "words",
      [full, 1.7],
      "the picture itself: " + full.toLocaleString("en"),
      "ink middle",
    );
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
      draw();
      if (asked === key(state)) return pending;
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
      if (found.s[0] === 0) return ["black"];
      if (found.rows.every((values) => values.every((value) => value === found.rows[0][0])))
        return ["even"];
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
