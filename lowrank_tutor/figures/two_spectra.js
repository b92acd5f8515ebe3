// Two skylines, one cut: weights alone, and weights for the inputs they meet. Python's two_spectra.py has the words.
const twoSpectra = ({ place, data, move }) => {
  const { words, w, pulled, steepest } = data, n = w.length;
  const wide = matchMedia("(min-width: 601px)").matches ? 600 : 340;
  const own = lowrankLinalg.layers(w); // u by columns
  const BAND = 1.42; // a skyline is 1 high, and its words stand above it
  let state = null, bars = [], off = [];

  const panel = stage.panel(controls.titled(place, words.label), {
    label: words.label, width: wide, height: 390, margin: [4, 12, 34, 6], x: [0.4, n + 0.6], y: [0, 3 * BAND],
  });
  const cut = (k) => move({ k: clamp(Math.round(k), 1, n) });
  panel.handle("cut", {
    label: words.cut, color: "orange", axis: "x", share: 0.04, large: 4, drag: ([x]) => cut(x - 0.5),
    step: (dx, dy) => cut(state.k + dx + dy), end: (which) => cut(which < 0 ? 1 : n),
  });
  panel.grab("cut");
  const shrink = (decay) => move({ decay: clamp(Math.round(decay * 100) / 100, 0, steepest) });
  panel.handle("pulled", {
    label: words.pulled, color: "teal", drag: ([, y]) => shrink(-Math.log(Math.max(1e-9, y - BAND)) / Math.log(pulled)),
    step: (dx, dy) => shrink(state.decay - (dx + dy) / 20), end: (which) => shrink(which < 0 ? steepest : 0),
  });
  const ticks = [1, ...Array.from({ length: Math.floor(n / 8) }, (_, i) => 8 * (i + 1))];
  panel.axes({ x: ticks, xTitle: words.direction });

  const norm = (list) => Math.hypot(...list);
  const draw = () => {
    const { k, decay } = state;
    panel.line("cut", [[k + 0.5, 0], [k + 0.5, 3 * BAND]], "orange");
    bars.forEach((heights, band) => {
      const foot = (2 - band) * BAND, name = [words.weights, words.inputs, words.product][band];
      heights.forEach((height, i) => {
        const top = [i + 1.36, foot + height / heights[0]];
        panel.rect(band + " bar " + i, [i + 0.64, foot], top, (i < k ? "teal" : "gray") + " solid");
      });
      panel.text("name " + band, [0.6, foot + 1.1], name, "ink");
      if (band === 1) return; // the inputs alone make no error
      panel.text("off " + band, [n + 0.4, foot + 1.1], words.off + format(off[band / 2], ".0%"), "orange end");
    });
    const high = pulled ** -decay;
    panel.text("pull", [pulled + n / 14, BAND + 1.1], words.pull, "teal");
    panel.hide("pull", decay > 0);
    panel.place("cut", [k + 0.5, 0], { value: k, min: 1, max: n, text: k + words.of + n });
    const said = { value: Number(high.toFixed(4)), min: pulled ** -steepest, max: 1, text: format(high, ".2f") };
    panel.place("pulled", [pulled, BAND + high], said);
  };

  return {
    clean: ({ k, decay }) => ({
      k: check.whole("k", k, 1, n), decay: check.number("decay", decay, 0, steepest),
    }),
    draw: (wished) => {
      const { k, decay } = state = wished;
      const sizes = w.map((_, i) => (i + 1) ** -decay);
      const both = lowrankLinalg.layers(w.map((row, i) => row.map((value) => sizes[i] * value))).s;
      bars = [own.s, sizes, both];
      const left = (i) => own.s[i] * norm(sizes.map((size, row) => size * own.u[i][row])); // of sheet i, in the outputs
      const missed = norm(w.map((_, i) => (i < k ? 0 : left(i))));
      off = [missed / norm(both), norm(both.slice(k)) / norm(both)];
      draw();
    },
    numbers: () => ({ plain: off[0], weighted: off[1] }),
    table: () => ({ bars: bars.map((heights) => Array.from(heights)) }),
    values: () => ({ n }),
    eases: { decay: 0, k: 1 },
    remarks: () => (state.k === n ? ["all"] : state.decay === 0 ? ["alike"] : []),
  };
};
