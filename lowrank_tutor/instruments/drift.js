// Tokens that drift together, layer by layer, without skips and with them. Python's drift.py has data and words.
const drift = ({ place, data, move }) => {
  const { words, sizes, places, apart } = data, last = apart[0][0].length - 1, TAIL = 3;
  let state = null, frame = 0;

  const panels = controls.box(place, "panels");
  const reach = 1.1 * Math.max(...places[0][0][0].flat().map(Math.abs));
  const planes = words.panels.map((label) => stage.panel(controls.titled(panels, label), {
    label, width: 288, height: 240, margin: [4, 4, 4, 4], x: [-1.2 * reach, 1.2 * reach], y: [-reach, reach],
  }));
  const side = controls.box(place), stop = () => cancelAnimationFrame(frame);
  const slider = controls.range(side, {
    label: words.layers, min: 0, max: last, step: 0.1, input: (layers) => (stop(), move({ layers })),
  });
  const size = controls.choice(side, {
    label: words.size, options: Object.fromEntries(sizes.map((one) => [one, String(one)])),
    input: (one) => move({ size: Number(one) }),
  });
  controls.button(side, words.play, () => {
    stop();
    const quick = matchMedia("(prefers-reduced-motion: reduce)").matches, start = performance.now();
    const tick = (now) => {
      const layers = Math.min(last, Math.round((quick ? last : (now - start) / 200) * 10) / 10);
      move({ layers });
      if (layers < last && place.isConnected) frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
  });

  /** Where a token stands between two layers. */
  const at = (lines, t, layers) => {
    const low = Math.floor(layers), high = Math.min(last, low + 1), share = layers - low;
    return [0, 1].map((j) => lines[low][t][j] + share * (lines[high][t][j] - lines[low][t][j]));
  };
  const draw = () => planes.forEach((plane, side) => {
    const lines = places[sizes.indexOf(state.size)][side], tokens = lines[0].map((_, t) => t);
    tokens.forEach((t) => {
      const from = Math.max(0, state.layers - TAIL), steps = Array.from({ length: 7 }, (_, i) => i / 6);
      plane.line("tail " + t, steps.map((s) => at(lines, t, from + s * (state.layers - from))), "gray thin");
    });
    plane.dots("tokens", tokens.map((t) => at(lines, t, state.layers)), "teal");
    const value = numbers()[side ? "skips" : "alone"];
    const text = value < 1e-15 ? words.alike : fill(words.apart, { value });
    plane.text("apart", [-1.15 * reach, -0.93 * reach], text, value < 1e-3 ? "orange" : "ink");
  });
  const numbers = () => {
    const [alone, skips] = apart[sizes.indexOf(state.size)].map((line) => line[Math.floor(state.layers)]);
    return { alone, skips };
  };

  return {
    clean: ({ layers, size }) => ({
      layers: check.number("layers", layers, 0, last), size: check.one("size", size, sizes),
    }),
    draw: (wished) => {
      state = wished;
      draw();
      slider.show(state.layers, format(Math.floor(state.layers), "g"));
      size.show(String(state.size));
    },
    numbers,
    table: () => ({ dots: planes.map((_, side) =>
      places[sizes.indexOf(state.size)][side][0].map((_, t) => at(places[sizes.indexOf(state.size)][side], t, state.layers))) }),
    remarks: () => {
      const { alone, skips } = numbers();
      return [...(alone < 1e-15 ? ["alike"] : []), ...(state.layers > 6 && skips > 0.5 ? ["apart"] : [])];
    },
  };
};
