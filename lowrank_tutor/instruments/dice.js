// Throw the dice of a random map: which pairs of points keep their distance? Python's dice.py says what it teaches.
const dice = ({ place, data, move, tell }) => {
  const { words, most, sizes, throws: many, top } = data;
  let state = null, found = null, measured = {}, drawn = null, chosen = null;
  const thrown = new Map(); // of each k, d and n the seeds that were thrown, with their worst pairs

  // What takes long: n points, and their products with every row that R can have. Row i of a matrix has numbers of its
  // own, so that a larger k or d only adds some.
  const project = ({ n, d, rows, seeds, k }, linalg) => {
    const stream = (seed, i) => linalg.normal(Math.imul(seed, 0x9e3779b1) + Math.imul(i + 1, 0x85ebca6b));
    const list = (count, draw) => Float64Array.from({ length: count }, draw);
    const dot = (x, y) => {
      let sum = 0;
      for (let j = 0; j < x.length; j++) sum += x[j] * y[j];
      return sum;
    };
    const distances = (points, width) => {
      const squares = [];
      for (let i = 0; i < points.length; i++) {
        for (let j = 0; j < i; j++) {
          let sum = 0;
          for (let c = 0; c < width; c++) sum += (points[i][c] - points[j][c]) ** 2;
          squares.push(sum);
        }
      }
      return squares;
    };
    const points = Array.from({ length: n }, (_, i) => list(d, stream(0, i)));
    const before = distances(points, d);
    const answers = seeds.map((seed) => {
      const products = points.map(() => new Float64Array(rows));
      for (let row = 0; row < rows; row++) {
        const numbers = list(d, stream(seed, row));
        points.forEach((point, i) => (products[i][row] = dot(numbers, point)));
      }
      if (!k) return products;
      return distances(products, k).reduce((worst, sum, i) => Math.max(worst, Math.abs(sum / k / before[i] - 1)), 0);
    });
    return { n, d, seeds, points, before, answers };
  };
  const one = background(project), several = background(project);

  /** The chance that a chi-square variable with k degrees of freedom is below x (lower) or above it: Press et al. */
  const tails = (k, x) => {
    const a = k / 2, y = x / 2;
    let logGamma = k % 2 ? Math.log(Math.PI) / 2 : 0; // of 1/2, or of 1; then up by steps of 1
    for (let step = k % 2 ? 0.5 : 1; step < a; step++) logGamma += Math.log(step);
    const factor = Math.exp(a * Math.log(y) - y - logGamma);
    if (y < a + 1) { // a series for the lower tail
      let term = 1 / a, sum = term;
      for (let i = 1; term > sum * 1e-16; i++) sum += term *= y / (a + i);
      return [sum * factor, 1 - sum * factor];
    }
    let b = y + 1 - a, c = 1e300, d = 1 / b, h = d; // a continued fraction for the upper one
    for (let i = 1, change = 0; i < 10000 && Math.abs(change - 1) > 1e-15; i++) {
      b += 2;
      d = 1 / (i * (a - i) * d + b);
      c = b + i * (a - i) / c;
      h *= change = d * c;
    }
    return [1 - factor * h, factor * h];
  };
  const chance = () => tails(state.k, state.k * (1 - state.eps))[0] + tails(state.k, state.k * (1 + state.eps))[1];

  const count = () => state.n * (state.n - 1) / 2;
  const slider = (name, list) => {
    const made = controls.range(place, {
      label: words[name], min: 0, max: list.length - 1, step: 1, input: (i) => move({ [name]: list[i] }),
    });
    const off = (i) => Math.abs(list[i] - state[name]); // a state may lie between the places of the slider
    return () => made.show(list.reduce((best, _, i) => (off(i) < off(best) ? i : best), 0), String(state[name]));
  };
  const sliders = Object.entries(sizes).map(([name, list]) => slider(name, list));
  const buttons = controls.element("div", { class: "instrument-buttons" });
  place.append(buttons);
  const next = (by) => (state.seed + by - 1) % most.seed + 1;
  controls.button(buttons, words.another, () => move({ seed: next(1) }));
  controls.button(buttons, words.many, async () => {
    const { k, d, n } = state, seeds = Array.from({ length: many }, (_, i) => next(i + 1));
    tell(words.throwing);
    const { answers } = await several({ n, d, k, rows: k, seeds });
    seeds.forEach((seed, i) => remember([k, d, n], seed, answers[i]));
    move(k === state.k && d === state.d && n === state.n ? { seed: seeds[many - 1] } : {});
  });
  const tally = controls.element("p", {});
  const panels = controls.element("div", { class: "panels" });
  place.append(tally, panels);
  const panelIn = (title, options) => {
    const heading = controls.element("p", {}, title), holder = controls.element("div", {}, heading);
    panels.append(holder);
    const size = { width: 336, height: 230, margin: [12, 14, 34, 40] };
    return { heading, ...stage.panel(holder, { label: title, ...size, ...options }) };
  };
  const dots = panelIn(words.dots, { x: [0, 1], y: [0, top] });
  const strips = panelIn(words.strips, { x: [0, 1], y: [-1, 1] });
  const pick = (pair) => {
    chosen = clamp(pair, 0, count() - 1);
    showPair();
  };
  dots.handle("pair", {
    label: words.pair, color: "violet", step: (dx, dy) => pick(pair() + dx + dy),
    end: (which) => pick(which < 0 ? 0 : count() - 1),
    drag: (point) => {
      const [a, b] = dots.pixel(point);
      const far = drawn.ratios.map((ratio, i) => {
        const [p, q] = dots.pixel([i + 0.5, Math.min(ratio, top)]);
        return Math.hypot(p - a, q - b);
      });
      pick(far.indexOf(Math.min(...far)));
    },
  });
  dots.grab("pair");
  const widen = (eps) => move({ eps: clamp(Math.round(eps * 100) / 100, 0.01, 0.99) });
  [["above", 1], ["below", -1]].forEach(([name, sign]) => dots.handle(name, { // knobs apart, however near the lines
    label: words[name], color: "orange", axis: "y", share: 0.5 - 0.2 * sign, drag: ([, y]) => widen(sign * (y - 1)),
    step: (dx, dy) => widen(state.eps + sign * (dx + dy) / 100), end: (which) => widen(which * sign < 0 ? 0.01 : 0.99),
  }));

  const mapped = (i) => Array.from(found.answers[0][i].subarray(0, state.k), (x) => x / Math.sqrt(state.k));
  const pair = () => (chosen === null || chosen >= count() ? drawn.ratios.indexOf(drawn.farthest) : chosen);
  const showPair = () => {
    const at = pair(), ratio = drawn.ratios[at];
    let i = 1, j = at; // pairs are (1, 0), (2, 0), (2, 1), (3, 0), ...
    for (; j >= i; i++) j -= i;
    const text = words.points + (j + 1) + words.and + (i + 1) + words.ratio + format(ratio, ".2f");
    dots.place("pair", [at + 0.5, Math.min(ratio, top)], { value: at + 1, min: 1, max: count(), text });
    strips.heading.textContent = text;
    const before = Array.from(found.points[i], (x, c) => x - found.points[j][c]);
    const [image, other] = [mapped(i), mapped(j)], after = image.map((x, c) => x - other[c]);
    [["before", before, 0.5, "gray"], ["after", after, -0.5, "teal"]].forEach(([name, values, middle, color]) => {
      const largest = values.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-300), width = 1 / values.length;
      const corners = values.flatMap((x, c) => [c, c + 1].map((at) => [at * width, middle + 0.4 * x / largest]));
      strips.area(name, [[0, middle], ...corners, [1, middle]], color + " solid");
      strips.text(name + " words", [0, middle + 0.42], values.length + words[name], color);
    });
  };
  const remember = (sizes, seed, worst) => {
    const key = sizes.join();
    if (!thrown.has(key)) thrown.set(key, new Map());
    thrown.get(key).set(seed, worst);
  };
  const seen = () => [...(thrown.get([state.k, state.d, state.n].join()) || new Map()).values()];
  const counted = () => ({ pairs: count(), throws: seen().length, good: seen().filter((x) => x <= state.eps).length });
  /** What a throw did to the pairs: not computed anew while a line is dragged. */
  const measure = () => {
    const { k, d, n, seed } = state, ratios = [], pairs = count(), products = found.answers[0];
    products.forEach((x, i) => products.slice(0, i).forEach((y) => {
      let sum = 0;
      for (let row = 0; row < k; row++) sum += (x[row] - y[row]) * (x[row] - y[row]);
      ratios.push(sum / k / found.before[ratios.length]);
    }));
    const off = ratios.map((ratio) => Math.abs(ratio - 1)).sort((a, b) => a - b), worst = off[pairs - 1];
    const median = (off[Math.floor((pairs - 1) / 2)] + off[Math.floor(pairs / 2)]) / 2;
    const farthest = ratios.find((ratio) => Math.abs(ratio - 1) === worst);
    remember([k, d, n], seed, worst);
    measured = { of: found, k, ratios, off, worst, median, farthest };
    dots.resize({ x: [0, pairs] });
    dots.axes({ y: [0, 1, 2, 3], xTitle: words.across, yTitle: words.up });
  };
  const draw = () => {
    const { k, eps } = state, pairs = count(), fresh = measured.of !== found || measured.k !== k;
    if (fresh) measure();
    const { ratios, off, worst, median, farthest } = measured, p = chance();
    const inside = off.filter((x) => x <= eps).length, union = Math.min(1, pairs * p);
    drawn = { ratios, farthest, numbers: { worst, median, inside, chance: p, union } };
    sliders.forEach((show) => show());
    tally.textContent = fill(words.tally, { ...counted(), union, chance: p });
    dots.area("band", [[0, 1 - eps], [pairs, 1 - eps], [pairs, 1 + eps], [0, 1 + eps]], "orange");
    const points = (inside) => ratios.flatMap((ratio, i) =>
      ((Math.abs(ratio - 1) <= eps) === inside ? [[i + 0.5, Math.min(ratio, top)]] : []));
    const small = pairs > 150 ? " small" : "";
    dots.dots("inside", points(true), "teal" + small);
    dots.dots("outside", points(false), "pink" + small);
    const text = format(eps, ".2f");
    dots.place("above", [0, 1 + eps], { value: eps, min: 0.01, max: 0.99, text });
    dots.place("below", [0, 1 - eps], { value: eps, min: 0.01, max: 0.99, text });
    if (fresh) showPair();
  };
  const fits = () => found && found.n === state.n && found.d === state.d && found.seeds[0] === state.seed;

  return {
    clean: ({ k, d, n, eps, seed }) => ({
      k: check.whole("k", k, 1, most.k), d: check.whole("d", d, 1, most.d), n: check.whole("n", n, 2, most.n),
      eps: check.number("eps", eps, 0.01, 0.99), seed: check.whole("seed", seed, 1, most.seed),
    }),
    draw: (wished) => {
      state = wished;
      if (fits()) return void draw();
      return one({ n: state.n, d: state.d, rows: most.k, seeds: [state.seed] }).then((answer) => {
        if (answer.n !== state.n || answer.d !== state.d || answer.seeds[0] !== state.seed) return;
        found = answer;
        draw();
      });
    },
    numbers: () => (drawn ? { ...drawn.numbers } : {}),
    table: () => ({ points: found.points.map((row) => [...row]), mapped: found.points.map((_, i) => mapped(i)) }),
    values: counted,
    remarks: () => (state.k >= state.d ? ["wide"] : drawn && drawn.numbers.union === 1 ? ["empty"] : []),
  };
};
