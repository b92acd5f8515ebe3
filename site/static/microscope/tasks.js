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
    a_start: "aStart",
    b_start: "bStart",
    _extra_state: "factor",
    alpha: "alpha",
    lora_magnitude_vector: "lengths",
    lengths: "lengths",
    a: "a",
    b: "b",
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
  let weights = new Map(),
    adapters = [],
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
      const at = (...names) =>
        names.map((each) => weights.get(each)).find((each) => each?.shape.length === 2);
      for (const [q, k, v, ...outs] of APART) {
        if (!`.${name}`.endsWith(`.${q}.weight`)) continue;
        const start = name.slice(0, name.length - `${q}.weight`.length),
          [key, value] = [k, v].map((each) => at(`${start}${each}.weight`));
        if (at(name) && key && value)
          return [
            {
              name: start,
              q: at(name),
              k: key,
              v: value,
              o: at(...outs.map((each) => `${start}${each}.weight`)),
            },
          ];
      }
      const [all, out, turned] = FUSED.find(([end]) => `.${name}`.endsWith(`.${end}`)) ?? [],
        start = all && name.slice(0, -all.length);
      return all && at(name)
        ? [{ name: start, all: at(name), o: at(`${start}${out}.weight`), turned }]
        : [];
    });
  const sort = (opened, notes) => {
    let configs = [],
      index = {};
    for (const { file, tensors, metadata, json } of opened) {
      const pairs = pairsOf(tensors ?? []);
      if (json?.weight_map) index = json.weight_map;
      else if (json && ("lora_alpha" in json || "peft_type" in json)) configs.push(json);
      else if (json && (headsIn(json) || json.text_config)) model = json.text_config ?? json;
      else if (json)
        notes.push([file, "It's a JSON file, but no configuration or index that this page reads."]);
      else if (pairs.length) adapters.push({ file, tensors, metadata, pairs });
      else
        for (const tensor of tensors) {
          if (weights.has(tensor.name))
            notes.push([file, `Another file holds “${tensor.name}”, too, and comes first.`]);
          else weights.set(tensor.name, tensor);
        }
    }
    adapters.forEach((adapter, i) =>
      Object.assign(adapter, { config: configs[i] ?? configs[0] ?? null, own: i < configs.length }),
    );
    const missing = [...new Set(Object.values(index))].filter(
      (name) => !opened.some(({ file }) => file === name),
    );
    if (missing.length)
      notes.push([
        "the index",
        `It names ${missing.length === 1 ? "a file" : `${missing.length} files`} that you didn't choose, such as “${missing[0]}”. Their weights are left out.`,
      ]);
  };
  const headsIn = (config) => config.num_attention_heads ?? config.n_head ?? config.num_heads;
  const describe = (tensor) => {
    const { name, shape, dtype } = tensor,
      [m, n] = sides(tensor),
      thin = shape.length < 2 || Math.min(m, n) < 2 || /^([IU]\d+|BOOL)$/.test(dtype);
    return {
      name,
      shape,
      dtype,
      thin,
      flaw: thin ? "" : files.flaw(tensor),
      work: numbers.workOf(m, n)[1],
    };
  };
  /** Sort all files, and say what is there. */
  const open = async (list) => {
    const notes = [],
      opened = [];
    [weights, adapters, model] = [new Map(), [], {}];
    for (const file of list)
      await files.open(file).then(
        (told) => opened.push({ file: file.name, ...told }),
        ({ message }) => notes.push([file.name, message]),
      );
    sort(opened, notes);
    groups = findGroups();
    const told = adapters.map(({ file, config, own, pairs }) => ({
      file,
      config,
      own,
      pairs: pairs.map((pair) => ({
        path: pair.path,
        m: sides(pair.b)[0],
        n: sides(pair.a)[1],
        r: pair.a.shape[0],
        dtype: pair.a.dtype,
        dora: Boolean(pair.lengths),
        base: Boolean(baseOf(pair)),
      })),
    }));
    return {
      notes,
      weights: [...weights.values()].map(describe),
      adapters: told,
      heads: headsIn(model) ?? null,
      groups: groups.map(({ name, q, all }) => ({
        name,
        size: sides(q ?? all)[0] * sides(q ?? all)[1],
      })),
    };
  };
  const load = async (tensor) =>
    files.flaw(tensor) ? refuse(files.flaw(tensor)) : files.load(tensor, weights);
  const weigh = async (name, tick) => {
    const tensor = weights.get(name),
      loaded = await load(tensor);
    return { name, ...numbers.weigh(loaded, ...sides(tensor), tick), scaled: loaded.scaled };
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
    const { q, k, v, o, all, turned } = groups.find((group) => group.name === name);
    const asked = Number(headsIn(model) ?? count),
      shape = sides(q ?? all),
      long = shape[turned ? 1 : 0];
    const shared = Number(model.num_key_value_heads ?? asked),
      width = Number(model.head_dim ?? (q ? long / asked : long / (asked + 2 * shared)));
    if (!asked) refuse("Type the number of heads above, or drop config.json.");
    if (![asked, width, shared].every((x) => Number.isSafeInteger(x) && x > 0))
      refuse(
        `${asked} heads don't divide the ${long} numbers of ${name.replace(/\.$/, "") || "these weights"}.`,
      );
    const [wq, wk, wv, wo] = await Promise.all(
      [q ?? all, k, v, o].map((tensor) => (tensor ? load(tensor) : null)),
    );
    const read = [
      [wq, shape, 0],
      k ? [wk, sides(k), 0] : [wq, shape, asked * width],
      v ? [wv, sides(v), 0] : [wq, shape, (asked + shared) * width],
    ];
    const groupsOfKeys = k ? sides(k)[0] / width : shared,
      rows = [];
    if (
      !Number.isSafeInteger(groupsOfKeys) ||
      asked % groupsOfKeys ||
      (k && sides(v)[0] !== sides(k)[0]) ||
      asked * width > long ||
      (all && o && sides(o)[turned ? 0 : 1] !== asked * width)
    )
      refuse(`The keys and values of ${name} don't fit ${asked} heads of width ${width}.`);
    for (
      let head = 0, group = 0;
      head < asked;
      group = Math.floor((++head * groupsOfKeys) / asked)
    ) {
      const [queries, keys, values] = read.map(([w, size, from], i) =>
        lines(w.numbers, size, from + (i ? group : head) * width, width, turned),
      );
      const outs =
        o && sides(o)[turned ? 0 : 1] === asked * width
          ? lines(wo.numbers, sides(o), head * width, width, !turned)
          : null;
      const told = (left, right) =>
        numbers.report(product(left, right).s, left[0].length, right[0].length);
      rows.push({ head, width, qk: told(queries, keys), vo: outs && told(outs, values) });
      tick((head + 1) / asked);
    }
    return { name, rows, shared: groupsOfKeys < asked ? asked / groupsOfKeys : 0 };
  };
  // Adapters: the update is factor times L R^T, where the columns of L are those of B, and the columns of R the rows of A.
  const one = async (tensor) => (tensor ? (await load(tensor)).numbers[0] : undefined);
  const patternOf = (key) => {
    try {
      return new RegExp(`^(.*\\.)?(${key})$`);
    } catch {
      return refuse(`Its alpha_pattern holds “${key}”, which this page can't read.`);
    }
  }; // as peft reads it
  const settings = async ({ config, pairs }, i, asked) => {
    const { path, a, factor, alpha } = pairs[i],
      r = a.shape[0],
      patterns = Object.entries(config?.alpha_pattern ?? {});
    const own = patterns.find(([key]) => patternOf(key).test(path))?.[1];
    const strength = Number(own ?? (await one(alpha)) ?? config?.lora_alpha ?? asked.alpha ?? r),
      divisor = (config ? config.use_rslora : asked.rooted) ? Math.sqrt(r) : r;
    return Number.isFinite(strength)
      ? { r, factor: (await one(factor)) ?? strength / divisor }
      : refuse("Its alpha is no number.");
  };
  const times = (columns, factor) => columns.map((column) => column.map((x) => factor * x));
  const columns = async (pair) => {
    const left = [],
      right = [];
    for (const [b, a, sign] of [
      [pair.b, pair.a, 1],
      [pair.bStart, pair.aStart, -1],
    ].filter(([b, a]) => b && a)) {
      left.push(...times(lines((await load(b)).numbers, sides(b), 0, a.shape[0], true), sign));
      right.push(...lines((await load(a)).numbers, sides(a), 0, a.shape[0], false));
    }
    return [left, right];
  };
  const baseOf = ({ path, a, b }) => {
    const [m, n] = [sides(b)[0], sides(a)[1]],
      name = `.${path.replace(/\.base_layer$/, "")}.weight`;
    const base = [...weights.values()].find(
      (each) =>
        each.shape.length === 2 &&
        (`.${each.name}`.endsWith(name) || name.endsWith(`.${each.name}`)),
    );
    return base &&
      ((base.shape[0] === m && base.shape[1] === n) || (base.shape[0] === n && base.shape[1] === m))
      ? base
      : null;
  };
  /** The spectrum of an update, and its size beside that of the weight it changes, if that is there. */
  const adapter = async ({ i, asked }) => {
    const set = adapters[0],
      pair = set.pairs[i],
      { r, factor } = await settings(set, i, asked),
      [left, right] = await columns(pair);
    const s = product(left, right).s.map((x) => Math.abs(factor) * x),
      base = baseOf(pair);
    const whole = base && Math.sqrt((await load(base)).numbers.reduce((sum, x) => sum + x * x, 0));
    return {
      r,
      factor,
      ...numbers.report(s, left[0].length, right[0].length),
      size: length(s),
      strength: base ? length(s) / whole : null,
    };
  };
  /** The error of the update that arrives if it is added in bfloat16: on all inputs, and on those that A reads. */
  const merge = async ({ i, asked }, tick) => {
    const set = adapters[0],
      pair = set.pairs[i],
      { factor } = await settings(set, i, asked),
      [left, right] = await columns(pair);
    const base = baseOf(pair),
      [m, n] = [left[0].length, right[0].length],
      w = (await load(base)).numbers,
      turned = base.shape[0] !== m || (m === n && set.config?.fan_in_fan_out);
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
  /** Two adapters: a quarter of (B1 - B2)(A1 - A2) is what the product of the average factors misses of the average. */
  const average = async ({ i, asked }) => {
    const [first, second] = adapters,
      at = second.pairs.findIndex(({ path }) => path === first.pairs[i].path);
    if (at < 0) refuse("The second adapter doesn't change this weight.");
    const [[l1, r1], [l2, r2]] = [await columns(first.pairs[i]), await columns(second.pairs[at])],
      f1 = (await settings(first, i, asked)).factor,
      f2 = (await settings(second, at, asked)).factor;
    if (l1[0].length !== l2[0].length || r1[0].length !== r2[0].length)
      refuse("The two adapters differ in shape here.");
    const [b1, b2] = [times(l1, f1), times(l2, f2)],
      average = length(product([...b1, ...b2], [...r1, ...r2]).s) / 2,
      less = (ones, others) => ones.map((column, k) => column.map((x, j) => x - others[k][j]));
    return {
      average,
      missed: l1.length !== l2.length ? null : length(product(less(b1, b2), less(r1, r2)).s) / 4,
    };
  };
  /** A smaller adapter: each update cut at a rank, or at the least rank whose error is allowed, in the same format. */
  const shrink = async ({ asked, rank, error }, tick) => {
    const set = adapters[0],
      kept = new Map(set.tensors.map((tensor) => [tensor.name, tensor])),
      rows = [];
    if (/^(pissa|olora|corda|loftq)/i.test(set.config?.init_lora_weights))
      refuse(
        `It started from ${set.config.init_lora_weights}, which changes the base weights too: convert it to a plain adapter first (peft's save_pretrained can).`,
      );
    for (const [i, pair] of set.pairs.entries()) {
      const { r, factor } = await settings(set, i, asked),
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
      for (const start of [pair.aStart, pair.bStart]) if (start) kept.delete(start.name); // they are in the product now
      rows.push({
        path: pair.path,
        r,
        k,
        factor,
        missed: Math.abs(factor) * missed,
        whole: Math.abs(factor) * whole,
      });
      tick((i + 1) / set.pairs.length);
    }
    const tensors = [...kept.values()].map((tensor) => ({
      ...tensor,
      data: tensor.data ?? tensor.file.slice(tensor.at, tensor.at + tensor.size),
    }));
    tensors.sort((x, y) => files.widthOf(y.dtype) - files.widthOf(x.dtype)); // so that each lies where its numbers may
    return { rows, saved: files.pack(tensors, set.metadata), config: configOf(set, rows) };
  };
  /** The adapter_config.json of a smaller adapter, whose alpha / r is what it was. */
  const configOf = ({ config }, rows) => {
    const largest = rows.reduce((most, row) => Math.max(most, row.k), 1),
      common = rows.find(({ k }) => k === largest).factor;
    const alphaOf = ({ factor, k }) => factor * (config?.use_rslora ? Math.sqrt(k) : k),
      other = rows.filter(({ k, factor }) => k !== largest || factor !== common);
    const names = [...new Set(rows.map(({ path }) => path.split(".").pop()))],
      keyOf = ({ path }) => (rows.some((row) => row.path.endsWith(`.${path}`)) ? `^${path}` : path);
    return {
      peft_type: "LORA",
      target_modules: names,
      bias: "none",
      base_model_name_or_path: null,
      ...config,
      r: largest,
      lora_alpha: alphaOf({ factor: common, k: largest }),
      rank_pattern: Object.fromEntries(other.map((row) => [keyOf(row), row.k])),
      alpha_pattern: Object.fromEntries(other.map((row) => [keyOf(row), alphaOf(row)])),
    };
  };
  return { open, weigh, heads, adapter, merge, average, shrink };
};
