// Panels of SVG with axes, lines, arrows, and handles that can be dragged.
//
//   const panel = stage.panel(parent, { label: "spectrum", x: [1, 160], xLog: true, y: [0, 1] });
//   panel.axes({ x: [1, 10, 100], y: [0, 1], xTitle: "layer", yTitle: "weight" });
//   panel.line("curve", [[1, 1], [10, 0.5]], "teal");
//   panel.handle("tip", { label: "tip of a", color: "teal", drag: (point) => ..., step: (dx, dy) => ... });
//   panel.place("tip", [2, 1], { value: 2, min: -3, max: 3, text: "x 2.0, y 1.0" });
//
// Points are [x, y] in the panel's own units. What is drawn has a name, and moves when it is drawn again. Colors are
// names: teal, orange, violet, gray, ink.
// panel(parent, options)      label, width, height, x, y ([low, high]), xLog, yLog, margin ([top, right, bottom, left])
//   .axes({x, y, xTitle, yTitle, format})   ticks and words; format(value, "x" or "y") writes a tick. Along x as many
//                             are written as there is room for
//   .line(name, points, look) .area(...) .dots(...)   one path each, however many points; look: colors and classes
//   .arrow(name, from, to, look) .text(name, at, words, look) .rect(name, corner, corner, look)
//   .hide(name, whether)
//   .separate(name, ...)      moves each of these words that stands over one before it up or down
//   .handle(name, options)    role="slider"; drag([x, y]) by pointer and touch, within the plot, step(dx, dy) by arrow
//                             keys (Shift, Page Up and Down: `large` times as far), end(-1 or 1) by Home and End; axis
//                             "x" or "y": it moves along that axis alone, and is drawn as a line across the panel, its
//                             knob at the `share` of it (1/2); bar: it is the top of a bar of the width 1, and the bar
//                             is held, too
//   .snap([x, y], places)     the first of the places that is at most 3 pixels away, or else the point itself
//   .place(name, at, {value, min, max, text})   where a handle stands, and its value in words
//   .grab(name)               a press anywhere on the panel takes that handle
//   .paint(drag)              a press anywhere, and every move after it, is handed to drag([x, y])
//   .resize({x, y})           other limits; axes and lines must be drawn again
// write(element, attributes), say(element, words)   change an element only where it differs, or it is laid out anew
const stage = (() => {
  const make = (tag, attributes, parent) => {
    const shape = element("svg:" + tag, attributes);
    return parent ? parent.appendChild(shape) : shape;
  };
  const write = (element, attributes) =>
    Object.entries(attributes).forEach(
      ([name, value]) =>
        element.getAttribute(name) === String(value) || element.setAttribute(name, value),
    );
  const say = (element, words) => element.textContent === words || (element.textContent = words);
  /** How far from low to high a value lies: 0 to 1, in logarithms if `log`; and the value that lies so far. */
  const part = (value, [low, high], log) =>
    log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const whole = (share, [low, high], log) =>
    log ? low * (high / low) ** share : low + share * (high - low);
  // Pixels of a panel
  const SIZE = 12;
  const pen = document.createElement("canvas").getContext("2d");
  // The font of instrument.css
  pen.font = SIZE + "px system-ui, sans-serif";
  const wide = (words) => pen.measureText(words).width;
  const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };
  // Pixels of a panel: the radius of what is drawn of a handle
  const RING = 7;
  const PAGES = { PageUp: [0, 1], PageDown: [0, -1] },
    ENDS = { Home: -1, End: 1 };

  /** Call step, or end, for a key that moves a slider; say whether the key was one. */
  const onKey = (event, { step, end, large = 10 }) => {
    const by = KEYS[event.key] || PAGES[event.key];
    if (event.ctrlKey || event.altKey || event.metaKey) return false;
    if (by) {
      const times = event.shiftKey || PAGES[event.key] ? large : 1;
      step(by[0] * times, by[1] * times);
    } else if (ENDS[event.key]) end?.(ENDS[event.key]);
    else return false;
    event.preventDefault();
    return true;
  };

  /**
   * Follow a pointer that presses on an element; hold(event) may return the offset from the pointer to keep. Where a
   * finger may also scroll the page, it counts only once it goes sideways, or is lifted.
   */
  const follow = (element, at, drag, hold, scrolls = false) => {
    let offset = [0, 0],
      // Where a finger that may want to scroll came down
      down = null;
    const moved = (event) => {
      const [x, y] = at(event);
      drag([x, y], offset);
    };
    element.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      event.preventDefault();
      event.stopPropagation();
      element.setPointerCapture(event.pointerId);
      offset = hold(event) || [0, 0];
      down = scrolls && event.pointerType === "touch" ? event : null;
      if (!down) moved(event);
    });
    ["pointermove", "pointerup"].forEach((kind) =>
      element.addEventListener(kind, (event) => {
        if (!element.hasPointerCapture(event.pointerId)) return;
        if (kind === "pointermove" ? down && !sideways(down, event) : !down) return;
        down = null;
        moved(event);
      }),
    );
  };

  const round = (value) => Math.round(value * 100) / 100;
  const step = (letter, pixels) => letter + pixels.map(round).join(" ");

  /** Where the points of a panel are in pixels, and the points of pixels. */
  const plotOf = ({
    width = 288,
    height = 200,
    margin = [10, 10, 34, 40],
    x = [0, 1],
    y = [0, 1],
    xLog,
    yLog,
  }) => {
    const [top, right, bottom, left] = margin;
    const long = width - left - right,
      tall = height - top - bottom;
    const plot = {
      width,
      height,
      top,
      right,
      bottom,
      left,
      long,
      tall,
      x,
      y,
      toX: (value) => left + part(value, plot.x, xLog) * long,
      toY: (value) => height - bottom - part(value, plot.y, yLog) * tall,
      pixel: ([a, b]) => [plot.toX(a), plot.toY(b)],
      point: ([a, b]) => [
        whole((a - left) / long, plot.x, xLog),
        whole((height - bottom - b) / tall, plot.y, yLog),
      ],
      /** The point of the plot nearest to these pixels: nothing is dragged out of it, under what lies around it. */
      inside: ([a, b]) =>
        plot.point([clamp(a, left, width - right), clamp(b, top, height - bottom)]),
    };
    return plot;
  };

  /** What is drawn on a panel: axes into one group, and marks into another, each by its name. */
  const drawing = (plot, svg, grid, marks) => {
    const { width, height, top, right, bottom, left } = plot;
    const things = new Map();
    const thing = (name, tag, look, attributes) => {
      if (!things.has(name)) things.set(name, make(tag, {}, marks));
      const element = things.get(name);
      write(element, { class: look || "ink", ...attributes });
      return element;
    };
    const path = (points) => points.map((p, i) => step(i ? "L" : "M", plot.pixel(p))).join("");
    /** All ticks of the horizontal axis, or each second, third, ... one, so that none is written over another. */
    const apart = (ticks) => {
      const far = (i, j) => Math.abs(plot.toX(ticks[i][0]) - plot.toX(ticks[j][0]));
      const need = (i, j) => (wide(ticks[i][1]) + wide(ticks[j][1])) / 2 + wide(" ");
      const fits = ticks
        .map((_, i) => i + 1)
        .filter((by) =>
          ticks.every((_, i) => i % by || i < by || far(i, i - by) >= need(i, i - by)),
        );
      const by =
        // With the last tick
        fits.find((one) => (ticks.length - 1) % one === 0 && one <= 2 * fits[0]) ?? fits[0];
      return ticks.filter((_, i) => i % by === 0);
    };
    return {
      axes: ({
        x: xs = [],
        y: ys = [],
        xTitle = "",
        yTitle = "",
        format = (value) => String(value).replace("-", "\u2212"),
      }) => {
        const named = apart(xs.map((v) => [v, format(v, "x")]).filter(([, words]) => words));
        const upright = xs.map(
          (v) => "M" + round(plot.toX(v)) + " " + top + "V" + (height - bottom),
        );
        const level = ys.map((v) => "M" + left + " " + round(plot.toY(v)) + "H" + (width - right));
        const middle = (top + height - bottom) / 2,
          turn = "rotate(-90 11 " + middle + ")";
        const texts = [
          ...named.map(([v, words]) => [plot.toX(v), height - bottom + 13, "middle", words]),
          ...ys.map((v) => [left - 5, plot.toY(v) + 4, "end", format(v, "y")]),
          [(left + width - right) / 2, height - 5, "middle", xTitle],
          [11, middle, "middle", yTitle, turn],
        ].filter(([, , , words]) => words);
        if (!grid.firstChild) make("path", {}, grid);
        write(grid.firstChild, { d: [...upright, ...level].join("") });
        while (grid.childNodes.length > texts.length + 1) grid.lastChild.remove();
        texts.forEach(([a, b, anchor, words, transform = ""], i) => {
          const text = grid.childNodes[i + 1] || make("text", {}, grid);
          write(text, { x: round(a), y: round(b), "text-anchor": anchor, transform });
          say(text, words);
        });
      },
      line: (name, points, look) => thing(name, "path", "line " + look, { d: path(points) }),
      area: (name, points, look) => thing(name, "path", "area " + look, { d: path(points) + "Z" }),
      dots: (name, points, look) =>
        thing(name, "path", "dots " + look, {
          d: points.map((p) => step("M", plot.pixel(p)) + "h0").join(""),
        }),
      arrow: (name, from, to, look) => {
        const [[a, b], [c, d]] = [plot.pixel(from), plot.pixel(to)];
        const angle = Math.atan2(d - b, c - a),
          length = Math.min(9, Math.hypot(c - a, d - b));
        const barb = (turn) => [
          c - length * Math.cos(angle + turn),
          d - length * Math.sin(angle + turn),
        ];
        const head = step("M", barb(0.45)) + step("L", [c, d]) + step("L", barb(-0.45));
        thing(name, "path", "line arrow " + look, {
          d: step("M", [a, b]) + step("L", [c, d]) + head,
        });
      },
      text: (name, where, words, look) => {
        const [a, b] = plot.pixel(where);
        const element = thing(name, "text", "word " + look, { x: round(a), y: round(b) });
        say(element, words);
      },
      rect: (name, one, other, look) => {
        const [[a, b], [c, d]] = [plot.pixel(one), plot.pixel(other)];
        const box = {
          x: Math.min(a, c),
          y: Math.min(b, d),
          width: Math.abs(c - a),
          height: Math.abs(d - b),
        };
        thing(name, "rect", "area " + look, box);
      },
      separate: (...names) => {
        const size = parseFloat(getComputedStyle(svg).fontSize) || SIZE,
          taken = [];
        names
          .map((name) => things.get(name))
          .filter((text) => text && !text.hasAttribute("hidden"))
          .forEach((text) => {
            const [x, y] = ["x", "y"].map((at) => Number(text.getAttribute(at)));
            // Bold letters are wider
            const long = (1.1 * wide(text.textContent) * size) / SIZE;
            const left = x - long * (text.matches(".end") ? 1 : text.matches(".middle") ? 0.5 : 0);
            const apart = ([from, to, other], at) =>
              left > to || left + long < from || Math.abs(at - other) >= size;
            const free = (at) => taken.every((one) => apart(one, at));
            const line =
              [0, 1, -1, 2, -2, 3, -3, 4, -4].map((steps) => y + (steps * size) / 2).find(free) ??
              y;
            taken.push([left, left + long, line]);
            write(text, { y: round(line) });
          });
      },
      hide: (name, whether = true) =>
        things.has(name) && things.get(name).toggleAttribute("hidden", whether),
    };
  };

  /** The handles of a panel, and what else takes hold of it. */
  const handling = (plot, svg, grips) => {
    const { width, height, bottom, left, long, tall } = plot;
    const handles = new Map();
    const at = (event) => {
      const box = svg.getBoundingClientRect();
      return [
        ((event.clientX - box.left) * width) / box.width,
        ((event.clientY - box.top) * height) / box.height,
      ];
    };
    /** The handle whose ring is here: of several the nearest, which another one may cover. */
    const under = ([a, b]) => {
      const far = ({ place: [p, q] }) => Math.hypot(p - a, q - b);
      const shown = [...handles.values()].filter(
        (one) => !one.grip.hasAttribute("hidden") && far(one) < RING,
      );
      return shown.sort((one, other) => far(one) - far(other))[0];
    };

    return {
      handle: (name, { label: words, color, axis, share = 0.5, bar, drag, ...keys }) => {
        const grip = make(
          "g",
          { class: "handle " + color, role: "slider", tabindex: 0, "aria-label": words },
          grips,
        );
        const rest = 1 - share;
        const [down, back] = [share * tall, share * long];
        const across = {
          x: "M0 " + -rest * tall + "V" + down,
          y: "M" + -back + " 0H" + rest * long,
        }[axis];
        if (across) make("path", { class: "across", d: across }, grip);
        // From bar to bar
        const pitch = plot.toX(1) - plot.toX(0);
        if (bar)
          make("rect", { class: "hold", x: -pitch / 2, y: -22, width: pitch, height: 44 }, grip);
        else make("path", { class: "hold", d: "M0 0h0" }, grip);
        make("circle", { class: "hit", r: bar ? pitch / 2 - 1 : 13 }, grip);
        make("circle", { class: "knob", r: RING }, grip);
        const middle = [left + share * long, height - bottom - share * tall];
        const handle = {
          grip,
          axis,
          middle,
          place: [0, 0],
          drag,
          hold: bar && grip.querySelector(".hold"),
        };
        handles.set(name, handle);
        let held = handle;
        follow(
          grip,
          at,
          ([a, b], [da, db]) => held.drag(plot.inside([a + da, b + db])),
          (event) => {
            const [a, b] = at(event);
            held = under([a, b]) || handle;
            held.grip.focus({ preventScroll: true });
            return [held.place[0] - a, held.place[1] - b];
          },
        );
        grip.addEventListener("keydown", (event) => onKey(event, keys));
      },
      place: (name, where, { value, min, max, text }) => {
        const handle = handles.get(name);
        const [a, b] = plot.pixel(where),
          { axis, middle } = handle;
        const place = [axis === "y" ? middle[0] : a, axis === "x" ? middle[1] : b];
        // In sight, to be picked up again
        handle.place = place.map((at, i) => clamp(at, 0, [width, height][i]));
        const said = {
          "aria-valuenow": value,
          "aria-valuemin": min,
          "aria-valuemax": max,
          "aria-valuetext": text,
        };
        if (handle.hold)
          write(handle.hold, { height: round(Math.max(44, height - bottom - b + 22)) });
        write(handle.grip, {
          transform: "translate(" + handle.place.map(round).join(" ") + ")",
          ...said,
        });
      },
      snap: (where, places) => {
        const [a, b] = plot.pixel(where),
          near = (3 * width) / (svg.clientWidth || width);
        return (
          places.find(
            (place) => Math.hypot(plot.pixel(place)[0] - a, plot.pixel(place)[1] - b) <= near,
          ) || where
        );
      },
      grab: (name) => {
        const { grip, drag } = handles.get(name);
        svg.classList.add("grab");
        follow(
          svg,
          at,
          (where) => drag(plot.inside(where)),
          () => grip.focus({ preventScroll: true }),
          true,
        );
      },
      paint: (drag) => {
        svg.classList.add("paint");
        follow(
          svg,
          at,
          (where) => drag(plot.inside(where)),
          () => null,
          true,
        );
      },
    };
  };

  const panel = (parent, options) => {
    const plot = plotOf(options);
    const viewBox = [0, 0, plot.width, plot.height].join(" ");
    const svg = make("svg", { viewBox, role: "group", "aria-label": options.label }, parent);
    const [grid, marks, grips] = ["grid", "marks", "grips"].map((name) =>
      make("g", { class: name }, svg),
    );
    return {
      svg,
      pixel: plot.pixel,
      point: plot.point,
      resize: (limits) => Object.assign(plot, limits),
      ...drawing(plot, svg, grid, marks),
      ...handling(plot, svg, grips),
    };
  };

  return { panel, make, write, say, follow, part, whole };
})();
