// The little linear algebra that figures need, judged against NumPy.
//
// Chapter 2 explains the decomposition. A matrix is an array of rows; no function changes its arguments. Entries are
// finite, of a size between 1e-75 and 1e75, or zero. A page that loads this file alone finds `lowrankLinalg`; inside
// the block of an instrument the name stays within, and `source` is what a worker runs, with more parts if it likes: each
// gets what those before it return, and sees nothing else.
const linalgProducts = () => {
  const dot = (x, y, from = 0) => {
    // Two sums, so that no addition waits for the one before.
    let even = 0,
      odd = 0,
      i = from;
    for (; i + 1 < x.length; i += 2) {
      even += x[i] * y[i];
      odd += x[i + 1] * y[i + 1];
    }
    return i < x.length ? even + odd + x[i] * y[i] : even + odd;
  };
  /** The squared distances of points 1 and 0, 2 and 0, 2 and 1, 3 and 0, ... in their first `width` coordinates. */
  const distances = (points, width) =>
    points.flatMap((x, i) =>
      points.slice(0, i).map((y) => {
        let sum = 0;
        for (let j = 0; j < width; j++) sum += (x[j] - y[j]) ** 2;
        return sum;
      }),
    );
  /** Add w times y to x. */
  const addTimes = (x, y, w, from = 0) => {
    for (let i = from; i < x.length; i++) x[i] += w * y[i];
  };
  /** The first `count` columns of the identity. */
  const units = (n, count) =>
    Array.from({ length: count }, (_, i) => new Float64Array(n).fill(1, i, i + 1));
  /** The columns of a matrix, or the rows of one given by columns. */
  const transpose = (a) => Array.from(a[0], (_, j) => Float64Array.from(a, (row) => row[j]));

  /** The product of a (m x p) and b (p x n): m x n. */
  const matmul = (a, b) => {
    const columns = transpose(b);
    return a.map((row) => columns.map((column) => dot(row, column)));
  };

  /** The softmax of a list of scores: positive weights of sum 1, a larger score a larger weight. */
  const softmax = (scores) => {
    // Without the top, exp(1000) would be infinite.
    const top = Math.max(...scores);
    const powers = Array.from(scores, (score) => Math.exp(score - top));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((power) => power / sum);
  };

  /** The relative error of a matrix that is cut after 0, 1, ... singular values: of the length of s, what is left. */
  const errors = (s) => {
    let rest = 0;
    const tails = s.reduceRight((all, x) => [(rest += x * x), ...all], [0]);
    return tails.map((tail) => Math.sqrt(tail / (tails[0] || 1)));
  };

  /** A generator of standard normal numbers: the same seed, a whole number, gives the same sequence everywhere. */
  const normal = (seed) => {
    let at = seed >>> 0;
    const uniform = () => {
      // mulberry32 of T. Ettinger: 32 bits of state; 0 < uniform < 1
      at = (at + 0x6d2b79f5) >>> 0;
      let bits = Math.imul(at ^ (at >>> 15), at | 1);
      bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
      return (((bits ^ (bits >>> 14)) >>> 0) + 0.5) / 2 ** 32;
    };
    // Box and Muller, 1958.
    return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  };

  return { dot, distances, addTimes, units, transpose, matmul, softmax, errors, normal };
};

