// The little linear algebra that figures need, judged against NumPy.
//
// Chapter 2 explains the decomposition. A matrix is an array of rows; no function changes its arguments. Entries are
// finite, of a size between 1e-75 and 1e75, or zero. A page that loads this file alone finds `lowrankLinalg`; inside
// the block of an instrument the name stays within, and `source` is what a worker runs.
var lowrankLinalg = (function make() {
  const EPS = 2 ** -52;
  const MAX_SWEEPS = 30; // 6 to 10 are usual

  const dot = (x, y) => {
    let even = 0, odd = 0, i = 0; // two sums, so that no addition waits for the one before
    for (; i + 1 < x.length; i += 2) {
      even += x[i] * y[i];
      odd += x[i + 1] * y[i + 1];
    }
    return i < x.length ? even + odd + x[i] * y[i] : even + odd;
  };
  const norm = (x) => Math.sqrt(dot(x, x));
  const unit = (n, i) => {
    const x = new Float64Array(n);
    x[i] = 1;
    return x;
  };
  const units = (n, count) => Array.from({ length: count }, (_, i) => unit(n, i));
  /** The columns of a matrix, or the rows of one given by columns. */
  const transpose = (a) => a[0] ? Array.from(a[0], (_, j) => Float64Array.from(a, (row) => row[j])) : [];
  const plain = (a) => a.map((row) => Array.from(row));

  /** The product of a (m x p) and b (p x n): m x n. */
  const matmul = (a, b) => {
    const columns = transpose(b);
    return a.map((row) => columns.map((column) => dot(row, column)));
  };

  /** The softmax of a list of scores: positive weights of sum 1, a larger score a larger weight. */
  const softmax = (scores) => {
    const top = Math.max(...scores); // without it, exp(1000) would be infinite
    const powers = Array.from(scores, (score) => Math.exp(score - top));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((power) => power / sum);
  };

  /** A generator of standard normal numbers: the same seed, a whole number, gives the same sequence everywhere. */
  const normal = (seed) => {
    let at = seed >>> 0;
    const uniform = () => { // mulberry32 of T. Ettinger: 32 bits of state; 0 < uniform < 1
      at = (at + 0x6d2b79f5) >>> 0;
      let bits = Math.imul(at ^ (at >>> 15), at | 1);
      bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
      return (((bits ^ (bits >>> 14)) >>> 0) + 0.5) / 2 ** 32;
    };
    return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()); // Box and Muller, 1958
  };

  /** Take w times y away from x. */
  const subtract = (x, y, w) => {
    for (let i = 0; i < x.length; i++) x[i] -= w * y[i];
  };

  /** Mirror x in the plane that is perpendicular to v, of squared length vv. */
  const reflect = (x, v, vv, from) => {
    let along = 0;
    for (let i = from; i < v.length; i++) along += v[i] * x[i];
    along *= 2 / vv;
    for (let i = from; i < v.length; i++) x[i] -= along * v[i];
  };

  /** Columns of Q and R for a matrix given by its columns, by Householder's reflections. */
  const qrOfColumns = (given) => {
    const m = given[0].length, rank = Math.min(m, given.length);
    const r = given.map((column) => Float64Array.from(column));
    const mirrors = [];
    for (let j = 0; j < rank; j++) {
      const v = r[j].slice().fill(0, 0, j);
      v[j] += (v[j] < 0 ? -1 : 1) * norm(v);
      const vv = dot(v, v);
      mirrors.push([v, vv]);
      if (vv) for (let i = j; i < r.length; i++) reflect(r[i], v, vv, j);
    }
    const q = units(m, rank);
    for (let j = rank - 1; j >= 0; j--) {
      const [v, vv] = mirrors[j];
      if (vv) for (let i = j; i < rank; i++) reflect(q[i], v, vv, j);
    }
    for (let j = 0; j < rank; j++) {
      if (r[j][j] >= 0) continue; // a diagonal that is not negative makes the factors unique
      q[j].forEach((x, i) => (q[j][i] = -x));
      r.forEach((column) => (column[j] = -column[j]));
    }
    return { q, r: r.map((column, j) => column.slice(0, rank).fill(0, Math.min(j + 1, rank))) };
  };

  /** A = Q R: q (m x r) has orthonormal columns, r (r x n) is upper triangular, its diagonal never negative. */
  const qr = (a) => {
    const found = qrOfColumns(transpose(a));
    return { q: plain(transpose(found.q)), r: plain(transpose(found.r)) };
  };

  /** Turn two columns, and the pair that remembers it, by the angle of cosine c and sine s. */
  const rotate = (x, y, c, s) => {
    for (let i = 0; i < x.length; i++) {
      const old = x[i];
      x[i] = c * old - s * y[i];
      y[i] = s * old + c * y[i];
    }
  };

  /** Turn pairs of columns until all are perpendicular; return the rotations' product, by columns. */
  const jacobi = (columns, tolerance) => {
    const turned = units(columns.length, columns.length);
    let again = true;
    for (let sweep = 0; again && sweep < MAX_SWEEPS; sweep++) {
      const lengths = columns.map((column, j) => [dot(column, column), column, turned[j]]);
      lengths.sort((x, y) => y[0] - x[0]); // long columns first: one sweep less
      lengths.forEach(([, column, memory], j) => ([columns[j], turned[j]] = [column, memory]));
      const square = lengths.map(([length]) => length);
      const nothing = square.reduce((a, b) => a + b, 0) * EPS ** 2 / columns.length;
      again = false;
      for (let p = 0; p < columns.length - 1; p++) {
        for (let q = p + 1; q < columns.length; q++) {
          if (square[p] < nothing || square[q] < nothing) continue; // rounding alone has no direction
          const between = dot(columns[p], columns[q]);
          if (Math.abs(between) <= tolerance * Math.sqrt(square[p] * square[q])) continue;
          again = true;
          const half = (square[q] - square[p]) / (2 * between);
          const t = (half < 0 ? -1 : 1) / (Math.abs(half) + Math.sqrt(1 + half * half));
          const c = 1 / Math.sqrt(1 + t * t);
          rotate(columns[p], columns[q], c, c * t);
          rotate(turned[p], turned[q], c, c * t);
          square[p] -= t * between;
          square[q] += t * between;
        }
      }
    }
    return turned;
  };

  /** Columns of length 1 that are perpendicular to each other, in place of those that are too short to say where. */
  const complete = (columns, short) => {
    const kept = columns.filter((_, j) => !short[j]);
    let tried = 0; // a unit vector that was too near to a combination of the others stays so
    const fresh = () => {
      for (;;) {
        const x = unit(columns[0].length, tried++);
        for (let twice = 0; twice < 2; twice++) kept.forEach((other) => subtract(x, other, dot(x, other)));
        const length = norm(x);
        if (length >= 0.5 / Math.sqrt(x.length)) return kept[kept.push(x.map((part) => part / length)) - 1];
      }
    };
    return columns.map((column, j) => (short[j] ? fresh() : column));
  };

  /** As `svd`, with u and v by columns: what a figure needs that adds up layers. */
  const layers = (a, tolerance = EPS * Math.max(a.length, a[0].length)) => {
    const wide = a.length < a[0].length;
    const given = wide ? a.map((row) => Float64Array.from(row)) : transpose(a);
    const largest = given.reduce((most, column) => column.reduce((top, x) => Math.max(top, Math.abs(x)), most), 0) || 1;
    given.forEach((column) => column.forEach((x, i) => (column[i] = x / largest)));
    const order = given.map(norm).map((length, j) => [length, j]).sort((x, y) => y[0] - x[0]).map(([, j]) => j);
    // Jacobi's rotations need fewer sweeps for the rows of R than for A itself (Drmac and Veselic, 2008).
    const { q, r } = qrOfColumns(order.map((j) => given[j]));
    const rows = transpose(r);
    const turned = jacobi(rows, tolerance);
    const lengths = rows.map(norm);
    const falling = lengths.map((_, j) => j).sort((i, j) => lengths[j] - lengths[i]);
    const s = falling.map((j) => lengths[j]);
    const short = s.map((length) => length <= rows.length * EPS * s[0]);
    const unordered = complete(falling.map((j) => rows[j].map((x) => x / (lengths[j] || 1))), short);
    const v = unordered.map((column) => {
      const back = new Float64Array(column.length);
      order.forEach((j, i) => (back[j] = column[i]));
      return back;
    });
    const u = falling.map((j) => { // Q times a column of the rotations
      const column = new Float64Array(q[0].length);
      turned[j].forEach((weight, i) => subtract(column, q[i], -weight));
      return column;
    });
    return { u: wide ? v : u, s: s.map((length) => length * largest), v: wide ? u : v };
  };

  /**
   * A = U diag(s) V^T by one-sided Jacobi rotations: u (m x r), s (r numbers, largest first), v (n x r), r = min(m, n).
   * Columns of u and v are orthonormal, also where s is 0. Pairs of columns whose cosine is below `tolerance` are left:
   * by default nearly all digits are right, and 1e-5 is enough for a picture.
   */
  const svd = (a, tolerance) => {
    const found = layers(a, tolerance);
    return { u: plain(transpose(found.u)), s: found.s, v: plain(transpose(found.v)) };
  };

  return { svd, qr, matmul, softmax, normal, layers, source: make.toString() };
})();
