// The exact chances of chi-square: how often a sum of k squared normal numbers is far from k.
//
// Source: Press, Teukolsky, Vetterling and Flannery, Numerical Recipes, section 6.2 (the incomplete gamma function): a
// series for the lower tail where x is small, and elsewhere a continued fraction, by Lentz's method, for the upper one.
const chiSquare = (() => {
  /** The chances [below x, above x] of chi-square with k degrees of freedom: k a whole number from 1, x above 0. */
  const tails = (k, x) => {
    const a = k / 2,
      y = x / 2;
    let logGamma = k % 2 ? Math.log(Math.PI) / 2 : 0; // of 1/2, or of 1; then up by steps of 1
    for (let step = k % 2 ? 0.5 : 1; step < a; step++) logGamma += Math.log(step);
    const factor = Math.exp(a * Math.log(y) - y - logGamma);
    if (y < a + 1) {
      // a series for the lower tail
      let term = 1 / a,
        sum = term;
      for (let i = 1; term > sum * 1e-16; i++) sum += term *= y / (a + i);
      return [sum * factor, 1 - sum * factor];
    }
    let b = y + 1 - a,
      c = 1e300,
      d = 1 / b,
      h = d; // a continued fraction for the upper one
    for (let i = 1, change = 0; i < 10000 && Math.abs(change - 1) > 1e-15; i++) {
      b += 2;
      d = 1 / (i * (a - i) * d + b);
      c = b + (i * (a - i)) / c;
      h *= change = d * c;
    }
    return [1 - factor * h, factor * h];
  };

  /** The chance that chi-square over k lies further than eps from 1: eps between 0 and 1. */
  const outside = (k, eps) => tails(k, k * (1 - eps))[0] + tails(k, k * (1 + eps))[1];

  return { outside };
})();
