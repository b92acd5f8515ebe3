// The storyteller's forward pass and the cuts of its attention, as in lowrank_tutor.storyteller (in_numpy.py, cuts.py).
//
//   const model = storytellerModel(file);                  // the content of data/storyteller_weights.json
//   const { logits, tables } = model.run(ids, { cut: "window", k: 8 });
//   const { logits } = model.run(ids, [{ cut: "bits", k: 2 }, { cut: "window", k: 8 }], model.cutScores(4));
//
// A table is a Float64Array of n x n weights, a row for each word that listens; there are 2 layers times 4 heads. Of
// several cuts at once the last that makes a table does, and every one that changes keys.
const storytellerModel = (file) => {
  const DIM = 64,
    HEADS = 4,
    WIDTH = 16,
    LAYERS = 2,
    EPS = 1e-6;
  const SMALL = 4; // numbers of an index's key
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
  const trained = {};
  {
    const numbers = new Int8Array(bytes(file.numbers)),
      scales = new Float32Array(bytes(file.scales));
    let at = 0,
      row = 0;
    Object.entries(file.shapes).forEach(([name, shape]) => {
      const [rows, columns] = shape.length > 1 ? shape : [1, shape[0]];
      const weight = (trained[name.replace(".weight", "")] = new Float64Array(rows * columns));
      for (let i = 0; i < rows; i++, row++) {
        for (let j = 0; j < columns; j++) weight[i * columns + j] = numbers[at++] * scales[row];
      }
    });
  }

  /** x W^T for n rows of x; W has `out` rows. */
  const linear = (x, w, n, out) => {
    const width = x.length / n,
      y = new Float64Array(n * out);
    for (let t = 0; t < n; t++) {
      for (let o = 0; o < out; o++) {
        let sum = 0;
        for (let i = 0, a = t * width, b = o * width; i < width; i++) sum += x[a + i] * w[b + i];
        y[t * out + o] = sum;
      }
    }
    return y;
  };
  const normed = (x, gain) => {
    const y = new Float64Array(x.length);
    for (let t = 0; t < x.length; t += DIM) {
      let sum = 0;
      for (let i = 0; i < DIM; i++) sum += x[t + i] ** 2;
      const scale = 1 / Math.sqrt(sum / DIM + EPS);
      for (let i = 0; i < DIM; i++) y[t + i] = x[t + i] * scale * gain[i];
    }
    return y;
  };
  const add = (x, y, by = 0) => {
    for (let i = by; i < x.length; i++) x[i] += y[i - by];
  };

  // Tables of a head, from its queries and keys: n x 16 numbers each
  const scores = (q, k, n) => {
    const x = new Float64Array(n * n).fill(-Infinity);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) {
        let sum = 0;
        for (let d = 0; d < WIDTH; d++) sum += q[i * WIDTH + d] * k[j * WIDTH + d];
        x[i * n + j] = sum / Math.sqrt(WIDTH);
      }
    }
    return x;
  };
  /** Softmax of each row, of the entries that `sees(i, j)` allows. */
  const softmax = (x, n, sees = () => true) => {
    const p = new Float64Array(n * n);
    for (let i = 0; i < n; i++) {
      let top = -Infinity,
        sum = 0;
      for (let j = 0; j <= i; j++) if (sees(i, j)) top = Math.max(top, x[i * n + j]);
      for (let j = 0; j <= i; j++)
        if (sees(i, j)) sum += p[i * n + j] = Math.exp(x[i * n + j] - top);
      for (let j = 0; j <= i; j++) p[i * n + j] /= sum;
    }
    return p;
  };
  const rows = (table, n) => Array.from({ length: n }, (_, i) => table.subarray(i * n, i * n + n));
  const lower = (table, n) => {
    for (let i = 0; i < n; i++) table.fill(0, i * n + i + 1, i * n + n);
    return table;
  };
  /** The first k sheets of a table, the last one faded if k is no whole number, without what would look ahead. */
  const sum = ({ u, s, v }, n, k) => {
    const table = new Float64Array(n * n);
    for (let l = 0; l < Math.min(k, n); l++) {
      for (let i = 0; i < n; i++)
        for (let j = 0; j <= i; j++)
          table[i * n + j] += Math.min(1, k - l) * s[l] * u[l][i] * v[l][j];
    }
    return table;
  };
  /** Each row's words in k groups of neighbors, or in groups that start at the places k, with the mean logit of each, and
   * as many votes as words. */
  const means = (x, n, k) => {
    const table = new Float64Array(n * n);
    for (let i = 0; i < n; i++) {
      const groups = Math.min(k, i + 1),
        even = (_, g) => Math.floor((g * (i + 1)) / groups);
      const starts = Array.isArray(k)
        ? k.filter((at) => at <= i)
        : Array.from({ length: groups }, even);
      const ends = [...starts.slice(1), i + 1];
      const found = starts.map((start, g) => {
        const row = x.subarray(i * n + start, i * n + ends[g]);
        return row.reduce((a, b) => a + b, 0) / row.length + Math.log(row.length);
      });
      lowrankLinalg
        .softmax(found)
        .forEach((share, g) =>
          table.fill(share / (ends[g] - starts[g]), i * n + starts[g], i * n + ends[g]),
        );
    }
    return table;
  };
  /** Random rows along which keys and queries are compared: those that the page carries. */
  const along = (x, n, count) => linear(x, model.directions.subarray(0, count * WIDTH), n, count);
  const features = ({ q, k, n, m }) => {
    const of = (x) => {
      const small = x.map((value) => value / WIDTH ** 0.25),
        f = along(small, n, m);
      return f.map((value, at) => {
        const row = small.subarray(Math.floor(at / m) * WIDTH, (Math.floor(at / m) + 1) * WIDTH);
        return Math.exp(value - row.reduce((a, b) => a + b * b, 0) / 2);
      });
    };
    const [a, b] = [of(q), of(k)],
      table = lower(linear(a, b, n, n), n);
    rows(table, n).forEach((row) => {
      const all = row.reduce((x, y) => x + y, 0);
      row.forEach((value, j) => (row[j] = value / all));
    });
    return table;
  };
  const transposed = (count) =>
    Float64Array.from(
      { length: count * WIDTH },
      (_, at) => model.directions[(at % count) * WIDTH + Math.floor(at / count)],
    );
  /** Keys as their images under the first m directions, carried back: W^T W k / m. */
  const projected = (k, n, m) =>
    linear(along(k, n, m), transposed(m), n, WIDTH).map((value) => value / m);
  const signs = (k, n, m) => {
    const sides = along(k, n, m).map((value, at) => {
      const row = k.subarray(Math.floor(at / m) * WIDTH, (Math.floor(at / m) + 1) * WIDTH);
      return (value >= 0 ? 1 : -1) * Math.hypot(...row);
    });
    return linear(sides, transposed(m), n, WIDTH).map(
      (value) => (value * Math.sqrt(Math.PI / 2)) / m,
    );
  };
  /** Whether word j is among the k to which word i listens most; among equals the earlier. */
  const among = (x, n, k) => {
    const chosen = rows(x, n).map((row, i) => {
      const order = Array.from({ length: i + 1 }, (_, j) => j).sort(
        (a, b) => row[b] - row[a] || a - b,
      );
      return new Set(order.slice(0, k));
    });
    return (i, j) => chosen[i].has(j);
  };
  /** How far each key lies from the mean of the keys up to it. */
  const distances = (k, n) => {
    const total = new Float64Array(WIDTH);
    return Array.from({ length: n }, (_, t) => {
      const key = k.subarray(t * WIDTH, (t + 1) * WIDTH);
      return Math.hypot(...key.map((value, d) => value - (total[d] += value) / (t + 1)));
    });
  };
  /** Each row of 16 numbers rounded to 2^bits levels from its least to its largest. */
  const rounded = (x, bits) => {
    const y = new Float64Array(x.length);
    for (let t = 0; t < x.length; t += WIDTH) {
      const row = x.subarray(t, t + WIDTH),
        low = Math.min(...row);
      const step = Math.max(Math.max(...row) - low, 1e-12) / (2 ** bits - 1);
      row.forEach((value, i) => (y[t + i] = low + step * Math.floor((value - low) / step + 0.5)));
    }
    return y;
  };
  const KEYS = {
    // cuts that change keys, or keys and values
    bits: (k, n, m) => rounded(k, m),
    projected,
    signs,
  };
  const TABLES = {
    // cuts that change the table; `whole` is the exact one, `svd` gives its sheets
    sheets: ({ n, m, svd }) => sum(svd(), n, m),
    window: ({ x, n, m }) => softmax(x, n, (i, j) => i - j < m),
    means: ({ x, n, m }) => means(x, n, m),
    features,
    top: ({ x, n, m }) => softmax(x, n, among(x, n, m)),
    index: ({ q, k, x, n, m }) => softmax(x, n, among(scores(q, projected(k, n, SMALL), n), n, m)),
    unusual: ({ k, x, n, m }) => {
      const far = distances(k, n),
        isNew = (at) => Math.floor(at / n) - (at % n) < Math.ceil(m / 2);
      const worth = x.map((_, at) => (isNew(at) ? Infinity : far[at % n]));
      return softmax(x, n, among(worth, n, m));
    },
    layers: ({ n, m, layer, whole }) => (layer === m - 1 ? whole : new Float64Array(n * n)),
    none: ({ n }) => new Float64Array(n * n), // a head that reads nothing
  };

  const known = new Map(); // sheets of the first layer's tables, which are the same for every cut
  const sheetsOf = (table, n, key) => {
    if (known.has(key)) return known.get(key);
    const found = lowrankLinalg.layers(rows(table, n).map((row) => Array.from(row)));
    if (key) known.set(key, found);
    return found;
  };

  const attend = (heads, n, cuts, layer, into, key) => {
    const read = new Float64Array(n * DIM);
    for (let h = 0; h < HEADS; h++) {
      const part = heads.map((x) => {
        const y = new Float64Array(n * WIDTH);
        for (let t = 0; t < n; t++)
          y.set(x.subarray(t * DIM + h * WIDTH, t * DIM + (h + 1) * WIDTH), t * WIDTH);
        return y;
      });
      const [q] = part,
        mine = cuts.filter(({ heads: only }) => !only || only.includes(layer * HEADS + h));
      /** The table and the values, with settings as `setting` rounds them. */
      const heard = (setting) => {
        let [, k, v] = part;
        mine
          .filter(({ cut }) => KEYS[cut])
          .forEach(({ cut, k: m }) => {
            k = KEYS[cut](k, n, setting(m));
            if (cut === "bits") v = rounded(v, setting(m));
          });
        const x = scores(q, k, n),
          whole = softmax(x, n),
          untouched = k === part[1];
        const svd = () => sheetsOf(whole, n, key && untouched ? key + h : "");
        const table = mine
          .filter(({ cut }) => TABLES[cut])
          .reduce(
            (_, { cut, k: m }) => TABLES[cut]({ q, k, x, n, m: setting(m), layer, whole, svd }),
            whole,
          );
        return [table, v];
      };
      // A setting between two whole numbers mixes what both would give; sheets fade by themselves
      const share = mine.map(({ cut, k }) => (cut === "sheets" ? 0 : k % 1)).find(Boolean);
      let [table, v] = heard(share ? Math.floor : (m) => m);
      if (share) {
        const other = heard(Math.ceil);
        [table, v] = [table, v].map((x, i) =>
          x.map((one, at) => one + share * (other[i][at] - one)),
        );
      }
      into.tables.push(table);
      for (let i = 0; i < n; i++) {
        for (let j = 0; j <= i; j++) {
          const weight = table[i * n + j];
          if (weight)
            for (let d = 0; d < WIDTH; d++)
              read[i * DIM + h * WIDTH + d] += weight * v[j * WIDTH + d];
        }
      }
    }
    return read;
  };

  /** Read the words, and return the logits of the next one, or with `all` those after each word. */
  const run = (ids, cuts = [], weights = trained, all = false) => {
    const n = ids.length,
      words = new Float64Array(n * DIM),
      found = { tables: [] };
    ids.forEach((id, t) => words.set(weights.embed.subarray(id * DIM, (id + 1) * DIM), t * DIM));
    const x = words.slice();
    add(x, linear(words, weights.one_back, n, DIM), DIM);
    add(x, linear(words, weights.two_back, n, DIM), 2 * DIM);
    for (let layer = 0; layer < LAYERS; layer++) {
      const w = (name) => weights["layers." + layer + "." + name];
      const y = normed(x, w("norm_1"));
      const heads = ["q", "k", "v"].map((name) => linear(y, w(name), n, DIM));
      const key = layer === 0 && weights === trained ? ids.join() + "/" : "";
      add(x, linear(attend(heads, n, [cuts].flat(), layer, found, key), w("out"), n, DIM));
      const up = linear(normed(x, w("norm_2")), w("up"), n, 3 * DIM).map((value) =>
        Math.max(value, 0),
      );
      add(x, linear(up, w("down"), n, DIM));
    }
    const last = normed(all ? x : x.slice((n - 1) * DIM), weights.norm);
    return {
      logits: linear(last, weights.embed, last.length / DIM, weights.embed.length / DIM),
      ...found,
    };
  };

  /** How far tables are from the exact ones: the norm of their difference over that of the exact ones. */
  const error = (tables, exact) => {
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

  // Weights whose matrices are cut: of each head's scores, or of what makes keys and values
  const decomposed = new Map();
  const once = (key, make) => decomposed.get(key) || decomposed.set(key, make()).get(key);
  const part = (w, h) =>
    Array.from({ length: WIDTH }, (_, i) =>
      w.slice((h * WIDTH + i) * DIM, (h * WIDTH + i + 1) * DIM),
    );
  const cutScores = (rank) => {
    const changed = { ...trained };
    for (let layer = 0; layer < LAYERS; layer++) {
      const [q, k] = ["q", "k"].map((name) => trained["layers." + layer + "." + name]);
      const [newQ, newK] = [new Float64Array(DIM * DIM), new Float64Array(DIM * DIM)];
      for (let h = 0; h < HEADS; h++) {
        const { u, s, v } = once(["scores", layer, h].join(), () => {
          const [a, b] = [part(q, h), part(k, h)]; // a^T b, of rank 16
          return lowrankLinalg.layers(
            Array.from({ length: DIM }, (_, i) =>
              Array.from({ length: DIM }, (_, j) =>
                a.reduce((sum, row, l) => sum + row[i] * b[l][j], 0),
              ),
            ),
          );
        });
        for (let l = 0; l < rank; l++) {
          const largest = u[l].reduce((most, x) => (Math.abs(x) > Math.abs(most) ? x : most), 0);
          const at = (h * WIDTH + l) * DIM,
            root = Math.sign(largest) * Math.sqrt(s[l]); // signs as in bilinear.factorize
          u[l].forEach((x, i) => (newQ[at + i] = root * x));
          v[l].forEach((x, i) => (newK[at + i] = root * x));
        }
      }
      changed["layers." + layer + ".q"] = newQ;
      changed["layers." + layer + ".k"] = newK;
    }
    return changed;
  };
  const cutLatents = (rank) => {
    const changed = { ...trained };
    for (let layer = 0; layer < LAYERS; layer++) {
      const names = ["k", "v"].map((name) => "layers." + layer + "." + name);
      const { u, s, v } = once("latents" + layer, () =>
        lowrankLinalg.layers(
          names.flatMap((name) =>
            Array.from({ length: DIM }, (_, i) =>
              Array.from(trained[name].slice(i * DIM, (i + 1) * DIM)),
            ),
          ),
        ),
      );
      names.forEach((name, which) => {
        changed[name] = new Float64Array(DIM * DIM);
        for (let l = 0; l < rank; l++) {
          for (let i = 0; i < DIM; i++) {
            for (let j = 0; j < DIM; j++)
              changed[name][i * DIM + j] +=
                Math.min(1, rank - l) * s[l] * u[l][which * DIM + i] * v[l][j];
          }
        }
      });
    }
    return changed;
  };

  /** Read the words with one cut, of the tables or of the weights; k = 0 cuts nothing. */
  const cut = (ids, name, k, all) => {
    const weights = { scores: cutScores, latents: cutLatents }[name];
    if (weights && k) return run(ids, [], weights(k), all);
    return run(ids, k ? [{ cut: name, k }] : [], trained, all);
  };

  const model = {
    run,
    cut,
    error,
    cutScores,
    cutLatents,
    trained,
    directions: null,
    sheetsOf,
    HEADS,
    LAYERS,
  };
  return model;
};

