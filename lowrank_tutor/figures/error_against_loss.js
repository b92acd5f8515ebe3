// What cuts of a real model cost: a ring on the path of one cut, and the same error on the others. Its data and
// sentences are in error_against_loss.py.

/** The points of a path, from the uncut model on: setting, error, and how much more loss. */
const pointsOf = ({ paths, uncut }, text, cut) => [
  [0, 0, 0],
  ...paths[text][cut].map(([k, error, loss]) => [k, error, loss - uncut[text]]),
];
/** How much more loss a path has where it first reaches an error: between two settings. */
const costAt = (path, error) => {
  const i = path.findIndex(([, at]) => at >= error);
  if (i < 1) return null;
  const [[, low, from], [, high, to]] = [path[i - 1], path[i]];
  return from + ((to - from) * (error - low)) / (high - low);
};
/** The setting of a path whose error is nearest. */
const nearestTo = (path, error) => {
  const far = ([, at]) => Math.abs(at - error);
  return path.slice(1).reduce((best, one) => (far(one) < far(best) ? one : best))[0];
};
/** The paths of a text, the error and the loss where the ring is, and what the other cuts cost at that error. */
const readPaths = (data, { cut, setting, text }) => {
  const paths = Object.fromEntries(
    Object.keys(data.names).map((name) => [name, pointsOf(data, text, name)]),
  );
  const path = paths[cut],
    at = path.findIndex(([k]) => k === setting);
  const [, error, more] = path[at];
  const costs = Object.entries(paths)
    .filter(([name]) => name !== cut)
    .map(([name, points]) => [name, costAt(points, error)])
    .filter(([, cost]) => cost !== null);
  return {
    cut,
    paths,
    path,
    at,
    error,
    more,
    others: Object.fromEntries(costs),
    ranked: costs.sort(([, a], [, b]) => a - b),
    loss: more + data.uncut[text],
    kept: fill(data.kept[cut], { k: setting }),
    says: data.said[cut][setting],
  };
};

/** The plane of error and loss, with a path for each cut, and a ring on that of one. */
const lossPlane = (place, { data, move }) => {
  const every = Object.entries(data.paths).flatMap(([text, paths]) =>
    Object.keys(paths).flatMap((cut) => pointsOf(data, text, cut)),
  );
  const wide = Math.ceil(10 * Math.max(...every.map(([, error]) => error))) / 10,
    tall = Math.max(...every.map(([, , more]) => more));
  const plane = stage.panel(place, {
    label: "error of the tables, and loss",
    width: 380,
    height: 320,
    margin: [12, 20, 36, 30],
    x: [0, wide],
    y: [0, 1.04 * tall],
  });
  plane.axes({
    x: Array.from({ length: Math.floor(wide / 0.2) + 1 }, (_, i) => i / 5),
    y: Array.from({ length: Math.floor(tall) + 1 }, (_, i) => i),
    xTitle: "error of the tables",
    format: (value, axis) => (axis === "x" ? format(value, ".0%") : String(value)),
  });
  let now = null;
  const step = (by) => {
    const { path, at } = now;
    move({ setting: path[clamp(at + by, 1, path.length - 1)][0] });
  };
  plane.handle("ring", {
    label: "how much is cut",
    color: "ink",
    large: 3,
    drag: ([error]) => move({ setting: nearestTo(now.path, error) }),
    step: (dx, dy) => step(dx + dy),
    end: (which) => step(which * 99),
  });
  plane.grab("ring");
  const lookOf = (cut) => {
    if (cut === now.cut) return "ink";
    if (!(cut in now.others)) return "gray";
    return now.others[cut] < now.more ? "teal" : "orange";
  };
  return (seen) => {
    now = seen;
    const { cut: mine, paths, others, error, more, kept: text } = now;
    const level = [0, tall].map((y) => [error, y]);
    plane.line("same error", level, "gray thin dashed");
    Object.keys(paths).forEach((cut) => {
      const path = paths[cut].map(([, x, y]) => [x, y]),
        [x, y] = path.at(-1),
        look = lookOf(cut);
      plane.line(cut, path, look + (cut === mine ? "" : " thin"));
      plane.dots(cut + " measured", path.slice(1), look + " small");
      plane.dots(cut + " same", cut in others ? [[error, others[cut]]] : [], look + " large");
      // Above the ring, which may stand at the end of its path
      const top = cut === mine ? y + 0.06 * tall : y;
      plane.text(cut + " name", [Math.min(x, 0.99 * wide), top], data.names[cut], look + " end");
    });
    plane.separate(...Object.keys(paths).map((cut) => cut + " name"));
    const [value, max] = [error, wide].map((share) => Math.round(100 * share));
    plane.place("ring", [error, more], { value, min: 0, max, text });
  };
};

const errorAgainstLoss = ({ place, data, move }) => {
  const { paths, texts, names, start } = data;
  const panels = controls.box(place, "panels");
  const left = controls.titled(panels, "More loss, nats a token: drag the ring along its path");
  const drawPlane = lossPlane(left, { data, move });
  const right = controls.box(panels);
  const story = controls.titled(right, "One story, and how the model goes on with it:");
  const goesOn = element("b");
  story.append(element("p", { class: "goes-on" }, start, goesOn));
  let now = null;
  const cutOf = controls.choice(right, {
    label: "your cut",
    options: names,
    input: (cut) => move({ cut, setting: nearestTo(now.paths[cut], now.error) }),
  });
  const textOf = controls.choice(right, {
    label: "what it reads",
    options: texts,
    input: (text) => move({ text }),
  });

  return {
    clean: ({ cut, setting, text }) => {
      check.one("cut", cut, Object.keys(names));
      check.one("text", text, Object.keys(texts));
      const settings = paths[text][cut].map(([k]) => k);
      return { cut, text, setting: check.one("setting", setting, settings) };
    },
    draw: (state) => {
      now = readPaths(data, state);
      drawPlane(now);
      stage.say(goesOn, now.says);
      cutOf.show(state.cut);
      textOf.show(state.text);
    },
    numbers: () => ({ error: now.error, loss: now.loss }),
    table: () => ({ path: now.path, others: now.others, says: now.says }),
    values: () => {
      const { kept, more, ranked } = now;
      const [best, least] = ranked[0] ?? [],
        [worst, most] = ranked.at(-1) ?? [];
      return { kept, more, best: names[best], least, worst: names[worst], most };
    },
    remarks: () => [["alone", "other"][now.ranked.length] ?? "others"],
  };
};
