// What fits on graphics cards: weights, then chats, then what is left. Its sentences are in card.py; the arithmetic is
// that of caches/configs.py and caches/serving.py, step by step and under the same names.
const card = ({ place, data, move, tell }) => {
  const { models, gpus, cards: most, step, tokens, kinds, matters, harmless } = data,
    GIB = 2 ** 30;
  const WEIGHT_BITS = { 16: 16, 8: 8.5, 4: 4.5 },
    SPLITS = { tensor: "tensor", data: "data", tokens: "by tokens" };
  const PASTED = "pasted",
    LIMIT = 100_000; // characters of a configuration
  const sum = (list) => list.reduce((all, one) => all + one, 0);
  const two = (value) =>
    value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const none = (value) => format(value, ",");
  const lacks = (words) => {
    throw new Error(words);
  };
  const isDict = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

  /** What each layer keeps, the weights in experts, and names of fields that were not understood. */
  const readConfig = (config) => {
    if (!isDict(config)) check.fail("config", "a dict of names and values", config);
    const fields = { ...config },
      asked = new Set([
        "use_sliding_window",
        "use_cache",
        "text_config",
        "sparse_attention_config",
        "linear_attn_config",
        "hybrid_override_pattern",
        "model_type",
      ]);
    ["text_config", "llm_config", "sparse_attention_config"].forEach(
      (name) => isDict(fields[name]) && Object.assign(fields, fields[name]),
    );
    const linear = fields.linear_attn_config;
    if (isDict(linear))
      Object.assign(fields, {
        linear_num_heads: linear.num_heads,
        linear_head_dim: linear.head_dim,
        full_attn_layers: linear.full_attn_layers,
      });
    if (fields.multi_query === true && fields.new_decoder_architecture !== true)
      fields.num_key_value_heads = 1;
    const first = (names) => {
      names.forEach((name) => asked.add(name));
      return names.find(
        (name) =>
          Object.hasOwn(fields, name) && fields[name] !== null && fields[name] !== undefined,
      );
    };
    const of = (names, { least = 1, most = 2 ** 24, needed = true } = {}) => {
      const found = first(names.split(" "));
      if (!found)
        return needed ? lacks("config must have " + names.split(" ")[0] + ", got none") : 0;
      if (!Number.isInteger(fields[found])) check.fail(found, "a whole number", fields[found]);
      return fields[found] >= least && fields[found] <= most
        ? fields[found]
        : check.fail(found, "between " + least + " and " + most, fields[found]);
    };
    const maybe = (names, rule) => of(names, { ...rule, needed: false });
    const rows = (names) => {
      const found = first(names.split(" "));
      return !found
        ? []
        : Array.isArray(fields[found])
          ? fields[found]
          : check.fail(found, "a list", fields[found]);
    };
    const layers = kindsOf(fields, of, maybe, rows),
      parts = new Map();
    const modes = rows("indexer_types"),
      sources = rows("kv_source_layers");
    layers.forEach((kind, i) =>
      partsOf(kind, of, maybe, !modes.length || modes[i] === "full").forEach((part) => {
        if (sources.length && sources[i] !== i && !part.index) return;
        const key = JSON.stringify(part);
        parts.set(key, { ...part, layers: (parts.get(key)?.layers || 0) + 1 });
      }),
    );
    if (!parts.size) lacks("config must have layers that keep something, got none");
    const [experts, used] = expertsOf(of, maybe, rows, layers);
    const unknown = Object.keys(fields)
      .filter(
        (name) =>
          !asked.has(name) &&
          RegExp(matters).test(name) &&
          !RegExp(harmless).test(name) &&
          ![null, false, 0].includes(fields[name]),
      )
      .sort();
    const kept = [...asked, ...unknown].filter(
      (name) => Object.hasOwn(fields, name) && !isDict(fields[name]),
    );
    const short = JSON.stringify(Object.fromEntries(kept.map((name) => [name, fields[name]])));
    return { parts: [...parts.values()], experts, used, unknown, short };
  };
  const kindsOf = (fields, of, maybe, rows) => {
    const n = of("num_hidden_layers", { most: 10_000 }),
      interval = maybe("full_attention_interval");
    const chosen = maybe("index_topk"),
      newest = maybe("sliding_window"),
      full = rows("full_attn_layers");
    const { every, indexed, state } = kinds,
      all = (kind) => Array(n).fill(kind);
    let found = rows("layer_types layers_block_type");
    const letters = fields.hybrid_override_pattern;
    const or = (make) => (found = found.length ? found : make());
    or(() =>
      typeof letters === "string" ? [...letters].map((one) => kinds.pattern[one] || one) : [],
    );
    or(() => rows("compress_ratios").map((ratio) => kinds.ratios[ratio] || "a ratio of " + ratio));
    or(() => rows("sparse_attention_freq").map((sparse) => (sparse ? indexed[1] : every[0])));
    if (full.length || interval)
      or(() =>
        all().map((_, i) =>
          (full.length ? full.includes(i + 1) : (i + 1) % interval === 0) ? every[0] : state[0],
        ),
      );
    if (newest && fields.use_sliding_window !== false)
      or(() =>
        fields.model_type === "mistral"
          ? all("sliding_attention")
          : lacks("layer_types must say which layers have the sliding_window, got none"),
      );
    or(() => all(chosen ? indexed[0] : every[0]));
    if (found.length < n) lacks("layer_types must name " + n + " layers, got " + found.length);
    const known = [
      every,
      indexed,
      Object.keys(kinds.newest),
      kinds.compressed,
      state,
      kinds.nothing,
    ].flat();
    found.forEach(
      (kind) =>
        known.includes(kind) || check.fail("layer_types", "kinds that are counted here", kind),
    );
    return found.slice(0, n - maybe("num_kv_shared_layers", { least: 0, most: n }));
  };
  const partsOf = (kind, of, maybe, withIndex) => {
    const { indexed, newest, compressed, state, nothing } = kinds;
    if (nothing.includes(kind)) return [];
    if (state.includes(kind)) return [stateOf(of, maybe)];
    const heads = of("num_attention_heads");
    if (compressed.includes(kind) || (newest[kind] && maybe("o_lora_rank"))) {
      const vector = { latent: of("head_dim"), rotary: 0, heads },
        kept = [{ ...vector, window: of("sliding_window") }];
      if (kind === compressed[0])
        kept.push(
          { ...vector, every: 4, chosen: of("index_topk") },
          { index: of("index_head_dim"), heads: of("index_n_heads"), every: 4 },
        );
      else if (kind === compressed[1]) kept.push({ ...vector, every: 128 });
      return kept;
    }
    const kept = keptOf(kind, of, maybe, heads);
    if (newest[kind]) return [{ ...kept, window: of(newest[kind] + " sliding_window_size") }];
    if (!indexed.includes(kind)) return [kept];
    const blocks = maybe("index_topk_blocks sparse_topk_blocks");
    kept.chosen = blocks
      ? blocks * of("index_block_size sparse_block_size")
      : of("index_topk indexer_budget");
    const index = {
      index: of("index_head_dim indexer_head_dim sparse_index_dim"),
      heads: of("index_n_heads indexer_n_heads sparse_num_index_heads"),
    };
    const every = maybe("index_kpool indexer_compress_ratio");
    return withIndex ? [kept, every ? { ...index, every } : index] : [kept];
  };
  const keptOf = (kind, of, maybe, heads) => {
    const latent = maybe("kv_lora_rank"),
      near = kinds.newest[kind];
    if (latent) return { latent, rotary: of("qk_rope_head_dim", { least: 0 }), heads };
    const groups = of(
      (near ? "swa_num_key_value_heads" : "num_global_key_value_heads") +
        " " +
        kinds.groups.join(" ") +
        " num_attention_heads",
    );
    const width =
      maybe((near ? "swa_head_dim" : "global_head_dim") + " head_dim kv_channels") ||
      Math.floor(of("hidden_size", { least: heads }) / heads);
    const value = maybe((near ? "swa_v_head_dim " : "") + "v_head_dim");
    return { groups, width, heads, ...(value && value !== width ? { value } : {}) };
  };
  const stateOf = (of, maybe) => {
    const names = kinds.states.find(([first]) => maybe(first)) || kinds.states.at(-1);
    return { state: names.reduce((size, name) => size * of(name), 1), heads: of(names[0]) };
  };
  const expertsOf = (of, maybe, rows, layers) => {
    const count = maybe("n_routed_experts num_local_experts num_experts");
    if (!count || layers.includes("moe")) return [0, 1];
    const used = of("num_experts_per_tok num_experts_per_token", { most: count }),
      n = of("num_hidden_layers");
    const said = rows("mlp_layer_types"),
      dense = maybe("first_k_dense_replace", { least: 0, most: n });
    const having = said.length ? said.filter((kind) => kind !== "dense").length : n - dense;
    const size = of("hidden_size") * of("moe_intermediate_size intermediate_size");
    return [(having * count * 3 * size) / 1e9, used / count];
  };

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
  const serve = (
    { parts, experts, used },
    total,
    { gpu, cards, split, n, weight_bits, cache_bits, share: percent },
  ) => {
    const [memory, bandwidth, flops] = gpus[gpu],
      bits = WEIGHT_BITS[weight_bits],
      share = percent / 100;
    const others = total - experts,
      onCard = experts / cards + (split === "data" ? others : others / cards);
    const weights = (onCard * 1e9 * bits) / 8,
      kept = sum(parts.map((part) => stored(part, n, cards, split)));
    const cache = (kept * cache_bits) / 8,
      room = share * memory - weights;
    const fit = Math.max(0, Math.floor(room / cache)),
      chats = fit * (split === "data" ? cards : 1);
    let speed = "speed: none, for no chat fits",
      seconds = Infinity;
    if (chats) {
      const needed = 1 - (1 - used) ** chats;
      const weightBytes = ((onCard - (experts / cards) * (1 - needed)) * 1e9 * bits) / 8;
      const cacheBytes =
        (fit * sum(parts.map((part) => moved(part, n, cards, split))) * cache_bits) / 8;
      const work =
        (chats *
          (2e9 * (others + experts * used) + sum(parts.map((part) => operations(part, n))))) /
        cards;
      const moving = (weightBytes + cacheBytes) / bandwidth,
        computing = work / flops;
      seconds = Math.max(moving, computing);
      const why =
        moving >= computing
          ? "reads " +
            two(weightBytes / GIB) +
            " GiB of weights and " +
            two(cacheBytes / GIB) +
            " GiB of caches at " +
            none(Math.round(bandwidth / 1e9)) +
            " GB/s"
          : "does " +
            two(work / 1e12) +
            " trillion operations at " +
            none(Math.round(flops / 1e12)) +
            " trillion a second";
      speed =
        "speed: for one token of each chat a card " +
        why +
        ": at most " +
        none(Math.round(chats / seconds)) +
        " tokens a second in all";
    }
    return {
      weights: weights / GIB,
      cache: cache / GIB,
      chats,
      speed: chats / seconds,
      fit,
      memory: memory / GIB,
      share,
      lines: [
        "weights: " +
          two(onCard) +
          " of " +
          two(total) +
          " billion a card, " +
          bits +
          " bits each: " +
          two(weights / GIB) +
          " GiB",
        "cache: " +
          none(kept) +
          " numbers a card and chat, " +
          cache_bits +
          " bits each: " +
          two(cache / GIB) +
          " GiB",
        "chats: " +
          share +
          " of " +
          two(memory / GIB) +
          " GiB, less the weights, leave " +
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
  const title = controls.element("p", {});
  const svg = stage.make("svg", { viewBox: [0, 0, WIDE, HIGH + TOP + 18].join(" "), role: "img" });
  place.append(title, svg);
  const rect = (look) => stage.make("rect", { y: TOP, height: HIGH, class: look }, svg);
  const drawn = {
    weights: rect("gray area solid"),
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
    spoken = Array.from({ length: 4 }, () => lines.appendChild(controls.element("p", {})));

  const select = (parent, label, options, input) => {
    const box = controls.element("select", { autocomplete: "off", "aria-label": label }),
      name = controls.element("label", { class: "typed" }, label);
    Object.entries(options).forEach(([value, text]) =>
      box.append(controls.element("option", { value }, text)),
    );
    box.addEventListener("change", () => input(box.value));
    name.append(box);
    parent.append(name);
    return { show: (value) => (box.value = value) };
  };
  const named = (list, more = {}) => ({
    ...Object.fromEntries(list.map((name) => [name, name])),
    ...more,
  });
  const bits = (more) => ({
    16: "16 bits",
    8: "8 bits" + (more ? " (8.5)" : ""),
    4: "4 bits" + (more ? " (4.5)" : ""),
  });
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
        Object.fromEntries(
          Object.entries(gpus).map(([name, [memory]]) => [
            name,
            name + ", " + memory / 1e9 + " GB",
          ]),
        ),
        (gpu) => move({ gpu }),
      ),
      weight_bits: select(top, "weights", bits(true), (text) =>
        move({ weight_bits: Number(text) }),
      ),
      cache_bits: select(top, "cache", bits(false), (text) => move({ cache_bits: Number(text) })),
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
  };
  const paste = controls.element(
    "details",
    { class: "more" },
    controls.element("summary", {}, "Paste a config.json"),
  );
  place.append(paste);
  const area = controls.element("textarea", {
    rows: 6,
    spellcheck: "false",
    "aria-label": "config.json of a model",
  });
  const size = controls.element("input", {
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
  });
  const bottom = controls.element(
    "div",
    { class: "control" },
    controls.element("label", { class: "typed" }, "weights, in billions", size),
  );
  paste.append(area, bottom);
  controls.button(bottom, "Read it", () => {
    try {
      if (area.value.length > LIMIT)
        check.fail("config", "at most " + none(LIMIT) + " characters", area.value.length);
      const config = (() => {
        try {
          return JSON.parse(area.value);
        } catch (_) {
          return check.fail("config", "JSON, as in a file config.json", area.value.slice(0, 40));
        }
      })();
      move({
        model: PASTED,
        pasted: readConfig(config).short,
        billions: Number(size.value.trim() || "none"),
      });
    } catch (error) {
      tell(error.message);
    }
  });

  let state = null,
    served = null,
    unknown = [];
  const meant = ({ model, pasted, billions }) => {
    if (model !== PASTED) return { ...models[model], unknown: [] };
    return { ...readConfig(JSON.parse(pasted)), billions };
  };
  return {
    clean: ({ model, pasted, billions, gpu, cards, split, n, weight_bits, cache_bits, share }) => {
      check.one("model", model, [...Object.keys(models), PASTED]);
      if (typeof pasted !== "string" || pasted.length > LIMIT)
        check.fail("pasted", "a text", typeof pasted);
      if (model === PASTED && !pasted) check.fail("pasted", "a config.json", pasted);
      const own = meant({ model, pasted, billions });
      if (model === PASTED) check.number("billions", billions, Math.max(own.experts, 0.001), 1e5);
      if (check.whole("n", n, step, tokens) % step)
        check.fail("n", "a multiple of " + none(step), n);
      return {
        model,
        pasted,
        billions,
        gpu: check.one("gpu", gpu, Object.keys(gpus)),
        cards: check.whole("cards", cards, 1, most),
        split: check.one("split", split, Object.keys(SPLITS)),
        n,
        weight_bits: check.one("weight_bits", weight_bits, [16, 8, 4]),
        cache_bits: check.one("cache_bits", cache_bits, [16, 8, 4]),
        share: check.whole("share", share, 50, 100),
      };
    },
    draw: (wished) => {
      const model = meant((state = wished));
      served = serve(model, model.billions, state);
      unknown = model.unknown;
      const { weights, cache, fit, memory, share } = served,
        room = share * memory;
      const scale = (WIDE - 4) / Math.max(memory, weights),
        at = (gib) => 2 + gib * scale;
      title.textContent = "Memory of " + (state.cards > 1 ? "each card" : "the card") + ", in GiB";
      span(drawn.weights, at(0), at(Math.min(weights, room)));
      span(drawn.over, at(room), at(weights), weights > room);
      drawn.slices.forEach((slice, i) => {
        // the last one stands for all further chats
        const last = i === SLICES - 1 ? fit : i + 1,
          from = at(weights + i * cache),
          to = at(weights + last * cache);
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
    table: () => ({ lines: served.lines, unknown, parts: meant(state).parts }),
    values: () => ({
      name: state.model === PASTED ? "The pasted model" : state.model,
      unknown: unknown.join(", "),
      plural: state.cards > 1 ? "s" : "",
      each: Math.floor(served.speed / Math.max(1, served.chats)),
    }),
    remarks: () => [
      served.weights > served.share * served.memory ? "heavy" : served.chats ? "fits" : "full",
      ...(unknown.length ? ["unknown"] : []),
    ],
  };
};