/** The word that follows from a story so far, and the job that it tests; two empty words if none does (language.py). */
const storyAnswer = (said, kinds) => {
  const triples = said.slice(2).map((third, i) => [said[i], said[i + 1], third]);
  const [one, two, three, four, five, six] = said.slice(-6).reverse(); // from the last word back
  const named = (word) => kinds.name.includes(word),
    reasoned = (deed) => kinds.deed.indexOf(deed);
  if (named(two) && ["wears", "has"].includes(one)) {
    if (three === "now") return ["", ""];
    const told = triples
      .filter(([name, verb]) => name === two && verb === one)
      .map(([, , thing]) => thing);
    return told.length ? [told.at(-1), new Set(told).size > 1 ? "new fact" : "far fact"] : ["", ""];
  }
  if (one === "?" && four === "who") {
    const owners = triples.filter(
      ([name, ...fact]) => named(name) && fact.join() === [three, two].join(),
    );
    return owners.length ? [owners.at(-1)[0], "who"] : ["", ""];
  }
  if (one === "it" && two === "mostly") {
    const days = triples.filter(([it]) => it === "it").map(([, day]) => day);
    const often = kinds.weather.map((day) => days.filter((one) => one === day).length),
      most = Math.max(...often);
    return often.filter((times) => times === most).length === 1
      ? [kinds.weather[often.indexOf(most)], "most"]
      : ["", ""];
  }
  const animal = (word) => kinds.animal.includes(word) || kinds.animals.includes(word);
  const agrees =
    animal(one) &&
    two === "the" &&
    three === "near" &&
    animal(four) &&
    ["old", "little"].includes(five);
  if (agrees && six === "the")
    return [kinds[kinds.animals.includes(four) ? "do" : "does"][0], "agreement"];
  if (one === "because" && reasoned(two) >= 0)
    return [kinds.animals.includes(three) ? "they" : "it", "reference"];
  if (["was", "were"].includes(one) && three === "because" && reasoned(four) >= 0) {
    return [kinds.mood[reasoned(four)], "reason"];
  }
  const tune = said.slice(0, Math.max(0, said.indexOf(":"))),
    at = tune.indexOf(one);
  return at >= 0 && at < tune.length - 1 && kinds.note.includes(one)
    ? [tune[at + 1], "copy"]
    : ["", ""];
};
