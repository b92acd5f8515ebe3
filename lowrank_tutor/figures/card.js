// What fits on graphics cards: weights, then chats, then what is left. Its sentences are in card.py; parts/serving.js
// has the arithmetic, and parts/configs.js reads configurations.
const PASTED = "pasted";
const OWN = "own";
// The most characters of a configuration
const LIMIT = 100_000;
const WEIGHT_BITS = [
  [8, "8 bits (FP8)"],
  [16, "16 bits"],
  [4.5, "4.5 bits (NVFP4, Q4_0)"],
  [4.25, "4.25 bits (MXFP4)"],
];
const CACHE_BITS = [4, 8, 16].map((bits) => [bits, bits + " bits"]);
const SPLITS = { tensor: "tensor", data: "data", tokens: "by tokens" };

const modelOf = ({ models, types }, { model, pasted, billions }) =>
  model === PASTED ? { ...readConfig(JSON.parse(pasted), types), billions } : models[model];
const gpuOf = ({ gpus }, { gpu, own }) =>
  gpu === OWN
    ? { memory: 1e9 * own[0], bandwidth: 1e9 * own[1], flops: 1e12 * own[2], fp8: 0, fp4: 0 }
    : gpus[gpu];
const cleanCard = (data, wished) => {
  const { models, gpus, cards: most, step, tokens } = data;
  const { model, pasted, n } = wished;
  check.one("model", model, [...Object.keys(models), PASTED]);
  if (typeof pasted !== "string" || pasted.length > LIMIT)
    check.fail("pasted", "a text", typeof pasted);
  if (model === PASTED) {
    if (!pasted) check.fail("pasted", "a config.json", pasted);
    const least = Math.max(modelOf(data, wished).experts, 0.001);
    check.number("billions", wished.billions, least, 1e5);
  }
  if (check.whole("n", n, step, tokens) % step)
    check.fail("n", "a multiple of " + grouped(step), n);
  check.one("gpu", wished.gpu, [...Object.keys(gpus), OWN]);
  check.list("own", wished.own, 3, 0.001, 1e6);
  check.whole("cards", wished.cards, 1, most);
  check.one("split", wished.split, Object.keys(SPLITS));
  check.one("weight_bits", wished.weight_bits, [16, 8, 4.5, 4.25]);
  check.one("cache_bits", wished.cache_bits, [16, 8, 4]);
  check.whole("share", wished.share, 50, 100);
  check.number("other", wished.other, 0, 40);
  return wished;
};

/** The bar of one card: weights, chats, and the border of what the server may use; and the arithmetic below it. */
const cardBar = (place) => {
  const WIDE = matchMedia("(min-width: 601px)").matches ? 640 : 320,
    HIGH = 54,
    TOP = 22,
    SLICES = 40;
  const title = element("p", {});
  const svg = stage.make("svg", { viewBox: [0, 0, WIDE, HIGH + TOP + 18].join(" "), role: "img" });
  place.append(title, svg);
  const rect = (look) => stage.make("rect", { y: TOP, height: HIGH, class: look }, svg);
  const weightsBox = rect("gray area solid"),
    otherBox = rect("gray area"),
    slices = Array.from({ length: SLICES }, () => rect("teal area solid")),
    over = rect("orange area solid"),
    edge = rect("line ink");
  const word = (y, look) => stage.make("text", { y, ...look }, svg);
  const weightsWord = word(14, { x: 2 }),
    chatWord = word(14, { x: WIDE - 2, "text-anchor": "end", class: "word teal" }),
    shareWord = word(HIGH + TOP + 14);
  const border = stage.make("path", { class: "line dashed gray" }, svg);
  const spoken = controls.box(place, "arithmetic");
  const span = (box, from, to, show = true) =>
    stage.write(box, {
      x: from.toFixed(2),
      width: Math.max(0, to - from).toFixed(2),
      visibility: show ? "visible" : "hidden",
    });

  return ({ weights, cache, fit, memory, usable, lines }, { cards, other }) => {
    const scale = (WIDE - 4) / Math.max(memory, weights),
      at = (gib) => 2 + gib * scale,
      first = weights + other;
    stage.say(title, "Memory of " + (cards > 1 ? "each card" : "the card") + ", in GiB");
    span(weightsBox, at(0), at(Math.min(weights, usable)));
    span(otherBox, at(weights), at(Math.min(first, usable)), first > weights);
    span(over, at(usable), at(weights), weights > usable);
    slices.forEach((slice, i) => {
      // the last one stands for all further chats
      const last = i === SLICES - 1 ? fit : i + 1,
        from = at(first + i * cache),
        to = at(first + last * cache);
      span(slice, from, to - (to - from > 3 ? 1 : 0), i < fit);
    });
    span(edge, at(0), at(memory));
    const x = at(usable).toFixed(2);
    stage.write(border, { d: "M" + x + " " + TOP + "V" + (TOP + HIGH + 5) });
    stage.write(weightsWord, { class: "word " + (weights > usable ? "orange" : "gray") });
    stage.say(weightsWord, "weights " + two(weights));
    stage.say(
      chatWord,
      fit ? grouped(fit) + " × " + two(cache) + " of cache" : "a chat needs " + two(cache),
    );
    stage.write(shareWord, { x, "text-anchor": at(usable) < WIDE / 2 ? "start" : "end" });
    stage.say(shareWord, "the server's share " + two(usable));
    stage.write(svg, { "aria-label": lines[2] });
    lines.forEach((line, i) =>
      stage.say(spoken.children[i] || spoken.appendChild(element("p", {})), line),
    );
  };
};

