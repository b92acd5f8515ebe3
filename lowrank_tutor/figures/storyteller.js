// A story, and a trained model that says its next word while its attention is cut. storyteller.py has data and words.
const storyteller = ({ figure, place, data, move }) => {
  const { words, cuts, kinds, vocabulary, counts, tales, desk, own } = data;
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
    asks = 0, // the word whose listening is shown
    uncut = null,
    runs = new Map(),
    right = [],
    job = "",
    best = "";

  // The model
  const settings = (cut) => [...cuts[cut].settings.filter((k) => !cuts[cut].by_words || k < n), 0];
  const run = (cut, k) => {
    const key = k && cut + k;
    if (!runs.has(key)) {
      const found = (k && own[cut]) || model.cut(ids, cut, k);
      const error = k ? model.error(found.tables, uncut.tables) : 0;
      runs.set(key, { ...found, chances: lowrankLinalg.softmax(found.logits), error });
    }
    return runs.get(key);
  };
  const chance = ({ chances }) => right.reduce((sum, word) => sum + chances[number[word]], 0);
  const compute = () => {
    if (state.story === shown) return;
    const said = ["<s>", ...state.story.split(" ")],
      [word, tests] = storyAnswer(said.slice(1), kinds);
    [ids, n, runs, job] = [said.map((one) => number[one]), said.length, new Map(), tests];
    right = rightWords(word, tests, kinds);
    asks = n - 1;
    uncut = run("", 0);
  };

  // The story: words, arcs from the one that a reader asks, at first the last, and the word that the model says
  const telling = controls.box(place, "telling");
  const sky = stage.make("svg", { "aria-hidden": "true" }, telling),
    line = controls.box(telling, "story");
  stage.write(line, {
    role: "radiogroup",
    "aria-label": "The story: choose a word to see whom it listens to",
  });
  const tell = () => {
    const name = "asks-" + Math.random().toString(36).slice(2);
    const asked = (word, i) => {
      const radio = element("input", { type: "radio", name, autocomplete: "off" });
      radio.addEventListener("change", () => {
        asks = i;
        listen();
      });
      return element("label", {}, radio, word);
    };
    line.replaceChildren(
      ...["\u25b8", ...state.story.split(" ")].map(asked),
      element("output", { class: "says", "aria-live": "off" }),
    );
  };
  const listen = () => {
    const now = run(state.cut, state.k);
    line.children[asks].firstChild.checked = true;
    arcs(now.tables[state.head], uncut.tables[state.head]);
  };
  const arcs = (used, exact) => {
    const box = telling.getBoundingClientRect(),
      spoken = [...line.children].slice(0, n);
    const at = spoken
      .map((word) => word.getBoundingClientRect())
      .map((one) => one.x + one.width / 2 - box.x);
    const high = sky.clientHeight,
      row = asks * n,
      paths = [];
    stage.write(sky, { viewBox: [0, 0, Math.round(box.width) || 1, high || 1].join(" ") });
    spoken.forEach((word, j) => {
      const [weight, whole] = [used[row + j], exact[row + j]],
        far = Math.abs(at[asks] - at[j]);
      word.style.setProperty("--weight", Math.min(1, Math.abs(weight)).toFixed(3));
      word.classList.toggle("below", weight < -0.01);
      word.classList.toggle("asks", j === asks);
      const top = high - 1.3 * Math.min(high - 12, 14 + 0.2 * far),
        foot = j === asks ? 12 : 0;
      const ends = [at[j] - foot, top, at[asks] + foot, top, at[asks] + foot, high];
      const d = "M" + [at[j] - foot, high] + "C" + ends;
      const wide = (14 * Math.abs(weight)).toFixed(2);
      const look = "line " + (weight < 0 ? "violet" : "teal");
      if (wide > 0.2) paths.push({ class: look, d, style: "--wide:" + wide });
      if (whole > 0.02) paths.push({ class: "line ink thin dashed", d, style: "" });
    });
    while (sky.childNodes.length > paths.length) sky.lastChild.remove();
    paths.forEach((look, i) => stage.write(sky.childNodes[i] || stage.make("path", {}, sky), look));
  };

  // The curve, which is the slider
  const grid = controls.box(place, "cutting" + (desk ? " desk" : "")),
    middle = controls.box(grid);
  const way = controls.choice(middle, {
    label: "What is cut",
    options: Object.fromEntries(Object.entries(cuts).map(([name, { tab }]) => [name, tab])),
    input: (cut) => move({ cut, k: own[cut] ? 1 : 0 }),
  });
  middle.firstChild.hidden = Object.keys(cuts).length < 2;
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
    color: "teal",
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
      "ink thin",
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
  const count = () =>
    counts[state.cut][
      state.k ? cuts[state.cut].settings.indexOf(state.k) : cuts[state.cut].settings.length
    ];

  // The desk: a head's table as a stack of sheets, or the one in use below the exact one; all heads; and all jobs
  const drawDesk = () => {
    const left = controls.titled(grid, ""),
      stack = controls.box(controls.box(left, "scene"), "stack");
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
    const tally = controls.box(controls.titled(grid, "Right answers in 200 stories"), "tally");
    const bars = Object.keys(counts[state.cut][0])
      .filter((name) => name.startsWith("job_"))
      .map((name) => {
        const spelled = name.slice(4).replaceAll("_", " "),
          [bar, share] = [element("b"), element("small")];
        const row = element("p", {}, element("span", {}, spelled), element("i", {}, bar), share);
        tally.append(row);
        return { name, spelled, row, bar, share };
      });
    let stacked = "";
    return (now) => {
      const h = state.head,
        sheets = state.cut === "sheets",
        key = [state.story, h, sheets || state.cut + state.k].join();
      const exact = uncut.tables[h];
      stage.say(left.firstChild, sheets ? "Sheets of this head's table" : "Cut table; uncut above");
      if (key !== stacked) {
        const { u, s, v } = sheets ? model.sheetsOf(exact, n, "") : { u: [], s: [], v: [] };
        const sheet = (_, l) =>
          Float64Array.from(exact, (_, at) => s[l] * u[l][Math.floor(at / n)] * v[l][at % n]);
        const tables = sheets ? s.slice(0, 8).map(sheet) : [now.tables[h], exact];
        stack.replaceChildren(
          ...tables.map((table, l) => {
            const canvas = element("canvas");
            canvas.style.setProperty("--l", sheets ? l : 5 * l);
            heatmap(figure, canvas, table, sheets ? 0.35 : 0.8);
            return canvas;
          }),
        );
        stacked = key;
      }
      [...stack.children].forEach((canvas, l) =>
        canvas.classList.toggle("off", sheets ? state.k > 0 && l >= state.k : l > 0),
      );
      thumbs.forEach((button, i) => {
        button.setAttribute("aria-pressed", i === h);
        heatmap(figure, button.firstChild, now.tables[i], 0.8);
      });
      tally.parentNode.hidden = Boolean(own[state.cut]); // nobody has counted
      bars.forEach(({ name, spelled, row, bar, share }) => {
        row.classList.toggle("asked", spelled === job);
        bar.style.width = 100 * count()[name] + "%";
        stage.say(share, Math.round(100 * count()[name]) + "%");
      });
    };
  };
  const showStory = storyChoice(place, {
    tales: Object.values(tales),
    vocabulary,
    own: desk,
    move: ({ story }) => move({ story, k: 0, head: -1 }),
  });
  let others = null;
  const draw = () => {
    const now = run(state.cut, state.k);
    best = vocabulary[now.chances.indexOf(Math.max(...now.chances))];
    if (state.story !== shown) tell();
    showStory(state.story);
    stage.say(line.lastChild, best);
    line.lastChild.classList.toggle("wrong", right.length > 0 && !right.includes(best));
    way.show(state.cut);
    Object.keys(own).forEach((cut) => way.offer(cut, own[cut].story === state.story));
    listen();
    drawCurve();
    if (desk) (others ??= drawDesk())(now);
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
  new ResizeObserver(() => state && listen()).observe(line);
  const demo = demonstrate(figure, { watch: curve.svg, steps: data.demo });

  return {
    clean: (wished) => {
      checkStory(wished.story, vocabulary);
      const head = wished.head === -1 ? loudest(wished.story) : wished.head;
      const stale = own[wished.cut] && own[wished.cut].story !== wished.story,
        cut = stale ? Object.keys(cuts)[0] : check.one("cut", wished.cut, Object.keys(cuts)),
        { settings: all, by_words: byWords } = cuts[cut];
      const k = byWords && wished.k > wished.story.split(" ").length ? 0 : wished.k;
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
      demo(state);
      shown = state.story;
    },
    numbers: () => {
      const now = run(state.cut, state.k);
      return { right: chance(now), table_error: now.error, ...count() };
    },
    clear: () => (asks = n - 1),
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
          : fill(words.forgot, { answer: right[0] }),
    }),
  };
};
