// The least memory with which a trained model still answers 95%. Python's budget.py has data and words.
const budget = ({ figure, place, data, move }) => {
  const { settings, goal, long, jobs } = data;
  const model = storytellerModel(storyteller_weights),
    WIDTH = 16;
  const LABELS = {
    first: "window of the first layer, words",
    second: "window of the second layer, words",
    rank: "numbers in a key (rank of the scores)",
    bits: "bits for each number",
    latents: "latent numbers per word",
  };
  const told = data.stories.map(([ids, asked]) => ({ ids: ids.split(" ").map(Number), asked }));
  let state = null,
    asked = 0,
    found = null,
    last = null,
    best = null,
    uncut = true,
    running = null;
  const counted = new Map(); // shares by setting

  const bytes = () =>
    [state.first, state.second].reduce((sum, window, layer) => {
      const kept = state.heads.slice(4 * layer, 4 * layer + 4).reduce((a, b) => a + b);
      const steps = state.bits === 16 ? 0 : 2 * 2 * 16;
      const own = kept * ((state.rank + WIDTH) * state.bits + steps);
      return sum + ((window || long) * (state.latents ? 16 * state.latents * (kept > 0) : own)) / 8;
    }, 0);
  const most = (2 * 4 * 2 * WIDTH * 16 * long) / 8;

  // The answers, a story at a time, so that the page can draw in between
  const cuts = () => {
    const { first, second, bits, latents, heads } = state,
      dropped = heads.flatMap((on, h) => (on ? [] : [h]));
    return [
      ...(bits < 16 && !latents ? [{ cut: "bits", k: bits }] : []),
      ...[first, second].flatMap((k, layer) =>
        k ? [{ cut: "window", k, heads: [0, 1, 2, 3].map((h) => h + 4 * layer) }] : [],
      ),
      ...(dropped.length ? [{ cut: "none", heads: dropped }] : []),
    ];
  };
  const weights = () =>
    state.latents
      ? model.cutLatents(state.latents)
      : state.rank < WIDTH
        ? model.cutScores(state.rank)
        : model.trained;
  const count = async () => {
    const mine = ++asked,
      now = cuts(),
      w = weights(),
      right = jobs.map(() => [0, 0]);
    let begun = performance.now();
    for (const story of told) {
      if (performance.now() - begun > 10) {
        await new Promise((go) => setTimeout(go));
        if (mine !== asked) return null;
        begun = performance.now();
      }
      const { logits } = model.run(story.ids, now, w, true),
        size = logits.length / story.ids.length;
      story.asked.forEach(([at, job, ...answers]) => {
        const row = logits.subarray((at - 1) * size, at * size);
        right[job][0] += answers.includes(row.indexOf(Math.max(...row)));
        right[job][1]++;
      });
    }
    const sum = (i) => right.reduce((all, of) => all + of[i], 0);
    const shares = jobs.map((job, i) => [
      "job_" + job.replaceAll(" ", "_"),
      right[i][0] / right[i][1],
    ]);
    return { answered: sum(0) / sum(1), ...Object.fromEntries(shares) };
  };

  // The meter, and bars of the jobs
  const board = controls.box(place, "cutting desk budget"),
    left = controls.box(board),
    side = controls.titled(board, "Right answers by job");
  const meter = left.appendChild(
    element("p", { class: "meter" }, element("i", {}, element("b")), element("small")),
  );
  const sliders = Object.fromEntries(
    Object.entries(settings).map(([name, all]) => {
      const input = (i) => move({ [name]: all[i] });
      return [
        name,
        controls.range(controls.box(left), {
          label: LABELS[name],
          min: 0,
          max: all.length - 1,
          step: 1,
          input,
        }),
      ];
    }),
  );
  const heads = controls.box(
    controls.titled(left, "Heads that are kept: tap one to drop it"),
    "heads",
  );
  const switches = Array.from({ length: 8 }, (_, h) => {
    const label = fill("layer {layer}, head {head}", {
      layer: 1 + Math.floor(h / 4),
      head: 1 + (h % 4),
    });
    const turn = () => move({ heads: state.heads.map((on, i) => (i === h ? 1 - on : on)) });
    const button = controls.button(heads, String(1 + (h % 4)), turn);
    stage.write(button, { "aria-label": label, title: label });
    return button;
  });
  const tally = controls.box(side, "tally");
  jobs.forEach((job) =>
    tally.append(
      element("p", {}, element("span", {}, job), element("i", {}, element("b")), element("small")),
    ),
  );
  const record = left.appendChild(
    element("p", { class: "record", hidden: "" }, element("span"), " "),
  );
  controls.button(record, "Show it", () => move(best.state));

  const draw = () => {
    Object.entries(settings).forEach(([name, all]) => {
      const value = state[name],
        idle = state.latents > 0 && ["rank", "bits"].includes(name);
      const words = value ? String(value) : name === "latents" ? "none" : "all";
      const text = idle ? "not with latents" : words;
      sliders[name].show(all.indexOf(value), text);
      sliders[name].input.disabled = idle;
    });
    switches.forEach((button, h) => button.setAttribute("aria-pressed", state.heads[h] === 1));
    meter.querySelector("b").style.width = (100 * bytes()) / most + "%";
    const less = fill("{times} times smaller than uncut", { times: format(most / bytes(), ".2g") });
    stage.say(
      meter.lastChild,
      uncut ? "as much as the uncut model keeps" : bytes() ? less : "nothing is kept",
    );
    tally.classList.toggle("counting", !found);
    if (!found) return;
    jobs.forEach((job, i) => {
      const [, bar, share] = tally.children[i].children,
        value = found["job_" + job.replaceAll(" ", "_")];
      bar.firstChild.style.width = 100 * value + "%";
      stage.say(share, Math.round(100 * value) + "%");
    });
  };
  const inWords = (one) =>
    fill("Your best so far: {bytes} bytes, with {answered} right.", {
      bytes: format(one.bytes, ","),
      answered: format(one.answered, ".1%"),
    });
  const showBest = () => {
    record.hidden = !best;
    if (best) stage.say(record.firstChild, inWords(best));
  };
  const judge = () => {
    if (uncut || found.answered < goal || (best && bytes() >= best.bytes)) return;
    best = { bytes: bytes(), answered: found.answered, state };
    figure.dispatchEvent(
      new CustomEvent("best", { bubbles: true, detail: { words: inWords(best), ...best } }),
    );
    showBest();
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
      uncut = bytes() === most;
      found = counted.get(key) || null;
      last = found || last;
      asked++;
      figure.instrument.recall ||= (kept) => {
        const fits = kept?.bytes >= 0 && kept.answered <= 1 && kept.state;
        if (fits && (!best || kept.bytes < best.bytes)) best = kept;
        showBest();
      };
      draw();
      running = null;
      if (found) return judge();
      stage.say(figure.querySelector("data[data-name=answered]"), "…");
      running = count().then((shares) => {
        if (!shares) return running; // another setting is being counted: its answers are waited for
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
      if (uncut) return ["start"];
      return [found.answered < goal ? "short" : best && bytes() <= best.bytes ? "best" : "enough"];
    },
    values: () => ({ bytes: bytes(), answered: last ? last.answered : 1 }),
  };
};
