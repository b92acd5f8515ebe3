// Two cuts of one model, always off by the same error, and what each forgets. Its data and words are in two_cuts.py.
const twoCuts = ({ figure, place, data, move }) => {
  const { cuts, kinds, vocabulary, jobs, tales, kept: amounts, right, words } = data;
  const SIDES = ["left", "right"],
    MOST = right.sheets.length - 1,
    number = Object.fromEntries(vocabulary.map((word, i) => [word, i]));
  const model = storytellerModel(storyteller_weights);
  let state = null,
    said = [],
    ids = [],
    asks = [],
    uncut = null,
    head = 0,
    sides = "",
    runs = new Map();

  // The model: what it says at an error, and how much of the story each cut keeps there
  const run = (cut, k) => {
    if (!runs.has(cut + k)) {
      const found = model.cut(ids, cut, k, true);
      runs.set(cut + k, {
        ...found,
        k,
        error: uncut ? model.error(found.tables, uncut.tables) : 0,
      });
    }
    return runs.get(cut + k);
  };
  /** How much is kept where a cut is first off by a target: as `matched` in lowrank_tutor.storyteller. */
  const solve = (cut, target) => {
    const enough = (k) => run(cut, k).error >= target,
      most = cuts[cut].most || ids.length;
    let low = most;
    while (low > 1 && !enough(low)) low--;
    if (low === most) return most;
    for (let high = low + 1, i = 0; i < 10; i++) {
      const k = (low + high) / 2;
      if (enough(k)) low = k;
      else high = k;
    }
    return low;
  };
  const at = (side, damage = state.damage) => {
    const cut = state[side],
      key = [cut, damage].join(" ");
    if (!runs.has(key)) {
      const known = amounts[state.story]?.[cut]?.[damage];
      runs.set(key, run(cut, known ?? solve(cut, damage / 100)));
    }
    return runs.get(key);
  };
  /** Read the story at every place of the lever, one after the other, while nothing else is done. */
  const prepare = (i, mine) => {
    if (mine !== runs || i > 2 * MOST + 1) return;
    at(SIDES[i % 2], i >> 1);
    setTimeout(prepare, 0, i + 1, mine);
  };
  const says = ({ logits }, row) => {
    const size = vocabulary.length,
      next = logits.subarray(row * size, (row + 1) * size);
    return vocabulary[next.indexOf(Math.max(...next))];
  };
  /** The questions of a story: its end, and the last one before that asks for something else. */
  const questions = () => {
    const all = said.map((_, row) => {
      const [answer, job] = storyAnswer(said.slice(1, row + 1), kinds);
      const from = said.lastIndexOf(answer, row);
      return {
        row,
        job,
        answers: rightWords(answer, job, kinds),
        from: from > 0 ? from : Math.max(0, row - 3),
      };
    });
    const last = all.pop();
    const asked = ({ job, answers: [answer] }) => answer && job !== last.job && answer !== ".";
    return [...all.filter(asked).slice(-1), last];
  };
  const read = () => {
    said = ["<s>", ...state.story.split(" ")];
    ids = said.map((word) => number[word]);
    runs = new Map();
    uncut = null;
    uncut = run("", 0);
    asks = questions();
    const heard = uncut.tables.map((table) =>
      Math.min(...asks.map(({ row, from }) => table[row * ids.length + from])),
    );
    head = heard.indexOf(Math.max(...heard));
    tell();
  };

  // The story, two tables with a lever between them, and what each model says
  place.append(element("p", { class: "brief" }, words.lead));
  const line = controls.box(place, "told");
  const label = ({ job }) => words.asks[job] || words.asks[""];
  const tell = () => {
    const answers = asks.map(({ from }) => from);
    line.replaceChildren(
      ...said
        .slice(1)
        .concat("")
        .flatMap((word, i) => {
          const ask = asks.find(({ row }) => row === i);
          const look = ask ? "asked" : answers.includes(i + 1) ? "answer" : "";
          const name = ask ? [element("small", {}, label(ask))] : [];
          return [element("span", { class: look }, word || "\u2003\u2003", ...name), " "];
        }),
    );
    halves.forEach(({ frame, told }) => {
      const n = ids.length,
        share = (i) => (100 * i) / n + "%";
      frame.replaceChildren(
        frame.firstChild,
        element("small", { class: "hint" }, words.hint),
        ...asks.map((ask) => {
          const style = ["left:" + share(ask.from), "top:" + share(ask.row), "width:" + share(1)];
          return element("i", { style: style.join(";") }, element("small", {}, label(ask)));
        }),
      );
      told.replaceChildren(...asks.map((ask) => element("p", {}, label(ask) + " ", element("b"))));
    });
  };
  const board = controls.box(place, "halves");
  const halves = SIDES.map((side) => {
    const half = controls.box(board, side);
    const options = Object.entries(cuts).map(([name, { title }]) =>
      element("option", { value: name }, title),
    );
    const title =
      side === "right"
        ? element("select", { "aria-label": words.choose }, ...options)
        : element("span", {}, cuts.sheets.title);
    title.addEventListener("change", () => move({ right: title.value }));
    half.append(element("p", { class: "title" }, title));
    const frame = controls.box(half, "frame"),
      canvas = frame.appendChild(element("canvas", { role: "img" }));
    const kept = half.appendChild(element("p", { class: "kept" }));
    return { title, frame, canvas, kept, told: controls.box(half, "says") };
  });
  const middle = element("div", { class: "lever" }, element("p", {}, words.both));
  board.firstChild.after(middle);
  const output = middle.appendChild(element("output", { "aria-live": "off" }));
  const lever = stage.panel(middle, {
    label: words.lever,
    width: 110,
    height: 230,
    margin: [20, 0, 20, 0],
    y: [MOST, 0],
  });
  lever.line(
    "track",
    [
      [0.5, 0],
      [0.5, MOST],
    ],
    "gray shade",
  );
  const to = (damage) => move({ damage: clamp(Math.round(damage), 0, MOST) });
  lever.handle("damage", {
    label: words.lever,
    color: "ink",
    axis: "y",
    drag: ([, y]) => to(y),
    large: 5,
    step: (dx, dy) => to(state.damage + dx - dy),
    end: (which) => to(which * MOST),
  });

  // 200 other stories: a row of dots for each job and side, those that are still right innermost
  const score = controls.box(place, "score");
  const EACH = (4 * right.sheets[0].length) / jobs.length;
  const isRight = (cut, i) => (parseInt(right[cut][state.damage][i >> 2], 16) >> (3 - (i & 3))) & 1;
  const count = (cut, from = 0, until = EACH * jobs.length) => {
    let sum = 0;
    for (let i = from; i < until; i++) sum += isRight(cut, i);
    return sum;
  };
  const sums = element("p", { class: "sum" }, element("b"), words.stories, element("b"));
  score.before(sums);
  const rows = jobs.map((name) => {
    const dots = (turn) => {
      const box = { viewBox: "0 0 " + EACH + " 1", class: turn, "aria-hidden": "true" };
      const svg = stage.make("svg", box, score);
      return ["gray", "teal"].map((color) => stage.make("path", { class: "dots " + color }, svg));
    };
    const left = dots("turned"),
      counts = [element("b"), element("b")];
    score.append(counts[0], element("span", {}, name), counts[1]);
    return { paths: [left, dots("")], counts };
  });
  const claim = place.appendChild(element("p", { class: "claim", "aria-hidden": "true" }));

  const lost = (side) =>
    asks.filter(({ row, answers }) => answers.length && !answers.includes(says(at(side), row)));
  const drawHalf = ({ title, frame, canvas, kept, told }, side) => {
    const cut = state[side],
      found = at(side),
      whole = Math.floor(found.k + 0.05),
      part = found.k - whole > 0.05;
    if (title.value) title.value = cut;
    else stage.say(title, cuts[cut].title);
    heatmap(figure, canvas, found.tables[head], 0.85);
    const phrase = cuts[cut][part ? "part" : "phrase"];
    stage.say(kept, fill(phrase, { k: whole, n: ids.length }));
    const missed = lost(side);
    asks.forEach((ask, i) => {
      const wrong = missed.includes(ask);
      stage.say(told.children[i].lastChild, says(found, ask.row) + (wrong ? " \u2717" : " \u2713"));
      [told.children[i], frame.children[i + 2]].forEach((one) =>
        one.classList.toggle("lost", wrong),
      );
    });
    stage.write(canvas, { "aria-label": words.table + " " + kept.textContent });
  };
  const draw = () => {
    halves.forEach((half, i) => drawHalf(half, SIDES[i]));
    stage.say(output, state.damage + "%");
    lever.place("damage", [0.5, state.damage], {
      value: state.damage,
      min: 0,
      max: MOST,
      text: state.damage + "%",
    });
    const total = SIDES.map((side) => count(state[side]));
    total.forEach((sum, i) => stage.say(sums.children[i], String(sum)));
    rows.forEach(({ paths, counts }, row) => {
      const found = SIDES.map((side) => count(state[side], EACH * row, EACH * (row + 1)));
      found.forEach((sum, i) => {
        stage.say(counts[i], String(sum));
        counts[i].classList.toggle("lost", sum < found[1 - i] - 3);
        const dots = Array.from({ length: EACH }, (_, j) => "M" + (j + 0.5) + " .5h0");
        stage.write(paths[i][0], { d: dots.slice(sum).join("") });
        stage.write(paths[i][1], { d: dots.slice(0, sum).join("") });
      });
    });
    const [one, two] = SIDES.map((side) => lost(side).map(label).join());
    const even = Math.abs(total[0] - total[1]) < 10;
    stage.say(claim, one === two ? words.alike : even ? words.apart : words.uneven);
  };

  // Another story, and the reader's own
  const showStory = storyChoice(place, { tales, vocabulary, own: true, move });
  const demo = demonstrate(figure, { watch: board, steps: data.demo });
  new MutationObserver(() => state && draw()).observe(document.documentElement, {
    attributeFilter: ["data-theme"],
  });

  return {
    clean: (wished) => {
      checkStory(wished.story, vocabulary);
      SIDES.forEach((side) => check.one(side, wished[side], Object.keys(cuts)));
      check.whole("damage", wished.damage, 0, MOST);
      return wished;
    },
    draw: (wished) => {
      const other = wished.story !== state?.story,
        now = SIDES.map((side) => wished[side]).join();
      state = wished;
      if (other) read();
      if (other || sides !== now) setTimeout(prepare, 0, 0, runs);
      sides = now;
      showStory(state.story);
      draw();
      demo(state);
    },
    numbers: () =>
      Object.fromEntries(
        SIDES.flatMap((side) => [
          ["error_" + side, at(side).error],
          ["answered_" + side, count(state[side]) / (EACH * jobs.length)],
        ]),
      ),
    table: () => ({
      dots: Array.from({ length: EACH * jobs.length }, (_, i) => [
        data.names[Math.floor(i / EACH)],
        ...SIDES.map((side) => Boolean(isRight(state[side], i))),
      ]),
    }),
    values: () =>
      Object.fromEntries(
        SIDES.map((side) => [
          "lost_" + side,
          lost(side)
            .map((ask) => words.the + label(ask))
            .join(words.and) || words.nothing,
        ]),
      ),
  };
};
