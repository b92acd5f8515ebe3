// The storyteller's forward pass and the cuts of its weights, as in lowrank_tutor.storyteller (in_numpy.py, cuts.py).
//
//   const model = storytellerModel(file, directions);      // the content of data/storyteller_weights.json; cuts.js
//   const { logits, tables } = model.cut(ids, "window", 8);
//   const { logits } = model.run(ids, [{ cut: "bits", k: 2 }, { cut: "window", k: 8 }], model.cutScores(4));
//
// There are tables of 2 layers times 4 heads. Of several cuts at once the last that makes a table does, and every one
// that changes keys.
const DIM = 64;
// Heads of a layer
const HEADS = 4;
const LAYERS = 2;
const readWeights = (file) => {
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
  const numbers = new Int8Array(bytes(file.numbers)),
    scales = new Float32Array(bytes(file.scales));
  const weights = {};
  let at = 0,
    row = 0;
  Object.entries(file.shapes).forEach(([name, shape]) => {
    const [rows, columns] = shape.length > 1 ? shape : [1, shape[0]];
    const weight = (weights[name.replace(".weight", "")] = new Float64Array(rows * columns));
    for (let i = 0; i < rows; i++, row++) {
      for (let j = 0; j < columns; j++) weight[i * columns + j] = numbers[at++] * scales[row];
    }
  });
  return weights;
};
/** Compute each thing once: a function of its key and of what makes it. */
const memory = () => {
  const known = new Map();
  return (key, make) => {
    if (!known.has(key)) known.set(key, make(key));
    return known.get(key);
  };
};

const normed = (x, gain) => {
  const y = new Float64Array(x.length);
  for (let t = 0; t < x.length; t += DIM) {
    let sum = 0;
    for (let i = 0; i < DIM; i++) sum += x[t + i] ** 2;
    const scale = 1 / Math.sqrt(sum / DIM + 1e-6);
    for (let i = 0; i < DIM; i++) y[t + i] = x[t + i] * scale * gain[i];
  }
  return y;
};
const addTo = (x, y, by = 0) => {
  for (let i = by; i < x.length; i++) x[i] += y[i - by];
};

/** The table and the values of a head under cuts, with settings as `rounding` makes them whole. */
const cutHead = (head, cuts, rounding) => {
  let { k, v } = head;
  cuts
    .filter(({ cut }) => KEY_CUTS[cut])
    .forEach(({ cut, k: setting }) => {
      const m = rounding(setting);
      k = KEY_CUTS[cut]({ ...head, k, m });
      if (cut === "bits") v = rounded({ k: v, m });
    });
  const x = scoresOf(head.q, k, head.n),
    exact = softmaxOf(x, head.n);
  const sheets = () => head.sheets(exact);
  const table = cuts
    .filter(({ cut }) => TABLE_CUTS[cut])
    .reduce(
      (_, { cut, k: setting }) =>
        TABLE_CUTS[cut]({ ...head, k, x, exact, sheets, m: rounding(setting) }),
      exact,
    );
  return [table, v];
};
/** The same. A setting between two whole numbers mixes what both would give; sheets fade by themselves. */
const mixedHead = (head, cuts) => {
  const share = cuts.map(({ cut, k }) => (cut === "sheets" ? 0 : k % 1)).find(Boolean);
  if (!share) return cutHead(head, cuts, (setting) => setting);
  const [low, high] = [Math.floor, Math.ceil].map((rounding) => cutHead(head, cuts, rounding));
  return low.map((x, i) => x.map((value, at) => value + share * (high[i][at] - value)));
};
/** What the heads of a layer read, n x 64; their tables join `tables`. `layer` has q, k, and v of all heads. */
const attendAll = (layer, cuts, tables) => {
  const { n } = layer,
    read = new Float64Array(n * DIM);
  for (let h = 0; h < HEADS; h++) {
    const columns = (x) => {
      const y = new Float64Array(n * WIDTH);
      rowsOf(x, DIM).forEach((row, t) =>
        y.set(row.subarray(h * WIDTH, (h + 1) * WIDTH), t * WIDTH),
      );
      return y;
    };
    const [q, k, v] = layer.qkv.map(columns);
    const index = layer.layer * HEADS + h;
    const mine = cuts.filter(({ heads }) => !heads || heads.includes(index));
    const sheets = (exact) => layer.sheets(exact, index);
    const [table, values] = mixedHead({ ...layer, q, k, v, sheets }, mine);
    tables.push(table);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) {
        const weight = table[i * n + j];
        if (weight)
          for (let d = 0; d < WIDTH; d++)
            read[i * DIM + h * WIDTH + d] += weight * values[j * WIDTH + d];
      }
    }
  }
  return read;
};
/** How far tables are from the exact ones: the norm of their difference over that of the exact ones. */
const tablesError = (tables, exact) => {
  let off = 0,
    size = 0;
  exact.forEach((table, h) =>
    table.forEach((value, at) => {
      off += (value - tables[h][at]) ** 2;
      size += value ** 2;
    }),
  );
  return Math.sqrt(off / size);
};
const sheetsOf = (table, n) => lowrankLinalg.layers(rowsOf(table, n));

