// A ball to be dragged over the map of (1 - cf)^2, and the steps of gradient descent from there. Its sentences are in
// downhill.py.
const downhill = ({ place, data, move }) => {
  const { reach, last, sizes } = data;
  const box = controls.box(place, "single");
  const map = stage.panel(box, {
    label: "a map of heights: drag the ball",
    width: 320,
    height: 320,
    margin: [8, 8, 34, 36],
    x: [-reach, reach],
    y: [-reach, reach],
  });
  const ticks = [-2, -1, 0, 1, 2];
  map.axes({ x: ticks, y: ticks, xTitle: "f", yTitle: "c" });
  let state = null,
    places = null; // of the ball, from the start on
  const height = ([f, c]) => (1 - c * f) ** 2;
  const stepFrom = ([f, c]) => [
    f + 2 * state.size * c * (1 - c * f),
    c + 2 * state.size * f * (1 - c * f),
  ];
  const inside = (p) => p.every((value) => Math.abs(value) <= reach);
  const ball = () => places[places.length - 1];

  // Where cf is this product the height is the same: a curve in each of two opposite corners of the map.
  [-1, 0, 0.5, 1, 1.5, 2].forEach((product) =>
    [1, -1].forEach((side) => {
      const low = Math.abs(product) / reach;
      const across = Array.from({ length: 61 }, (_, i) =>
        low ? low * (reach / low) ** (i / 60) : (reach * i) / 60,
      );
      const curve = across.map((f) => [side * f, (side * product) / f || 0]);
      map.line("curve " + product + side, curve, product === 1 ? "ink dotted" : "gray thin");
    }),
  );
  map.line(
    "upright",
    [
      [0, -reach],
      [0, reach],
    ],
    "gray thin",
  );
  const showBall = vectors.tip(map, "ball", {
    label: "the ball",
    color: "teal",
    reach,
    at: ball,
    put: (p) => move({ start: vectors.tenths(p, reach), step: 0 }),
  });
  const [low, high] = sizes;
  const size = controls.range(box, {
    label: "step size",
    min: low,
    max: high,
    step: low,
    input: (size) => move({ size }),
  });
  const steps = controls.range(box, {
    label: "steps",
    min: 0,
    max: last,
    step: 1,
    input: (step) => move({ step }),
  });
  controls.player(box, {
    words: "Roll",
    stations: Array.from({ length: last + 1 }, (_, i) => i),
    seconds: 6,
    at: () => state.step,
    input: (way) => move({ step: Math.floor(way) }),
  });

  return {
    clean: ({ start, size, step }) => ({
      start: check.list("start", start, 2, -reach, reach),
      size: check.number("size", size, low, high),
      step: check.whole("step", step, 0, last),
    }),
    draw: (wished) => {
      state = wished;
      places = [state.start];
      while (places.length <= state.step && inside(stepFrom(ball()))) places.push(stepFrom(ball()));
      const next = stepFrom(ball());
      size.show(state.size, format(state.size, ".2f"));
      steps.show(state.step);
      map.line("way", places, "teal thin");
      map.dots("places", places, "teal small");
      map.arrow("next", ball(), inside(next) ? next : ball(), "ink thin");
      map.hide(
        "next",
        !inside(next) || Math.hypot(next[0] - ball()[0], next[1] - ball()[1]) < 0.02,
      );
      showBall();
    },
    numbers: () => ({ f: ball()[0], c: ball()[1], height: height(ball()) }),
    table: () => ({ places }),
    eases: { start: 0, size: 0, step: 1 },
    remarks: () => {
      const before = places[places.length - 2];
      if (!inside(stepFrom(ball()))) return ["gone"];
      if (Math.hypot(...ball()) < 0.05) return ["level"];
      return before && height(ball()) > height(before) ? ["uphill"] : [];
    },
  };
};
