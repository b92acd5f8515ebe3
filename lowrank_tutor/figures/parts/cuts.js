// A head's table, exact and cut, as in lowrank_tutor.storyteller (cuts.py).
//
// Queries, keys, and values are n x 16 numbers. A table is a Float64Array of n x n weights, a row for each word that
// listens. `m` says how much a cut keeps; along the random rows of `directions`, some compare keys and queries.
// Numbers of a query, a key, or a value
const WIDTH = 16;
// Numbers of an index's key
const SMALL = 4;
const rowsOf = (x, width) =>
  Array.from({ length: x.length / width }, (_, i) => x.subarray(i * width, (i + 1) * width));

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
const scoresOf = (q, k, n) => {
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
const softmaxOf = (x, n, sees = () => true) => {
  const p = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    let top = -Infinity,
      sum = 0;
    for (let j = 0; j <= i; j++) if (sees(i, j)) top = Math.max(top, x[i * n + j]);
    for (let j = 0; j <= i; j++) if (sees(i, j)) sum += p[i * n + j] = Math.exp(x[i * n + j] - top);
    for (let j = 0; j <= i; j++) p[i * n + j] /= sum;
  }
  return p;
};
/** The first k sheets of a matrix, the last one faded if k is no whole number. */
const sumOfSheets = ({ u, s, v }, k) => {
  const [rows, columns] = [u[0].length, v[0].length],
    sum = new Float64Array(rows * columns);
  for (let l = 0; l < Math.min(k, s.length); l++) {
    for (let i = 0; i < rows; i++) {
      const weight = Math.min(1, k - l) * s[l] * u[l][i];
      for (let j = 0; j < columns; j++) sum[i * columns + j] += weight * v[l][j];
    }
  }
  return sum;
};
/** A table without what would look ahead. */
const lower = (table, n) => {
  rowsOf(table, n).forEach((row, i) => row.fill(0, i + 1));
  return table;
};
/** Each row's words in m groups of neighbors, or in groups that start at the places m, with the mean logit of each, and
 * as many votes as words. */
const meansOf = ({ x, n, m }) => {
  const table = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    const groups = Math.min(m, i + 1),
      even = (_, g) => Math.floor((g * (i + 1)) / groups);
    const starts = Array.isArray(m)
      ? m.filter((at) => at <= i)
      : Array.from({ length: groups }, even);
    const ends = [...starts.slice(1), i + 1];
    const logits = starts.map((start, g) => {
      const row = x.subarray(i * n + start, i * n + ends[g]);
      return row.reduce((a, b) => a + b, 0) / row.length + Math.log(row.length);
    });
    lowrankLinalg
      .softmax(logits)
      .forEach((share, g) =>
        table.fill(share / (ends[g] - starts[g]), i * n + starts[g], i * n + ends[g]),
      );
  }
  return table;
};
const alongFirst = (count, x, { n, directions }) =>
  linear(x, directions.subarray(0, count * WIDTH), n, count);
const featuresTable = ({ q, k, n, m, directions }) => {
  const [a, b] = [q, k].map((x) => {
    const small = x.map((value) => value / WIDTH ** 0.25);
    const halves = rowsOf(small, WIDTH).map((row) => row.reduce((a, b) => a + b * b, 0) / 2);
    return alongFirst(m, small, { n, directions }).map((value, at) =>
      Math.exp(value - halves[Math.floor(at / m)]),
    );
  });
  const table = lower(linear(a, b, n, n), n);
  rowsOf(table, n).forEach((row) => {
    const all = row.reduce((x, y) => x + y, 0);
    row.forEach((value, j) => (row[j] = value / all));
  });
  return table;
};
/** Images under the first m directions, carried back: W^T x / m. */
const carriedBack = (images, { n, m, directions }, scale = 1) => {
  const transposed = Float64Array.from(
    { length: m * WIDTH },
    (_, at) => directions[(at % m) * WIDTH + Math.floor(at / m)],
  );
  return linear(images, transposed, n, WIDTH).map((value) => (value * scale) / m);
};
const projectedKeys = ({ k, ...head }) => carriedBack(alongFirst(head.m, k, head), head);
const signedKeys = ({ k, ...head }) => {
  const norms = rowsOf(k, WIDTH).map((row) => Math.hypot(...row));
  const sides = alongFirst(head.m, k, head).map(
    (value, at) => (value >= 0 ? 1 : -1) * norms[Math.floor(at / head.m)],
  );
  return carriedBack(sides, head, Math.sqrt(Math.PI / 2));
};
/** Each row of 16 numbers rounded to 2^m levels from its least to its largest. */
const rounded = ({ k, m }) => {
  const y = k.slice();
  rowsOf(y, WIDTH).forEach((row) => {
    const low = Math.min(...row),
      step = Math.max(Math.max(...row) - low, 1e-12) / (2 ** m - 1);
    row.forEach((value, i) => (row[i] = low + step * Math.floor((value - low) / step + 0.5)));
  });
  return y;
};
/** The table of the m words to which each word listens most by `worth`; among equals the earlier. */
const topTable = ({ x, n, m }, worth = x) => {
  const chosen = rowsOf(worth, n).map((row, i) => {
    const order = Array.from({ length: i + 1 }, (_, j) => j).sort(
      (a, b) => row[b] - row[a] || a - b,
    );
    return new Set(order.slice(0, m));
  });
  return softmaxOf(x, n, (i, j) => chosen[i].has(j));
};
const indexTable = (head) =>
  topTable(head, scoresOf(head.q, projectedKeys({ ...head, m: SMALL }), head.n));
/** The table of half of the m words new, and of those whose key is farthest from the mean of the keys up to it. */
const unusualTable = ({ k, x, n, m }) => {
  const total = new Float64Array(WIDTH);
  const far = rowsOf(k, WIDTH).map((key, t) =>
    Math.hypot(...key.map((value, d) => value - (total[d] += value) / (t + 1))),
  );
  const isNew = (at) => Math.floor(at / n) - (at % n) < Math.ceil(m / 2);
  return topTable(
    { x, n, m },
    x.map((_, at) => (isNew(at) ? Infinity : far[at % n])),
  );
};

/** Cuts that change keys, or, as bits do, keys and values. */
const KEY_CUTS = { bits: rounded, projected: projectedKeys, signs: signedKeys };
/** Cuts that change the table; `exact` is the uncut one, of the scores x, and `sheets` gives its sheets. */
const TABLE_CUTS = {
  sheets: ({ n, m, sheets }) => lower(sumOfSheets(sheets(), m), n),
  window: ({ x, n, m }) => softmaxOf(x, n, (i, j) => i - j < m),
  means: meansOf,
  features: featuresTable,
  top: topTable,
  index: indexTable,
  unusual: unusualTable,
  layers: ({ n, m, layer, exact }) => (layer === m - 1 ? exact : new Float64Array(n * n)),
  // A head that reads nothing
  none: ({ n }) => new Float64Array(n * n),
};
