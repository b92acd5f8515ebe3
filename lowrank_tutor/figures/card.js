// What fits on graphics cards: weights, then chats, then what is left. Its sentences are in card.py; the arithmetic is
// that of caches/serving.py, step by step and under the same names, and parts/configs.js reads configurations.
const card = ({ place, data, move, tell }) => {
  const { models, gpus, cards: most, step, tokens, types } = data,
    GIB = 2 ** 30;
  const WEIGHT_BITS = {
      16: "16 bits",
      8: "8 bits (FP8)",
      4.5: "4.5 bits (NVFP4, Q4_0)",
      4.25: "4.25 bits (MXFP4)",
    },
    CACHE_BITS = { 16: "16 bits", 8: "8 bits", 4: "4 bits" },
    SPLITS = { tensor: "tensor", data: "data", tokens: "by tokens" };
  const PASTED = "pasted",
    OWN = "own",
    LIMIT = 100_000; // characters of a configuration
  const sum = (list) => list.reduce((all, one) => all + one, 0);
  const two = (value) =>
    value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const none = (value) => format(value, ",");

  const stored = (part, n, count, split) => {
    if (part.state)
      return (
        ((part.layers * part.state) / part.heads) *
        (split === "data" ? part.heads : Math.ceil(part.heads / count))
      );
    let long = Math.floor(Math.min(n, part.window || n) / (part.every || 1));
    if (split === "tokens") long = Math.ceil(long / count);
    const groups = split === "tensor" ? Math.ceil(part.groups / count) : part.groups;
    const width = part.groups
      ? groups * (part.width + (part.value || part.width))
      : part.latent
        ? part.latent + part.rotary
        : part.index;
    return part.layers * long * width;
  };
  const moved = (part, n, count, split) =>
    part.state
      ? 2 * stored(part, n, count, split)
      : stored(part, Math.min(n, part.chosen ? part.chosen * (part.every || 1) : n), count, split);
  const operations = (part, n) => {
    const all = moved(part, n, 1, "tensor");
    if (part.state) return 2 * all;
    if (part.groups) return ((2 * part.heads) / part.groups) * all;
    return (
      2 * part.heads * (1 + (part.latent ? part.latent / (part.latent + part.rotary) : 0)) * all
    );
  };
  const gpuOf = ({ gpu, own }) =>
    gpu === OWN
      ? { memory: 1e9 * own[0], bandwidth: 1e9 * own[1], flops: 1e12 * own[2], fp8: 0, fp4: 0 }
      : gpus[gpu];
  const peak = ({ flops, fp8, fp4 }, bits) =>
    bits > 8 || !fp8 ? flops : bits < 8 && fp4 ? fp4 : fp8;
  const serve = ({ parts, experts, used }, total, state) => {
    const { cards, split, n, weight_bits: weightBits, cache_bits: cacheBits, other } = state;
    const gpu = gpuOf(state),
      share = state.share / 100;
    const shared = total - experts,
      onCard = experts / cards + (split === "data" ? shared : shared / cards);
    const weights = (onCard * 1e9 * weightBits) / 8;
    const bits = parts.map((part) => (part.state ? 16 : cacheBits));
    const bytes = (numbers) => sum(numbers.map((count, i) => count * bits[i])) / 8;
    const kept = parts.map((part) => stored(part, n, cards, split)),
      cache = bytes(kept);
    const room = share * gpu.memory - weights - other * GIB;
    const fit = Math.max(0, Math.floor(room / cache)),
      chats = fit * (split === "data" ? cards : 1);
    let speed = "speed: none, for no chat fits",
      seconds = Infinity;
    if (chats) {
      const needed = 1 - (1 - used) ** chats;
      const weightBytes = ((onCard - (experts / cards) * (1 - needed)) * 1e9 * weightBits) / 8;
      const cacheBytes = fit * bytes(parts.map((part) => moved(part, n, cards, split)));
      const multiplied = 2e9 * (shared + experts * used),
        attended = parts.map((part) => operations(part, n));
      const work = (chats * (multiplied + sum(attended))) / cards;
      const times = attended.map((each, i) => each / peak(gpu, bits[i]));
      const moving = (weightBytes + cacheBytes) / gpu.bandwidth,
        computing = (chats * (multiplied / peak(gpu, weightBits) + sum(times))) / cards;
      seconds = Math.max(moving, computing);
      const why =
        moving >= computing
          ? "reads " +
            two(weightBytes / GIB) +
            " GiB of weights and " +
            two(cacheBytes / GIB) +
            " GiB of caches at " +
            none(Math.round(gpu.bandwidth / 1e9)) +
            " GB/s"
          : "does " + two(work / 1e12) + " trillion operations in " + two(1e3 * computing) + " ms";
      speed =
        "speed: for one token of each chat a card " +
        why +
        ": without speculative decoding at most " +
        none(Math.round(chats / seconds)) +
        " tokens a second in all";
    }
    const states = cacheBits < Math.max(...bits) ? " (states 16)" : "";
    return {
      weights: weights / GIB,
      cache: cache / GIB,
      chats,
      speed: chats / seconds,
      fit,
      memory: gpu.memory / GIB,
      share,
      lines: [
        "weights: " +
          two(onCard) +
          " of " +
          two(total) +
          " billion a card, " +
          weightBits +
          " bits each: " +
          two(weights / GIB) +
          " GiB",
        "cache: " +
          none(sum(kept)) +
          " numbers a card and chat, " +
          cacheBits +
          " bits each" +
          states +
          ": " +
          two(cache / GIB) +
          " GiB",
        "chats: " +
          share +
          " of " +
          two(gpu.memory / GIB) +
          " GiB, less the weights and " +
          other +
          " GiB of other memory, leave " +
          two(room / GIB) +
          " GiB: " +
          none(fit) +
          " on a card, " +
          none(chats) +
          " in all",
        speed,
      ],
    };
  };

  // The bar of one card: weights, chats, and the border of what the server may use.
  const WIDE = matchMedia("(min-width: 601px)").matches ? 640 : 320,
    HIGH = 54,
    TOP = 22,
    SLICES = 40;
  const title = element("p", {});
  const svg = stage.make("svg", { viewBox: [0, 0, WIDE, HIGH + TOP + 18].join(" "), role: "img" });
  place.append(title, svg);
  const rect = (look) => stage.make("rect", { y: TOP, height: HIGH, class: look }, svg);
  const drawn = {
    weights: rect("gray area solid"),
    other: rect("gray area"),
    slices: Array.from({ length: SLICES }, () => rect("teal area solid")),
    over: rect("orange area solid"),
    edge: rect("line ink"),
  };
  const word = (y) => stage.make("text", { y }, svg),
    words = [word(14), word(14), word(HIGH + TOP + 14)];
  const border = stage.make("path", { class: "line dashed gray" }, svg);
  const span = (box, from, to, show = true) =>
    stage.write(box, {
      x: from.toFixed(2),
      width: Math.max(0, to - from).toFixed(2),
      visibility: show ? "visible" : "hidden",
    });
  const lines = controls.box(place, "arithmetic"),
    spoken = Array.from({ length: 4 }, () => lines.appendChild(element("p", {})));

  const select = (parent, label, options, input) => {
    const box = element("select", { autocomplete: "off", "aria-label": label }),
      name = element("label", { class: "typed" }, label);
    Object.entries(options).forEach(([value, text]) =>
      box.append(element("option", { value }, text)),
    );
    box.addEventListener("change", () => input(box.value));
    name.append(box);
    parent.append(name);
    return { show: (value) => (box.value = value) };
  };
  const named = (list, more) => ({ ...Object.fromEntries(list.map((one) => [one, one])), ...more });
  const ask = (parent, words) => {
    const input = element("input", { inputmode: "decimal", autocomplete: "off" });
    parent.append(element("label", { class: "typed" }, words, input));
    return { input, number: () => Number(input.value.trim() || "none") };
  };
  const fold = (words) => {
    const summary = element("summary", {}, words);
    return place.appendChild(element("details", { class: "more" }, summary));
  };
  const line = (parent) => parent.appendChild(element("div", { class: "control" }));
  const trying = (make) => () => {
    try {
      move(make());
    } catch (error) {
      tell(error.message);
    }
  };
  const top = controls.box(place, "selects"),
    shown = {
      model: select(
        top,
        "model",
        named(Object.keys(models), { [PASTED]: "a pasted config.json" }),
        (model) =>
          model === PASTED && !state.pasted
            ? ((paste.open = true), shown.model.show(state.model), area.focus())
            : move({ model }),
      ),
      gpu: select(
        top,
        "card",
        {
          ...Object.fromEntries(
            Object.entries(gpus).map(([name, { memory }]) => [
              name,
              name + ", " + memory / 1e9 + " GB",
            ]),
          ),
          [OWN]: "a card of your own",
        },
        (gpu) => {
          move({ gpu });
          ours.open ||= gpu === OWN;
        },
      ),
      weight_bits: select(top, "weights", WEIGHT_BITS, (text) =>
        move({ weight_bits: Number(text) }),
      ),
      cache_bits: select(top, "cache", CACHE_BITS, (text) => move({ cache_bits: Number(text) })),
    };
  const split = controls.choice(place, {
    label: "parallel",
    options: SPLITS,
    input: (how) => move({ split: how }),
  });
  const sliders = controls.box(place, "sliders"),
    range = (label, min, max, by, name) =>
      controls.range(sliders, {
        label,
        min,
        max,
        step: by,
        input: (value) => move({ [name]: value }),
      });
  const ranges = {
    cards: range("cards", 1, most, 1, "cards"),
    n: range("tokens a chat", step, tokens, step, "n"),
    share: range("share of a card", 50, 100, 1, "share"),
    other: range("other memory, GiB a card", 0, 40, 0.5, "other"),
  };
  const paste = fold("Paste a config.json, or enter layers yourself");
  const area = element("textarea", {
    rows: 6,
    spellcheck: "false",
    "aria-label": "config.json of a model",
  });
  paste.append(area);
  const bottom = line(paste),
    size = ask(bottom, "weights, in billions");
  const use = (config) => ({
    model: PASTED,
    pasted: readConfig(config, types).short,
    billions: size.number(),
  });
  const parse = (text) => {
    if (text.length > LIMIT)
      check.fail("config", "at most " + none(LIMIT) + " characters", text.length);
    try {
      return JSON.parse(text);
    } catch (_) {
      return check.fail("config", "JSON, as in a file config.json", text.slice(0, 40));
    }
  };
  controls.button(
    bottom,
    "Read it",
    trying(() => use(parse(area.value))),
  );
  const hand = line(paste),
    asked = ["layers", "groups", "width"].map((name) => [name, ask(hand, name)]);
  controls.button(
    hand,
    "Enter them",
    trying(() => {
      const numbers = asked.map(([name, field]) => [name, field.number()]);
      return use({ model_type: "by hand", ...Object.fromEntries(numbers) });
    }),
  );
  const ours = fold("A card of your own"),
    about = line(ours),
    own = ["memory, GB", "GB a second", "trillion ops a second"].map((words) => ask(about, words));
  controls.button(
    about,
    "Use this card",
    trying(() => ({ gpu: OWN, own: own.map((field) => field.number()) })),
  );

  let state = null,
    served = null;
  const meant = ({ model, pasted, billions }) =>
    model === PASTED ? { ...readConfig(JSON.parse(pasted), types), billions } : models[model];
  return {
    clean: (wished) => {
      const { model, pasted, billions, gpu, own, cards, split, n, share, other } = wished;
      check.one("model", model, [...Object.keys(models), PASTED]);
      if (typeof pasted !== "string" || pasted.length > LIMIT)
        check.fail("pasted", "a text", typeof pasted);
      if (model === PASTED) {
        if (!pasted) check.fail("pasted", "a config.json", pasted);
        check.number("billions", billions, Math.max(meant(wished).experts, 0.001), 1e5);
      }
      if (check.whole("n", n, step, tokens) % step)
        check.fail("n", "a multiple of " + none(step), n);
      return {
        model,
        pasted,
        billions,
        gpu: check.one("gpu", gpu, [...Object.keys(gpus), OWN]),
        own: check.list("own", own, 3, 0.001, 1e6),
        cards: check.whole("cards", cards, 1, most),
        split: check.one("split", split, Object.keys(SPLITS)),
        n,
        weight_bits: check.one("weight_bits", wished.weight_bits, [16, 8, 4.5, 4.25]),
        cache_bits: check.one("cache_bits", wished.cache_bits, [16, 8, 4]),
        share: check.whole("share", share, 50, 100),
        other: check.number("other", other, 0, 40),
      };
    },
    draw: (wished) => {
      const model = meant((state = wished));
      served = serve(model, model.billions, state);
      const { weights, cache, fit, memory, share } = served,
        room = share * memory;
      const scale = (WIDE - 4) / Math.max(memory, weights),
        at = (gib) => 2 + gib * scale,
        first = weights + state.other;
      title.textContent = "Memory of " + (state.cards > 1 ? "each card" : "the card") + ", in GiB";
      span(drawn.weights, at(0), at(Math.min(weights, room)));
      span(drawn.other, at(weights), at(Math.min(first, room)), first > weights);
      span(drawn.over, at(room), at(weights), weights > room);
      drawn.slices.forEach((slice, i) => {
        // the last one stands for all further chats
        const last = i === SLICES - 1 ? fit : i + 1,
          from = at(first + i * cache),
          to = at(first + last * cache);
        span(slice, from, to - (to - from > 3 ? 1 : 0), i < fit);
      });
      span(drawn.edge, at(0), at(memory));
      stage.write(border, { d: "M" + at(room).toFixed(2) + " " + TOP + "V" + (TOP + HIGH + 5) });
      stage.write(words[0], { x: 2, class: "word " + (weights > room ? "orange" : "gray") });
      stage.say(words[0], "weights " + two(weights));
      stage.write(words[1], { x: WIDE - 2, "text-anchor": "end", class: "word teal" });
      stage.say(
        words[1],
        fit ? none(fit) + " × " + two(cache) + " of cache" : "a chat needs " + two(cache),
      );
      stage.write(words[2], {
        x: at(room).toFixed(2),
        "text-anchor": at(room) < WIDE / 2 ? "start" : "end",
      });
      stage.say(words[2], "the server's share " + two(room));
      stage.write(svg, { "aria-label": served.lines[2] });
      served.lines.forEach((line, i) => stage.say(spoken[i], line));
      Object.entries(shown).forEach(([name, box]) => box.show(String(state[name])));
      split.show(state.split);
      own.forEach((field, i) => (field.input.value ||= state.own[i]));
      Object.entries(ranges).forEach(([name, slider]) =>
        slider.show(state[name], none(state[name]) + (name === "share" ? "%" : "")),
      );
    },
    numbers: () => ({
      weights: served.weights,
      cache: served.cache,
      chats: served.chats,
      speed: Math.round(served.speed),
    }),
    table: () => ({ lines: served.lines, parts: meant(state).parts }),
    values: () => ({
      name: state.model === PASTED ? "The pasted model" : state.model,
      plural: state.cards > 1 ? "s" : "",
      each: Math.floor(served.speed / Math.max(1, served.chats)),
    }),
    remarks: () => [
      served.weights > served.share * served.memory ? "heavy" : served.chats ? "fits" : "full",
    ],
  };
};