const linalgMirrors = ({ dot, addTimes, units }) => {
  /** Reflect x in the plane perpendicular to v, of squared length vv, whose entries before `from` are zero. */
  const reflect = (x, v, vv, from) => addTimes(x, v, (-2 * dot(v, x, from)) / vv, from);

  /** The mirror that sends x to a multiple of unit vector k and leaves the entries before it alone. */
  const mirror = (x, k) => {
    const v = x.slice().fill(0, 0, k);
    v[k] += (v[k] < 0 ? -1 : 1) * Math.sqrt(dot(v, v));
    return [v, dot(v, v)];
  };

  // A = Q R by Householder's reflections, all of them by columns: q (m x r, if `both` are asked for) is orthonormal,
  // r (r x n) is upper triangular, its diagonal never negative.
  const qr = (given, both = true) => {
    const m = given[0].length,
      rank = Math.min(m, given.length);
    const r = given.map((column) => Float64Array.from(column));
    const mirrors = [];
    for (let j = 0; j < rank; j++) {
      mirrors.push(mirror(r[j], j));
      const [v, vv] = mirrors[j];
      if (vv) for (let i = j; i < r.length; i++) reflect(r[i], v, vv, j);
    }
    const q = units(m, both ? rank : 0);
    for (let j = q.length - 1; j >= 0; j--) {
      const [v, vv] = mirrors[j];
      if (vv) for (let i = j; i < rank; i++) reflect(q[i], v, vv, j);
    }
    for (let j = 0; j < rank; j++) {
      // A diagonal that is not negative makes the factors unique.
      if (r[j][j] >= 0) continue;
      q[j]?.forEach((x, i) => (q[j][i] = -x));
      r.forEach((column) => (column[j] = -column[j]));
    }
    return { q, r: r.map((column, j) => column.slice(0, rank).fill(0, Math.min(j + 1, rank))) };
  };

  /** Reflect the columns of a, from `first` on, along the vector with entry w[i] for column i. */
  const reflectAcross = (a, w, ww, first) => {
    const along = new Float64Array(a[0].length);
    for (let i = first; i < w.length; i++) addTimes(along, a[i], w[i]);
    for (let i = first; i < w.length; i++) addTimes(a[i], along, (-2 * w[i]) / ww);
  };
  /** A = U B V^T for tall A given by columns: B has diagonal d and, above it, e; both change sign freely. */
  const bidiagonal = (a) => {
    const m = a[0].length,
      n = a.length,
      left = [],
      right = [];
    for (let k = 0; k < n; k++) {
      left.push(mirror(a[k], k));
      const [v, vv] = left[k];
      if (vv) for (let j = k; j < n; j++) reflect(a[j], v, vv, k);
      if (k > n - 2) continue;
      right.push(
        mirror(
          Float64Array.from(a, (column) => column[k]),
          k + 1,
        ),
      );
      const [w, ww] = right[k];
      if (ww) reflectAcross(a, w, ww, k + 1);
    }
    const back = (mirrors, length, from) =>
      mirrors.reduceRight(
        (columns, [v, vv], k) => {
          if (vv) for (let j = k + from; j < n; j++) reflect(columns[j], v, vv, k + from);
          return columns;
        },
        units(length, n),
      );
    const d = a.map((column, k) => column[k]),
      e = a.slice(1).map((column, k) => column[k]);
    return { u: back(left, m, 0), d, e, v: back(right, n, 1) };
  };

  return { qr, bidiagonal };
};

