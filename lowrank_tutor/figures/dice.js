// A random map that can be drawn again, and the pairs of points that keep their distance. Its sentences are in dice.py.
/** All pairs as dots, and one as strips: the one that was picked, or else that farthest off. */
const pairView = (place, top, now, move) => {
  let chosen = null;
  const pair = () => (chosen === null || chosen >= now.ratios.length ? now.farthest : chosen);
  const pick = (wished) => {
    chosen = clamp(wished, 0, now.ratios.length - 1);
    show();
  };
  const widen = (eps) => move({ eps: clamp(Math.round(eps * 100) / 100, 0.01, 0.99) });
  const worst = () => Math.min(0.99, Math.ceil(100 * now.worst) / 100); // the least epsilon that holds all pairs
  const dots = pairs.dots(place, top, { pair, pick, eps: () => now.state.eps, widen, worst });
  const strips = pairs.strips(place);
  const show = () => {
    const at = pair(),
      [i, j] = throws.pointsOf(at),
      { found, state } = now;
    const ratio = format(now.ratios[at], ".2f");
    const text = "points " + (j + 1) + " and " + (i + 1) + ": ratio " + ratio;
    dots.mark(at, text);
    const difference = (x, y) => Array.from(x, (one, c) => one - y[c]);
    const images = [i, j].map((p) => throws.image(found, p, state.k));
    strips.show(text, difference(found.points[i], found.points[j]), difference(...images));
  };
  return {
    draw: (fresh) => {
      if (fresh) dots.take(now.ratios);
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
  // The state, the throw that was found, and what it did to the pairs.
  const now = { state: null, found: null, ratios: [], numbers: {} };
  // Of each k, d, and n the seeds that were thrown, with their worst pairs.
  const thrown = {};
  const logOf = ({ k, d, n }) => (thrown[[k, d, n]] ??= new Map());
  const one = background(throws.project),
    several = background(throws.project);

  // What is seen of the throw; below it, what can be chosen and thrown
  const view = pairView(controls.box(place, "panels"), top, now, move);
  const slider = (holder, name, list, label) => {
    const made = controls.range(holder, {
      label,
      min: 0,
      max: list.length - 1,
      step: 1,
      input: (i) => move({ [name]: list[i] }),
    });
    return (state) => {
      const off = (i) => Math.abs(list[i] - state[name]); // a state may lie between the places of the slider
      const nearest = list.reduce((best, _, i) => (off(i) < off(best) ? i : best), 0);
      made.show(nearest, String(state[name]));
    };
  };
  const first = slider(place, "k", sizes.k, "k, numbers kept of each point");
  const buttons = controls.box(place, "control");
  const next = (by) => ((now.state.seed + by - 1) % most.seed) + 1;
  controls.button(buttons, "Another R", () => move({ seed: next(1) }));
  controls.button(buttons, many + " more throws", async () => {
    const { k, d, n } = now.state,
      log = logOf(now.state),
      seeds = Array.from({ length: many }, (_, i) => next(i + 1));
    tell("Throwing ...");
    const { answers } = await several({ n, d, k, rows: k, seeds });
    seeds.forEach((seed, i) => log.set(seed, answers[i]));
    move(log === logOf(now.state) ? { seed: seeds.at(-1) } : {});
  });
  const tally = element("span"),
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
  const seen = () => [...logOf(now.state).values()];
  const counted = () => ({
    pairs: now.ratios.length,
    throws: seen().length,
    good: seen().filter((x) => x <= now.state.eps).length,
  });
  const draw = () => {
    const { state, found } = now,
      { k, eps } = state,
      fresh = now.of !== found || now.k !== k;
    if (fresh) {
      // not computed anew while a line is dragged
      Object.assign(now, { of: found, k, ...throws.measure(found, k) });
      logOf(state).set(state.seed, now.worst);
    }
    const { off, worst, median } = now,
      chance = chiSquare.outside(k, eps),
      union = Math.min(1, off.length * chance);
    now.numbers = { worst, median, inside: off.filter((x) => x <= eps).length, chance, union };
    sliders.forEach((show) => show(state));
    tally.textContent = fill("All pairs inside: {good} of {throws}.", counted());
    marks.replaceChildren(
      ...Array.from({ length: many + 1 }, (_, i) => {
        const worst = seen().slice(-many - 1)[i],
          color = worst <= eps ? "background: var(--teal)" : "background: var(--orange)";
        return element("i", { style: worst === undefined ? "" : color });
      }),
    );
    view.draw(fresh);
  };
  const fits = (it, { n, d, seed }) => it && it.n === n && it.d === d && it.seeds[0] === seed;

  return {
    clean: ({ k, d, n, eps, seed }) => ({
      k: check.whole("k", k, 1, most.k),
      d: check.whole("d", d, 1, most.d),
      n: check.whole("n", n, 2, most.n),
      eps: check.number("eps", eps, 0.01, 0.99),
      seed: check.whole("seed", seed, 1, most.seed),
    }),
    draw: (state) => {
      now.state = state;
      if (fits(now.found, state)) return void draw();
      const { n, d, seed } = state;
      return one({ n, d, rows: most.k, seeds: [seed] }).then((answer) => {
        if (!fits(answer, now.state)) return;
        now.found = answer;
        draw();
      });
    },
    numbers: () => now.numbers,
    table: () => ({
      points: now.found.points.map((row) => [...row]),
      mapped: now.found.points.map((_, i) => throws.image(now.found, i, now.state.k)),
    }),
    values: counted,
    eases: { eps: 0 },
    clear: view.clear,
    remarks: () =>
      now.state.k >= now.state.d ? ["wide"] : now.numbers.union === 1 ? ["empty"] : [],
  };
};
