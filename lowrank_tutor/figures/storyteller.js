// A story, and a trained model that says its next word while its attention is cut. storyteller.py has data and words.
const storyteller = ({ figure, place, data, move }) => {
  const { words, cuts, kinds, vocabulary, counts, tales } = data;
  const number = Object.fromEntries(vocabulary.map((word, i) => [word, i]));
  const model = storytellerModel(storyteller_weights);
  model.directions = Float64Array.from(
    data.directions.join("").match(/../g) || [],
    (code) => (code - 50) / 16,
  );
  let state = null,
    shown = "",
    n = 0,
    ids = [],
    uncut = null,
    runs = new Map(),
    right = [],
    answer = "",
    best = "";

  // The model
  const settings = (cut) => [...cuts[cut].settings.filter((k) => !cuts[cut].by_words || k < n), 0];
  const run = (cut, k) => {
    const key = cut + k;
    if (!k) return uncut;
    if (!runs.has(key)) runs.set(key, read(cut, k));
    return runs.get(key);
  };
  const read = (cut, k) => {
    const weights = { scores: model.cutScores, latents: model.cutLatents }[cut];
    const found = weights ? model.run(ids, [], weights(k)) : model.run(ids, k ? [{ cut, k }] : []);
    const error = k ? model.error(found.tables, uncut.tables) : 0;
    return { ...found, chances: lowrankLinalg.softmax(found.logits), error };
  };
  const chance = ({ chances }) => right.reduce((sum, word) => sum + chances[number[word]], 0);
  const likeliest = ({ chances }) => vocabulary[chances.indexOf(Math.max(...chances))];
  const job = () => storyAnswer(state.story.split(" "), kinds)[1];
  const compute = () => {
    if (state.story === shown) return;
    const said = ["<s>", ...state.story.split(" ")];
    [ids, n, runs] = [said.map((word) => number[word]), said.length, new Map()];
    const [word, tests] = storyAnswer(said.slice(1), kinds);
    answer = word;
    right =
      tests === "agreement"
        ? [kinds.does, kinds.do].find((kind) => kind.includes(word))
        : word
          ? [word]
          : [];
    uncut = read("", 0);
  };

  // The story: words, arcs from the last one, and the word that the model says
  const tale = controls.choice(place, {
    label: "What the story tests",
    options: Object.fromEntries(Object.keys(tales).map((name) => [name, name])),
    input: (name) => move({ story: tales[name], k: 0, head: -1 }),
  });
  const telling = controls.box(place, "telling");
  const sky = stage.make("svg", { "aria-hidden": "true" }, telling),
    line = controls.box(telling, "story");
  line.setAttribute("aria-label", "The story");
  const kindOf = (word) => Object.keys(kinds).find((kind) => kinds[kind].includes(word));
  const DOTTED = ["name", "color", "thing", "animal", "animals", "deed", "weather", "note"];
  /** Put another word in a place; a deed goes with its reason. */
  const change = (at, word) => {
    const said = state.story.split(" "),
      old = said[at];
    said[at] = word;
    if (kinds.deed.includes(old)) {
      const mood = said.indexOf(kinds.mood[kinds.deed.indexOf(old)], at);
      if (mood > 0) said[mood] = kinds.mood[kinds.deed.indexOf(word)];
    }
    move({ story: said.join(" ") });
  };
  const pen = document.createElement("canvas").getContext("2d");
  const tell = () => {
    line.replaceChildren(
      ...["", ...state.story.split(" ")].map((word, i) => {
        if (!i) return element("span", { class: "start" }, "\u25b8");
        const kind = kindOf(word);
        if (!DOTTED.includes(kind)) return element("span", {}, word);
        const options = kinds[kind].map((one) =>
          element("option", one === word ? { selected: "" } : {}, one),
        );
        const select = element(
          "select",
          { "aria-label": fill("another word for “{word}”", { word }) },
          ...options,
        );
        const { fontStyle, fontSize, fontFamily } = getComputedStyle(line);
        pen.font = [fontStyle, fontSize, fontFamily].join(" ");
        select.style.width =
          "calc(" + pen.measureText(word).width / parseFloat(fontSize) + "em + 4px)";
        select.addEventListener("change", () => change(i - 1, select.value));
        return select;
      }),
      element("output", { class: "says", "aria-live": "off" }),
    );
    line.children[n - 1].classList.add("asks");
  };
  const arcs = (used, exact) => {
    const box = telling.getBoundingClientRect(),
      spoken = [...line.children].slice(0, n);
    const at = spoken
      .map((word) => word.getBoundingClientRect())
      .map((one) => one.x + one.width / 2 - box.x);
    const high = sky.clientHeight,
      row = (n - 1) * n,
      paths = [];
    stage.write(sky, { viewBox: [0, 0, Math.round(box.width) || 1, high || 1].join(" ") });
    spoken.forEach((word, j) => {
      const [weight, whole] = [used[row + j], exact[row + j]],
        far = at[n - 1] - at[j];
      word.style.setProperty("--weight", Math.min(1, Math.abs(weight)).toFixed(3));
      word.classList.toggle("below", weight < -0.01);
      const top = high - 1.3 * Math.min(high - 12, 14 + 0.2 * far),
        foot = j === n - 1 ? 12 : 0;
      const d =
        "M" +
        [at[j] - foot, high] +
        "C" +
        [at[j] - foot, top, at[n - 1] + foot, top, at[n - 1] + foot, high];
      const wide = (14 * Math.abs(weight)).toFixed(2);
      if (wide > 0.2)
        paths.push({
          class: "line " + (weight < 0 ? "orange" : "teal"),
          d,
          style: "--wide:" + wide,
        });
      if (whole > 0.02) paths.push({ class: "line ink thin dashed", d, style: "" });
    });
    while (sky.childNodes.length > paths.length) sky.lastChild.remove();
    paths.forEach((look, i) => stage.write(sky.childNodes[i] || stage.make("path", {}, sky), look));
  };

  // The head's table as a stack of sheets, or the one in use below the exact one; and all heads, to choose from
  const grid = controls.box(place, "cutting");
  const left = controls.titled(grid, ""),
    scene = controls.box(left, "scene"),
    stack = controls.box(scene, "stack");
  const inks = () => {
    const style = getComputedStyle(figure);
    return ["--teal", "--orange"].map((name) => {
      pen.fillStyle = style.getPropertyValue(name).trim();
      return pen.fillStyle.match(/[0-9a-f]{2}/g).map((part) => parseInt(part, 16));
    });
  };
  const paint = (canvas, table, top) => {
    const context = canvas.getContext("2d"),
      image = new ImageData(n, n),
      [plus, minus] = inks();
    table.forEach((value, i) =>
      image.data.set(
        [...(value < 0 ? minus : plus), Math.min(255, (255 * Math.abs(value)) / top)],
        4 * i,
      ),
    );
    [canvas.width, canvas.height] = [n, n];
    context.putImageData(image, 0, 0);
  };
  const SHEETS = 8;
  let stacked = "";
  const drawStack = (used, exact) => {
    const sheets = state.cut === "sheets",
      key = [state.story, state.head, sheets || state.cut + state.k].join();
    stage.say(left.firstChild, sheets ? "Sheets of this head's table" : "Cut table; uncut above");
    if (key !== stacked) {
      const { u, s, v } = sheets ? model.sheetsOf(exact, n, "") : { u: [], s: [], v: [] };
      const tables = sheets
        ? s
            .slice(0, SHEETS)
            .map((_, l) =>
              Float64Array.from(exact, (_, at) => s[l] * u[l][Math.floor(at / n)] * v[l][at % n]),
            )
        : [used, exact];
      stack.replaceChildren(
        ...tables.map((table, l) => {
          const canvas = element("canvas");
          canvas.style.setProperty("--l", sheets ? l : 5 * l);
          paint(canvas, table, sheets ? 0.35 : 0.8);
          return canvas;
        }),
      );
      stacked = key;
    }
    [...stack.children].forEach((canvas, l) =>
      canvas.classList.toggle("off", sheets ? state.k > 0 && l >= state.k : l > 0),
    );
  };
  const heads = controls.box(controls.titled(left, "Its eight heads: choose one"), "heads");
  const thumbs = Array.from({ length: model.LAYERS * model.HEADS }, (_, h) => {
    const label = fill("layer {layer}, head {head}", {
      layer: 1 + Math.floor(h / model.HEADS),
      head: 1 + (h % model.HEADS),
    });
    const button = controls.button(heads, element("canvas"), () => move({ head: h }));
    stage.write(button, { "aria-label": label, title: label });
    return button;
  });

  // The curve, which is the slider
  const middle = controls.box(grid);
  const way = controls.choice(middle, {
    label: "What is cut",
    options: Object.fromEntries(Object.entries(cuts).map(([name, { tab }]) => [name, tab])),
    input: (cut) => move({ cut, k: 0 }),
  });
  const legend = middle.appendChild(
    element(
      "p",
      { class: "legend" },
      element("span", {}),
      element("span", {}, "error of the tables"),
    ),
  );
  const curve = stage.panel(middle, {
    label: "How much is kept: drag the ring",
    width: 380,
    height: 230,
    margin: [10, 12, 36, 38],
    x: [0, 1],
    y: [0, 1],
  });
  const to = (i) =>
    move({ k: settings(state.cut)[clamp(Math.round(i), 0, settings(state.cut).length - 1)] });
  const here = () => settings(state.cut).indexOf(state.k);
  curve.handle("cut", {
    label: "How much is kept: drag the ring",
    color: "orange",
    drag: ([x]) => to(x),
    large: 3,
    step: (dx, dy) => to(here() + dx + dy),
    end: (which) => to(which < 0 ? 0 : Infinity),
  });
  curve.grab("cut");
  const drawCurve = () => {
    const every = settings(state.cut),
      found = every.map((k) => run(state.cut, k)),
      last = every.length - 1;
    const at = here(),
      now = found[at];
    curve.resize({ x: [0, last], y: [0, Math.max(1, ...found.map(({ error }) => error))] });
    curve.axes({
      x: every.map((_, i) => i),
      y: [0, 0.5, 1],
      xTitle: cuts[state.cut].axis,
      format: (value, axis) =>
        axis === "y" ? Math.round(100 * value) + "%" : every[value] || "all",
    });
    const points = (of) => found.map((one, i) => [i, of(one)]);
    curve.area("shade", [[0, 0], ...points(chance), [last, 0]], "teal");
    curve.line(
      "error",
      points(({ error }) => error),
      "orange",
    );
    curve.line("chance", points(chance), "teal");
    curve.line(
      "now",
      [
        [at, 0],
        [at, 1],
      ],
      "orange thin",
    );
    curve.place("cut", [at, chance(now)], { value: at, min: 0, max: last, text: kept() });
    ["shade", "chance"].forEach((name) => curve.hide(name, !right.length));
    stage.say(
      legend.firstChild,
      right.length ? "chance of “" + right.join("” or “") + "”" : "no word follows",
    );
  };
  const phrase = ({ single, phrase: many }) => (state.k === 1 ? single : fill(many, state));
  const kept = () =>
    state.k ? fill(words.with, { phrase: phrase(cuts[state.cut]) }) : words.uncut;

  // The next word, and how many stories are answered
  const rightSide = controls.titled(grid, "The next word (outline: uncut)"),
    bars = controls.box(rightSide, "next-words");
  const drawBars = (now) => {
    const rank = vocabulary
      .map((_, i) => i)
      .sort(
        (a, b) =>
          Math.max(now.chances[b], uncut.chances[b]) - Math.max(now.chances[a], uncut.chances[a]),
      );
    const listed = [...new Set([...right.slice(0, 1).map((word) => number[word]), ...rank])].slice(
      0,
      6,
    );
    while (bars.children.length < listed.length) {
      bars.append(
        element(
          "p",
          {},
          element("span"),
          element("i", {}, element("b"), element("u")),
          element("small"),
        ),
      );
    }
    listed.forEach((i, at) => {
      const [name, bar, share] = bars.children[at].children;
      bars.children[at].classList.toggle("wrong", !right.includes(vocabulary[i]));
      stage.say(name, vocabulary[i]);
      bar.firstChild.style.width = 100 * now.chances[i] + "%";
      bar.lastChild.style.width = 100 * uncut.chances[i] + "%";
      bar.lastChild.hidden = uncut.chances[i] < 0.005;
      stage.say(share, Math.round(100 * now.chances[i]) + "%");
    });
  };
  const tally = controls.box(controls.titled(rightSide, "Right answers in 200 stories"), "tally");
  const count = () =>
    counts[state.cut][
      state.k ? cuts[state.cut].settings.indexOf(state.k) : cuts[state.cut].settings.length
    ];
  const drawTally = () => {
    const now = count(),
      names = Object.keys(now).filter((name) => name.startsWith("job_"));
    while (tally.children.length < names.length) {
      tally.append(
        element("p", {}, element("span"), element("i", {}, element("b")), element("small")),
      );
    }
    names.forEach((name, at) => {
      const [label, bar, share] = tally.children[at].children,
        spelled = name.slice(4).replaceAll("_", " ");
      tally.children[at].classList.toggle("asked", spelled === job());
      stage.say(label, spelled);
      bar.firstChild.style.width = 100 * now[name] + "%";
      stage.say(share, Math.round(100 * now[name]) + "%");
    });
  };

  const draw = () => {
    const now = run(state.cut, state.k),
      h = state.head;
    best = likeliest(now);
    if (state.story !== shown) tell();
    const told = JSON.stringify(state.story);
    tale.show(Object.keys(tales).find((name) => JSON.stringify(tales[name]) === told));
    const says = line.lastChild;
    stage.say(says, best);
    says.classList.toggle("wrong", right.length > 0 && !right.includes(best));
    way.show(state.cut);
    arcs(now.tables[h], uncut.tables[h]);
    drawStack(now.tables[h], uncut.tables[h]);
    thumbs.forEach((button, i) => {
      button.setAttribute("aria-pressed", i === h);
      paint(button.firstChild, now.tables[i], 0.8);
    });
    drawCurve();
    drawBars(now);
    drawTally();
  };
  /** The head in which the last word listens most to the answer, or to the noun of its verb. */
  const loudest = (story) => {
    const said = ["<s>", ...story.split(" ")],
      many = said.length;
    const [word] = storyAnswer(said.slice(1), kinds),
      at = said.lastIndexOf(word);
    const { tables } = model.run(said.map((one) => number[one]));
    const heard = tables.map((table) => table[(many - 1) * many + (at > 0 ? at : many - 4)]);
    return heard.indexOf(Math.max(...heard));
  };
  new ResizeObserver(() => {
    const now = state && run(state.cut, state.k);
    if (now) arcs(now.tables[state.head], uncut.tables[state.head]);
  }).observe(line);

  // The ring slides down the curve until the word is lost, and back to where the figure starts
  let wanted = null;
  const go = (i) => figure.instrument.set({ k: (wanted = settings(state.cut).at(i)) });
  const demo =
    data.demo.length > 0 &&
    demonstrate(figure, {
      watch: curve.svg,
      steps: data.demo.map(([time, i]) => [time, () => go(i)]),
      settle: () => go(data.demo.at(-1)[1]),
    });

  return {
    clean: (wished) => {
      const said = wished.story.split(" "),
        strange = said.find((word) => !vocabulary.includes(word));
      if (strange !== undefined) check.fail("story", "of the words that the model knows", strange);
      if (said.length > 40) check.fail("story", "at most 40 words", said.length);
      const head = wished.head === -1 ? loudest(wished.story) : wished.head;
      const cut = check.one("cut", wished.cut, Object.keys(cuts)),
        { settings: all, by_words: byWords } = cuts[cut];
      const k = byWords && wished.k > said.length ? 0 : wished.k;
      return {
        story: wished.story,
        cut,
        k: check.one("k", k, [...all, 0]),
        head: check.whole("head", head, 0, 7),
      };
    },
    draw: (wished) => {
      state = wished;
      compute();
      draw();
      if (demo && wanted !== null && state.k !== wanted) demo.end();
      shown = state.story;
      figure.instrument.next = () =>
        Object.fromEntries(vocabulary.map((word, i) => [word, run(state.cut, state.k).chances[i]]));
    },
    numbers: () => {
      const now = run(state.cut, state.k);
      return { right: chance(now), table_error: now.error, ...count() };
    },
    remarks: () => (state.k ? [state.cut] : []),
    table: () => ({
      tables: run(state.cut, state.k).tables.map((table) =>
        Array.from({ length: n }, (_, i) => Array.from(table.slice(i * n, i * n + n))),
      ),
    }),
    values: () => ({
      kept: kept(),
      says: best,
      verdict: !right.length
        ? words.guesses
        : right.includes(best)
          ? words.knows
          : fill(words.forgot, { answer }),
    }),
  };
};