// Native controls that only this figure has
const select = (place, label, options, input) => {
  const box = element("select", { autocomplete: "off", "aria-label": label });
  options.forEach(([value, text]) => box.append(element("option", { value }, text)));
  box.addEventListener("change", () => input(box.value));
  place.append(element("label", { class: "typed" }, label, box));
  return box;
};
const ask = (place, words) => {
  const input = element("input", { inputmode: "decimal", autocomplete: "off" });
  place.append(element("label", { class: "typed" }, words, input));
  return { input, number: () => Number(input.value.trim() || "none") };
};
const fold = (place, words) =>
  place.appendChild(element("details", { class: "more" }, element("summary", {}, words)));
/** A button that moves to what `make` returns, or tells what is wrong. */
const attempt = (place, words, { move, tell }, make) =>
  controls.button(place, words, () => {
    try {
      move(make());
    } catch (error) {
      tell(error.message);
    }
  });

const parseConfig = (text) => {
  if (text.length > LIMIT)
    check.fail("config", "at most " + grouped(LIMIT) + " characters", text.length);
  try {
    return JSON.parse(text);
  } catch (_) {
    return check.fail("config", "JSON, as in a file config.json", text.slice(0, 40));
  }
};
/** Where a configuration is pasted, or layers are entered; returns what opens it. */
const pasting = (tools) => {
  const paste = fold(tools.place, "Paste a config.json, or enter layers yourself");
  const area = element("textarea", {
    rows: 6,
    spellcheck: "false",
    "aria-label": "config.json of a model",
  });
  paste.append(area);
  const bottom = controls.box(paste, "control"),
    size = ask(bottom, "weights, in billions");
  const use = (config) => ({
    model: PASTED,
    pasted: readConfig(config, tools.data.types).short,
    billions: size.number(),
  });
  attempt(bottom, "Read it", tools, () => use(parseConfig(area.value)));
  const hand = controls.box(paste, "control"),
    asked = ["layers", "groups", "width"].map((name) => [name, ask(hand, name)]);
  attempt(hand, "Enter them", tools, () => {
    const numbers = asked.map(([name, field]) => [name, field.number()]);
    return use({ model_type: "by hand", ...Object.fromEntries(numbers) });
  });
  return () => {
    paste.open = true;
    area.focus();
  };
};
/** Where a card is entered; `show` fills what is empty. */
const owning = (tools) => {
  const box = fold(tools.place, "A card of your own"),
    about = controls.box(box, "control");
  const fields = ["memory, GB", "GB a second", "trillion ops a second"].map((words) =>
    ask(about, words),
  );
  attempt(about, "Use this card", tools, () => ({
    gpu: OWN,
    own: fields.map((field) => field.number()),
  }));
  return { box, show: (own) => fields.forEach(({ input }, i) => (input.value ||= own[i])) };
};

const card = (tools) => {
  const { place, data, move } = tools;
  const { models, gpus, cards, step, tokens } = data;
  let state = null,
    served = null;
  const drawBar = cardBar(place);

  const choices = controls.box(place, "selects");
  const toNumber = (name) => (text) => move({ [name]: Number(text) });
  const modelNames = Object.keys(models).map((name) => [name, name]);
  modelNames.push([PASTED, "a pasted config.json"]);
  const gpuNames = Object.keys(gpus).map((name) => [
    name,
    name + ", " + gpus[name].memory / 1e9 + " GB",
  ]);
  gpuNames.push([OWN, "a card of your own"]);
  const chooseModel = (model) => {
    if (model !== PASTED || state.pasted) return move({ model });
    selects.model.value = state.model;
    return openPaste();
  };
  const chooseGpu = (gpu) => {
    move({ gpu });
    own.box.open ||= gpu === OWN;
  };
  const selects = {
    model: select(choices, "model", modelNames, chooseModel),
    gpu: select(choices, "card", gpuNames, chooseGpu),
    weight_bits: select(choices, "weights", WEIGHT_BITS, toNumber("weight_bits")),
    cache_bits: select(choices, "cache", CACHE_BITS, toNumber("cache_bits")),
  };
  const split = controls.choice(place, {
    label: "parallel",
    options: SPLITS,
    input: (how) => move({ split: how }),
  });
  const sliders = controls.box(place, "sliders");
  const range = (name, label, min, max, by) => [
    name,
    controls.range(sliders, {
      label,
      min,
      max,
      step: by,
      input: (value) => move({ [name]: value }),
    }),
  ];
  const ranges = [
    range("cards", "cards", 1, cards, 1),
    range("n", "tokens a chat", step, tokens, step),
    range("share", "share of a card", 50, 100, 1),
    range("other", "other memory, GiB a card", 0, 40, 0.5),
  ];
  const openPaste = pasting(tools),
    own = owning(tools);

  return {
    clean: (wished) => cleanCard(data, wished),
    draw: (wished) => {
      state = wished;
      served = serve(modelOf(data, state), gpuOf(data, state), state);
      drawBar(served, state);
      Object.entries(selects).forEach(([name, box]) => (box.value = state[name]));
      split.show(state.split);
      own.show(state.own);
      ranges.forEach(([name, slider]) =>
        slider.show(state[name], grouped(state[name]) + (name === "share" ? "%" : "")),
      );
    },
    numbers: () => {
      const { weights, cache, chats, speed } = served;
      return { weights, cache, chats, speed: Math.round(speed) };
    },
    table: () => ({ lines: served.lines, parts: modelOf(data, state).parts }),
    values: () => ({
      name: state.model === PASTED ? "The pasted model" : state.model,
      plural: state.cards > 1 ? "s" : "",
      each: Math.floor(served.speed / Math.max(1, served.chats)),
    }),
    remarks: () => [served.weights > served.usable ? "heavy" : served.chats ? "fits" : "full"],
  };
};
