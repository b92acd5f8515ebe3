// A random map that can be drawn again, and the pairs of points that keep their distance. Its sentences are in dice.py.
/** The seeds that were thrown of each k, d, and n, with their worst pairs. */
const throwLog = () => {
  const logs = new Map();
  const of = (sizes) => logs.get(sizes.join()) || new Map();
  return {
    add: (sizes, seed, worst) => logs.set(sizes.join(), of(sizes).set(seed, worst)),
    list: (sizes) => [...of(sizes).values()],
  };
};

/** All pairs as dots, and one as strips: the one that was picked, or else that farthest off. */
const pairView = (place, top, now, move) => {
  let chosen = null;
  const { measured } = now;
  const pair = () =>
    chosen === null || chosen >= measured.ratios.length ? measured.farthest : chosen;
  const pick = (wished) => {
    chosen = clamp(wished, 0, measured.ratios.length - 1);
    show();
  };
  const widen = (eps) => move({ eps: clamp(Math.round(eps * 100) / 100, 0.01, 0.99) });
  const worst = () => Math.min(0.99, Math.ceil(100 * measured.worst) / 100); // the least epsilon that holds all pairs
  const dots = pairs.dots(place, top, { pair, pick, eps: () => now.state.eps, widen, worst });
  const strips = pairs.strips(place);
  const show = () => {
    const at = pair(),
      [i, j] = throws.pointsOf(at);
    const text =
      "points " + (j + 1) + " and " + (i + 1) + ": ratio " + format(measured.ratios[at], ".2f");
    dots.mark(at, text);
    const { found, state } = now;
    const [before, after] = [(p) => found.points[p], (p) => throws.image(found, p, state.k)].map(
      (of) => {
        const other = of(j);
        return Array.from(of(i), (x, c) => x - other[c]);
      },
    );
    strips.show(text, before, after);
  };
  return {
    draw: (fresh) => {
      if (fresh) dots.take(measured.ratios);
      dots.draw(now.state.eps);
      if (fresh) show();
    },
    clear: () => {
      chosen = null;
      if (now.found) show();
    },
  };
};

const dice = ({ place, data, move, tell }) => {
  const { most, sizes, top, throws: many } = data;
  const now = { state: null, found: null, measured: {} }; // a throw, and what it did to the pairs
  const log = throwLog();
  const one = background(throws.project),
    several = background(throws.project);
  const sizesOf = ({ k, d, n }) => [k, d, n];

  // What is seen of the throw; below it, what can be chosen and thrown
  const panels = controls.box(place, "panels");
  const slider = (holder, name, list, label) => {
    const made = controls.range(holder, {
      label,
      min: 0,
      max: list.length - 1,
      step: 1,
      input: (i) => move({ [name]: list[i] }),
    });
    const off = (i) => Math.abs(list[i] - state[name]); // a state may lie between the places of the slider
    return () =>
      made.show(
        list.reduce((best, _, i) => (off(i) < off(best) ? i : best), 0),
        String(state[name]),
      );
  };
  const first = slider(place, "k", sizes.k, "k, numbers kept of each point");
  const buttons = controls.box(place, "control");
  const next = (by) => ((state.seed + by - 1) % most.seed) + 1;
  controls.button(buttons, "Another R", () => move({ seed: next(1) }));
  controls.button(buttons, many + " more throws", async () => {
    const { k, d, n } = state,
      seeds = Array.from({ length: many }, (_, i) => next(i + 1));
    tell("Throwing ...");
    const { answers } = await several({ n, d, k, rows: k, seeds });
    seeds.forEach((seed, i) => remember([k, d, n], seed, answers[i]));
    move(k === state.k && d === state.d && n === state.n ? { seed: seeds[many - 1] } : {});
  });
  const tally = element("span", {}),
    marks = element("span", { class: "marks", "aria-hidden": "true" });
  buttons.append(tally);
  place.append(marks); // a mark for each of the last throws: teal where all pairs were inside
  const others = place.appendChild(element("details", {}, element("summary", {}, "other points")));
  const sliders = [
    first,
    slider(others, "d", sizes.d, "d, coordinates of each point"),
    slider(others, "n", sizes.n, "n, points"),
  ];

  // What is counted
  const seen = () => log.list(sizesOf(now.state));
  const counted = () => ({
    pairs: count(),
    throws: seen().length,
    good: seen().filter((x) => x <= state.eps).length,
  });
  const draw = () => {
    const { k, d, n, eps, seed } = state,
      fresh = measured.of !== found || measured.k !== k;
    if (fresh) {
      // not computed anew while a line is dragged
      measured = { of: found, k, ...throws.measure(found, k) };
      remember([k, d, n], seed, measured.worst);
      dots.take(measured.ratios);
    }
    const { off, worst, median } = measured,
      chance = chiSquare.outside(k, eps),
      union = Math.min(1, count() * chance);
    numbers = { worst, median, inside: off.filter((x) => x <= eps).length, chance, union };
    sliders.forEach((show) => show());
    tally.textContent = fill("All pairs inside: {good} of {throws}.", counted());
    marks.replaceChildren(
      ...Array.from({ length: many + 1 }, (_, i) => {
        const worst = seen().slice(-many - 1)[i],
          color = worst <= eps ? "background: var(--teal)" : "background: var(--orange)";
        return element("i", { style: worst === undefined ? "" : color });
      }),
    );
    dots.draw(eps);
    if (fresh) showPair();
  };
  const fits = (it) => it && it.n === state.n && it.d === state.d && it.seeds[0] === state.seed;

  return {
    clean: ({ k, d, n, eps, seed }) => ({
      k: check.whole("k", k, 1, most.k),
      d: check.whole("d", d, 1, most.d),
      n: check.whole("n", n, 2, most.n),
      eps: check.number("eps", eps, 0.01, 0.99),
      seed: check.whole("seed", seed, 1, most.seed),
    }),
    draw: (wished) => {
      state = wished;
      if (fits(found)) return void draw();
      return one({ n: state.n, d: state.d, rows: most.k, seeds: [state.seed] }).then((answer) => {
        if (!fits(answer)) return;
        found = answer;
        draw();
      });
    },
    numbers: () => ({ ...numbers }),
    table: () => ({
      points: found.points.map((row) => [...row]),
      mapped: found.points.map((_, i) => throws.image(found, i, state.k)),
    }),
    values: counted,
    eases: { eps: 0 },
    clear: () => {
      chosen = null;
      if (found) showPair();
    },
    remarks: () => (state.k >= state.d ? ["wide"] : numbers.union === 1 ? ["empty"] : []),
  };
};
