// Eight first steps of a low-rank update, and the switches that make them equal. Python's equal_steps.py has the words.
const equalSteps = ({ place, data, move }) => {
  const { words, ranks, choices, written, steps, level, steady } = data;
  const roomy = matchMedia("(min-width: 601px)").matches;
  let state = null, lengths = [];

  const panel = stage.panel(controls.titled(place, words.title), {
    label: words.title, width: roomy ? 600 : 340, height: 230, margin: [20, 4, 34, 20],
    x: [0, ranks.length], y: [-0.16, 1],
  });
  panel.axes({
    x: ranks.map((_, i) => i + 0.62), xTitle: words.rank, yTitle: words.step, format: (value) => String(ranks[Math.floor(value)]),
  });
  const pick = (place, name) => controls.choice(place, {
    label: words[name], options: Object.fromEntries(choices[name].map((one) => [one, written[one] || String(one)])),
    input: (chosen) => move({ [name]: name === "tokens" ? Number(chosen) : chosen }),
  });
  const row = controls.box(place, "control");
  const picks = Object.keys(choices).map((name) => [name, pick(row, name)]);
  const first = () => lengths[0] / lengths.at(-1);
  const numbers = () => ({ ratio: Math.max(...lengths) / Math.min(...lengths) });

  return {
    clean: (wished) => Object.fromEntries(
      Object.keys(choices).map((name) => [name, check.one(name, wished[name], choices[name])])),
    draw: (wished) => {
      state = wished;
      const line = steps[state.optimizer][choices.tokens.indexOf(state.tokens)];
      lengths = ranks.map((r, i) => { // descent has the factor twice: once in the update, once in its gradient
        const s = state.scaling === "alpha/r" ? 1 / r : 1 / Math.sqrt(r);
        return line[i] * (state.optimizer === "Adam" ? s : s * s);
      });
      const top = Math.max(...lengths), high = lengths[level] / top;
      panel.line("level", [[0, high], [ranks.length, high]], "ink thin dashed");
      ranks.forEach((_, i) => {
        const tip = lengths[i] / top;
        panel.arrow("output " + i, [i + 0.04, 0], [i + 0.62, 0], "ink");
        panel.arrow("step " + i, [i + 0.62, 0], [i + 0.62, tip], "teal");
        const struck = tip > high - 0.14 && tip < high; // by the line: above it, then
        const text = format(lengths[i] / lengths[level], ".2g");
        panel.text("times " + i, [i + 0.62, (struck ? high : tip) + 0.03], text, "teal middle");
      });
      panel.text("output", [0.33, -0.12], "Wx", "ink middle");
      const rises = first() < 1, at = [rises ? 0.04 : ranks.length - 0.04, high + 0.14]; // where the arrows are short
      panel.text("level name", at, words.level, rises ? "ink" : "ink end");
      panel.hide("level name", numbers().ratio < steady);
      picks.forEach(([name, choice]) => choice.show(String(state[name])));
    },
    numbers,
    table: () => ({ lengths }),
    values: () => ({ factor: written[state.scaling] }),
    remarks: () => {
      if (numbers().ratio < steady) return ["steady"];
      return first() > steady ? ["falls"] : first() < 1 / steady ? ["rises"] : [];
    },
  };
};
