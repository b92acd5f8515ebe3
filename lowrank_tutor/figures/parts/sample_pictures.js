// Gray values of a picture that is turned about its middle, the same that sample_pictures.py computes.
//
// A picture is a function of x and y that gives a gray from 0 to 255; the square from -1 to 1 is what is seen upright.
const samplePictures = (() => {
  const between = (v, low, high) => v > low && v < high;
  const shapes = {
    stripes: (x) => (((Math.floor(x * 5) % 2) + 2) % 2 ? 0 : 255),
    window: (x, y) =>
      between(Math.abs(x), 0.1125, 0.7875) && between(Math.abs(y), 0.1125, 0.7875) ? 255 : 0,
    disc: (x, y) => (x * x + y * y < 0.6875 ** 2 ? 255 : 0),
  };

  /** A picture of size x size grays, mirrored at its edges, so that a tilt brings in no black corners. */
  const fromGrays = (grays, size) => {
    const fold = (v) => {
      // from -2 .. 2 into -1 .. 1, and from there to a row or a column
      const inside = v > 1 ? 2 - v : v < -1 ? -2 - v : v;
      return Math.min(size - 1, Math.floor(((inside + 1) / 2) * size));
    };
    return (x, y) => grays[fold(y) * size + fold(x)];
  };

  /** A random quarter of size x size pixels is white, from a seeded sequence of whole numbers (Park and Miller, 1988). */
  const noise = (size) => {
    let at = 1;
    const next = () => (at = (at * 16807) % 2147483647);
    return fromGrays(
      Float64Array.from({ length: size * size }, () => (next() < 2 ** 29 ? 255 : 0)),
      size,
    );
  };

  /** Rows of size whole grays: each the mean of fine x fine points, read where a turn by `degrees` brings them from. */
  const turned = (picture, degrees, size, fine) => {
    const c = Math.cos((degrees * Math.PI) / 180),
      s = Math.sin((degrees * Math.PI) / 180);
    const at = Array.from({ length: size * fine }, (_, i) => (2 * i + 1) / (size * fine) - 1);
    return Array.from({ length: size }, (_, i) => {
      const row = new Float64Array(size);
      for (let l = i * fine; l < (i + 1) * fine; l++) {
        for (let j = 0; j < at.length; j++) {
          row[Math.floor(j / fine)] += picture(c * at[j] + s * at[l], c * at[l] - s * at[j]);
        }
      }
      return row.map((sum) => Math.round(sum / fine ** 2));
    });
  };

  return { shapes, fromGrays, noise, turned };
})();
