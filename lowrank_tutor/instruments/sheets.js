// Lift sheets off a table of attention, and see whom the words still hear. Python's sheets.py has data and words.
const sheets = ({ figure, place, data, move }) => {
  const { words, most } = data;
  const own = sentence(data), { matmul } = lowrankLinalg;
  const roomy = matchMedia("(min-width: 601px)").matches;
  const SIZE = roomy
    ? { wide: 600, arcs: 108, high: 236, cell: 23, rise: 21, table: [372, 24], side: 208, font: 12.5, bars: 128 }
    : { wide: 340, arcs: 76, high: 142, cell: 13, rise: 12, table: [212, 6], side: 126, font: 11, bars: 104 };
  const SLANT = 0.55, FLAT = 0.5; // a sheet lies on the floor: how far its back edge is shifted, how flat it looks
  let state = null, tokens = [], n = 0, exact = [], kept = [], values = [], layers = null, shown = null, used = null;

  const minus = (a, b) => a.map((row, i) => row.map((x, j) => x - b[i][j]));
  const size = (a) => Math.hypot(...a.flat());
  const largest = (row) => row.indexOf(Math.max(...row));
  const sheet = (i) => Array.from(layers.u[i], (x) => Array.from(layers.v[i], (y) => layers.s[i] * x * y));
  const sum = (k) => exact.map((row, i) => row.map((_, j) =>
    Array.from({ length: k }, (_, l) => layers.s[l] * layers.u[l][i] * layers.v[l][j]).reduce((a, b) => a + b, 0)));
  const compute = () => {
    if (state.words !== shown) {
      tokens = own.split(state.words);
      n = tokens.length;
      const x = tokens.map((word) => own.place(word) < 0 ? own.drawn(word, 2) : data.numbers[own.place(word)]);
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
  const heard = (row) => Math.max(...row) - Math.min(...row) < 1e-6 ? words.alike : "“" + tokens[largest(row)] + "”";

  // The sentence, with arcs from the chosen word to those that it listens to
  const drawing = (title, high) => {
    const svg = stage.make("svg", { viewBox: [0, 0, SIZE.wide, high].join(" "), role: "img", "aria-label": title });
    controls.titled(place, title).append(svg);
    return svg;
  };
  const arcs = drawing(words.sentence, SIZE.arcs), speaker = controls.box(place, "sentence");
  let listener = null, strokes = [];
  const drawArcs = () => strokes.forEach(([wide, thin], j) => {
    const middle = (i) => SIZE.wide * (i + 0.5) / n, [a, b] = [middle(state.row), middle(j)], foot = SIZE.arcs - 2;
    const top = foot - 1.32 * (SIZE.arcs - 8) * (j === state.row ? 0.5 : Math.abs(j - state.row) / n + 0.15);
    const [from, to] = j === state.row ? [a - 34, b + 34] : [a, b];
    const d = "M" + [j === state.row ? a - 5 : a, foot] + "C" + [from, top, to, top] + " " + [j === state.row ? b + 5 : b, foot];
    const weight = (table) => SIZE.arcs / 6 * Math.max(0, table[state.row][j]);
    stage.write(wide, { d, "stroke-width": weight(exact) + 3 });
    stage.write(thin, { d, "stroke-width": weight(kept) });
    wide.toggleAttribute("hidden", exact[state.row][j] < 0.01);
    thin.toggleAttribute("hidden", kept[state.row][j] < 0.01);
  });

  // The stack, and the table that it adds up to
  const picture = drawing(words.stack + ". " + words.table, SIZE.high);
  picture.previousSibling.replaceChildren(words.stack, controls.element("span", {}, words.table));
  let lifted = [], cells = [], names = [], frame = null;
  const build = () => {
    const draw = (tag, look, parent) => stage.make(tag, look, parent);
    [arcs, picture].forEach((svg) => svg.replaceChildren());
    const arc = { fill: "none", "stroke-linecap": "round" };
    const wides = tokens.map(() => draw("path", { ...arc, class: "exact" }, arcs));
    strokes = wides.map((wide) => [wide, draw("path", { ...arc, class: "teal kept" }, arcs)]);
    const c = SIZE.cell * 6 / Math.max(n, 4), foot = SIZE.high - FLAT * c * n - 8;
    const corner = (i, j) => [8 + (j + SLANT * (n - i)) * c, foot + FLAT * c * i].map((x) => Math.round(10 * x) / 10);
    const cell = (i, j, p, q) => [corner(i, j), corner(i, q), corner(p, q), corner(p, j)].join(" ");
    const top = Math.max(...tokens.map((_, l) => Math.max(...sheet(l).flat().map(Math.abs))));
    lifted = tokens.map((_, l) => {
      const group = draw("g", { class: "sheet" }, picture);
      draw("polygon", { class: "paper", points: cell(0, 0, n, n) }, group);
      sheet(l).forEach((row, i) => row.forEach((value, j) => Math.abs(value) > 0.02 * top && draw("polygon", {
        class: value > 0 ? "teal" : "orange", points: cell(i, j, i + 1, j + 1),
        "fill-opacity": Math.abs(value / top).toFixed(2),
      }, group)));
      return group;
    });
    const [x, y] = SIZE.table, side = SIZE.side / n, font = Math.min(SIZE.font, side / 2 + 3);
    cells = tokens.map((_, i) => tokens.map((_, j) => draw("rect", {
      x: x + j * side, y: y + i * side, width: side - 1.5, height: side - 1.5, rx: 2,
    }, picture)));
    cells.forEach((row, i) => row.forEach((one) => one.addEventListener("click", () => move({ row: i }))));
    names = tokens.map((word, i) => {
      const label = draw("text", { x: x - 8, y: y + (i + 0.66) * side, "text-anchor": "end", "font-size": font }, picture);
      label.textContent = labels.short(word);
      if (!roomy) return label;
      const above = { x: x + (i + 0.5) * side, y: y - 7, "text-anchor": "middle", "font-size": Math.min(11, font) };
      draw("text", above, picture).textContent = labels.short(word);
      return label;
    });
    frame = draw("rect", { class: "frame", x: x - 3, width: SIZE.side + 4, height: side + 2, rx: 4 }, picture);
    if (listener) speaker.replaceChildren();
    const options = Object.fromEntries(tokens.map((word, i) => [i, labels.short(word)]));
    listener = controls.choice(speaker, { label: words.chosen, options, input: (i) => move({ row: Number(i) }) });
    const letters = Math.max(...Object.values(options).map((word) => word.length));
    const large = Math.min(roomy ? 22 : 17.5, 1.7 * (roomy ? 640 : SIZE.wide - 14) / n / letters);
    Object.entries({ "--n": n, "--font": large + "px" }).forEach((pair) => speaker.style.setProperty(...pair));
  };
  const drawStack = () => {
    const top = Math.max(...exact.flat()), side = SIZE.side / n;
    lifted.forEach((group, l) => {
      const away = l < state.k ? 0 : 0.9 * SIZE.rise + 2 * (l - state.k);
      group.classList.toggle("off", l >= state.k);
      group.style.transform = "translate(" + (away ? 0.6 * SIZE.rise : 0) + "px," + -(l * SIZE.rise * 5 / Math.max(n, 5) + away) + "px)";
    });
    cells.forEach((row, i) => row.forEach((one, j) => stage.write(one, {
      class: kept[i][j] < 0 ? "orange cell" : "teal cell",
      "fill-opacity": Math.min(1, 0.04 + Math.abs(kept[i][j]) / top).toFixed(3),
    })));
    names.forEach((label, i) => label.classList.toggle("chosen", i === state.row));
    stage.write(frame, { y: SIZE.table[1] + state.row * side - 2 });
  };

  // The skyline, and the ring that cuts it
  const bars = stage.panel(controls.titled(place, words.skyline), {
    label: words.skyline, width: SIZE.wide, height: SIZE.bars, margin: [6, 4, 6, 4], x: [0, 1], y: [0, 1],
  });
  const cut = (k) => move({ k: clamp(Math.round(k), 1, n) });
  bars.handle("cut", {
    label: words.cut, color: "orange", axis: "x", share: 0.86, drag: ([x]) => cut(x * n - 0.2),
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
    const at = k === n ? 0.992 : k / n, near = k > n - 2;
    bars.text("keep", [at + (near ? -0.03 : 0.03), 0.82], words.drag + text, near ? "orange end" : "orange");
    bars.place("cut", [at, 0], { value: k, min: 1, max: n, text });
  };
  const field = own.field(place, (typed) => move({ words: typed.join(" "), row: 0, k: Math.min(2, typed.length) || 1 }));

  // Once, when the figure is first seen: all sheets, fewer, one, and two again. Whatever a reader does ends it.
  const demonstrate = () => {
    const hands = ["pointerdown", "keydown", "wheel", "touchstart"], start = { ...state };
    const steps = [[0, n], [900, n - 1], [1120, n - 2], [1340, n - 3], [1560, 2], [2500, 1], [3900, 2]];
    const go = (k) => figure.instrument.set({ k: clamp(k, 1, n) });
    const timers = steps.map(([time, k]) => setTimeout(() => go(k), time));
    const stop = () => {
      timers.forEach(clearTimeout);
      hands.forEach((kind) => removeEventListener(kind, stop, true));
      figure.instrument.set(start);
    };
    hands.forEach((kind) => addEventListener(kind, stop, { capture: true, passive: true }));
    timers.push(setTimeout(() => hands.forEach((kind) => removeEventListener(kind, stop, true)), 4200));
  };
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches || location.hash.includes("sheets=");
  if (data.demo && !still) {
    const watch = new IntersectionObserver(([{ isIntersecting }]) => {
      if (!isIntersecting) return;
      watch.disconnect();
      demonstrate();
    }, { threshold: 0.6 });
    watch.observe(figure);
  }

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
      if (state.words !== shown) build();
      shown = state.words;
      drawArcs();
      drawStack();
      drawBars();
      listener.show(String(state.row));
      if (state.words !== used) field.show((used = state.words)); // else what is being typed would be lost
    },
    numbers: errors,
    table: () => ({ exact, kept, values }),
    clear: () => (used = null),
    values: () => ({ n, word: tokens[state.row], heard: heard(kept[state.row]), right: heard(exact[state.row]) }),
    remarks: () => [
      ...(state.k === n ? ["all"] : state.k === 1 ? ["alike"] : []),
      ...(tokens.every((word) => own.place(word) >= 0) ? [] : ["own"]),
    ],
  };
};
