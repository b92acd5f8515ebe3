// Two cuts of one model, always off by the same error, and what each forgets. Its data and words are in two_cuts.py.
//
// `view` is what the parts share: { state, reading }, where `reading` is the story as the model reads it.
const SIDES = ["left", "right"];
// Other stories of a job
const EACH = 25;
const countRight = (grades) => grades.filter(Boolean).length;

/** How much is kept where error(k) first reaches a target: as `matched` in lowrank_tutor.storyteller. */
const solveKept = (error, target, most) => {
  const enough = (k) => error(k) >= target;
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
/** The questions of a story: its end, and the last one before that asks for something else. */
const questionsOf = (said, { kinds, words }) => {
  const all = said.map((_, row) => {
    const [answer, job] = storyAnswer(said.slice(1, row + 1), kinds);
    const from = said.lastIndexOf(answer, row);
    return {
      row,
      job,
      label: words.asks[job] || words.asks[""],
      answers: rightWords(answer, job, kinds),
      from: from > 0 ? from : Math.max(0, row - 3),
    };
  });
  const last = all.pop();
  const asked = ({ job, answers: [answer] }) => answer && job !== last.job && answer !== ".";
  return [...all.filter(asked).slice(-1), last];
};
/** A story that asks twice: at(cut, damage) is the run in which a cut is off by so much. */
const readTwice = (model, story, data) => {
  const { cuts, vocabulary, kept } = data;
  const reading = readStory(model, story, vocabulary),
    { said, n, once, run, exact } = reading;
  const solve = (cut, damage) =>
    solveKept((k) => run(cut, k).error, damage / 100, cuts[cut].most || n);
  const at = (cut, damage) =>
    once([cut, damage].join(" "), () =>
      run(cut, kept[story]?.[cut]?.[damage] ?? solve(cut, damage)),
    );
  const asks = questionsOf(said, data);
  const heard = exact.map((table) =>
    Math.min(...asks.map(({ row, from }) => table[row * n + from])),
  );
  return { ...reading, asks, at, head: heard.indexOf(Math.max(...heard)) };
};

/** The story, with its questions and where their answers stand; of a chosen word, whom it listens to. */
const toldLine = (place) => {
  const line = controls.box(place, "told");
  return {
    tell: ({ said, n, asks, exact, head }) => {
      const listen = (i) => {
        place.style.setProperty("--row", i + 1);
        spoken.forEach((word, j) => {
          word.style.setProperty("--weight", exact[head][(i + 1) * n + j + 1]);
          stage.write(word, { "aria-checked": j === i });
        });
      };
      place.style = "--n:" + n;
      const spoken = askedWords(line, said.slice(1), listen);
      const all = [...spoken, element("span", {}, asks.at(-1).answers[0] || "\u2003\u2003")];
      asks.forEach(({ row, from, label }) => {
        all[row].append(element("small", {}, label));
        all[row].classList.add("asked");
        all[from - 1]?.classList.add("answer");
      });
      line.replaceChildren(...all.flatMap((word) => [word, " "]));
    },
  };
};
/** What stands over a half, its table, and what the model says: tell a story, and draw a cut of it. */
const cutHalf = (board, side, { figure, data, move, view }) => {
  const { cuts, words } = data;
  const half = controls.box(board, side);
  const options = Object.entries(cuts).map(([name, { title }]) =>
    element("option", { value: name }, title),
  );
  const onchange = () => move({ right: title.value });
  const title =
    side === "right"
      ? element("select", { "aria-label": words.choose, onchange }, ...options)
      : element("span", {}, cuts.sheets.title);
  half.append(element("p", { class: "title" }, title));
  const frame = controls.box(half, "frame"),
    canvas = frame.appendChild(element("canvas", { role: "img" })),
    kept = half.appendChild(element("p", { class: "kept" })),
    told = controls.box(half, "says");
  return {
    tell: ({ asks }) => {
      const frames = asks.map(({ from, row, label }) => {
        const style = "--from:" + from + ";--row:" + row;
        return element("i", { style }, element("small", {}, label));
      });
      frame.replaceChildren(canvas, element("small", { class: "hint" }, words.hint), ...frames);
      told.replaceChildren(...asks.map((ask) => element("p", {}, ask.label + " ", element("b"))));
    },
    draw: ({ k, tables }, said, missed) => {
      const { n, head, asks } = view.reading,
        cut = view.state[side];
      if (title.value) title.value = cut;
      else stage.say(title, cuts[cut].title);
      heatmap(figure, canvas, tables[head], 0.85);
      stage.say(kept, fill(cuts[cut].phrase, { k: Math.floor(k + 0.05), n }));
      asks.forEach((ask, i) => {
        const wrong = missed.includes(ask);
        const mark = wrong ? " \u2717" : ask.answers[0] ? " \u2713" : "";
        const spots = [told.children[i], frame.children[i + 2]];
        stage.say(spots[0].lastChild, said[i] + mark);
        for (const spot of spots) spot.classList.toggle("lost", wrong);
      });
      stage.write(canvas, { "aria-label": words.table + kept.textContent });
    },
  };
};

/** The lever, which sets the damage to both tables. */
const damageLever = (place, { most, words, move, view }) => {
  const output = place.appendChild(element("output", { "aria-live": "off" }));
  const [top, bottom] = words.ends.map((text) => element("small", {}, text));
  place.append(top);
  const lever = stage.panel(place, {
    label: words.lever,
    width: 110,
    height: 230,
    margin: [20, 0, 20, 0],
    y: [most, 0],
  });
  const track = [0, most].map((y) => [0.5, y]);
  lever.line("track", track, "gray shade");
  const to = (damage) => move({ damage: clamp(Math.round(damage), 0, most) });
  lever.handle("damage", {
    label: words.lever,
    color: "ink",
    axis: "y",
    drag: ([, y]) => to(y),
    large: 5,
    step: (dx, dy) => to(view.state.damage + dx - dy),
    end: (which) => to(which * most),
  });
  place.append(bottom);
  return () => {
    const { damage } = view.state,
      text = damage + "%";
    stage.say(output, text);
    lever.place("damage", [0.5, damage], { value: damage, min: 0, max: most, text });
  };
};

/** 200 other stories: a row of dots for each job and side, those that are still right innermost. */
const scoreDots = (place, { jobs, words }) => {
  const sums = element("p", { class: "sum" }, element("b"), words.stories, element("b"));
  place.append(sums);
  const score = controls.box(place, "score");
  const rows = Object.values(jobs).map((name) => {
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
  return (grades) => {
    grades.forEach((side, i) => stage.say(sums.children[i], String(countRight(side))));
    rows.forEach(({ paths, counts }, row) => {
      const right = grades.map((side) => countRight(side.slice(EACH * row, EACH * (row + 1))));
      right.forEach((sum, i) => {
        stage.say(counts[i], String(sum));
        counts[i].classList.toggle("lost", sum < right[1 - i] - 3);
        const dots = Array.from({ length: EACH }, (_, j) => "M" + (j + 0.5) + " .5h0");
        stage.write(paths[i][0], { d: dots.slice(sum).join("") });
        stage.write(paths[i][1], { d: dots.slice(0, sum).join("") });
      });
    });
  };
};

const twoCuts = ({ figure, place, data, move }) => {
  const { cuts, vocabulary, jobs, tales, right, words } = data;
  const most = right.sheets.length - 1;
  const model = storytellerModel(storyteller_weights);
  const view = { state: null, reading: null };
  const at = (side) => view.reading.at(view.state[side], view.state.damage);
  const says = (side) =>
    view.reading.asks.map(({ row }) => likeliest(vocabulary, at(side).next(row)));
  const lost = (side) => {
    const words = says(side);
    return view.reading.asks.filter(
      ({ answers }, i) => answers.length && !answers.includes(words[i]),
    );
  };
  const forgotten = (side) =>
    lost(side)
      .map((ask) => words.the + ask.label)
      .join(words.and) || words.nothing;
  /** Read the story at every place of the lever, one after the other, while nothing else is done. */
  const prepare = (i, reading) => {
    if (reading !== view.reading || i > 2 * most + 1) return;
    reading.at(view.state[SIDES[i % 2]], i >> 1);
    setTimeout(prepare, 0, i + 1, reading);
  };
  /** Whether each of the other stories is still right, one job after the other. */
  const graded = (side) =>
    [...right[view.state[side]][view.state.damage]].flatMap((digit) =>
      [8, 4, 2, 1].map((bit) => (parseInt(digit, 16) & bit) > 0),
    );

  place.append(element("p", { class: "brief" }, words.lead));
  const line = toldLine(place);
  const board = controls.box(place, "halves");
  const halves = SIDES.map((side) => cutHalf(board, side, { figure, data, move, view }));
  const middle = element("div", { class: "lever" }, element("p", {}, words.both));
  board.firstChild.after(middle);
  const drawLever = damageLever(middle, { most, words, move, view });
  const drawScore = scoreDots(place, data);
  const claim = place.appendChild(element("p", { class: "claim", "aria-hidden": "true" }));
  const showStory = storyChoice(place, { tales, vocabulary, own: true, move });
  const demo = demonstrate(figure, { watch: board, steps: data.demo });

  const draw = () => {
    SIDES.forEach((side, i) => halves[i].draw(at(side), says(side), lost(side)));
    drawLever();
    const grades = SIDES.map(graded),
      [left, other] = grades.map(countRight);
    drawScore(grades);
    const [one, two] = SIDES.map(forgotten);
    const even = Math.abs(left - other) < 10;
    stage.say(claim, one === two ? words.alike : even ? words.apart : words.uneven);
  };
  new MutationObserver(draw).observe(document.documentElement, {
    attributeFilter: ["data-theme"],
  });

  return {
    clean: (wished) => {
      checkStory(wished.story, vocabulary);
      SIDES.forEach((side) => check.one(side, wished[side], Object.keys(cuts)));
      check.whole("damage", wished.damage, 0, most);
      return wished;
    },
    draw: (state) => {
      const before = view.state;
      view.state = state;
      const other = state.story !== before?.story;
      if (other) {
        view.reading = readTwice(model, state.story, data);
        [line, ...halves].forEach((part) => part.tell(view.reading));
      }
      if (other || SIDES.some((side) => state[side] !== before[side]))
        setTimeout(prepare, 0, 0, view.reading);
      showStory(state.story);
      draw();
      demo(state);
    },
    numbers: () =>
      Object.fromEntries(
        SIDES.flatMap((side) => [
          ["error_" + side, at(side).error],
          ["answered_" + side, countRight(graded(side)) / graded(side).length],
        ]),
      ),
    table: () => {
      const [left, other] = SIDES.map(graded),
        names = Object.keys(jobs);
      return { dots: left.map((one, i) => [names[Math.floor(i / EACH)], one, other[i]]) };
    },
    values: () => Object.fromEntries(SIDES.map((side) => ["lost_" + side, forgotten(side)])),
  };
};
