// Draws a throw: all pairs as dots between two lines, and one pair as the strips of its coordinates.
const pairs = (() => {
  const size = { width: 336, height: 230, margin: [12, 14, 34, 40] };

  /** All pairs. `pair` and `eps` say what stands now; pick(pair) and widen(eps) are called for what is wished. */
  const dots = (place, top, { pair, pick, eps, widen, worst }) => {
    const label = "a dot for each pair: press one, or drag the lines";
    const panel = stage.panel(controls.titled(place, label), { label, ...size, y: [0, top] });
    const at = (ratio, i) => [i + 0.5, Math.min(ratio, top)];
    let ratios = [];
    panel.handle("pair", {
      label: "pair of points",
      color: "violet",
      step: (dx, dy) => pick(pair() + dx + dy),
      end: (which) => pick(which < 0 ? 0 : Infinity),
      drag: (point) => {
        const [a, b] = panel.pixel(point);
        const far = ratios.map((ratio, i) => {
          const [p, q] = panel.pixel(at(ratio, i));
          return Math.hypot(p - a, q - b);
        });
        pick(far.indexOf(Math.min(...far)));
      },
    });
    panel.grab("pair");
    [
      ["above", 1],
      ["below", -1],
    ].forEach(([name, sign]) =>
      panel.handle(name, {
        // knobs apart, however near the lines
        label: sign > 0 ? "upper line, 1 plus epsilon" : "lower line, 1 minus epsilon",
        color: "ink",
        axis: "y",
        share: 0.5 - 0.2 * sign,
        drag: (at) => widen(sign * (panel.snap(at, [[at[0], 1 + sign * worst()]])[1] - 1)),
        step: (dx, dy) => widen(eps() + (sign * (dx + dy)) / 100),
        end: (which) => widen(which * sign < 0 ? 0.01 : 0.99),
      }),
    );
    return {
      /** Make room for other pairs. */
      take: (others) => {
        ratios = others;
        panel.resize({ x: [0, ratios.length] });
        panel.axes({
          y: [0, 1, 2, 3],
          xTitle: "pairs",
          yTitle: "squared distance, after / before",
        });
      },
      draw: (eps) => {
        const count = ratios.length,
          small = count > 150 ? " small" : "";
        panel.area(
          "band",
          [
            [0, 1 - eps],
            [count, 1 - eps],
            [count, 1 + eps],
            [0, 1 + eps],
          ],
          "gray",
        );
        const points = (inside) =>
          ratios.flatMap((ratio, i) =>
            Math.abs(ratio - 1) <= eps === inside ? [at(ratio, i)] : [],
          );
        panel.dots("inside", points(true), "teal" + small);
        panel.dots("outside", points(false), "orange" + small);
        const said = { value: eps, min: 0.01, max: 0.99, text: format(eps, ".2f") };
        panel.place("above", [0, 1 + eps], said);
        panel.place("below", [0, 1 - eps], said);
      },
      mark: (pair, text) =>
        panel.place("pair", at(ratios[pair], pair), {
          value: pair + 1,
          min: 1,
          max: ratios.length,
          text,
        }),
    };
  };

  /** One pair: its differences before and after the throw, all on one scale, so that fewer numbers are a shorter strip. */
  const strips = (place) => {
    const label = "coordinates of one pair",
      holder = controls.titled(place, label);
    const panel = stage.panel(holder, { label, ...size, y: [-1, 1] });
    const strip = (name, values, middle, color, [width, height]) => {
      const corners = values.flatMap((x, c) =>
        [c, c + 1].map((at) => [at * width, middle + height * x]),
      );
      panel.area(
        name,
        [[0, middle], ...corners, [values.length * width, middle]],
        color + " solid",
      );
      panel.text(
        name + " words",
        [0, middle + 0.42],
        "differences " + name + ": " + values.length,
        color,
      );
    };
    return {
      show: (title, before, after) => {
        holder.firstChild.textContent = title;
        const largest = [...before, ...after].reduce(
          (most, x) => Math.max(most, Math.abs(x)),
          1e-300,
        );
        const scale = [1 / Math.max(before.length, after.length), 0.4 / largest];
        strip("before", before, 0.5, "gray", scale);
        strip("after", after, -0.5, "teal", scale);
      },
    };
  };

  return { dots, strips };
})();
