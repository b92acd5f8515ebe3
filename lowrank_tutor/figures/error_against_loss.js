// What cuts of a real model cost: a ring on the path of one cut, and the same error on the others. Its data and
// sentences are in error_against_loss.py.
const errorAgainstLoss = ({ place, data, move }) => {
  const { paths, uncut, texts, names, kept, start, said } = data;
  const cuts = Object.keys(names);
  const all = Object.values(paths).flatMap((path) => Object.values(path).flat());
  const WIDE = Math.ceil(10 * Math.max(...all.map(([, error]) => error))) / 10;
  const TALL = Math.max(
    ...Object.entries(paths).flatMap(([text, path]) =>
      Object.values(path).flatMap((points) => points.map(([, , loss]) => loss - uncut[text])),
    ),
  );
  let state = null,
    others = {}; // what the other cuts cost at the same error

  /** The points of a path, from the uncut model on: setting, error, and how much more loss. */
  const points = (cut) => [
    [0, 0, 0],
    ...paths[state.text][cut].map(([k, error, loss]) => [k, error, loss - uncut[state.text]]),
  ];
  const here = () => points(state.cut).find(([k]) => k === state.setting);
  /** How much more loss a path has where it first reaches an error: between two settings. */
  const costAt = (cut, error) => {
    const path = points(cut),
      i = path.findIndex(([, at]) => at >= error);
    if (i < 1) return null;
    const [[, low, from], [, high, to]] = [path[i - 1], path[i]];
    return from + ((to - from) * (error - low)) / (high - low);
  };
  const nearest = (cut, error) => {
    const path = points(cut).slice(1);
    const far = ([, at]) => Math.abs(at - error);
    return path.reduce((best, one) => (far(one) < far(best) ? one : best))[0];
  };
  const step = (by) => {
    const path = points(state.cut).slice(1);
    const i = path.findIndex(([k]) => k === state.setting);
    move({ setting: path[clamp(i + by, 0, path.length - 1)][0] });
  };

  const panels = controls.box(place, "panels");
  const left = controls.titled(panels, "More loss, nats a token: drag the ring along its path");
  const plane = stage.panel(left, {
    label: "error of the tables, and loss",
    width: 380,
    height: 320,
    margin: [12, 20, 36, 30],
    x: [0, WIDE],
    y: [0, 1.04 * TALL],
  });
  const tenths = Array.from({ length: Math.floor(WIDE / 0.2) + 1 }, (_, i) => i / 5);
  plane.axes({
    x: tenths,
    y: Array.from({ length: Math.floor(TALL) + 1 }, (_, i) => i),
    xTitle: "error of the tables",
    format: (value, axis) => (axis === "x" ? format(value, ".0%") : String(value)),
  });
  plane.handle("ring", {
    label: "how much is cut",
    color: "ink",
    large: 3,
    drag: ([error]) => move({ setting: nearest(state.cut, error) }),
    step: (dx, dy) => step(dx + dy),
    end: (which) => step(which * 99),
  });
  plane.grab("ring");
  const right = controls.box(panels);
  const story = controls.titled(right, "One story, and how the model goes on with it:");
  const goesOn = element("b");
  story.append(element("p", { class: "goes-on" }, start, goesOn));
  const cutOf = controls.choice(right, {
    label: "your cut",
    options: names,
    input: (cut) => move({ cut, setting: nearest(cut, here()[1]) }),
  });
  const textOf = controls.choice(right, {
    label: "what it reads",
    options: texts,
    input: (text) => move({ text }),
  });

  const draw = () => {
    const [, error, more] = here();
    others = Object.fromEntries(
      cuts
        .filter((cut) => cut !== state.cut)
        .map((cut) => [cut, costAt(cut, error)])
        .filter(([, cost]) => cost !== null),
    );
    plane.line(
      "same error",
      [
        [error, 0],
        [error, TALL],
      ],
      "gray thin dashed",
    );
    cuts.forEach((cut) => {
      const path = points(cut).map(([, x, y]) => [x, y]),
        end = path.at(-1);
      const look =
        cut === state.cut
          ? "ink"
          : !(cut in others)
            ? "gray"
            : others[cut] < more
              ? "teal"
              : "orange";
      plane.line(cut, path, look + (cut === state.cut ? "" : " thin"));
      plane.dots(cut + " measured", path.slice(1), look + " small");
      plane.dots(cut + " same", cut in others ? [[error, others[cut]]] : [], look + " large");
      plane.text(cut + " name", [Math.min(end[0], 0.99 * WIDE), end[1]], names[cut], look + " end");
    });
    plane.separate(...cuts.map((cut) => cut + " name"));
    plane.place("ring", [error, more], {
      value: Math.round(100 * error),
      min: 0,
      max: Math.round(100 * WIDE),
      text: fill(kept[state.cut], { k: state.setting }),
    });
    stage.say(goesOn, said[state.cut][state.setting]);
    cutOf.show(state.cut);
    textOf.show(state.text);
  };
  const ranked = () => Object.entries(others).sort(([, a], [, b]) => a - b);

  return {
    clean: ({ cut, setting, text }) => {
      check.one("cut", cut, cuts);
      check.one("text", text, Object.keys(texts));
      const settings = paths[text][cut].map(([k]) => k);
      return { cut, text, setting: check.one("setting", setting, settings) };
    },
    draw: (wished) => {
      state = wished;
      draw();
    },
    numbers: () => ({ error: here()[1], loss: here()[2] + uncut[state.text] }),
    table: () => ({ path: points(state.cut), others, says: said[state.cut][state.setting] }),
    values: () => {
      const [first, last] = [ranked()[0], ranked().at(-1)];
      return {
        kept: fill(kept[state.cut], { k: state.setting }),
        more: here()[2],
        best: first && names[first[0]],
        least: first && first[1],
        worst: last && names[last[0]],
        most: last && last[1],
      };
    },
    remarks: () => [["alone", "other"][ranked().length] ?? "others"],
  };
};
