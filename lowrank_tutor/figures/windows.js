// Windows over a story, whose borders are dragged, and the next word of a model that reads through them. See windows.py.
const LISTED = 6; // words in the list of the next one
const percent = (share) => format(share, ".0%");

/** Whether borders are whole numbers from 0, each larger than the one before and below n. */
const areBorders = (borders, n) =>
  Array.isArray(borders) &&
  borders[0] === 0 &&
  borders.every((one, i) => Number.isInteger(one) && one < n && !(one <= borders[i - 1]));

/** What the last word listens to: exactly in narrow bars, and through windows, from a border to the next end. */
const drawWeights = (list, story, { borders, ends }, exact, used) => {
  const n = story.length,
    down = n / 76;
  for (let j = 0; j < n; j++) {
    const [from, to] = [borders[j] || 0, ends[j] || 0],
      beyond = j >= ends.length,
      share = beyond ? 0 : used[from],
      corner = [share, to];
    list.rect("mixed " + j, [0, from], corner, "teal");
    list.line("edge " + j, [[0, from], [share, from], corner, [0, to]], "teal thin");
    const total = percent(share * (to - from));
    list.text("total " + j, [1.24, (from + to) / 2 + down], total, "teal end");
    ["mixed ", "edge ", "total "].forEach((name) => list.hide(name + j, beyond));
    list.rect("exact " + j, [0, j + 0.3], [exact[j], j + 0.7], "ink solid");
    list.text("word " + j, [-0.03, j + 0.5 + down], j ? story[j] : "\u25b8", "ink end");
  }
};

/** A handle for each border between two windows; those that are not needed now are hidden. */
const borderHandles = (list, words, story, now, move) => {
  const grips = list.svg.getElementsByClassName("handle");
  const shift = (j, to) => {
    const borders = now.borders.slice();
    borders[j] = clamp(Math.round(to), borders[j - 1] + 1, now.ends[j] - 1);
    move({ borders });
  };
  return ({ borders, ends }) => {
    for (let j = grips.length + 1; j < ends.length; j++) {
      list.handle("border " + j, {
        label: fill(words.border, { j }),
        color: "ink",
        axis: "y",
        large: 3,
        drag: ([, y]) => shift(j, y),
        share: [0.25, 0.5, 0.75][j % 3], // knobs of neighbors stand apart
        step: (dx, dy) => shift(j, now.borders[j] + dx - dy),
        end: (which) => shift(j, which * story.length),
      });
    }
    [...grips].forEach((grip, i) => grip.toggleAttribute("hidden", i + 1 >= ends.length));
    borders.slice(1).forEach((at, i) =>
      list.place("border " + (i + 1), [0.5, at], {
        value: at,
        min: borders[i] + 1,
        max: ends[i + 1] - 1,
        text: fill(words.between, { before: story[at - 1], after: story[at] }),
      }),
    );
  };
};

/** The likeliest next words as bars, the right one first. */
const wordBars = (place, vocabulary, right) => {
  for (let i = 0; i < LISTED; i++) {
    const bars = element("i", {}, element("b"), element("u"));
    place.append(element("p", {}, element("span"), bars, element("small")));
  }
  return (chances, exact) => {
    const most = (i) => Math.max(chances[i], exact[i]);
    const rank = vocabulary.map((_, i) => i).sort((a, b) => most(b) - most(a));
    const listed = [...new Set([right, ...rank])];
    [...place.children].forEach((line, at) => {
      const i = listed[at],
        [name, bars, share] = line.children;
      line.classList.toggle("wrong", i !== right);
      stage.say(name, vocabulary[i]);
      [chances, exact].forEach((of, j) => (bars.children[j].style.width = 100 * of[i] + "%"));
      stage.say(share, percent(chances[i]));
    });
  };
};

const windows = ({ place, data, move }) => {
  const { words, story, head, vocabulary, answer } = data,
    n = story.length,
    right = vocabulary.indexOf(answer);
  const model = storytellerModel(storyteller_weights),
    ids = story.map((word) => vocabulary.indexOf(word));
  const read = (cuts) => {
    const { logits, tables } = model.run(ids, cuts);
    return { tables, chances: lowrankLinalg.softmax(logits) };
  };
  const uncut = read([]),
    now = {}; // borders, where each window ends, and what is read through them
  const likeliest = () => vocabulary[now.chances.indexOf(Math.max(...now.chances))];

  const panels = controls.box(place, "panels");
  const list = stage.panel(controls.titled(panels, words.list), {
    label: words.list,
    width: 300,
    height: 430,
    margin: [4, 44, 32, 66],
    y: [n, 0],
  });
  list.axes({ x: [0, 0.5, 1], xTitle: words.weight, format: percent });
  const next = controls.box(controls.titled(panels, words.next), "next-words");
  const drawWords = wordBars(next, vocabulary, right);
  const placeBorders = borderHandles(list, words, story, now, move);
  const count = controls.range(controls.box(place, "sliders"), {
    label: words.count,
    min: 1,
    max: n,
    step: 1,
    input: (k) => move({ borders: Array.from({ length: k }, (_, i) => Math.floor((i * n) / k)) }),
  });

  return {
    clean: ({ borders }) => {
      const rule = "whole numbers from 0, each larger than the one before and below " + n;
      if (!areBorders(borders, n)) check.fail("borders", rule, borders);
      return { borders };
    },
    draw: ({ borders }) => {
      const ends = [...borders.slice(1), n];
      Object.assign(now, { borders, ends }, read([{ cut: "means", k: borders }]));
      const last = ({ tables }) => tables[head].subarray(n * (n - 1));
      drawWeights(list, story, now, last(uncut), last(now));
      placeBorders(now);
      drawWords(now.chances, uncut.chances);
      count.show(ends.length, fill(words.of, { k: ends.length, n }));
    },
    numbers: () => ({
      right: now.chances[right],
      table_error: model.error(now.tables, uncut.tables),
      windows: now.ends.length,
    }),
    table: () => ({
      tables: now.tables.map((table) =>
        Array.from({ length: n }, (_, i) => Array.from(table.slice(i * n, i * n + n))),
      ),
    }),
    values: () => ({
      count: now.ends.length + (now.ends.length > 1 ? " windows" : " window"),
      says: likeliest(),
      verdict: likeliest() === answer ? words.knows : fill(words.forgot, { answer }),
    }),
    remarks: () => {
      const count = now.ends.length;
      if (count === n) return ["each"];
      if (count === 1) return ["single"];
      return likeliest() === answer && count < 5 ? ["few"] : [];
    },
  };
};
