// Two runners under the roof of a card: how fast exact attention and Linformer can be. Python's race.py has data and words.
const race = ({ place, data, move }) => {
  const { cards, mixtures, width, lengths, walls, words, intensity, speed } = data, LONG = 3000;
  let state = null, running = 0, floors = {};

  const floor = (k) => {
    const { n, gpu } = state, [flops, bandwidth] = cards[gpu];
    const work = k ? 8 * n * k * width : 4 * n * n * width;
    const bytes = 2 * (4 * n * width + (k ? n * k + 4 * k * width : 0));
    const times = { compute: work / flops, memory: bytes / bandwidth };
    const wall = times.memory > times.compute ? "memory" : "compute";
    return { seconds: times[wall], wall, at: work / bytes, speed: work / times[wall] };
  };
  const quiet = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  /** Fill the bars, slowed down, until it is stopped. */
  const play = () => {
    const start = performance.now();
    const tick = (now) => {
      const share = quiet() ? 1 : clamp((now - start) / LONG, 0, 1);
      drawBars(share);
      if (share < 1 && place.isConnected) running = requestAnimationFrame(tick);
    };
    tick(start);
  };

  const roomy = matchMedia("(min-width: 601px)").matches, ground = speed[0];
  const look = { width: roomy ? 640 : 328, height: roomy ? 280 : 250, margin: [14, 8, 36, 58] };
  const roof = stage.panel(controls.titled(controls.box(place, "panels"), words.roof), {
    label: words.roof, ...look, x: intensity, xLog: true, y: speed, yLog: true,
  });
  const tick = (v, axis) => format(axis === "x" ? v : v / 1e12, ",");
  roof.axes({ x: [100, 1000, 10000], y: [1e13, 1e14, 1e15], xTitle: words.x, yTitle: words.y, format: tick });
  const put = (n) => move({ n: clamp(Math.round(n), Math.max(lengths[0], state.k), lengths[1]) });
  const double = (times) => put(2 ** (Math.round(4 * Math.log2(state.n) + times) / 4)); // quarters of a doubling
  const name = (which) => fill(words[which], state);
  roof.handle("n", {
    label: words.runner, color: "ink", large: 4, drag: ([x]) => put(2 * x), // it does n / 2 for a byte
    step: (dx, dy) => double(dx + dy), end: (which) => put(which < 0 ? 0 : lengths[1]),
  });
  roof.grab("n");
  const side = controls.box(place);
  const bars = stage.panel(controls.titled(controls.box(place, "panels"), words.bars), {
    label: words.bars, width: look.width, height: 74, margin: [2, roomy ? 90 : 76, 2, roomy ? 70 : 66], x: [0, 1], y: [2, 0],
  });
  const gpu = controls.choice(side, {
    label: words.gpu, options: Object.fromEntries(Object.keys(cards).map((card) => [card, card])), input: (one) => move({ gpu: one }),
  });
  const k = controls.choice(side, {
    label: words.k, options: Object.fromEntries(mixtures.map((one) => [one, format(one, ",")])),
    input: (one) => move({ k: Number(one), n: Math.max(state.n, Number(one)) }),
  });
  const row = controls.box(place, "control"), slow = controls.element("span");
  controls.button(row, words.race, () => {
    cancelAnimationFrame(running);
    play();
  });
  row.append(slow);

  /** Two walls, filled: where the memory limits, and where the processors do. */
  const drawRoof = ([flops, bandwidth]) => {
    const ridge = flops / bandwidth, low = bandwidth * intensity[0];
    roof.area("memory", [[intensity[0], ground], [intensity[0], low], [ridge, flops], [ridge, ground]], "gray deep");
    roof.area("compute", [[ridge, ground], [ridge, flops], [intensity[1], flops], [intensity[1], ground]], "gray");
    roof.line("roof", [[intensity[0], low], [ridge, flops], [intensity[1], flops]], "ink");
  };
  const drawRunners = () => { // all words after all lines: none is struck through
    const each = ["mixed", "exact"];
    each.forEach((which) => {
      const { at, speed } = floors[which], exact = which === "exact", color = exact ? "ink" : "teal";
      roof.line(which, [[at, ground], [at, speed]], color + (exact ? "" : " shade"));
      roof.dots(which + " dot", [[at, speed]], color + " large");
    });
    roof.text("memory words", [1.1 * intensity[0], 1.25 * ground], walls.memory, "ink");
    roof.text("compute words", [0.9 * intensity[1], 1.25 * ground], walls.compute, "ink end");
    each.forEach(nameRunner);
  };
  const nameRunner = (which) => {
    const { at, speed } = floors[which], exact = which === "exact", color = exact ? "ink" : "teal";
    const [x, y] = roof.pixel([at, speed]), long = x > 0.7 * look.width;
    const [aside, text] = exact ? [long ? 6 : -6, fill(words.named, { n: format(state.n, ",") })] : [8, name(which)];
    roof.text(which + " name", roof.point([x + aside, y + (exact ? -10 : 20)]), text, color + (exact && long ? " end" : ""));
  };
  const drawBars = (share = 1) => {
    const most = Math.max(floors.exact.seconds, floors.mixed.seconds);
    ["exact", "mixed"].forEach((which, i) => {
      const part = floors[which].seconds / most, color = { exact: "ink", mixed: "teal" }[which], at = Math.min(share, part);
      bars.rect(which, [0, i + 0.2], [at, i + 0.8], color + " solid");
      bars.text(which + " name", [-0.02, i + 0.62], name(which), color + " end");
      bars.text(which + " time", [at + 0.012, i + 0.62], fill(words.ms, { ms: format(1000 * at * most, ".3g") }), color);
    });
  };

  return {
    clean: ({ gpu, k, n }) => ({
      gpu: check.one("gpu", gpu, Object.keys(cards)), k: check.one("k", k, mixtures),
      n: check.whole("n", n, Math.max(lengths[0], k), lengths[1]),
    }),
    draw: (wished) => {
      state = wished;
      floors = { exact: floor(0), mixed: floor(state.k) };
      cancelAnimationFrame(running);
      drawRoof(cards[state.gpu]);
      drawRunners();
      drawBars();
      const text = fill(words.tokens, { n: format(state.n, ",") });
      roof.place("n", [state.n / 2, ground], { value: state.n, min: lengths[0], max: lengths[1], text });
      const factor = LONG / 1000 / Math.max(floors.exact.seconds, floors.mixed.seconds);
      stage.say(slow, fill(words.slower, { factor: format(Number(factor.toPrecision(2)), ",") }));
      gpu.show(state.gpu);
      k.show(String(state.k));
    },
    numbers: () => ({
      exact: 1000 * floors.exact.seconds, mixed: 1000 * floors.mixed.seconds,
      ratio: floors.exact.seconds / floors.mixed.seconds, pays: data.pays[state.gpu][state.k],
    }),
    table: () => floors,
    values: () => {
      const [exact, mixed] = [walls[floors.exact.wall], walls[floors.mixed.wall]];
      return { waits: fill(words[exact === mixed ? "both" : "waits"], { wall: exact, exact, mixed }) };
    },
    remarks: () => {
      const ratio = floors.exact.seconds / floors.mixed.seconds, [flops, bandwidth] = cards[state.gpu];
      if (ratio < 1) return ["behind"];
      return state.k < flops / bandwidth && floors.mixed.wall === "memory" && ratio > 1 ? ["waits"] : [];
    },
  };
};
