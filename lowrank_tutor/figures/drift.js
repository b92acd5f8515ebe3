// Tokens that drift together, layer by layer, without skips and with them. Python's drift.py has data and words.
const drift = ({ place, data, move }) => {
  const { words, sizes, apart, reach, same } = data, last = apart[0][0].length - 1, TAIL = 3;
  /** Places in the plane from three digits for each number. */
  const places = data.places.map((panels) => panels.map((layers) => layers.map((digits) => {
    const flat = digits.match(/.../g).map((code) => (code - 500) / 499 * reach);
    return flat.flatMap((x, i) => i % 2 ? [] : [[x, flat[i + 1]]]);
  })));
  let state = null, frame = 0;

  const panels = controls.box(place, "panels pair"), first = Math.max(...places[0][0][0].flat().map(Math.abs));
  const WIDE = 1.2 * first;
  const side = matchMedia("(min-width: 601px)").matches ? 288 : 168;
  const holders = words.panels.map((label) => controls.titled(panels, label));
  const said = holders.map(({ firstChild: title }) => title.appendChild(controls.element("b")));
  const planes = words.panels.map((label, i) => stage.panel(holders[i], {
    label, width: side, height: side, margin: [4, 4, 4, 4], x: [-WIDE, WIDE], y: [-WIDE, WIDE],
  }));
  const below = controls.box(place), stop = () => cancelAnimationFrame(frame);
  const slider = controls.range(below, {
    label: words.layers, min: 0, max: last, step: 0.1, input: (layers) => (stop(), move({ layers })),
  });
  const go = (layers) => (stop(), move({ layers: clamp(layers, 0, last) }));
  slider.input.addEventListener("keydown", (event) => stage.onKey(event, {
    step: (dx, dy) => go(Math.floor(state.layers) + dx + dy), end: (which) => go(which < 0 ? 0 : last), large: 4,
  }));
  const size = controls.choice(below, {
    label: words.size, options: Object.fromEntries(sizes.map((one, i) => [i, String(one)])),
    input: (i) => move({ size: sizes[i] }),
  });
  controls.button(controls.box(below, "control"), words.play, () => {
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
  const draw = () => planes.forEach((plane, panel) => {
    const lines = places[sizes.indexOf(state.size)][panel], tokens = lines[0].map((_, t) => t);
    tokens.forEach((t) => {
      const from = Math.max(0, state.layers - TAIL), steps = Array.from({ length: 7 }, (_, i) => i / 6);
      plane.line("tail " + t, steps.map((s) => at(lines, t, from + s * (state.layers - from))), "gray thin");
    });
    plane.dots("tokens", tokens.map((t) => at(lines, t, state.layers)), "teal");
    const value = numbers()[panel ? "skips" : "alone"];
    const text = value < same ? words.alike : fill(words.apart, { value });
    stage.say(said[panel], text);
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
      size.show(String(sizes.indexOf(state.size)));
    },
    numbers,
    values: () => ({ layers: Math.floor(state.layers) }), // as the slider says
    room: data.room,
    table: () => ({ dots: planes.map((_, side) =>
      places[sizes.indexOf(state.size)][side][0].map((_, t) => at(places[sizes.indexOf(state.size)][side], t, state.layers))) }),
    remarks: () => {
      const { alone, skips } = numbers();
      return [...(alone < same ? ["alike"] : []), ...(state.layers > 6 && skips > 0.5 ? ["apart"] : [])];
    },
  };
};
