// What moves in the figures of moving.py. Each scene makes its panels, and then draws itself for a number t:
//
//   const { draw, numbers, table } = scenes.writes(place, data, move);
const scenes = (() => {
  const { dot, scaled, sum } = vectors;
  const TURN = Math.PI / 180;
  const times = ([[a, b], [c, d]], [x, y]) => [a * x + b * y, c * x + d * y];
  const mix = (one, other, share) =>
    one.map((row, i) => row.map((value, j) => value + share * (other[i][j] - value)));
  const rotation = (angle) => [
    [Math.cos(angle), -Math.sin(angle)],
    [Math.sin(angle), Math.cos(angle)],
  ];
  const onCircle = (angle) => [Math.cos(angle), Math.sin(angle)];
  const share = (t, from) => clamp(t - from, 0, 1); // of one of the moves that last from `from` to `from` + 1
  const identity = [
    [1, 0],
    [0, 1],
  ];
  const plane = (place, title, reach, size = 300) => {
    const panel = stage.panel(controls.titled(place, title), {
      label: title,
      width: size,
      height: size,
      margin: [8, 8, 8, 8],
      x: [-reach, reach],
      y: [-reach, reach],
    });
    vectors.axes(panel, reach);
    return panel;
  };
  /** A line through a point, to the edges of a plane. */
  const through = (panel, name, from, [x, y], reach, look) => {
    const far = scaled([x, y], (3 * reach) / Math.hypot(x, y));
    const ends = [sum(from, scaled(far, -1)), sum(from, far)];
    const inside = (p) => Math.abs(p[0]) <= reach && Math.abs(p[1]) <= reach;
    const points = Array.from({ length: 601 }, (_, i) =>
      sum(ends[0], scaled([ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]], i / 600)),
    );
    const seen = points.filter(inside);
    panel.line(name, seen.length ? [seen[0], seen[seen.length - 1]] : [from, from], look);
    return seen[seen.length - 1] || from;
  };

  /** A handle that turns a direction through the origin, by 0 to 180 degrees. */
  const turning = (panel, name, label, color, move, at) =>
    panel.handle(name, {
      label,
      color,
      large: 15,
      drag: ([x, y]) => move({ t: Math.round((Math.atan2(y, x) / TURN + 360) % 180) }),
      step: (dx, dy) => move({ t: (at() + dx + dy + 180) % 180 }),
      end: (which) => move({ t: which < 0 ? 0 : 180 }),
    });

  /** Turn, stretch, turn: what a matrix does to the circle. */
  const turns = (place, { sigmas, first, last, reach }) => {
    const panel = plane(place, "the unit circle, and what has become of it", reach, 340);
    const around = Array.from({ length: 121 }, (_, i) => onCircle(3 * i * TURN));
    const numbers = (t) => ({
      first: first * share(t, 0),
      sigma_1: 1 + (sigmas[0] - 1) * share(t, 1),
      sigma_2: 1 + (sigmas[1] - 1) * share(t, 1),
      last: last * share(t, 2),
    });
    const map = (t) => (x) => {
      const now = numbers(t),
        [a, b] = times(rotation(now.first * TURN), x);
      return times(rotation(now.last * TURN), [now.sigma_1 * a, now.sigma_2 * b]);
    };
    return {
      numbers,
      table: (t) => ({
        columns: [
          [1, 0],
          [0, 1],
        ].map(map(t)),
      }),
      draw: (t) => {
        const at = map(t);
        panel.line("circle", around, "gray thin dotted");
        panel.area("ellipse", around.map(at), "gray");
        panel.line("edge", around.map(at), "ink");
        [
          [onCircle(-first * TURN), "teal"],
          [onCircle((90 - first) * TURN), "violet"],
        ].forEach(([v, color], i) => {
          const tip = at(v),
            name =
              t < 3 ? ["v\u2081", "v\u2082"][i] : ["\u03c3\u2081u\u2081", "\u03c3\u2082u\u2082"][i];
          panel.arrow("arrow " + i, [0, 0], tip, color);
          panel.text(
            "name " + i,
            sum(tip, scaled(tip, (0.07 * reach) / Math.hypot(...tip))),
            name,
            color + " middle",
          );
        });
      },
    };
  };

  /** A line that turns about the mean: what it gains along, it loses across. */
  const line = (place, { points, reach }, move) => {
    const total = points.reduce((all, p) => all + dot(p, p), 0);
    const panel = plane(place, "six points and a line through their mean", reach);
    const bars = stage.panel(controls.titled(place, "sums of squares"), {
      label: "sums of squares",
      width: 240,
      height: 300,
      margin: [12, 12, 26, 36],
      x: [0, 2],
      y: [0, total],
    });
    turning(panel, "line", "direction of the line", "ink", move, () => now);
    let now = 0;
    const numbers = (t) => {
      const along = points.reduce((all, p) => all + dot(p, onCircle(t * TURN)) ** 2, 0);
      return { along, across: total - along };
    };
    return {
      numbers,
      table: () => ({ points }),
      draw: (t) => {
        now = t;
        const way = onCircle(t * TURN),
          { along } = numbers(t);
        through(panel, "line", [0, 0], way, reach, "ink thin");
        points.forEach((p, i) => {
          const foot = scaled(way, dot(p, way));
          panel.line("across " + i, [p, foot], "orange");
        });
        panel.dots(
          "feet",
          points.map((p) => scaled(way, dot(p, way))),
          "teal",
        );
        panel.dots("points", points, "ink");
        panel.place("line", scaled(way, 0.86 * reach), {
          value: Math.round(t),
          min: 0,
          max: 180,
          text: Math.round(t) + " degrees",
        });
        bars.axes({ y: [0, total / 2, total] });
        bars.rect("along", [0.4, 0], [1.6, along], "teal solid");
        bars.rect("across", [0.4, along], [1.6, total], "orange solid");
        bars.text("word along", [1, along / 2], along > 0.1 * total ? "along" : "", "paper middle");
        bars.text(
          "word across",
          [1, (along + total) / 2],
          along < 0.9 * total ? "across" : "",
          "paper middle",
        );
      },
    };
  };

  /** An axis that turns, and two classes of points along it. */
  const classes = (place, { groups, reach }, move) => {
    const left = plane(place, "drag the axis", reach);
    const right = stage.panel(controls.titled(place, "along the axis"), {
      label: "along the axis",
      width: 300,
      height: 160,
      margin: [8, 8, 8, 8],
      x: [-reach, reach],
      y: [-1, 1],
    });
    turning(left, "axis", "direction of the axis", "teal", move, () => now);
    let now = 0;
    const mean = (values) => values.reduce((total, value) => total + value) / values.length;
    const along = (t) => groups.map((points) => points.map((p) => dot(p, onCircle(t * TURN))));
    const numbers = (t) => {
      const rows = along(t),
        [low, high] = rows.map(mean),
        side = high < low ? -1 : 1;
      const squares = rows.map((row) =>
        row.reduce((total, value) => total + (value - mean(row)) ** 2, 0),
      );
      const right = rows.flatMap((row, i) =>
        row.filter((value) => side * value * (i ? 1 : -1) > 1e-9),
      ).length;
      const gap = (high - low) ** 2,
        scatter = squares[0] + squares[1];
      return { ratio: gap / scatter, gap, scatter, right };
    };
    return {
      numbers,
      table: (t) => ({ along: along(t) }),
      draw: (t) => {
        now = t;
        const way = onCircle(t * TURN);
        through(left, "threshold", [0, 0], onCircle((t + 90) * TURN), reach, "gray thin dashed");
        left.arrow("axis", scaled(way, -0.86 * reach), scaled(way, 0.86 * reach), "teal");
        right.line(
          "threshold",
          [
            [0, -1],
            [0, 1],
          ],
          "gray thin dashed",
        );
        along(t).forEach((row, i) => {
          const color = ["ink", "violet"][i],
            height = [0.45, -0.45][i],
            middle = mean(row);
          right.line(
            "mean " + i,
            [
              [middle, height - 0.3],
              [middle, height + 0.3],
            ],
            "teal",
          );
          const spots = row.map((value) => [value, height]);
          [
            [left, groups[i]],
            [right, spots],
          ].forEach(([panel, points]) => {
            panel.dots("class " + i, points, color + " large");
            if (i) panel.dots("holes", points, "paper");
          });
        });
        left.place("axis", scaled(way, 0.86 * reach), {
          value: Math.round(t),
          min: 0,
          max: 180,
          text: Math.round(t) + " degrees",
        });
      },
    };
  };

  /** Markov's bound after the scale was stretched by an exponential. */
  const markov = (place, { k, level, density, exact }, move) => {
    const TOP = 40,
      HIGH = 0.3,
      LOW = 0.002;
    const times = (t, at) => Math.exp(t * at * k + (k / 2) * Math.log(1 - 2 * t)); // e^(t chi^2), in units of its mean
    const left = stage.panel(
      controls.titled(place, "how many times its own mean the stretched sum is"),
      {
        label: "the stretched scale",
        width: 300,
        height: 250,
        margin: [10, 12, 34, 36],
        x: [0.5, 1.8],
        y: [0, TOP],
      },
    );
    const right = stage.panel(controls.titled(place, "Markov's bound, one over that"), {
      label: "the bound over the stretch",
      width: 300,
      height: 250,
      margin: [10, 12, 34, 46],
      x: [0, HIGH],
      y: [LOW, 2],
      yLog: true,
    });
    const put = (t) => move({ t: clamp(Math.round(t * 200) / 200, 0, HIGH) });
    right.handle("stretch", {
      label: "stretch",
      color: "orange",
      axis: "x",
      drag: ([t]) => put(t),
      step: (dx, dy) => put(now + (dx + dy) / 200),
      end: (which) => put(which < 0 ? 0 : HIGH),
    });
    let now = 0;
    const range = (from, to) =>
      Array.from({ length: 101 }, (_, i) => from + ((to - from) * i) / 100);
    const bounds = range(0, HIGH).map((t) => [t, 1 / times(t, level)]);
    const numbers = (t) => ({ times: times(t, level), bound: 1 / times(t, level) });
    return {
      numbers,
      table: () => ({ bounds }),
      draw: (t) => {
        now = t;
        const here = times(t, level),
          shown = Math.min(here, TOP);
        left.axes({ x: [0.5, 1, 1.5], y: [1, 10, 20, 30, 40], xTitle: "sum / its mean" });
        left.area("density", [[0.5, 0], ...density, [1.8, 0]], "gray");
        left.line(
          "level",
          [
            [level, 0],
            [level, TOP],
          ],
          "orange thin dotted",
        );
        left.line(
          "scale",
          range(0.5, 1.8)
            .map((at) => [at, times(t, at)])
            .filter(([, y]) => y <= TOP),
          "teal",
        );
        left.dots("here", [[level, shown]], "orange");
        left.text(
          "word",
          [level - 0.03, clamp(shown + 0.6, 2, TOP - 3)],
          format(here, ".3g") + " times",
          "orange end",
        );
        right.axes({
          x: [0, 0.1, 0.2, 0.3],
          y: [0.01, 0.1, 1],
          xTitle: "stretch t",
          format: (value, axis) => (axis === "y" ? format(value, "g") : String(value)),
        });
        right.line("bound", bounds, "teal");
        right.line(
          "exact",
          [
            [0, exact],
            [HIGH, exact],
          ],
          "ink thin dashed",
        );
        right.text("exact word", [HIGH, exact * 1.25], "the exact chance", "ink end");
        right.dots("at", [[t, 1 / here]], "orange");
        right.place("stretch", [t, 0.05], { value: t, min: 0, max: HIGH, text: format(t, ".3g") });
      },
    };
  };

  /** Rescale the queries, cut, and undo the rescaling. */
  const rescale = (place, { dots, root, inverse, u, v, arrows, off, plain, reach }) => {
    const [left, right] = [
      ["queries s", reach],
      ["arrows W\u1d40s, which score the documents", 2 * reach],
    ].map(([title, far]) => plane(place, title, far));
    const cut = (t) => dots.map((z) => sum(z, scaled(sum(z, scaled(u, -dot(u, z))), -share(t, 1))));
    return {
      numbers: (t) => ({ error: off * share(t, 1), plain }),
      table: (t) => ({ cut: cut(t) }),
      remarks: (t) => [["start"], ["round"], ["cut"], ["undone"]][Math.floor(t)],
      draw: (t) => {
        const way = t <= 1 ? share(t, 0) : 1 - share(t, 2),
          kept = cut(t); // how round the queries are
        const now = mix(root, identity, way);
        const read = times(mix(inverse, identity, way), u);
        left.dots(
          "queries",
          dots.map((z) => times(now, z)),
          "gray small",
        );
        left.dots(
          "kept",
          kept.map((z) => times(now, z)),
          t > 1 ? "ink small" : "gray small",
        );
        through(left, "read", [0, 0], read, reach, "teal");
        right.dots(
          "arrows",
          dots.map((z) => times(arrows, z)),
          "gray small",
        );
        right.dots(
          "kept",
          kept.map((z) => times(arrows, z)),
          t > 1 ? "ink small" : "gray small",
        );
        through(right, "axis", [0, 0], v, 2 * reach, "teal");
      },
    };
  };

  /** The delta rule in the plane: each write steps onto the line of its pair. */
  const writes = (place, { keys, values, best }) => {
    const [low, high] = [
      [-2, -6],
      [8, 4],
    ];
    const panel = stage.panel(
      controls.titled(place, "a state of two numbers, and the line of each pair"),
      {
        label: "the state",
        width: 340,
        height: 340,
        margin: [8, 8, 30, 36],
        x: [low[0], high[0]],
        y: [low[1], high[1]],
      },
    );
    const corners = [[0, 0]];
    while (corners.length < 12) {
      const from = corners[corners.length - 1],
        i = (corners.length - 1) % 2;
      corners.push(sum(from, scaled(keys[i], values[i] - dot(keys[i], from))));
    }
    const state = (t) => {
      const i = Math.floor(t);
      return sum(corners[i], scaled(sum(corners[i + 1], scaled(corners[i], -1)), t - i));
    };
    const ends = (i) => {
      // of the line k . S = v: 12 to either side of its point nearest to the origin
      const [a, b] = keys[i],
        foot = scaled(keys[i], values[i]);
      const points = Array.from({ length: 2401 }, (_, j) =>
        sum(foot, scaled([-b, a], (j - 1200) / 100)),
      );
      const seen = points.filter((p) => p.every((value, j) => value >= low[j] && value <= high[j]));
      return [seen[0], seen[seen.length - 1]];
    };
    return {
      numbers: (t) => {
        const s = state(t);
        return {
          read_1: dot(keys[0], s),
          read_2: dot(keys[1], s),
          off: Math.hypot(...sum(s, scaled(best, -1))),
        };
      },
      table: (t) => ({ state: [state(t)] }),
      draw: (t) => {
        panel.axes({
          x: [-2, 0, 2, 4, 6, 8],
          y: [-6, -4, -2, 0, 2, 4],
          xTitle: "first number of the state",
        });
        ["teal", "violet"].forEach((color, i) => {
          panel.line("pair " + i, ends(i), color);
          panel.text(
            "name " + i,
            [
              [4.85, 3.2],
              [-1.6, 1.9],
            ][i],
            ["first key reads 5", "second key reads 0"][i],
            color + [" end", ""][i],
          );
        });
        const way = [...corners.slice(0, Math.floor(t) + 1), state(t)];
        panel.line("way", way, "ink thin");
        panel.dots("best", [best], "gray");
        panel.dots("corners", way.slice(0, -1), "ink small");
        panel.dots("state", [state(t)], "orange");
      },
    };
  };

  return { turns, line, classes, markov, rescale, writes };
})();
