// Lift sheets off a table of attention, and see whom the words still hear. Python's sheets.py has data and words.
const sheets = ({ figure, place, data, move }) => {
  const { words, most } = data;
  const own = typed(data), { matmul } = lowrankLinalg;
  const roomy = matchMedia("(min-width: 601px)").matches;
  const SIZE = roomy
    ? { wide: 600, arcs: 108, large: 22, high: 236, cell: 22, rise: 21, table: [372, 24], side: 208, font: 12.5, bars: 128 }
    : { wide: 344, arcs: 70, large: 17.5, high: 148, cell: 12.5, rise: 12, table: [216, 40], side: 106, font: 11, bars: 104 };
  const SLANT = 0.55, FLAT = 0.5; // a sheet lies on the floor: how far its back edge is shifted, how flat it looks
  let state = null, tokens = [], n = 0, exact = [], kept = [], values = [], layers = null, shown = null;
  let wanted = data.demo; // how many sheets the demonstration keeps at the moment

  const minus = (a, b) => a.map((row, i) => row.map((x, j) => x - b[i][j]));
  const size = (a) => Math.hypot(...a.flat());
  const largest = (row) => row.indexOf(Math.max(...row));
  const level = (row) => Math.max(...row) - Math.min(...row) < 1e-6;
  const sheet = (l) => Array.from(layers.u[l], (x) => Array.from(layers.v[l], (y) => layers.s[l] * x * y));
  const sum = (k) => exact.map((row, i) => row.map((_, j) =>
    Array.from({ length: k }, (_, l) => layers.s[l] * layers.u[l][i] * layers.v[l][j]).reduce((a, b) => a + b, 0)));
  const compute = () => {
    if (state.words !== shown) {
      tokens = own.split(state.words);
      n = tokens.length;
      const x = tokens.map((word) => own.numbers(word, data.numbers));
      const [asked, found, given] = data.maps.map((map) => matmul(x, map));
      const scores = matmul(asked, asked[0].map((_, j) => found.map((row) => row[j])));
      [exact, values] = [scores.map((row) => lowrankLinalg.softmax(row.map((s) => s / Math.SQRT2))), given];
      layers = lowrankLinalg.layers(exact);
    }
    kept = sum(state.k);
  };
  const errors = () => {
    const missing = minus(exact, kept);
    return {
      table_error: size(missing) / size(exact),
      output_error: size(matmul(missing, values)) / (size(matmul(exact, values)) || 1),
    };
  };
  const heard = (row) => level(row) ? words.alike : words.most_to + "“" + tokens[largest(row)] + "”";

  const spoken = arcs(place, {
    title: words.sentence, label: words.chosen, wide: SIZE.wide, high: SIZE.arcs, large: SIZE.large,
    choose: (row) => move({ row }),
  });

  // The stack, and the table that it adds up to
  const picture = stage.make("svg", { viewBox: [0, 0, SIZE.wide, SIZE.high].join(" "), role: "img" });
  stage.write(picture, { "aria-label": words.stack + ". " + words.table });
  const over = controls.titled(place, "");
  over.append(picture);
  over.firstChild.append(words.stack, controls.element("span", {}, words.table));
  let lifted = [], cells = [], names = [], frame = null, grid = {}; // where the table begins, and its side
  const draw = (tag, look, parent = picture) => stage.make(tag, look, parent);
  const buildStack = () => {
    const c = SIZE.cell * 6 / Math.max(n, 4), foot = SIZE.high - FLAT * c * n - 8;
    const corner = (i, j) => [20 + (j + SLANT * (n - i)) * c, foot + FLAT * c * i].map((x) => Math.round(10 * x) / 10);
    const cell = (i, j, p, q) => [corner(i, j), corner(i, q), corner(p, q), corner(p, j)].join(" ");
    const largestSize = (numbers) => Math.max(...numbers.map(Math.abs));
    const top = Math.max(...tokens.map((_, l) => largestSize(sheet(l).flat())));
    lifted = tokens.map((_, l) => {
      const group = draw("g", { class: "sheet", style: "--l:" + l });
      const paint = (value, points, look = "") => Math.abs(value) > 0.02 && draw("polygon", {
        class: (value > 0 ? "teal" : "orange") + look, points, "fill-opacity": Math.abs(value).toFixed(2),
      }, group);
      draw("polygon", { class: "paper", points: cell(0, 0, n, n) }, group);
      sheet(l).forEach((row, i) => row.forEach((value, j) => paint(value / top, cell(i, j, i + 1, j + 1))));
      const sign = layers.u[l].reduce((a, b) => a + b, 0) < 0 ? -1 : 1; // the first sheet has no number below zero
      const [u, v] = [layers.u[l], layers.v[l]].map((part) => Array.from(part, (x) => sign * x / largestSize([...part])));
      u.forEach((value, i) => paint(value, cell(i, -0.6, i + 1, -0.2), " strip"));
      v.forEach((value, j) => paint(value, cell(-0.85, j, -0.25, j + 1), " strip"));
      group.addEventListener("click", () => move({ k: Math.max(1, l < state.k ? l : l + 1) }));
      return group;
    });
  };
  const buildTable = () => {
    const letters = Math.max(...tokens.map((word) => labels.short(word).length));
    const lying = roomy && letters * 6.4 < SIZE.side / n, down = roomy && !lying ? 38 : 0; // words that stand need room
    grid = { y: SIZE.table[1] + down, all: SIZE.side - down };
    const [x] = SIZE.table, { y } = grid, side = grid.all / n, font = Math.min(SIZE.font, side / 2 + 3);
    const look = { width: side - 1.5, height: side - 1.5, rx: 2 };
    cells = tokens.map((_, i) => tokens.map((_, j) => draw("rect", { x: x + j * side, y: y + i * side, ...look })));
    cells.forEach((row, i) => row.forEach((one) => one.addEventListener("click", () => move({ row: i }))));
    exact.forEach((row, i) => level(row) || draw("circle", {
      class: "right", cx: x + (largest(row) + 0.5) * side - 0.75, cy: y + (i + 0.5) * side - 0.75, r: Math.min(4, side / 7),
    }));
    names = tokens.map((word, i) => {
      const label = draw("text", { x: x - 8, y: y + (i + 0.66) * side, "text-anchor": "end", "font-size": font });
      label.textContent = labels.short(word);
      const [a, b] = [x + (i + 0.5) * side, y - (lying ? 7 : 4)], size = Math.min(roomy ? 11 : 8, font);
      const turned = lying ? {} : { transform: "rotate(-90 " + a + " " + b + ") translate(0 " + 0.3 * size + ")" };
      const above = { x: a, y: b, "text-anchor": lying ? "middle" : "start", "font-size": size, ...turned };
      draw("text", above).textContent = labels.short(word, roomy ? 9 : 7);
      return label;
    });
    frame = draw("rect", { class: "frame", x: x - 3, width: grid.all + 4, height: side + 2, rx: 4 });
  };
  const drawStack = () => {
    const top = Math.max(...exact.flat());
    lifted.forEach((group, l) => {
      const away = l < state.k ? 0 : 0.9 * SIZE.rise + 2 * (l - state.k), up = l * SIZE.rise * 5 / Math.max(n, 5) + away;
      group.classList.toggle("off", l >= state.k);
      group.style.transform = "translate(" + (away ? 0.6 * SIZE.rise : 0) + "px," + -up + "px)";
    });
    cells.forEach((row, i) => row.forEach((one, j) => stage.write(one, {
      class: kept[i][j] < 0 ? "orange cell" : "teal cell",
      "fill-opacity": Math.min(1, (kept[i][j] < -0.005 ? 0.18 : 0.04) + Math.abs(kept[i][j]) / top).toFixed(3),
    })));
    names.forEach((label, i) => label.classList.toggle("chosen", i === state.row));
    stage.write(frame, { y: grid.y + state.row * grid.all / n - 2 });
  };

  // The skyline, and the ring that cuts it
  const bars = stage.panel(controls.titled(place, words.skyline), {
    label: words.skyline, width: SIZE.wide, height: SIZE.bars, margin: [6, 4, 6, 4], x: [0, 1], y: [0, 1],
  });
  const cut = (k) => move({ k: clamp(Math.round(k), 1, n) });
  bars.handle("cut", {
    label: words.cut, color: "orange", axis: "x", share: 0.84, drag: ([x]) => cut(x * n - 0.2),
    step: (dx, dy) => cut(state.k + dx + dy), end: (which) => cut(which < 0 ? 1 : n), large: 2,
  });
  bars.grab("cut");
  const drawBars = () => {
    const { k } = state, text = fill(words.keep, { k, n });
    for (let i = 0; i < most; i++) {
      const high = i < n ? layers.s[i] / layers.s[0] : 0;
      bars.rect("bar " + i, [(i + 0.14) / n, 0], [(i + 0.86) / n, high], (i < k ? "teal" : "gray") + " solid");
      bars.hide("bar " + i, i >= n);
    }
    const at = k === n ? 0.962 : k / n, near = k > n - 2;
    bars.text("keep", [at + (near ? -0.04 : 0.04), 0.8], words.drag + text, near ? "orange end" : "orange");
    bars.place("cut", [at, 0], { value: k, min: 1, max: n, text });
  };
  const field = own.field(place, (typed) => move({ words: typed.join(" "), row: 0, k: Math.min(2, typed.length) || 1 }));

  // All sheets drop onto the stack; then the ring lifts them, down to one, and puts back the second
  const go = (k) => figure.instrument.set({ k: (wanted = Math.min(k, n)) });
  const steps = [[0, most], [1500, 5], [1725, 4], [1950, 3], [2175, 2], [2800, 1], [3600, data.demo]];
  const demo = data.demo > 0 && demonstrate(figure, {
    watch: bars.svg, steps: steps.map(([time, k]) => [time, () => go(k)]), settle: () => go(data.demo),
  });

  return {
    clean: (wished) => {
      const found = own.parse(wished.words);
      return {
        k: check.whole("k", wished.k, 1, found.length), row: check.whole("row", wished.row, 0, found.length - 1),
        words: found.join(" "),
      };
    },
    draw: (wished) => {
      state = wished;
      compute();
      if (state.words !== shown) {
        spoken.words(tokens);
        picture.replaceChildren();
        buildStack();
        buildTable();
      }
      shown = state.words;
      spoken.draw(state.row, exact[state.row], kept[state.row], "teal");
      drawStack();
      drawBars();
      field.show(state.words);
      if (demo && state.k !== wanted) demo.end();
    },
    numbers: errors,
    table: () => ({ exact, kept, values }),
    clear: field.clear,
    values: () => ({ n, word: tokens[state.row], heard: heard(kept[state.row]), right: heard(exact[state.row]) }),
    room: "00000 ".repeat(13), // two remarks, and words of any length
    remarks: () => [
      state.k === n ? "all" : heard(kept[state.row]) === heard(exact[state.row]) ? "same" : "other",
      ...(state.k === 1 && n > 1 ? ["alike"] : []),
      ...own.remark(tokens),
    ],
  };
};
