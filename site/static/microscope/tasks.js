// What the page asks of its worker: sort the files that were dropped, and measure a weight, heads, or an adapter. This
// function is sent to a worker as text, and gets the two before it.
window.microscopeTasks = function microscopeTasks(files, numbers) {
  const { refuse, sides } = files,
    { product, length } = numbers;
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
  // What changes the base weights, too, or puts something between the factors: names of starts, keys of a configuration.
  const STARTS = /^"(pissa|olora|corda|loftq|lora_ga)/i,
    VARIANTS = [
      "target_parameters",
      "kasa_config",
      "use_qalora",
      "use_bdlora",
      "monteclora_config",
    ];
  let weights = new Map(),
    ends = new Map(),
    adapter = null,
    model = {},
    groups = [];
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
  const findGroups = () =>
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
  const sort = (opened, notes) => {
    let index = {};
    const found = [],
      configs = [];
    for (const { file, tensors, metadata, json } of opened) {
      const pairs = pairsOf(tensors ?? []);
      if (json?.weight_map) index = json.weight_map;
      else if (json && ("lora_alpha" in json || "peft_type" in json)) configs.push({ file, json });
      else if (json && (headsIn(json) || json.text_config)) model = json.text_config ?? json;
      else if (json) notes.push([file, "It's no configuration or index that this page reads."]);
      else if (pairs.length) found.push({ file, tensors, metadata, pairs });
      else
        for (const tensor of tensors) {
          if (weights.has(tensor.name))
            notes.push([file, `Another file holds “${tensor.name}”, too, and comes first.`]);
          else weights.set(tensor.name, tensor);
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
      adapter = { ...found[0], config };
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
  const whole = (...counts) => counts.find(Number.isSafeInteger);
  const headsIn = (config) => whole(config.num_attention_heads, config.n_head, config.num_heads);
  const describe = (tensor) => {
    const { name, shape, dtype } = tensor,
      [m, n] = sides(tensor),
      plain = Math.min(m, n) > 1 && !/^([IU]\d+|BOOL)$/.test(dtype),
      thin = shape.length < 2 || SCALES.test(name) || !(plain || files.isPacked(dtype));
    return {
      name,
      shape,
      dtype,
      thin,
      flaw: thin ? "" : files.flaw(tensor, weights, 2),
      latent: LATENT[name.split(".").at(-2)],
      work: numbers.workOf(m, n)[1],
    };
  };
  /** Sort all files, and say what is there. */
  const open = async (list) => {
    const notes = [],
      opened = [];
    [weights, ends, adapter, model] = [new Map(), new Map(), null, {}];
    for (const file of list)
      await files.open(file).then(
        (told) => opened.push({ file: file.name, ...told }),
        ({ message }) => notes.push([file.name, message]),
      );
    sort(opened, notes);
    groups = findGroups();
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
  const load = async (tensor, axes = 2) => {
    const flaw = files.flaw(tensor, weights, axes);
    return flaw ? refuse(flaw) : files.load(tensor, weights);
  };
  const weigh = async (name, tick) => {
    const tensor = weights.get(name),
      loaded = await load(tensor);
    return { name, ...numbers.weigh(loaded, ...sides(tensor), tick) };
  };
  /** Rows of a matrix, or columns, as a list of arrays. */
  const lines = (given, [m, n], from, count, across) =>
    Array.from({ length: count }, (_, i) =>
      across
        ? Float64Array.from({ length: m }, (__, j) => given[j * n + from + i])
        : Float64Array.from(given.subarray((from + i) * n, (from + i + 1) * n)),
    );
  /** For each head, the spectra of W_Q W_K^T and of W_V W_O, of rank at most the width of a head. */
  const heads = async ({ name, count }, tick) => {
    const { q, k, v, o, all, turned } = groups.find((group) => group.name === name),
      shape = sides(q ?? all),
      long = shape[turned ? 1 : 0],
      outs = sides(o)[turned ? 0 : 1],
      asked = headsIn(model) ?? Number(count);
    if (!asked) refuse("Type the number of heads above, or drop config.json.");
    if (q && long === 2 * outs)
      refuse("Gates are packed with its queries; this page can't tell them apart.");
    const width = whole(model.head_dim, outs / asked),
      shared = k ? sides(k)[0] / width : whole(model.num_key_value_heads, asked);
    if (
      ![asked, width, shared, asked / shared].every((x) => Number.isSafeInteger(x) && x > 0) ||
      outs !== asked * width ||
      long !== (q ? asked : asked + 2 * shared) * width ||
      (k && sides(v)[0] !== sides(k)[0])
    )
      refuse(`The weights of “${name}” don't fit ${asked} heads.`);
    const [wq, wk, wv, wo] = await Promise.all(
      [q ?? all, k, v, o].map((tensor) => (tensor ? load(tensor) : null)),
    );
    const read = [
        [wq, shape, 0],
        k ? [wk, sides(k), 0] : [wq, shape, asked * width],
        v ? [wv, sides(v), 0] : [wq, shape, (asked + shared) * width],
      ],
      rows = [];
    for (let head = 0; head < asked; head++) {
      const group = Math.floor((head * shared) / asked);
      const [queries, keys, values] = read.map(([w, size, from], i) =>
        lines(w.numbers, size, from + (i ? group : head) * width, width, turned),
      );
      const back = lines(wo.numbers, sides(o), head * width, width, !turned);
      const told = (left, right) =>
        numbers.report(product(left, right).s, left[0].length, right[0].length);
      rows.push({ head, width, qk: told(queries, keys), vo: told(back, values) });
      tick((head + 1) / asked);
    }
    return { name, rows, shared: shared < asked ? asked / shared : 0 };
  };
  // Adapters: the update is factor times L R^T, where the columns of L are those of B, and the columns of R the rows of A.
  /** What a table of patterns has for a path, as peft reads it. */
  const patternOf = (patterns, path) =>
    Object.entries(patterns ?? {}).find(([key]) => {
      try {
        return new RegExp(`^(.*\\.)?(${key})$`).test(path);
      } catch {
        return refuse(`Its configuration has the pattern “${key}”, which this page can't read.`);
      }
    })?.[1];
  const fits = (x) => x === 0 || (x > 1e-30 && x < 1e30); // so that no square overflows or vanishes
  const settings = async ({ path, a, alpha }) => {
    const { config } = adapter,
      { lora_alpha: common = 8 } = config ?? { lora_alpha: a.shape[0] },
      own = alpha && (await load(alpha)).numbers[0],
      strength = patternOf(config?.alpha_pattern, path) ?? own ?? common,
      r = a.shape[0],
      divisor = config?.use_rslora ? Math.sqrt(r) : r,
      factor = Number.isFinite(strength) ? strength / divisor : NaN;
    return fits(Math.abs(factor))
      ? { r, factor }
      : refuse("Its alpha is no number, or far too large or small.");
  };
  const times = (columns, factor) => columns.map((column) => column.map((x) => factor * x));
  const factorOf = async (tensor) => {
    const { numbers: entries, largest } = await load(tensor, 8);
    if (!fits(largest))
      refuse(`“${tensor.name}” has entries of ${largest}; this page reads 1e-30 to 1e30.`);
    return entries;
  };
  const columns = async ({ a, b }) => [
    lines(await factorOf(b), sides(b), 0, a.shape[0], true),
    lines(await factorOf(a), sides(a), 0, a.shape[0], false),
  ];
  const endsOf = (name) => name.split(".").map((_, i, parts) => parts.slice(i).join("."));
  /** The weight that a pair changes: by its whole name, or by the end that one of the two names is of the other. */
  const baseOf = ({ path, a, b }) => {
    const [m, n] = [sides(b)[0], sides(a)[1]],
      name = `${path}.weight`;
    return [...endsOf(name).map((end) => weights.get(end)), ends.get(name)].find(
      (base) =>
        base &&
        [`${m},${n}`, `${n},${m}`].includes(String(base.shape)) &&
        !files.flaw(base, weights, 2),
    );
  };
  const pairOf = (path) => adapter.pairs.find((pair) => pair.path === path);
  /** The spectrum of an update, and its size beside that of the weight it changes, if that is there. */
  const update = async (path) => {
    const pair = pairOf(path),
      { r, factor } = await settings(pair),
      [left, right] = await columns(pair);
    const s = product(left, right).s.map((x) => Math.abs(factor) * x),
      base = baseOf(pair);
    const { numbers: w, largest } = base ? await load(base) : { numbers: [] },
      whole = largest * Math.sqrt(w.reduce((sum, x) => sum + (x / largest) ** 2, 0));
    return {
      r,
      factor,
      ...numbers.report(s, left[0].length, right[0].length),
      size: length(s),
      strength: base ? length(s) / whole : null,
    };
  };
  /** The error of the update that arrives if it is added in bfloat16: on all inputs, and on those that A reads. */
  const merge = async (path, tick) => {
    const pair = pairOf(path),
      { factor } = await settings(pair),
      [left, right] = await columns(pair);
    const base = baseOf(pair),
      [m, n] = [left[0].length, right[0].length],
      w = (await load(base)).numbers,
      turned = base.shape[0] !== m || (m === n && adapter.config?.fan_in_fan_out);
    const { q } = product(left, right, true),
      update = new Float64Array(n),
      lost = new Float64Array(n),
      sums = [0, 0, 0, 0];
    for (let row = 0; row < m; row++) {
      update.fill(0);
      right.forEach((a, k) => numbers.addTimes(update, a, factor * left[k][row]));
      for (let j = 0; j < n; j++) {
        const old = files.inBfloat16(w[turned ? j * m + row : row * n + j]);
        lost[j] = files.inBfloat16(Math.fround(old + update[j])) - old - update[j];
      }
      [lost, update].forEach((x, at) => (sums[at] += x.reduce((sum, y) => sum + y * y, 0)));
      for (const direction of q)
        [lost, update].forEach(
          (x, at) => (sums[2 + at] += direction.reduce((sum, y, j) => sum + x[j] * y, 0) ** 2),
        );
      tick((row + 1) / m);
    }
    return { all: Math.sqrt(sums[0] / sums[1]), read: Math.sqrt(sums[2] / sums[3]) };
  };
  /** A smaller adapter: each update cut at a rank, or at the least rank whose error is allowed, in the same format. */
  const shrink = async ({ rank, error }, tick) => {
    const kept = new Map(adapter.tensors.map((tensor) => [tensor.name, tensor])),
      rows = [];
    for (const [i, pair] of adapter.pairs.entries()) {
      if (!adapter.config && !pair.alpha)
        refuse("Choose its adapter_config.json, too, which says alpha.");
      const { r, factor } = await settings(pair),
        [left, right] = await columns(pair),
        cut = product(left, right, true),
        { dtype } = pair.a;
      if (!/^(BF|F)(16|32)$|^F64$/.test(dtype))
        refuse(`Factors of type ${dtype} can't be written by this page.`);
      const { errors } = numbers.report(cut.s, left[0].length, right[0].length);
      const least = rank ?? errors.findIndex((each) => each <= error),
        k = Math.max(1, Math.min(least, cut.s.length, rank ?? Infinity));
      const roots = Array.from(cut.s.subarray(0, k), Math.sqrt);
      const rounded = (list) => list.map((column) => files.encode(dtype, column)),
        back = (list) => list.map((x) => Float64Array.from(files.decode(dtype, x.buffer)));
      const [l, s] = [cut.left, cut.right].map((direction) =>
          rounded(roots.map((root, j) => direction(j).map((x) => x * root))),
        ),
        [m, n] = [left[0].length, right[0].length];
      const missed = length(product([...left, ...times(back(l), -1)], [...right, ...back(s)]).s),
        whole = length(cut.s);
      const a = new l[0].constructor(k * n).map((_, at) => s[Math.floor(at / n)][at % n]),
        b = new l[0].constructor(m * k).map((_, at) => l[at % k][Math.floor(at / k)]);
      kept.set(pair.a.name, { ...pair.a, shape: [k, ...pair.a.shape.slice(1)], data: a });
      kept.set(pair.b.name, { ...pair.b, dtype, shape: [m, k, ...pair.b.shape.slice(2)], data: b });
      if (pair.alpha)
        kept.set(pair.alpha.name, {
          ...pair.alpha,
          dtype: "F32",
          data: new Float32Array([factor * k]),
        });
      rows.push({
        path: pair.path,
        r,
        k,
        factor,
        missed: Math.abs(factor) * missed,
        whole: Math.abs(factor) * whole,
      });
      tick((i + 1) / adapter.pairs.length);
    }
    const tensors = [...kept.values()].map((tensor) => ({
      ...tensor,
      data: tensor.data ?? tensor.file.slice(tensor.at, tensor.at + tensor.size),
    }));
    tensors.sort((x, y) => files.widthOf(y.dtype) - files.widthOf(x.dtype)); // so that each lies where its numbers may
    return {
      rows,
      saved: files.pack(tensors, adapter.metadata),
      config: adapter.config && configOf(rows),
    };
  };
  /** The adapter_config.json of a smaller adapter, whose alpha / r is what it was. */
  const configOf = (rows) => {
    const { config } = adapter,
      largest = rows.reduce((most, row) => Math.max(most, row.k), 1),
      common = rows.find(({ k }) => k === largest).factor;
    const alphaOf = ({ factor, k }) => factor * (config.use_rslora ? Math.sqrt(k) : k),
      other = rows.filter(({ k, factor }) => k !== largest || factor !== common);
    const longer = new Set(rows.flatMap(({ path }) => endsOf(path).slice(1))),
      keyOf = ({ path }) => (longer.has(path) ? `^${path}` : path);
    return {
      ...config,
      r: largest,
      lora_alpha: alphaOf({ factor: common, k: largest }),
      rank_pattern: Object.fromEntries(other.map((row) => [keyOf(row), row.k])),
      alpha_pattern: Object.fromEntries(other.map((row) => [keyOf(row), alphaOf(row)])),
    };
  };
  return { open, weigh, heads, update, merge, shrink };
};
