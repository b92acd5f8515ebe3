// What the files that were dropped hold, by the names of their tensors: weights, heads, and an adapter.
{
  /** What the names of tensors say. */
  const names = ({ sides }) => {
    const ROLES = {
      lora_A: "a",
      lora_embedding_A: "a",
      lora_down: "a",
      lora_B: "b",
      lora_embedding_B: "b",
      lora_up: "b",
      lora_E: "between",
      lora_mid: "between",
      alpha: "alpha",
      lora_magnitude_vector: "lengths",
    };
    const ROLE = new RegExp(
      `^(?:base_model\\.model\\.)?(?:(.*)\\.)?(${Object.keys(ROLES).join("|")})(?:\\.(?!weight$)[^.]+)?(?:\\.weight)?$`,
    );
    // What the weights of queries, keys, values, and the output are called after the same beginning, in one or in several.
    const APART = [
      ["q_proj", "k_proj", "v_proj", "o_proj", "out_proj", "dense"],
      ["q", "k", "v", "out", "o"],
      ["wq", "wk", "wv", "wo"],
      ["self.query", "self.key", "self.value", "output.dense"],
    ];
    const FUSED = [
      ["c_attn.weight", "c_proj", true],
      ["qkv_proj.weight", "o_proj"],
      ["Wqkv.weight", "out_proj"],
      ["in_proj_weight", "out_proj"],
    ];
    // The weights of latent attention (MLA), whose heads are not told apart.
    const LATENT = {
      __proto__: null,
      q_a_proj: "down to the latent of queries",
      q_b_proj: "up to queries",
      kv_a_proj_with_mqa: "down to the cached latent and the rotated key",
      kv_b_proj: "up to keys and values",
    };
    const SCALES = /[._](scales?|scale_inv|qzeros|zero_point)$/;
    const pairsOf = (tensors) => {
      const pairs = new Map(),
        parts = tensors
          .map((tensor) => [tensor, ...(tensor.name.match(ROLE) ?? [])])
          .filter(([, found]) => found);
      for (const [tensor, , path = "", role] of parts)
        pairs.set(path, { ...pairs.get(path), path, [ROLES[role]]: tensor });
      return [...pairs.values()].filter(
        ({ a, b }) =>
          a &&
          b &&
          a.shape.length > 1 &&
          sides(b)[1] === a.shape[0] &&
          [...sides(a), ...sides(b)].every(Boolean),
      );
    };
    const findGroups = (weights) =>
      [...weights.keys()].flatMap((name) => {
        const at = (start, ...names) =>
          names
            .map((each) => weights.get(start + each))
            .find((each) => each?.size && each.shape.length === 2);
        for (const [q, k, v, ...outs] of APART) {
          if (!`.${name}`.endsWith(`.${q}.weight`)) continue;
          const start = name.slice(0, -`${q}.weight`.length),
            [wq, wk, wv] = [q, k, v].map((each) => at(start, `${each}.weight`)),
            o = at(start, ...outs.map((each) => `${each}.weight`));
          if (wq && wk && wv && o) return [{ name: start, q: wq, k: wk, v: wv, o }];
        }
        const [all, out, turned] = FUSED.find(([end]) => `.${name}`.endsWith(`.${end}`)) ?? [],
          start = all && name.slice(0, -all.length),
          o = all && at(start, `${out}.weight`);
        return o && at(name, "") ? [{ name: start, all: at(name, ""), o, turned }] : [];
      });
    const endsOf = (name) => name.split(".").map((_, i, parts) => parts.slice(i).join("."));
    return { LATENT, SCALES, pairsOf, findGroups, endsOf };
  };

  /** What a configuration says. */
  const configurations = ({ refuse }) => {
    // What changes the base weights, too, or puts something between the factors: names of starts, keys of a configuration.
    const STARTS = /^"(pissa|olora|corda|loftq|lora_ga)/i,
      VARIANTS = [
        "target_parameters",
        "kasa_config",
        "use_qalora",
        "use_bdlora",
        "monteclora_config",
      ];
    const whole = (...counts) => counts.find(Number.isSafeInteger);
    const headsIn = (config) => whole(config.num_attention_heads, config.n_head, config.num_heads);
    /** What a table of patterns has for a path, as peft reads it. */
    const patternOf = (patterns, path) =>
      Object.entries(patterns ?? {}).find(([key]) => {
        try {
          return new RegExp(`^(.*\\.)?(${key})$`).test(path);
        } catch {
          return refuse(`Its configuration has the pattern “${key}”, which this page can't read.`);
        }
      })?.[1];
    /** Why an adapter cannot be read, or nothing. */
    const flawOf = (pairs, config) => {
      const kind = JSON.stringify(config.peft_type ?? "LORA"),
        start = JSON.stringify(config.init_lora_weights),
        variant = VARIANTS.find((key) => config[key] && config[key].length !== 0),
        odd = pairs.find(
          ({ path, a, between }) =>
            between ||
            /(^|\.)experts(\.base_layer)?$/.test(path) ||
            a.shape[0] !== (patternOf(config.rank_pattern, path) ?? config.r ?? a.shape[0]),
        );
      if (kind !== '"LORA"') return `It is an adapter of the kind ${kind}; this page reads LORA.`;
      if (STARTS.test(start))
        return `It started from ${start}, which changes the base weights, too: convert it with peft's save_pretrained first.`;
      if (odd)
        return `“${odd.path}” has stacked ranks of experts, or a rank or a factor that its configuration doesn't explain.`;
      return variant ? `Its configuration has ${variant}, which this page doesn't read.` : "";
    };
    return { whole, headsIn, patternOf, flawOf };
  };

  /** What is open, sorted; the parts after this one read it in `state`. */
  const opening = ({
    LATENT,
    SCALES,
    isPacked,
    sides,
    flaw,
    openFile,
    workOf,
    pairsOf,
    findGroups,
    endsOf,
    headsIn,
    flawOf,
  }) => {
    // Weights by their names and by the ends of these, an adapter, the configuration of a model, and groups of heads.
    const state = {};
    const sort = (opened, notes) => {
      let index = {};
      const found = [],
        configs = [];
      for (const { file, tensors, metadata, json } of opened) {
        const pairs = pairsOf(tensors ?? []);
        if (json?.weight_map) index = json.weight_map;
        else if (json && ("lora_alpha" in json || "peft_type" in json))
          configs.push({ file, json });
        else if (json && (headsIn(json) || json.text_config))
          state.model = json.text_config ?? json;
        else if (json) notes.push([file, "It's no configuration or index that this page reads."]);
        else if (pairs.length) found.push({ file, tensors, metadata, pairs });
        else
          for (const tensor of tensors) {
            if (state.weights.has(tensor.name))
              notes.push([file, `Another file holds “${tensor.name}”, too, and comes first.`]);
            else state.weights.set(tensor.name, tensor);
          }
      }
      for (const { file } of [...found.slice(1), ...configs.slice(1)])
        notes.push([
          file,
          "This page reads one adapter and its configuration; this one is left out.",
        ]);
      const config = configs[0]?.json,
        flaw = flawOf(found[0]?.pairs ?? [], config ?? {});
      if (flaw) notes.push([(found[0] ?? configs[0]).file, flaw]);
      else if (found[0]) {
        state.adapter = { ...found[0], config };
        if (config && !("lora_alpha" in config))
          notes.push([configs[0].file, "It has no lora_alpha, so alpha is 8, as in peft."]);
      }
      const missing = [...new Set(Object.values(index))].filter(
        (name) => typeof name === "string" && !opened.some(({ file }) => file === name),
      );
      if (missing.length)
        notes.push([
          "the index",
          `It names ${missing.length === 1 ? "a file" : `${missing.length} files`} that you didn't choose, such as “${missing[0]}”. Their weights are left out.`,
        ]);
    };
    const describe = (tensor) => {
      const { name, shape, dtype } = tensor,
        [m, n] = sides(tensor),
        plain = Math.min(m, n) > 1 && !/^([IU]\d+|BOOL)$/.test(dtype),
        thin = shape.length < 2 || SCALES.test(name) || !(plain || isPacked(dtype));
      return {
        name,
        shape,
        dtype,
        thin,
        flaw: thin ? "" : flaw(tensor, state.weights, 2),
        latent: LATENT[name.split(".").at(-2)],
        work: workOf(m, n)[1],
      };
    };
    /** The weight that a pair changes: by its whole name, or by the end that one of the two names is of the other. */
    const baseOf = ({ path, a, b }) => {
      const { weights, ends } = state;
      const [m, n] = [sides(b)[0], sides(a)[1]],
        name = `${path}.weight`;
      return [...endsOf(name).map((end) => weights.get(end)), ends.get(name)].find(
        (base) =>
          base &&
          [`${m},${n}`, `${n},${m}`].includes(String(base.shape)) &&
          !flaw(base, weights, 2),
      );
    };
    /** Sort all files, and say what is there. */
    const open = async (list) => {
      const notes = [],
        opened = [];
      const weights = new Map(),
        ends = new Map();
      Object.assign(state, { weights, ends, adapter: null, model: {} });
      for (const file of list)
        await openFile(file).then(
          (told) => opened.push({ file: file.name, ...told }),
          ({ message }) => notes.push([file.name, message]),
        );
      sort(opened, notes);
      state.groups = findGroups(weights);
      const { adapter, model, groups } = state;
      for (const tensor of weights.values())
        for (const end of endsOf(tensor.name)) ends.set(end, ends.has(end) ? null : tensor);
      return {
        notes,
        files: list.map(({ name, size, lastModified }) => [name, size, lastModified]),
        weights: [...weights.values()].map(describe),
        adapter: adapter && {
          file: adapter.file,
          config: adapter.config,
          pairs: adapter.pairs.map((pair) => ({
            path: pair.path,
            m: sides(pair.b)[0],
            n: sides(pair.a)[1],
            r: pair.a.shape[0],
            dtype: pair.a.dtype,
            dora: Boolean(pair.lengths),
            base: Boolean(baseOf(pair)),
          })),
        },
        heads: headsIn(model) ?? null,
        groups: groups.map(({ name, q, all }) => ({
          name,
          size: sides(q ?? all)[0] * sides(q ?? all)[1],
        })),
      };
    };
    return { state, open, baseOf };
  };

  window.microscopeParts.push(names, configurations, opening);
}
