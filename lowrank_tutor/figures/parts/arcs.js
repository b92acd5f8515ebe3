// The sign of a sentence: words to choose from, and arcs from the chosen one to all, as thick as their weights.
//
//   const spoken = arcs(place, { title, label, wide: 600, high: 108, large: 22, choose: (i) => move({ row: i }) });
//   spoken.words(["the", "cat"]);             // other words
//   spoken.draw(0, exact, kept, "teal");      // the chosen word; weights as ink outlines, and as strokes of a color
const arcs = (place, { title, label, wide, high, large, choose }) => {
  const svg = stage.make("svg", {
    viewBox: [0, 0, wide, high].join(" "),
    role: "img",
    "aria-label": title,
  });
  controls.titled(place, title).append(svg);
  const row = controls.box(place, "sentence");
  const foot = high - 1,
    scale = high / 6; // the pixels of a weight of 1
  let n = 0,
    drawn = [],
    listener = null;

  /** The points of a cubic curve, and its outline for a width. */
  const along = ([a, b, c, d], t) =>
    [0, 1].map(
      (i) =>
        (1 - t) ** 3 * a[i] +
        3 * t * (1 - t) ** 2 * b[i] +
        3 * t * t * (1 - t) * c[i] +
        t ** 3 * d[i],
    );
  const outline = (curve, width) => {
    const sides = [[], []];
    for (let i = 0; i <= 24; i++) {
      const [x, y] = along(curve, i / 24),
        [p, q] = [along(curve, (i - 0.1) / 24), along(curve, (i + 0.1) / 24)];
      const length = Math.hypot(q[0] - p[0], q[1] - p[1]) || 1;
      const [dx, dy] = [p[1] - q[1], q[0] - p[0]].map((part) => (part * width) / 2 / length);
      sides[0].push([x + dx, y + dy]);
      sides[1].unshift([x - dx, y - dy]);
    }
    return (
      "M" +
      sides
        .flat()
        .map((point) => point.map((part) => part.toFixed(1)).join(" "))
        .join("L") +
      "Z"
    );
  };
  /** Arcs leave their word side by side, as wide together as a whole weight, and in an order in which none cross. */
  const curves = (from, weights) => {
    const left = Array.from({ length: from }, (_, i) => from - 1 - i);
    const right = Array.from({ length: n - 1 - from }, (_, i) => n - 1 - i);
    const middle = (i) => (wide * (i + 0.5)) / n,
      found = [];
    let at = middle(from) - scale / 2;
    [...left, from, ...right].forEach((j) => {
      const start = at + (scale * weights[j]) / 2,
        far = Math.abs(j - from) / n;
      at += scale * weights[j];
      const top = foot - 1.32 * (high - scale / 2 - 4) * (j === from ? 0.62 : far + 0.15);
      found[j] =
        j === from
          ? [
              [start - 2, foot],
              [start - 0.4 * high, top],
              [start + 0.4 * high, top],
              [start + 2, foot],
            ]
          : [
              [start, foot],
              [start, top],
              [middle(j), top],
              [middle(j), foot],
            ];
    });
    return found;
  };

  return {
    words: (tokens) => {
      n = tokens.length;
      svg.replaceChildren();
      row.replaceChildren();
      const strokes = tokens.map(() => stage.make("path", { fill: "none" }, svg));
      drawn = strokes.map((stroke) => [stroke, stage.make("path", { class: "outline" }, svg)]);
      const options = Object.fromEntries(tokens.map((word, i) => [i, labels.short(word)]));
      listener = controls.choice(row, { label, options, input: (i) => choose(Number(i)) });
      const letters = Math.max(...Object.values(options).map((word) => word.length), 3);
      const fits = (1.7 * wide) / n / letters,
        low = fits < 12; // then each second word stands lower, and has more room
      row.classList.toggle("low", low);
      const share = (100 * Math.min(large, low ? 1.5 * fits : fits)) / wide; // of the width, as letters in the drawing
      Object.entries({ "--n": n, "--font": share + "cqi" }).forEach((pair) =>
        row.style.setProperty(...pair),
      );
    },
    draw: (from, exact, kept, look) => {
      const shape = curves(
        from,
        exact.map((weight) => Math.max(0, weight)),
      );
      drawn.forEach(([stroke, line], j) => {
        const [a, b, c, d] = shape[j].map((point) => point.map((x) => x.toFixed(1)).join(" "));
        const weight = scale * Math.max(0, kept[j]);
        stage.write(stroke, {
          class: "weight " + look,
          d: "M" + a + "C" + [b, c, d].join(" "),
          "stroke-width": weight,
        });
        stage.write(line, { d: outline(shape[j], scale * exact[j]) });
        stroke.toggleAttribute("hidden", kept[j] < 0.005);
        line.toggleAttribute("hidden", exact[j] < 0.005);
      });
      listener.show(String(from));
    },
  };
};
