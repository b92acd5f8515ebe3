// What a throw of a random map does to points and to the distances between them, as numbers.
//
// A throw that was found is {n, d, seeds, points, before, answers}. Pairs are (1, 0), (2, 0), (2, 1), (3, 0), ...
const throws = (() => {
  /**
   * What takes long: n points, and their products with every row that R can have. Row i of a matrix has numbers of its
   * own, so that a larger k or d only adds some. Of each seed it answers these products or, for a k, how far the worst
   * pair is off. A worker gets this function as text: it uses nothing that stands around it.
   */
  const project = ({ n, d, rows, seeds, k }, linalg) => {
    const stream = (seed, i) =>
      linalg.normal(Math.imul(seed, 0x9e3779b1) + Math.imul(i + 1, 0x85ebca6b));
    const list = (count, draw) => Float64Array.from({ length: count }, draw);
    const points = Array.from({ length: n }, (_, i) => list(d, stream(0, i)));
    const before = linalg.distances(points, d);
    const answers = seeds.map((seed) => {
      const products = points.map(() => new Float64Array(rows));
      for (let row = 0; row < rows; row++) {
        const numbers = list(d, stream(seed, row));
        points.forEach((point, i) => (products[i][row] = linalg.dot(numbers, point)));
      }
      if (!k) return products;
      return linalg
        .distances(products, k)
        .reduce((worst, sum, i) => Math.max(worst, Math.abs(sum / k / before[i] - 1)), 0);
    });
    return { n, d, seeds, points, before, answers };
  };

  /** The image of point i: k of its products, scaled. */
  const image = ({ answers }, i, k) =>
    Array.from(answers[0][i].subarray(0, k), (x) => x / Math.sqrt(k));

  /** What the throw did to the pairs: each ratio of squared distances, and how far they are off 1, rising. */
  const measure = ({ answers, before }, k) => {
    const ratios = lowrankLinalg.distances(answers[0], k).map((sum, i) => sum / k / before[i]);
    const off = ratios.map((ratio) => Math.abs(ratio - 1)).sort((a, b) => a - b);
    const pairs = off.length,
      worst = off[pairs - 1];
    return {
      ratios,
      off,
      worst,
      median: (off[Math.floor((pairs - 1) / 2)] + off[Math.floor(pairs / 2)]) / 2,
      farthest: ratios.findIndex((ratio) => Math.abs(ratio - 1) === worst),
    };
  };

  /** The two points of a pair, the later first. */
  const pointsOf = (pair) => {
    let i = 1,
      j = pair;
    for (; j >= i; i++) j -= i;
    return [i, j];
  };

  return { project, image, measure, pointsOf };
})();
