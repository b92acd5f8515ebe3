// Pictures that one number moves: a slider sets it, a button lets it run. Python drew them beforehand, at some of its
// values; in between, points move on straight lines. Shapes and sentences are in moving.py.
const moving = ({ place, data, move }) => {
  const { stations, step, every, label, seconds, unit, shapes, numbers } = data;
  const [first, last] = [stations[0], stations.at(-1)];
  const row = (value) => Math.round((value - first) / step);
  const holder = controls.box(place, data.panels.length > 1 ? "panels" : "single");
  const panels = data.panels.map(({ title, axes, ...options }) => {
    const panel = stage.panel(controls.titled(holder, title), { label: title, ...options });
    if (axes) panel.axes(axes);
    return panel;
  });
  let t = first;
  const written = () => format(t, ".3g") + unit;
  const snapped = (value) => Number(clamp(first + row(value) * step, first, last).toFixed(4));
  const input = (value) => move({ t: snapped(value) });
  /** A handle turns a direction through the origin, by 0 to 180 degrees, or moves along the axis of t. */
  const grip = (panel, name, color, words) =>
    panel.handle(name, {
      label: words,
      color,
      ...(unit
        ? {
            large: 15,
            drag: ([x, y]) => input(((Math.atan2(y, x) * 180) / Math.PI + 360) % 180),
            step: (dx, dy) => input((t + dx + dy + 180) % 180),
          }
        : { axis: "x", drag: ([x]) => input(x), step: (dx, dy) => input(t + (dx + dy) * step) }),
      end: (which) => input(which < 0 ? first : last),
    });
  shapes.forEach(([p, kind, color, words], name) => {
    if (kind === "handle") grip(panels[p], name, color, words);
  });
  const slider = controls.range(place, { label, min: first, max: last, step, input });
  controls.player(controls.box(place), { stations, seconds, at: () => t, input });

  const draw = () => {
    const at = row(t) / every,
      i = Math.floor(at);
    shapes.forEach(([p, kind, look, words, frames], name) => {
      const panel = panels[p];
      const [from, to] = [i, i + 1].map((frame) => frames[Math.min(frame, frames.length - 1)]);
      panel.hide(name, !from);
      if (!from) return;
      const flat = from.map((x, j) => x + (at - i) * ((to || from)[j] - x));
      const points = Array.from({ length: flat.length / 2 }, (_, j) =>
        flat.slice(2 * j, 2 * j + 2),
      );
      const said = { value: t, min: first, max: last, text: written() };
      if (kind === "handle") panel.place(name, points[0], said);
      else if (kind === "text") panel.text(name, points[0], fill(words, numbers[row(t)]), look);
      else if (["arrow", "rect"].includes(kind)) panel[kind](name, ...points, look);
      else panel[kind](name, points, look);
    });
  };
  return {
    clean: (state) => ({ t: snapped(check.number("t", state.t, first, last)) }),
    draw: (state) => {
      t = state.t;
      slider.show(t, written());
      draw();
    },
    numbers: () => numbers[row(t)],
    table: () => ({ numbers }),
    remarks: () => (data.remarked ? [String(Math.floor(t))] : []),
    eases: { t: 0 },
  };
};