/** The product of a head's query and key matrices, of rank 16, as a sum of sheets. */
const scoreSheets = (q, k, h) => {
  const [a, b] = [q, k].map((w) => rowsOf(w, DIM).slice(h * WIDTH, (h + 1) * WIDTH));
  const product = (_, i) =>
    Array.from({ length: DIM }, (_, j) => a.reduce((sum, row, l) => sum + row[i] * b[l][j], 0));
  return lowrankLinalg.layers(Array.from({ length: DIM }, product));
};

const storytellerModel = (file, directions) => {
  const trained = readWeights(file),
    once = memory();
  const nameOf = (layer, part) => "layers." + layer + "." + part;

  /** Read the words, and return the logits of the next one, or with `all` those after each word. */
  const run = (ids, cuts = [], weights = trained, all = false) => {
    const n = ids.length,
      words = new Float64Array(n * DIM),
      tables = [];
    ids.forEach((id, t) => words.set(weights.embed.subarray(id * DIM, (id + 1) * DIM), t * DIM));
    const x = words.slice();
    addTo(x, linear(words, weights.one_back, n, DIM), DIM);
    addTo(x, linear(words, weights.two_back, n, DIM), 2 * DIM);
    for (let layer = 0; layer < LAYERS; layer++) {
      const w = (part) => weights[nameOf(layer, part)];
      const y = normed(x, w("norm_1"));
      const qkv = ["q", "k", "v"].map((name) => linear(y, w(name), n, DIM));
      // Sheets that are the only cut: those of the first layer are the same for every setting
      const same = layer === 0 && weights === trained && cuts.length === 1;
      const sheets = (exact, h) =>
        same ? once([h, ...ids].join(), () => sheetsOf(exact, n)) : sheetsOf(exact, n);
      const read = attendAll({ qkv, n, layer, directions, sheets }, cuts, tables);
      addTo(x, linear(read, w("out"), n, DIM));
      const up = linear(normed(x, w("norm_2")), w("up"), n, 3 * DIM);
      const positive = up.map((value) => Math.max(value, 0));
      addTo(x, linear(positive, w("down"), n, DIM));
    }
    const last = normed(all ? x : x.slice((n - 1) * DIM), weights.norm);
    const logits = linear(last, weights.embed, last.length / DIM, weights.embed.length / DIM);
    return { logits, tables };
  };

  /** Weights with scores of this rank in each head. */
  const cutScores = (rank) => {
    const changed = { ...trained };
    for (let layer = 0; layer < LAYERS; layer++) {
      const names = ["q", "k"].map((part) => nameOf(layer, part));
      names.forEach((name) => (changed[name] = new Float64Array(DIM * DIM)));
      const [q, k] = names.map((name) => changed[name]);
      for (let h = 0; h < HEADS; h++) {
        const { u, s, v } = once(["scores", layer, h].join(), () =>
          scoreSheets(...names.map((name) => trained[name]), h),
        );
        for (let l = 0; l < rank; l++) {
          const largest = u[l].reduce((most, x) => (Math.abs(x) > Math.abs(most) ? x : most), 0);
          const at = (h * WIDTH + l) * DIM,
            // Signs as in bilinear.factorize
            root = Math.sign(largest) * Math.sqrt(s[l]);
          u[l].forEach((x, i) => (q[at + i] = root * x));
          v[l].forEach((x, i) => (k[at + i] = root * x));
        }
      }
    }
    return changed;
  };
  /** Weights whose keys and values follow from this many latent numbers of a word. */
  const cutLatents = (rank) => {
    const changed = { ...trained };
    for (let layer = 0; layer < LAYERS; layer++) {
      const names = ["k", "v"].map((part) => nameOf(layer, part));
      const sheets = once("latents" + layer, () =>
        lowrankLinalg.layers(names.flatMap((name) => rowsOf(trained[name], DIM))),
      );
      const both = sumOfSheets(sheets, rank);
      names.forEach((name, i) => (changed[name] = both.slice(i * DIM * DIM, (i + 1) * DIM * DIM)));
    }
    return changed;
  };

  /** Read the words with one cut, of the tables or of the weights; k = 0 cuts nothing. */
  const cut = (ids, name, k, all) => {
    const weights = { scores: cutScores, latents: cutLatents }[name];
    if (weights && k) return run(ids, [], weights(k), all);
    return run(ids, k ? [{ cut: name, k }] : [], trained, all);
  };

  return { run, cut, error: tablesError, cutScores, cutLatents, trained };
};
