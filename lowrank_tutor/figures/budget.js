// The least memory with which a trained model still answers 95%. Python's budget.py has data and words.
const LABELS = {
  first: "window of the first layer, words",
  second: "window of the second layer, words",
  rank: "numbers in a key (rank of the scores)",
  bits: "bits for each number",
  latents: "latent numbers per word",
};
// Bits of a number that is not rounded
const FULL = 16;

/** Bytes of the cache of a story of so many words. */
const cacheBytes = ({ first, second, rank, bits, latents, heads }, long) =>
  [first, second].reduce((sum, window, layer) => {
    const kept = heads.slice(HEADS * layer, HEADS * (layer + 1)).reduce((a, b) => a + b);
    // The least number and the step of a key and of a value
    const steps = bits === FULL ? 0 : 2 * 2 * FULL;
    const ofWord = latents ? FULL * latents * (kept > 0) : kept * ((rank + WIDTH) * bits + steps);
    return sum + ((window || long) * ofWord) / 8;
  }, 0);
const cutsOf = ({ first, second, bits, latents, heads }) => {
  const dropped = heads.flatMap((on, h) => (on ? [] : [h]));
  const windows = [first, second].map((k, layer) => ({
    cut: "window",
    k,
    heads: [0, 1, 2, 3].map((h) => h + HEADS * layer),
  }));
  return [
    ...(bits < FULL && !latents ? [{ cut: "bits", k: bits }] : []),
    ...windows.filter(({ k }) => k),
    { cut: "none", heads: dropped },
  ];
};
const weightsOf = (model, { latents, rank }) => {
  if (latents) return model.cutLatents(latents);
  return rank < WIDTH ? model.cutScores(rank) : model.trained;
};
/** Shares of right answers, of all and by job; null once stale. Between two stories the page may draw. */
const countAnswers = async (model, { stories, jobs }, state, isStale) => {
  const cuts = cutsOf(state),
    weights = weightsOf(model, state),
    right = jobs.map(() => [0, 0]);
  let begun = performance.now();
  for (const [words, asked] of stories) {
    if (performance.now() - begun > 10) {
      await new Promise((go) => setTimeout(go));
      if (isStale()) return null;
      begun = performance.now();
    }
    const ids = words.split(" ").map(Number);
    const { logits } = model.run(ids, cuts, weights, true),
      size = logits.length / ids.length;
    asked.forEach(([at, job, ...answers]) => {
      const row = logits.subarray((at - 1) * size, at * size);
      right[job][0] += answers.includes(row.indexOf(Math.max(...row)));
      right[job][1]++;
    });
  }
  const sum = (i) => right.reduce((all, of) => all + of[i], 0);
  const shares = jobs.map((job, i) => [jobName(job), right[i][0] / right[i][1]]);
  return { answered: sum(0) / sum(1), ...Object.fromEntries(shares) };
};

/** The sliders and the heads; show(state) sets them. */
const budgetControls = (place, { settings, move, heads }) => {
  const sliders = Object.entries(settings).map(([name, all]) => {
    const slider = controls.range(controls.box(place), {
      label: LABELS[name],
      min: 0,
      max: all.length - 1,
      step: 1,
      input: (i) => move({ [name]: all[i] }),
    });
    return { name, all, slider };
  });
  const switches = headButtons(
    controls.titled(place, "Heads that are kept: tap one to drop it"),
    (h) => String(1 + (h % HEADS)),
    (h) => move({ heads: heads().map((on, i) => (i === h ? 1 - on : on)) }),
  );
  return (state) => {
    sliders.forEach(({ name, all, slider }) => {
      const value = state[name],
        idle = state.latents > 0 && ["rank", "bits"].includes(name);
      const words = value ? String(value) : name === "latents" ? "none" : "all";
      slider.show(all.indexOf(value), idle ? "not with latents" : words);
      slider.input.disabled = idle;
    });
    switches.forEach((button, h) => button.setAttribute("aria-pressed", state.heads[h] === 1));
  };
};
const resultInWords = ({ bytes, answered }) =>
  fill("Your best so far: {bytes:,} bytes, with {answered:.1%} right.", { bytes, answered });
/** The reader's best: keep(result) says whether it is the least so far, and shows it then. */
const bestResult = (place, move) => {
  const record = element("p", { class: "record", hidden: "" }, element("span"), " ");
  place.append(record);
  let best = null;
  controls.button(record, "Show it", () => move(best.state));
  return {
    least: () => best?.bytes ?? Infinity,
    keep: (result) => {
      if (best?.bytes <= result.bytes) return false;
      best = result;
      record.hidden = false;
      stage.say(record.firstChild, resultInWords(best));
      return true;
    },
  };
};
const budget = ({ figure, place, data, move }) => {
  const { settings, goal, long, jobs } = data;
  const model = storytellerModel(storyteller_weights);
  const most = (LAYERS * HEADS * 2 * WIDTH * FULL * long) / 8;
  // Shares by setting
  const counted = new Map();
  let state = null,
    // Shares, once they are counted
    found = null,
    last = null,
    running = null;
  const bytes = () => cacheBytes(state, long);
  const isUncut = () => bytes() === most;

  const board = controls.box(place, "cutting desk budget"),
    left = controls.box(board),
    side = controls.titled(board, "Right answers by job");
  const meter = element("p", { class: "meter" }, element("i", {}, element("b")), element("small"));
  left.append(meter);
  const showControls = budgetControls(left, { settings, move, heads: () => state.heads });
  const bars = jobBars(side, jobs);
  const best = bestResult(left, move);

  const draw = () => {
    showControls(state);
    meter.querySelector("b").style.width = (100 * bytes()) / most + "%";
    const less = fill("{times:.2g} times smaller than uncut", { times: most / bytes() });
    stage.say(
      meter.lastChild,
      isUncut() ? "as much as the uncut model keeps" : bytes() ? less : "nothing is kept",
    );
    bars.tally.classList.toggle("counting", !found);
    if (found) bars.show(found);
  };
  const judge = () => {
    if (isUncut() || found.answered < goal) return;
    const result = { bytes: bytes(), answered: found.answered, state };
    if (!best.keep(result)) return;
    const detail = { words: resultInWords(result), ...result };
    figure.dispatchEvent(new CustomEvent("best", { bubbles: true, detail }));
  };

  return {
    clean: (wished) => ({
      ...Object.fromEntries(
        Object.entries(settings).map(([name, all]) => [name, check.one(name, wished[name], all)]),
      ),
      heads: check.list("heads", wished.heads, 8, 0, 1).map((on) => check.whole("heads", on, 0, 1)),
    }),
    draw: (wished) => {
      state = wished;
      const key = JSON.stringify(state);
      found = counted.get(key) || null;
      last = found || last;
      figure.instrument.recall ||= (kept) =>
        kept?.bytes >= 0 && kept.answered <= 1 && kept.state && best.keep(kept);
      draw();
      running = null;
      if (found) return judge();
      stage.say(figure.querySelector("data[data-name=answered]"), "…");
      const isStale = () => state !== wished;
      running = countAnswers(model, data, state, isStale).then((shares) => {
        // Another setting is being counted: its answers are waited for
        if (!shares) return running;
        counted.set(key, (found = last = shares));
        draw();
        judge();
      });
      return running;
    },
    numbers: () => ({ bytes: bytes(), ...last }),
    table: () => ({}),
    remarks: () => {
      if (!found) return [];
      if (isUncut()) return ["start"];
      return [found.answered < goal ? "short" : bytes() <= best.least() ? "best" : "enough"];
    },
    values: () => ({ answered: last ? last.answered : 1 }),
  };
};
