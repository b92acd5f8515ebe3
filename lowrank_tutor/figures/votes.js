// Groups of old tokens, and how many votes they have. Its data and sentences are in votes.py.
const votes = ({ place, data, move }) => {
  const { ways, rhos, last } = data;
  const read = (rows, scale) => rows.map((row) => row.match(/../g).map((code) => (code - 50) / scale));
  const noise = read(data.noise, 16), maps = read(data.maps, 32);
  const count = noise.length, width = noise[0].length, percent = (share) => format(share, ".0%");
  let state = null, exact = [], grouped = [], numbers = {};

  const attend = ({ m, way, rho }) => {
    const x = [noise[0]];
    for (let i = 1; i < count; i++) x.push(noise[i].map((e, j) => rho * x[i - 1][j] + Math.sqrt(1 - rho * rho) * e));
    const [q, k, v] = [0, 1, 2].map((i) => lowrankLinalg.matmul(x, maps.slice(i * width, (i + 1) * width)));
    const logits = (keys) => keys.map((key) => key.reduce((sum, y, j) => sum + y * q[count - 1][j], 0) / Math.sqrt(width));
    const parts = [], grouping = Math.floor(last / m) * m;
    for (let at = 0; at < count; at += at < grouping ? m : 1) parts.push([at, at < grouping ? m : 1]);
    const [keys, values] = [k, v].map((rows) => parts.map(([at, size]) => vectors.mean(rows.slice(at, at + size))));
    const added = ([at, size]) => way === "none" && at < last ? -Infinity : way === "votes" ? Math.log(size) : 0;
    const weights = lowrankLinalg.softmax(logits(keys).map((logit, i) => logit + added(parts[i])));
    const whole = lowrankLinalg.softmax(logits(k)), [given, right] = [vectors.average(values, weights), vectors.average(v, whole)];
    const upTo = (all, starts) => all.reduce((sum, w, i) => sum + (starts(i) < last ? w : 0), 0);
    return {
      exact: whole, parts: parts.map(([at, size], i) => ({ at, size, weight: weights[i] })),
      numbers: {
        error: Math.hypot(...given.map((y, j) => y - right[j])) / Math.hypot(...right),
        old: upTo(weights, (i) => parts[i][0]), exact_old: upTo(whole, (i) => i),
        seen: way === "none" ? last : parts.length,
      },
    };
  };

  const roomy = matchMedia("(min-width: 601px)").matches;
  const panels = controls.box(place, roomy ? "panels beside" : "panels"), small = roomy ? 200 : 56;
  const tallest = 1.25 * Math.max(...rhos.flatMap((rho) => ["one", "none"].flatMap((way) => {
    const found = attend({ m: last, way, rho });
    return [...found.exact, ...found.parts.map(({ weight }) => weight)];
  })).filter((w) => w < 0.4)); // a group of all sixteen may have more, but its bar is the share of each
  const open = (label, options) => stage.panel(controls.titled(panels, label), { label, ...options });
  const strip = open("Weights of the last token. Outlined: exact. Filled: with groups", {
    width: roomy ? 480 : 328, height: 200, margin: [18, 6, 34, 50], x: [0, count], y: [0, tallest],
  });
  strip.axes({
    y: [0, 0.05, 0.1, 0.15].filter((y) => y < tallest), xTitle: "token, the oldest first", yTitle: "weight",
    format: percent,
  });
  strip.line("edge", [[last, 0], [last, tallest]], "ink thin dotted");
  const gauge = open("error of its output", {
    width: roomy ? 110 : 328, height: small, margin: roomy ? [18, 10, 34, 36] : [4, 44, 20, 10],
    [roomy ? "y" : "x"]: [0, 1.2],
  });
  gauge.axes({ [roomy ? "y" : "x"]: [0, 0.5, 1], format: percent });
  const put = (x) => state.way === "none" || move({ m: clamp(Math.round(x), 1, last) });
  strip.handle("border", {
    label: "first border: tokens in a group", color: "orange", axis: "x", large: 4, share: 0.25, drag: ([x]) => put(x),
    step: (dx, dy) => put(state.m + dx + dy), end: (which) => put(which < 0 ? 1 : last),
  });
  strip.grab("border");
  const border = strip.svg.querySelector(".handle"); // there is nothing to group where old tokens are left out
  const side = controls.box(place);
  const way = controls.choice(side, { label: "votes", options: ways, input: (chosen) => move({ way: chosen }) });
  const rho = controls.choice(side, {
    label: "correlation of neighbors", options: Object.fromEntries(rhos.map((rho, i) => [i, String(rho)])),
    input: (i) => move({ rho: rhos[i] }),
  });

  const draw = () => {
    for (let i = 0; i < count; i++) {
      const { at, size, weight } = grouped[i] || { at: count, size: 0, weight: 0 };
      strip.rect("bar " + i, [at + 0.1, 0], [at + Math.max(0.1, size - 0.1), weight / (size || 1)], "teal solid");
      strip.rect("exact " + i, [i + 0.1, 0], [i + 0.9, exact[i]], "ink outline");
    }
    strip.text("groups", [last / 2, 1.03 * tallest], "groups of " + state.m, "teal middle");
    strip.hide("groups", state.way === "none");
    border.toggleAttribute("hidden", state.way === "none");
    strip.text("last", [last + last / 2, 1.03 * tallest], "the last 16", "ink middle");
    const { error } = numbers, text = percent(error), at = Math.min(error, 1.2);
    gauge.rect("error", ...(roomy ? [[0.2, 0], [0.8, at]] : [[0, 0.15], [at, 0.85]]), "orange solid");
    gauge.text("off", roomy ? [0.5, at + 0.02] : [at + 0.02, 0.32], text, "orange" + (roomy ? " middle" : ""));
    strip.place("border", [state.m, 0], { value: state.m, min: 1, max: last, text: "groups of " + state.m });
  };

  return {
    clean: ({ m, way, rho }) => ({
      m: check.whole("m", m, 1, last), way: check.one("way", way, Object.keys(ways)), rho: check.one("rho", rho, rhos),
    }),
    draw: (wished) => {
      state = wished;
      ({ exact, parts: grouped, numbers } = attend(state));
      draw();
      way.show(state.way);
      rho.show(String(rhos.indexOf(state.rho)));
    },
    numbers: () => numbers,
    table: () => ({ exact, grouped: grouped.map(({ weight }) => weight) }),
    values: () => ({ counted: ways[state.way] }),
    room: data.room,
    remarks: () => [...(state.m === 1 && state.way !== "none" ? ["exact"] : []), ...(state.rho === 0 ? ["apart"] : [])],
  };
};
