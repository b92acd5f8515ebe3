// The spectrum of a weight from its smaller Gram matrix, and that of a product of thin factors from two QR
// decompositions.
// Squaring costs: a singular value below the first times sqrt(n eps), some 1e-7 of it, is rounding, and counts as such.
// A product is never squared: its values are exact to about 1e-14 of the first.
{
  /** Gram matrices. */
  const products = () => {
    const CHUNK = 256;
    /** Add the products of n columns of CHUNK numbers, which lie one after another, to the lower half of g (n x n). */
    const addProducts = (g, n, t, tick) => {
      for (let i = 0; i < n; i += 4) {
        for (let j = 0; j < Math.min(i + 4, n); j += 2) {
          let [a, b, c, d, p, q] = [i, i + 1, i + 2, i + 3, j, j + 1].map(
            (row) => Math.min(row, n - 1) * CHUNK,
          );
          let ap = 0,
            aq = 0,
            bp = 0,
            bq = 0,
            cp = 0,
            cq = 0,
            dp = 0,
            dq = 0;
          for (const end = p + CHUNK; p < end; a++, b++, c++, d++, p++, q++) {
            const x = t[p],
              y = t[q];
            ap += t[a] * x;
            aq += t[a] * y;
            bp += t[b] * x;
            bq += t[b] * y;
            cp += t[c] * x;
            cq += t[c] * y;
            dp += t[d] * x;
            dq += t[d] * y;
          }
          const sums = [ap, aq, bp, bq, cp, cq, dp, dq];
          for (let k = 0; k < 8; k++)
            if (i + (k >> 1) < n && j + (k & 1) < n) g[(i + (k >> 1)) * n + j + (k & 1)] += sums[k];
        }
        tick((i / n) ** 2);
      }
    };
    /** The smaller Gram matrix, as its lower half, of m rows of n numbers, each divided by `largest`. */
    const gram = ({ numbers, largest }, m, n, tick) => {
      const size = Math.min(m, n),
        long = Math.max(m, n),
        unit = largest || 1;
      const g = new Float64Array(size * size),
        t = new Float64Array(size * CHUNK);
      for (let from = 0; from < long; from += CHUNK) {
        const count = Math.min(CHUNK, long - from);
        if (count < CHUNK) t.fill(0);
        for (let k = 0; k < size * count; k++) {
          const column = m >= n ? k % size : Math.floor(k / count),
            place = m >= n ? Math.floor(k / size) : k % count;
          t[column * CHUNK + place] =
            (m >= n ? numbers[(from + place) * n + column] : numbers[column * n + from + place]) /
            unit;
        }
        addProducts(g, size, t, (part) => tick((from + part * count) / long));
      }
      return g;
    };
    return { gram };
  };

  /** Eigenvalues of symmetric matrices. */
  const eigen = ({ addTimes }) => {
    const EPS = 2 ** -52;
    /** Reflect a symmetric matrix, given by its lower half and overwritten, into three diagonals (Householder, 1958). */
    const tridiagonal = (g, n, tick) => {
      let [d, e, v, w, u, p] = Array.from({ length: 6 }, () => new Float64Array(n));
      for (let k = 0; k < n; k++) {
        let square = 0;
        d[k] = g[k * n + k] - 2 * v[k] * w[k];
        for (let i = k + 1; i < n; i++)
          square += (u[i] = g[i * n + k] - v[i] * w[k] - w[i] * v[k]) ** 2;
        if (k === n - 1) break;
        e[k] = (u[k + 1] > 0 ? -1 : 1) * Math.sqrt(square);
        const beta = square ? 1 / (square - u[k + 1] * e[k]) : 0; // two over the squared length of u below
        u[k + 1] -= e[k];
        p.fill(0);
        let i = k + 1;
        if ((n - i) % 2) {
          p[i] = (g[i * n + i] -= 2 * v[i] * w[i]) * u[i];
          i++;
        }
        for (; i < n; i += 2) {
          // the last reflection is applied on the way, to two rows at a time: memory is the bottleneck
          const vi = v[i],
            wi = w[i],
            ui = u[i],
            vj = v[i + 1],
            wj = w[i + 1],
            uj = u[i + 1],
            row = i * n,
            next = row + n;
          let sum = 0,
            other = 0;
          for (let j = k + 1; j < i; j++) {
            const a = v[j],
              b = w[j],
              c = u[j],
              x = g[row + j] - vi * b - wi * a,
              y = g[next + j] - vj * b - wj * a;
            g[row + j] = x;
            g[next + j] = y;
            sum += x * c;
            other += y * c;
            p[j] += x * ui + y * uj;
          }
          const x = (g[row + i] -= 2 * vi * wi),
            y = (g[next + i] -= vj * wi + wj * vi),
            z = (g[next + i + 1] -= 2 * vj * wj);
          p[i] += sum + x * ui + y * uj;
          p[i + 1] += other + y * ui + z * uj;
        }
        let half = 0;
        for (i = k + 1; i < n; i++) half += (p[i] *= beta) * u[i];
        addTimes(p, u, (-half * beta) / 2); // entries up to k are never read again
        [v, u, w, p] = [u, v, p, w];
        tick(1 - ((n - k) / n) ** 3);
      }
      return { d, e };
    };
    /** The eigenvalues of a symmetric matrix of three diagonals, by implicit QL steps (Dubrulle, Martin, Wilkinson, 1968). */
    const eigenvalues = ({ d, e }) => {
      const n = d.length,
        norm = d.reduce((most, x, i) => Math.max(most, Math.abs(x) + Math.abs(e[i])), 0);
      for (let l = 0; l < n; l++) {
        for (let turns = 0; turns < 60; turns++) {
          let m = l;
          while (
            m < n - 1 &&
            Math.abs(e[m]) > EPS * Math.max(Math.abs(d[m]) + Math.abs(d[m + 1]), EPS * norm)
          )
            m++;
          if (m === l) break;
          let g = (d[l + 1] - d[l]) / (2 * e[l]),
            r = Math.hypot(g, 1),
            s = 1,
            c = 1,
            p = 0,
            i = m - 1;
          g = d[m] - d[l] + e[l] / (g + (g < 0 ? -r : r));
          for (; i >= l; i--) {
            const f = s * e[i],
              b = c * e[i];
            e[i + 1] = r = Math.hypot(f, g);
            if (r === 0) break;
            [s, c, g] = [f / r, g / r, d[i + 1] - p];
            r = (d[i] - g) * s + 2 * c * b;
            d[i + 1] = g + (p = s * r);
            g = c * r - b;
          }
          if (i < l) [d[l], e[l]] = [d[l] - p, g];
          else d[i + 1] -= p;
          e[m] = 0;
        }
      }
      return d;
    };
    return { tridiagonal, eigenvalues };
  };

  /** The spectra of weights and of products, and what they say. */
  const reports = ({ addTimes, transpose, matmul, qr, layers, gram, tridiagonal, eigenvalues }) => {
    const EPS = 2 ** -52,
      SHARES = [0.9, 0.95, 0.99];
    /** The median of the law of Marchenko and Pastur, as lowrank_tutor.svd finds it. */
    const medianOfNoise = (beta) => {
      const r = Math.sqrt(beta);
      for (let step = 0, low = 0, high = Math.PI; ; step++) {
        const theta = (low + high) / 2,
          phi = Math.atan2(r * Math.sin(theta), 1 - r * Math.cos(theta));
        if (step === 60) return 1 + beta - 2 * r * Math.cos(low);
        if (beta * theta + r * Math.sin(theta) - (1 - beta) * phi < (Math.PI * beta) / 2)
          low = theta;
        else high = theta;
      }
    };
    /** What a falling spectrum of an m x n matrix says: the columns of lowrank_tutor.adapters.rank_report. */
    const report = ({ s, m, n }) => {
      const first = s[0] || 1,
        slack = s.length * EPS,
        lost = new Float64Array(s.length + 1);
      for (let k = s.length - 1; k >= 0; k--) lost[k] = lost[k + 1] + (s[k] / first) ** 2;
      const ranks = SHARES.map((share) =>
        lost.findIndex((rest) => rest <= (1 - share + slack) * lost[0]),
      );
      const beta = Math.min(m, n) / Math.max(m, n),
        half = s.length >> 1;
      const median = s.length % 2 ? s[half] : (s[half - 1] + s[half]) / 2;
      const edge = ((1 + Math.sqrt(beta)) * median) / Math.sqrt(medianOfNoise(beta)),
        floor = s[0] * Math.sqrt(s.length * EPS);
      const above = s.filter((x) => x > Math.max(edge, floor)).length;
      return {
        m,
        n,
        s,
        stable: lost[0],
        ranks,
        edge,
        floor,
        above,
        even: (m * n) / (m + n),
        errors: lost.map((rest) => Math.sqrt(rest / (lost[0] || 1))),
      };
    };
    const workOf = (m, n) => [
      m * n * Math.min(m, n),
      m * n * Math.min(m, n) + (2 / 3) * Math.min(m, n) ** 3,
    ];
    const spectrumOf = (loaded, m, n, tick) => {
      const [products, all] = workOf(m, n),
        share = products / all,
        g = gram(loaded, m, n, (part) => tick(share * part));
      const values = eigenvalues(
        tridiagonal(g, Math.min(m, n), (part) => tick(share + (1 - share) * part)),
      );
      const s = values.map((x) => Math.sqrt(Math.max(x, 0)) * loaded.largest);
      return report({ s: s.sort().reverse(), m, n });
    };
    /** The layers of L R^T, given by their columns: L = Q_L C_L and R = Q_R C_R leave the SVD of the core C_L C_R^T. */
    const product = (left, right, directions = false) => {
      const [l, r] = [left, right].map((columns) => qr(columns, directions));
      const { u, s, v } = layers(matmul(transpose(l.r), r.r));
      const combine = (q, weights) => {
        const sum = new Float64Array(q[0].length);
        q.forEach((column, j) => addTimes(sum, column, weights[j]));
        return sum;
      };
      return {
        s: Float64Array.from(s),
        m: left[0].length,
        n: right[0].length,
        q: r.q,
        left: (k) => combine(l.q, u[k]),
        right: (k) => combine(r.q, v[k]),
      };
    };
    const length = (s) => Math.hypot(...s);
    return { workOf, spectrumOf, report, product, length };
  };

  window.microscopeParts.push(products, eigen, reports);
}
