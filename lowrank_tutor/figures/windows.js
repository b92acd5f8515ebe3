// Windows over a story, whose borders are dragged, and the next word of a model that reads through them. See windows.py.
const windows = ({ place, data, move }) => {
  const { words, story, head, vocabulary, answer } = data,
    n = story.length,
    LISTED = 6;
  const model = storytellerModel(storyteller_weights),
    ids = story.map((word) => vocabulary.indexOf(word));
  const even = (k) => Array.from({ length: k }, (_, i) => Math.floor((i * n) / k));
  const percent = (share) => format(share, ".0%"),
    last = (table) => table.subarray(n * (n - 1));
  let state = null,
    ends = [],
    chances = [],
    found = null;
  const read = (borders) => {
    const now = model.run(ids, borders ? [{ cut: "means", k: borders }] : []);
    return { ...now, chances: lowrankLinalg.softmax(now.logits) };
  };
  const uncut = read(null),
    likeliest = () => vocabulary[chances.indexOf(Math.max(...chances))];

  const panels = controls.box(place, "panels");
  const list = stage.panel(controls.titled(panels, words.list), {
    label: words.list,
    width: 300,
    height: 430,
    margin: [4, 44, 32, 66],
    y: [n, 0],
  });
  list.axes({ x: [0, 0.5, 1], xTitle: words.weight, format: percent });
  const bars = controls.box(controls.titled(panels, words.next), "next-words");
  const shift = (j, to) => {
    const borders = state.borders.slice();
    borders[j] = clamp(Math.round(to), borders[j - 1] + 1, ends[j] - 1);
    move({ borders });
  };
  const grips = list.svg.getElementsByClassName("handle"); // those that are not needed now are hidden
  const placeBorders = () => {
    for (let j = grips.length + 1; j < ends.length; j++) {
      list.handle("border " + j, {
        label: fill(words.border, { j }),
        color: "ink",
        axis: "y",
        large: 3,
        drag: ([, y]) => shift(j, y),
        share: [0.25, 0.5, 0.75][j % 3], // knobs of neighbors stand apart
        step: (dx, dy) => shift(j, state.borders[j] + dx - dy),
        end: (which) => shift(j, which * n),
      });
    }
    [...grips].forEach((grip, i) => grip.toggleAttribute("hidden", i + 1 >= ends.length));
    state.borders.slice(1).forEach((at, i) =>
      list.place("border " + (i + 1), [0.5, at], {
        value: at,
        min: state.borders[i] + 1,
        max: ends[i + 1] - 1,
        text: fill(words.between, { before: story[at - 1], after: story[at] }),
      }),
    );
  };
  const count = controls.range(controls.box(place, "sliders"), {
    label: words.count,
    min: 1,
    max: n,
    step: 1,
    input: (k) => move({ borders: even(k) }),
  });

  const drawList = () => {
    const [exact, used] = [last(uncut.tables[head]), last(found.tables[head])];
    for (let j = 0; j < n; j++) {
      const [from, to] = [state.borders[j] || 0, ends[j] || 0],
        share = j < ends.length ? used[from] : 0;
      list.rect("mixed " + j, [0, from], [share, to], "teal");
      list.line(
        "edge " + j,
        [
          [0, from],
          [share, from],
          [share, to],
          [0, to],
        ],
        "teal thin",
      );
      list.text(
        "total " + j,
        [1.24, (from + to) / 2 + n / 76],
        percent(share * (to - from)),
        "teal end",
      );
      ["mixed ", "edge ", "total "].forEach((name) => list.hide(name + j, j >= ends.length));
      list.rect("exact " + j, [0, j + 0.3], [exact[j], j + 0.7], "ink solid");
      list.text("word " + j, [-0.03, j + 0.5 + n / 76], j ? story[j] : "\u25b8", "ink end");
    }
  };
  const drawBars = () => {
    const most = (i) => Math.max(chances[i], uncut.chances[i]),
      right = vocabulary.indexOf(answer);
    const rank = vocabulary.map((_, i) => i).sort((a, b) => most(b) - most(a));
    const listed = [...new Set([right, ...rank])].slice(0, LISTED);
    while (bars.children.length < LISTED) {
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
      bars.children[at].classList.toggle("wrong", i !== right);
      stage.say(name, vocabulary[i]);
      [chances, uncut.chances].forEach(
        (of, which) => (bar.children[which].style.width = 100 * of[i] + "%"),
      );
      stage.say(share, percent(chances[i]));
    });
  };

  return {
    clean: ({ borders }) => {
      const rule = "whole numbers from 0, each larger than the one before and below " + n;
      const fits =
        Array.isArray(borders) &&
        borders[0] === 0 &&
        borders.every(
          (border, i) =>
            Number.isInteger(border) && border < n && (i === 0 || border > borders[i - 1]),
        );
      return { borders: fits ? borders : check.fail("borders", rule, borders) };
    },
    draw: (wished) => {
      state = wished;
      ends = [...state.borders.slice(1), n];
      found = read(state.borders);
      chances = found.chances;
      drawList();
      placeBorders();
      drawBars();
      count.show(ends.length, fill(words.of, { k: ends.length, n }));
    },
    numbers: () => ({
      right: chances[vocabulary.indexOf(answer)],
      table_error: model.error(found.tables, uncut.tables),
      windows: ends.length,
    }),
    table: () => ({
      tables: found.tables.map((table) =>
        Array.from({ length: n }, (_, i) => Array.from(table.slice(i * n, i * n + n))),
      ),
    }),
    values: () => ({
      count: ends.length + (ends.length > 1 ? " windows" : " window"),
      says: likeliest(),
      verdict: likeliest() === answer ? words.knows : fill(words.forgot, { answer }),
    }),
    remarks: () => {
      if (ends.length === n) return ["each"];
      if (ends.length === 1) return ["single"];
      return likeliest() === answer && ends.length < 5 ? ["few"] : [];
    },
  };
};
