// Places words beside their points so that none covers another: above, below or beside, the first free place.
const labels = (() => {
  const LETTER = 8,
    LINE = 13; // pixels of a panel that a letter is wide at most, and a line high
  const apart = (one, other) =>
    one[2] <= other[0] || other[2] <= one[0] || one[3] <= other[1] || other[3] <= one[1];

  /** The box [left, top, right, bottom] of a word whose middle and baseline are here. */
  const box = (word, [x, y]) => {
    const half = (LETTER * [...word].length) / 2;
    return [x - half, y - LINE + 3, x + half, y + 3];
  };

  /**
   * Places (middle, baseline) for words beside their points; null where there is no room. All are in pixels. Words with
   * a larger `claim` choose first; all keep off the boxes `taken`, inside of [left, top, right, bottom], and off the other
   * points where they can.
   */
  const place = (points, words, claim, taken, inside) => {
    const full = taken.slice(),
      places = points.map(() => null);
    const dots = points.map(([x, y]) => [x - 2, y - 2, x + 2, y + 2]);
    points
      .map((_, i) => i)
      .sort((i, j) => claim[j] - claim[i])
      .forEach((i) => {
        const [x, y] = points[i];
        const aside = (LETTER * [...words[i]].length) / 2 + 6;
        const straight = [
          [x, y - 5],
          [x, y + 15],
          [x + aside, y + 4],
          [x - aside, y + 4],
        ];
        const slanted = [-7, 15].flatMap((down) => [
          [x + aside - 4, y + down],
          [x - aside + 4, y + down],
        ]);
        const free = [...straight, ...slanted].filter((at) => {
          const [left, top, right, bottom] = box(words[i], at);
          const within =
            left >= inside[0] && top >= inside[1] && right <= inside[2] && bottom <= inside[3];
          return within && full.every((other) => apart(other, [left, top, right, bottom]));
        });
        const best =
          free.find((at) => dots.every((dot) => apart(dot, box(words[i], at)))) || free[0];
        if (best) full.push(box(words[i], best));
        places[i] = best || null;
      });
    return places;
  };

  /** A word that may be too long for a label. */
  const short = (word = "", most = 9) => {
    const letters = [...word],
      room = letters.some((letter) => letter > "\u2e7f") ? Math.ceil(most / 2) : most; // wide ones
    return letters.length > room ? letters.slice(0, room - 1).join("") + "\u2026" : word;
  };

  return { place, short };
})();
