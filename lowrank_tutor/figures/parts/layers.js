// Pictures of grays, of signed numbers, and of one sheet with its two profiles.
const layerPictures = (() => {
  const canvas = (place, title, size) => {
    const words = element("p", {}, title);
    const made = element("canvas", {
      width: size,
      height: size,
      role: "img",
      "aria-label": title,
    });
    const box = element("div", {}, words, made);
    place.append(box);
    const pen = made.getContext("2d");
    const image = pen.createImageData(size, size);
    image.data.fill(255);
    return {
      box,
      canvas: made,
      data: image.data,
      paint: () => pen.putImageData(image, 0, 0),
      title: (text) => {
        stage.say(words, text);
        stage.write(made, { "aria-label": text });
      },
    };
  };

  /** The rows of the sum of the first k sheets; u and v are given by columns. */
  const sum = ({ u, s, v }, k) => {
    const rows = Array.from(u[0], () => new Float64Array(v[0].length));
    for (let l = 0; l < k; l++)
      rows.forEach((row, i) => lowrankLinalg.addTimes(row, v[l], s[l] * u[l][i]));
    return rows;
  };

  const grays = ({ data, paint }, rows) => {
    // An image rounds its numbers, and keeps them within 0 and 255.
    let at = 0;
    for (const row of rows)
      for (const gray of row) {
        data[at] = data[at + 1] = data[at + 2] = gray;
        at += 4;
      }
    paint();
  };

  /** White for 0, teal above and violet below, full at +-limit. */
  const signs = ({ data, paint }, value, count, limit) => {
    for (let i = 0; i < count; i++) {
      const share = Math.max(-1, Math.min(1, value(i) / limit));
      const [red, green, blue] = share > 0 ? [-244, -145, -124] : [164, 192, 74];
      data[4 * i] = 255 + share * red;
      data[4 * i + 1] = 255 + share * green;
      data[4 * i + 2] = 255 + share * blue;
    }
    paint();
  };

  /** A picture of one sheet, its column profile at the left edge and its row profile along the top. */
  const layer = (place, title, size) => {
    const made = canvas(place, title, size);
    const frame = element("div", { class: "layer" });
    const profile = (where, viewBox) => {
      const look = { class: where, viewBox, preserveAspectRatio: "none", "aria-hidden": "true" };
      const svg = stage.make("svg", look, frame);
      return stage.make(
        "path",
        { class: "line ink thin", "vector-effect": "non-scaling-stroke" },
        svg,
      );
    };
    made.box.append(frame);
    const [top, side] = [
      profile("top", "0 -1.1 " + size + " 2.2"),
      profile("side", "-1.1 0 2.2 " + size),
    ];
    frame.append(made.canvas);
    const largest = (values) => values.reduce((most, x) => Math.max(most, Math.abs(x)), 0) || 1;
    const path = (values, point) => {
      const most = largest(values);
      return Array.from(
        values,
        (x, i) => (i ? "L" : "M") + point(i + 0.5, (x / most).toFixed(3)),
      ).join("");
    };
    return {
      ...made,
      show: (u, v) => {
        signs(
          made,
          (i) => u[Math.floor(i / size)] * v[i % size],
          size * size,
          largest(u) * largest(v),
        );
        stage.write(top, { d: path(v, (i, x) => i + " " + -x) });
        stage.write(side, { d: path(u, (i, x) => -x + " " + i) });
      },
    };
  };

  return { canvas, sum, grays, signs, layer };
})();
