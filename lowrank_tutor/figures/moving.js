// Pictures that one number moves: a slider sets it, a button lets it run. Sentences are in moving.py, pictures in scenes.js.
const moving = ({ place, data, move }) => {
  const { stations, step, label, seconds, unit } = data;
  const [first, last] = [stations[0], stations[stations.length - 1]];
  const scene = scenes[data.scene](
    controls.box(place, data.panels > 1 ? "panels" : "single"),
    data,
    move,
  );
  let t = first;
  const input = (value) => move({ t: clamp(Math.round(value / step) * step, first, last) });
  const slider = controls.range(place, { label, min: first, max: last, step, input });
  controls.player(controls.box(place), { stations, seconds, at: () => t, input });
  return {
    clean: (state) => ({ t: check.number("t", state.t, first, last) }),
    draw: (state) => {
      t = state.t;
      slider.show(t, format(t, ".3g") + unit);
      scene.draw(t);
    },
    numbers: () => scene.numbers(t),
    table: () => scene.table(t),
    remarks: () => (scene.remarks ? scene.remarks(t) : []),
    eases: { t: 0 },
  };
};