const linalgValues = ({ transpose, bidiagonal }) => {
  const EPS = 2 ** -52;
  // Sweeps for each singular value; 2 are usual.
  const MAX_SWEEPS = 30;

  /** Replace columns x and y by c x + s y and c y - s x. */
  const rotate = (x, y, c, s) => {
    for (let i = 0; i < x.length; i++) {
      const old = x[i];
      x[i] = c * old + s * y[i];
      y[i] = c * y[i] - s * old;
    }
  };
  /** The cosine, the sine and the length r for which c f + s g = r and c g - s f = 0. */
  const turn = (f, g) => {
    const r = Math.hypot(f, g);
    return r ? [f / r, g / r, r] : [1, 0, 0];
  };

  /** One sweep over rows lo to hi of a bidiagonal matrix, by rotations of its columns (v) and rows (u). */
  const sweep = ({ u, d, e, v }, lo, hi, shift) => {
    let f = shift ? (Math.abs(d[lo]) - shift) * (Math.sign(d[lo]) + shift / d[lo]) : d[lo];
    let g = e[lo];
    for (let i = lo; i < hi; i++) {
      let [c, s, r] = turn(f, g);
      if (i > lo) e[i - 1] = r;
      rotate(v[i], v[i + 1], c, s);
      [f, e[i], g, d[i + 1]] = [
        c * d[i] + s * e[i],
        c * e[i] - s * d[i],
        s * d[i + 1],
        c * d[i + 1],
      ];
      [c, s, d[i]] = turn(f, g);
      rotate(u[i], u[i + 1], c, s);
      [f, d[i + 1]] = [c * e[i] + s * d[i + 1], c * d[i + 1] - s * e[i]];
      if (i < hi - 1) [g, e[i + 1]] = [s * e[i + 1], c * e[i + 1]];
    }
    e[hi - 1] = f;
  };

  /** Sweep until nothing is left above the diagonal (Golub and Reinsch, 1970; Demmel and Kahan's shift of zero, 1990). */
  const diagonalize = (b) => {
    const { d, e } = b;
    const nothing = EPS * Math.max(...d.map(Math.abs), ...e.map(Math.abs));
    let hi = e.length;
    for (let left = MAX_SWEEPS * d.length; hi && left; left--) {
      e.forEach(
        (x, i) =>
          Math.abs(x) <= Math.max(nothing, EPS * (Math.abs(d[i]) + Math.abs(d[i + 1]))) &&
          (e[i] = 0),
      );
      while (hi && !e[hi - 1]) hi--;
      let lo = hi;
      while (lo && e[lo - 1]) lo--;
      if (lo === hi) continue;
      const [p, x, q] = [d[hi - 1], e[hi - 1], d[hi]];
      const sum = p * p + x * x + q * q;
      const larger = Math.sqrt((sum + Math.sqrt(Math.max(0, sum * sum - 4 * p * p * q * q))) / 2);
      const singular = d.slice(lo, hi + 1).some((entry) => Math.abs(entry) <= nothing);
      sweep(b, lo, hi, singular ? 0 : Math.abs(p * q) / larger);
    }
  };

  /** As `svd`, with u and v by columns: what a figure needs that adds up layers. */
  const layers = (a) => {
    const wide = a.length < a[0].length;
    const given = wide ? a.map((row) => Float64Array.from(row)) : transpose(a);
    const largest = Math.max(...given.map((column) => Math.max(...column.map(Math.abs)))) || 1;
    given.forEach((column) => column.forEach((x, i) => (column[i] = x / largest)));
    const b = bidiagonal(given);
    diagonalize(b);
    const order = b.d.map((_, j) => j).sort((i, j) => Math.abs(b.d[j]) - Math.abs(b.d[i]));
    const s = order.map((j) => Math.abs(b.d[j]) * largest);
    const u = order.map((j) => b.u[j]);
    const v = order.map((j) => (b.d[j] < 0 ? b.v[j].map((x) => -x) : b.v[j]));
    return { u: wide ? v : u, s, v: wide ? u : v };
  };

  // A = U diag(s) V^T: u (m x r), s (r numbers, largest first), v (n x r), r = min(m, n). Columns of u and v are
  // orthonormal, also where s is 0; errors are a few hundred roundings of the largest singular value.
  const svd = (a) => {
    const { u, s, v } = layers(a);
    const rows = (columns) => Array.from(columns[0], (_, i) => columns.map((column) => column[i]));
    return { u: rows(u), s, v: rows(v) };
  };

  return { layers, svd };
};

const linalgParts = [linalgProducts, linalgMirrors, linalgValues];
const joinLinalg = (parts) => parts.reduce((all, part) => ({ ...all, ...part(all) }), {});
var lowrankLinalg = {
  ...joinLinalg(linalgParts),
  source: (...more) => "(" + joinLinalg + ")([" + [...linalgParts, ...more] + "])",
};
