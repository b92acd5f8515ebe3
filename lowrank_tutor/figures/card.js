// A card of graphics memory that fills like a tank while a text grows, and spills over. Its sentences are in card.py.
const card = ({ place, data, move }) => {
  const { designs, room, across, cards, step, most } = data, names = Object.keys(designs);
  const title = "Cards of 80 GiB, one square per GiB. Pale squares: what " + names[0] + " would need";
  const CELL = matchMedia("(min-width: 601px)").matches ? 16 : 9, PAD = 4, HEAD = 18, GAP = 8;
  const RUN = 2400; // milliseconds
  const wide = across * CELL + 2 * PAD, high = room / across * CELL + 2 * PAD + HEAD, foot = high - PAD;
  const size = [cards * (wide + GAP) - GAP, high + 1];
  let state = null, frame = 0;

  const gib = (n, kept) => (n * designs[kept][0] + designs[kept][1]) / 2 ** 29;
  const rest = (taken, i) => clamp(taken - i, 0, 1);
  const svg = stage.make("svg", {
    viewBox: [0, 0, ...size].join(" "), role: "img", "aria-label": title, class: "paint",
  });
  controls.titled(place, title).append(svg);
  const drawn = Array.from({ length: cards }, (_, i) => {
    const x = i * (wide + GAP);
    const edge = stage.make("rect", { x, y: HEAD, width: wide, height: high - HEAD, rx: 5 }, svg);
    const name = stage.make("text", { x: x + wide / 2, y: 12, "text-anchor": "middle" }, svg);
    name.textContent = "card " + (i + 1);
    const cells = Array.from({ length: room }, (_, cell) => {
      const at = { x: x + PAD + cell % across * CELL + 1, width: CELL - 2, rx: 2 }, row = Math.floor(cell / across);
      const box = { ...at, y: foot - (row + 1) * CELL + 1, height: CELL - 2 };
      return ["gray", "teal"].map((color) => stage.make("rect", { ...box, class: color + " cell" }, svg));
    });
    return { edge, name, cells };
  });

  const stop = () => cancelAnimationFrame(frame);
  const write = (n) => move({ n: clamp(Math.round(n / step) * step, step, most) });
  /** A press fills the cards up to its place. */
  const at = ({ clientX, clientY }) => {
    const box = svg.getBoundingClientRect(), scale = size[0] / box.width;
    return [(clientX - box.left) * scale, (clientY - box.top) * scale];
  };
  stage.follow(svg, at, ([x, y]) => {
    stop();
    const i = clamp(Math.floor(x / (wide + GAP)), 0, cards - 1), left = i * (wide + GAP) + PAD;
    const row = clamp(Math.floor((foot - y) / CELL), 0, room / across - 1);
    const cell = i * room + row * across + clamp(Math.ceil((x - left) / CELL), 0, across);
    write((cell * 2 ** 29 - designs[state.kept][1]) / designs[state.kept][0]);
  }, () => null, true);
  const slider = controls.range(place, {
    label: "tokens", min: step, max: most, step, input: (n) => (stop(), move({ n })),
  });
  const row = controls.box(place, "control");
  controls.button(row, "Keep writing", () => {
    stop();
    const quick = matchMedia("(prefers-reduced-motion: reduce)").matches, start = performance.now();
    const from = state.n < most ? state.n : step;
    const tick = (now) => {
      const n = quick ? most : from + (most - from) * clamp((now - start) / RUN, 0, 1);
      write(n);
      if (n < most && place.isConnected) frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
  });
  const kept = controls.choice(row, {
    label: "numbers that each token adds", options: Object.fromEntries(names.map((name) => [name, name])),
    input: (name) => move({ kept: name }),
  });
  // Each choice ends in its number, with a bar to scale before it.
  row.querySelectorAll(".choice label").forEach((label, i) => {
    const [count] = designs[names[i]];
    const share = count / designs[names[0]][0];
    const bar = controls.element("span", { style: "width: calc(" + share + " * (100% - 4.5rem))" });
    label.append(controls.element("span", { class: "bar" }, bar, format(count, ",")));
  });
  const numbers = () => {
    const taken = gib(state.n, state.kept);
    return { gib: taken, cards: Math.ceil(taken / room), numbers: designs[state.kept][0] };
  };

  return {
    clean: ({ n, kept }) => {
      if (check.whole("n", n, step, most) % step) check.fail("n", "a multiple of " + format(step, ","), n);
      return { n, kept: check.one("kept", kept, names) };
    },
    draw: (wished) => {
      state = wished;
      const sizes = [gib(state.n, names[0]), gib(state.n, state.kept)];
      drawn.forEach(({ edge, name, cells }, i) => {
        const look = sizes[1] <= i * room ? "gray dashed" : "teal";
        stage.write(edge, { class: "line edge " + look });
        stage.write(name, { class: look === "teal" ? "teal word" : "" });
        cells.forEach((both, cell) => both.forEach((one, which) => stage.write(one, {
          "fill-opacity": [0.3, 1][which] * rest(sizes[which], i * room + cell),
        })));
      });
      slider.show(state.n, format(state.n, ","));
      kept.show(state.kept);
    },
    numbers,
    table: () => ({ cells: drawn.map(({ cells }) =>
      cells.reduce((sum, [, one]) => sum + Number(one.getAttribute("fill-opacity")), 0)) }),
    values: () => ({ times: Math.floor(room / gib(state.n, state.kept)) }),
    remarks: () => {
      const taken = gib(state.n, state.kept);
      return [taken > room ? "spills" : taken === room ? "full" : "fits"];
    },
  };
};
