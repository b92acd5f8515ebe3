// Bars that walk to one: what each round of Muon does to singular values. Python's muon.py has data and words.
const muon = ({ place, data, move }) => {
  const { words, most, band } = data;
  const [a, b, c] = data.coefficients;
  const round = (s) => a * s + b * s ** 3 + c * s ** 5;
  let state = null, bars = [], before = [];

  const panel = stage.panel(controls.titled(controls.box(place, "panels"), words.bars), {
    label: words.bars, width: matchMedia("(min-width: 601px)").matches ? 600 : 340, height: 240,
    margin: [8, 8, 34, 50], x: [0.4, 10.6], y: [-0.08, 1.3],
  });
  const ticks = { x: Array.from({ length: 10 }, (_, i) => i + 1), y: [0, band[0], 1, band[1]] };
  const short = (value) => String(Number(value.toFixed(2)));
  panel.axes({ ...ticks, xTitle: words.title, yTitle: words.height, format: short });
  panel.rect("band", [0.4, band[0]], [10.6, band[1]], "teal");
  panel.line("one", [[0.4, 1], [10.6, 1]], "ink thin dotted");

  /** Bars are dragged before the first round alone: later ones come from them. */
  const put = (at, height) => {
    const value = clamp(Math.round(height * 1000) / 1000, 0, 1);
    const s = state.s.map((old, i) => (i === at ? value : old));
    if (s.some(Boolean)) move({ s, rounds: 0 });
  };
  const paint = ([x, y]) => state.rounds || put(clamp(Math.round(x), 1, 10) - 1, y);
  panel.paint(paint);
  for (let i = 0; i < 10; i++) {
    panel.handle("bar " + i, {
      label: words.bar + (i + 1), color: "teal", bar: true, drag: paint,
      step: (dx, dy) => put(i, state.s[i] + (dx + dy) / 100), end: (which) => put(i, which < 0 ? 0 : 1),
    });
  }
  const row = controls.box(place, "control");
  const more = controls.button(row, words.more, () => move({ rounds: Math.min(most, state.rounds + 1) }));
  const rounds = controls.choice(row, {
    label: words.rounds, options: Object.fromEntries(Array.from({ length: most + 1 }, (_, i) => [i, String(i)])),
    input: (chosen) => move({ rounds: Number(chosen) }),
  });
  const grips = panel.svg.getElementsByClassName("handle");

  return {
    clean: ({ s, rounds }) => {
      const list = check.list("s", s, 10, 0, 1);
      if (!list.some(Boolean)) check.fail("s", "numbers of which one is above 0", s);
      return { s: list, rounds: check.whole("rounds", rounds, 0, most) };
    },
    draw: (wished) => {
      const moving = state && state.rounds !== wished.rounds ? " moving" : ""; // while a bar is dragged it keeps up
      state = wished;
      bars = before = state.s;
      for (let i = 0; i < state.rounds; i++) [before, bars] = [bars, bars.map(round)];
      bars.forEach((value, i) => {
        panel.rect("bar " + i, [i + 0.72, 0], [i + 1.28, value], "teal solid" + moving);
        panel.line("before " + i, [[i + 0.66, before[i]], [i + 1.34, before[i]]], "gray");
        panel.hide("before " + i, state.rounds === 0);
        panel.place("bar " + i, [i + 1, value], { value, min: 0, max: 1, text: format(value, ".3g") });
      });
      [...grips].forEach((grip) => grip.toggleAttribute("hidden", state.rounds > 0));
      more.disabled = state.rounds === most;
      rounds.show(String(state.rounds));
    },
    numbers: () => ({ ratio: Math.max(...bars) / Math.min(...bars.filter((value) => value > 0)) }),
    table: () => ({ bars }),
    remarks: () => {
      if (bars.some((value) => value === 0)) return ["zero"];
      return bars.every((value) => value >= band[0] && value <= band[1]) ? ["band"] : [];
    },
  };
};
