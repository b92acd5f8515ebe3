// A story, and a trained model that says its next word while its attention is cut. storyteller.py has data and words.
//
// `view` is what the parts share: { state, reading }, where `reading` is the story as the model reads it.

/** A story that asks at its end: run(cut, k) also has the word said next, and the chance of a right one. */
const readToEnd = (model, story, { vocabulary, kinds, own }) => {
  const reading = readStory(model, story, vocabulary, own);
  const [answer, job] = storyAnswer(reading.said.slice(1), kinds);
  const right = rightWords(answer, job, kinds);
  const run = (cut, k) => {
    const found = reading.run(cut, k),
      chances = lowrankLinalg.softmax(found.next());
    const chance = right.reduce((sum, word) => sum + chances[vocabulary.indexOf(word)], 0);
    return { ...found, chance, says: likeliest(vocabulary, chances) };
  };
  return { ...reading, answer, job, right, run };
};
/** The head in which the last word listens most to the answer, or to the noun of its verb. */
const loudestHead = ({ said, n, answer, exact }) => {
  const at = said.lastIndexOf(answer);
  const heard = exact.map((table) => table[(n - 1) * n + (at > 0 ? at : n - 4)]);
  return heard.indexOf(Math.max(...heard));
};

/** The story: words, arcs from the one that a reader asks, at first the last, and the word that the model says. */
const storyLine = (place) => {
  const telling = controls.box(place, "telling");
  const sky = stage.make("svg", { "aria-hidden": "true" }, telling),
    line = controls.box(telling, "story");
  let n = 0,
    // The word whose listening is shown
    asks = 0,
    // The head's, cut and exact
    tables = null;

  const listen = () => {
    const [used, exact] = tables,
      box = telling.getBoundingClientRect(),
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
      stage.write(word, { "aria-checked": j === asks });
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
  const askLast = () => (asks = n - 1);
  const tell = (words) => {
    const choose = (i) => {
      asks = i;
      listen();
    };
    const output = element("output", { class: "says", "aria-live": "off" });
    line.replaceChildren(...askedWords(line, ["\u25b8", ...words], choose), output);
    n = words.length + 1;
    askLast();
  };
  new ResizeObserver(listen).observe(line);
  return {
    tell,
    askLast,
    draw: (says, wrong, heard) => {
      stage.say(line.lastChild, says);
      line.lastChild.classList.toggle("wrong", wrong);
      tables = heard;
      listen();
    },
  };
};

/** The curve, which is the slider. */
const cutCurve = (place, { cuts, move, view, kept }) => {
  const [chance, error] = [element("span"), element("span", {}, "error of the tables")];
  place.append(element("p", { class: "legend" }, chance, error));
  const label = "How much is kept: drag the ring";
  const curve = stage.panel(place, {
    label,
    width: 380,
    height: 230,
    margin: [10, 12, 36, 38],
  });
  const settings = () => {
    const { settings: all, by_words: byWords } = cuts[view.state.cut];
    return [...all.filter((k) => !byWords || k < view.reading.n), 0];
  };
  const here = () => settings().indexOf(view.state.k);
  const to = (i) => move({ k: settings()[clamp(Math.round(i), 0, settings().length - 1)] });
  curve.handle("cut", {
    label,
    color: "teal",
    drag: ([x]) => to(x),
    large: 3,
    step: (dx, dy) => to(here() + dx + dy),
    end: (which) => to(which < 0 ? 0 : Infinity),
  });
  curve.grab("cut");
  const draw = () => {
    const { cut } = view.state,
      { run, right } = view.reading;
    const every = settings(),
      runs = every.map((k) => run(cut, k)),
      last = every.length - 1,
      at = here();
    const points = (name) => runs.map((one, i) => [i, one[name]]);
    curve.resize({ x: [0, last], y: [0, Math.max(1, ...runs.map(({ error }) => error))] });
    curve.axes({
      x: every.map((_, i) => i),
      y: [0, 0.5, 1],
      xTitle: cuts[cut].axis,
      format: (value, axis) =>
        axis === "y" ? Math.round(100 * value) + "%" : every[value] || "all",
    });
    curve.area("shade", [[0, 0], ...points("chance"), [last, 0]], "teal");
    curve.line("error", points("error"), "orange");
    curve.line("chance", points("chance"), "teal");
    const now = [0, 1].map((y) => [at, y]);
    curve.line("now", now, "ink thin");
    curve.place("cut", [at, runs[at].chance], { value: at, min: 0, max: last, text: kept() });
    ["shade", "chance"].forEach((name) => curve.hide(name, !right.length));
    stage.say(
      chance,
      right.length ? "chance of “" + right.join("” or “") + "”" : "no word follows",
    );
  };
  return { svg: curve.svg, draw };
};

/** The desk: a head's table as a stack of sheets, or the one in use below the exact one; all heads; and all jobs. */
const storyDesk = (place, { figure, move, view, jobs }) => {
  const left = controls.titled(place, ""),
    stack = controls.box(controls.box(left, "scene"), "stack");
  const heads = controls.titled(left, "Its eight heads: choose one");
  const canvases = () => element("canvas");
  const thumbs = headButtons(heads, canvases, (head) => move({ head }));
  const counted = controls.titled(place, "Right answers in 200 stories");
  const bars = jobBars(counted, jobs);
  let stacked = "";
  const drawStack = (now) => {
    const { story, cut, k, head } = view.state,
      { n, exact } = view.reading,
      sheets = cut === "sheets",
      key = [story, head, sheets || cut + k].join();
    stage.say(left.firstChild, sheets ? "Sheets of this head's table" : "Cut table; uncut above");
    if (key !== stacked) {
      const { u, s, v } = sheets ? sheetsOf(exact[head], n) : {};
      const sheet = (_, l) =>
        exact[head].map((_, at) => s[l] * u[l][Math.floor(at / n)] * v[l][at % n]);
      const tables = sheets ? s.slice(0, 8).map(sheet) : [now.tables[head], exact[head]];
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
      canvas.classList.toggle("off", sheets ? k > 0 && l >= k : l > 0),
    );
  };
  return (now, shares, isOwn) => {
    drawStack(now);
    thumbs.forEach((button, h) => {
      button.setAttribute("aria-pressed", h === view.state.head);
      heatmap(figure, button.firstChild, now.tables[h], 0.8);
    });
    // Nobody has counted a reader's own cut
    counted.hidden = isOwn;
    bars.show(shares, view.reading.job);
  };
};

const storyteller = ({ figure, place, data, move }) => {
  const { words, cuts, vocabulary, counts, jobs, tales, desk, own } = data;
  const codes = data.directions.join("").match(/../g) || [];
  const directions = Float64Array.from(codes, (code) => (code - 50) / 16);
  const model = storytellerModel(storyteller_weights, directions);
  const view = { state: null, reading: null };
  const now = () => view.reading.run(view.state.cut, view.state.k);
  const kept = () => {
    const { cut, k } = view.state,
      { single, phrase } = cuts[cut];
    if (!k) return words.uncut;
    return fill(words.with, { phrase: k === 1 ? single : fill(phrase, view.state) });
  };
  const shares = () => {
    const { cut, k } = view.state;
    return counts[cut].at(k ? cuts[cut].settings.indexOf(k) : -1);
  };

  const line = storyLine(place);
  const grid = controls.box(place, "cutting" + (desk ? " desk" : "")),
    middle = controls.box(grid);
  const way = controls.choice(middle, {
    label: "What is cut",
    options: Object.fromEntries(Object.entries(cuts).map(([name, { tab }]) => [name, tab])),
    input: (cut) => move({ cut, k: own[cut] ? 1 : 0 }),
  });
  middle.firstChild.hidden = Object.keys(cuts).length < 2;
  const curve = cutCurve(middle, { cuts, move, view, kept });
  const drawDesk = desk && storyDesk(grid, { figure, move, view, jobs });
  const showStory = storyChoice(place, {
    tales: Object.values(tales),
    vocabulary,
    own: desk,
    move: ({ story }) => move({ story, k: 0, head: -1 }),
  });
  const demo = demonstrate(figure, { watch: curve.svg, steps: data.demo });

  return {
    clean: ({ story, cut: wished, k, head }) => {
      checkStory(story, vocabulary);
      const stale = own[wished] && own[wished].story !== story,
        cut = stale ? Object.keys(cuts)[0] : check.one("cut", wished, Object.keys(cuts));
      const { settings, by_words: byWords } = cuts[cut];
      const some = byWords && k > story.split(" ").length ? 0 : k;
      const chosen = head === -1 ? loudestHead(readToEnd(model, story, data)) : head;
      return {
        story,
        cut,
        k: check.one("k", some, [...settings, 0]),
        head: check.whole("head", chosen, 0, 7),
      };
    },
    draw: (state) => {
      view.state = state;
      if (state.story !== view.reading?.story) {
        view.reading = readToEnd(model, state.story, data);
        line.tell(view.reading.said.slice(1));
      }
      const { right, exact } = view.reading,
        { says, tables } = now();
      showStory(state.story);
      way.show(state.cut);
      Object.keys(own).forEach((cut) => way.offer(cut, own[cut].story === state.story));
      const wrong = right.length > 0 && !right.includes(says);
      line.draw(says, wrong, [tables[state.head], exact[state.head]]);
      curve.draw();
      if (desk) drawDesk(now(), shares(), state.cut in own);
      demo(state);
    },
    numbers: () => ({ right: now().chance, table_error: now().error, ...shares() }),
    clear: line.askLast,
    remarks: () => (view.state.k ? [view.state.cut] : []),
    table: () => {
      const { n } = view.reading;
      const rows = (table) =>
        Array.from({ length: n }, (_, i) => Array.from(table.slice(i * n, i * n + n)));
      return { tables: now().tables.map(rows) };
    },
    values: () => {
      const { right } = view.reading,
        { says } = now();
      const missed = right.length ? fill(words.forgot, { answer: right[0] }) : words.guesses;
      const verdict = right.includes(says) ? words.knows : missed;
      return { kept: kept(), says, verdict };
    },
  };
};
