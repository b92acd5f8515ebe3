// What the page asks of its worker, once the files are open: measure a weight, heads, or an adapter, or make it smaller.
{
  /** Weights and heads. */
  const weighing = ({
    state,
    refuse,
    sides,
    flaw,
    loadTensor,
    spectrumOf,
    report,
    product,
    whole,
    headsIn,
  }) => {
    const load = async (tensor, axes = 2) => {
      const words = flaw(tensor, state.weights, axes);
      return words ? refuse(words) : loadTensor(tensor, state.weights);
    };
    const weigh = async (name, tick) => {
      const tensor = state.weights.get(name),
        loaded = await load(tensor);
      return { name, ...spectrumOf(loaded, ...sides(tensor), tick) };
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
      const { groups, model } = state,
        { q, k, v, o, all, turned } = groups.find((group) => group.name === name),
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
        const told = (left, right) => report(product(left, right));
        rows.push({ head, width, qk: told(queries, keys), vo: told(back, values) });
        tick((head + 1) / asked);
      }
      return { name, rows, shared: shared < asked ? asked / shared : 0 };
    };
    return { load, lines, weigh, heads };
  };

  // Adapters: the update is factor times L R^T, where the columns of L are those of B, and the columns of R the rows of A.
  const adapters = ({
    state,
    baseOf,
    patternOf,
    refuse,
    sides,
    load,
    lines,
    inBfloat16,
    product,
    report,
    length,
    addTimes,
  }) => {
    const fits = (x) => x === 0 || (x > 1e-30 && x < 1e30); // so that no square overflows or vanishes
    const settings = async ({ path, a, alpha }) => {
      const { config } = state.adapter,
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
    const pairOf = (path) => state.adapter.pairs.find((pair) => pair.path === path);
    /** The spectrum of an update, and its size beside that of the weight it changes, if that is there. */
    const update = async (path) => {
      const pair = pairOf(path),
        { r, factor } = await settings(pair),
        cut = product(...(await columns(pair))),
        s = cut.s.map((x) => Math.abs(factor) * x),
        base = baseOf(pair);
      const { numbers: w, largest } = base ? await load(base) : { numbers: [] },
        whole = largest * Math.sqrt(w.reduce((sum, x) => sum + (x / largest) ** 2, 0));
      return {
        r,
        factor,
        ...report({ ...cut, s }),
        size: length(s),
        strength: base ? length(s) / whole : null,
      };
    };
    /** The error of the update that arrives if it is added in bfloat16: on all inputs, and on those that A reads. */
    const merge = async (path, tick) => {
      const pair = pairOf(path),
        { factor } = await settings(pair),
        [left, right] = await columns(pair);
      const { q, m, n } = product(left, right, true),
        base = baseOf(pair),
        w = (await load(base)).numbers,
        turned = base.shape[0] !== m || (m === n && state.adapter.config?.fan_in_fan_out);
      const update = new Float64Array(n),
        lost = new Float64Array(n),
        sums = [0, 0, 0, 0];
      for (let row = 0; row < m; row++) {
        update.fill(0);
        right.forEach((a, k) => addTimes(update, a, factor * left[k][row]));
        for (let j = 0; j < n; j++) {
          const old = inBfloat16(w[turned ? j * m + row : row * n + j]);
          lost[j] = inBfloat16(Math.fround(old + update[j])) - old - update[j];
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
    return { settings, columns, update, merge };
  };

  /** Smaller adapters. */
  const shrinking = ({
    state,
    SIZES,
    refuse,
    settings,
    columns,
    endsOf,
    product,
    report,
    length,
    encode,
    decode,
    pack,
  }) => {
    /** A smaller adapter: each update cut at a rank, or at the least rank whose error is allowed, in the same format. */
    const shrink = async ({ rank, error }, tick) => {
      const { config, tensors: given, pairs, metadata } = state.adapter,
        kept = new Map(given.map((tensor) => [tensor.name, tensor])),
        rows = [];
      for (const [i, pair] of pairs.entries()) {
        if (!config && !pair.alpha)
          refuse("Choose its adapter_config.json, too, which says alpha.");
        const { r, factor } = await settings(pair),
          [left, right] = await columns(pair),
          cut = product(left, right, true),
          { dtype } = pair.a;
        if (!/^(BF|F)(16|32)$|^F64$/.test(dtype))
          refuse(`Factors of type ${dtype} can't be written by this page.`);
        const { errors } = report(cut),
          { m, n } = cut;
        const least = rank ?? errors.findIndex((each) => each <= error),
          k = Math.max(1, Math.min(least, cut.s.length, rank ?? Infinity));
        const roots = Array.from(cut.s.subarray(0, k), Math.sqrt);
        const rounded = (list) => list.map((column) => encode(dtype, column)),
          back = (list) => list.map((x) => Float64Array.from(decode(dtype, x.buffer)));
        const [l, s] = [cut.left, cut.right].map((direction) =>
          rounded(roots.map((root, j) => direction(j).map((x) => x * root))),
        );
        const missed = length(
            product([...left, ...back(l).map((x) => x.map((y) => -y))], [...right, ...back(s)]).s,
          ),
          whole = length(cut.s);
        const a = new l[0].constructor(k * n).map((_, at) => s[Math.floor(at / n)][at % n]),
          b = new l[0].constructor(m * k).map((_, at) => l[at % k][Math.floor(at / k)]);
        kept.set(pair.a.name, { ...pair.a, shape: [k, ...pair.a.shape.slice(1)], data: a });
        kept.set(pair.b.name, {
          ...pair.b,
          dtype,
          shape: [m, k, ...pair.b.shape.slice(2)],
          data: b,
        });
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
        tick((i + 1) / pairs.length);
      }
      const tensors = [...kept.values()].map((tensor) => ({
        ...tensor,
        data: tensor.data ?? tensor.file.slice(tensor.at, tensor.at + tensor.size),
      }));
      tensors.sort((x, y) => (SIZES[y.dtype] ?? 1) - (SIZES[x.dtype] ?? 1)); // so that each lies where its numbers may
      return {
        rows,
        saved: pack(tensors, metadata),
        config: config && configOf(config, rows),
      };
    };
    /** The adapter_config.json of a smaller adapter, whose alpha / r is what it was. */
    const configOf = (config, rows) => {
      const largest = rows.reduce((most, row) => Math.max(most, row.k), 1),
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
    return { shrink };
  };

  window.microscopeParts.push(weighing, adapters, shrinking);
}
