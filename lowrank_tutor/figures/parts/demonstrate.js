// A figure that shows once, when it is first seen, what can be done with it. Whatever a reader does ends it.
//
//   const demo = demonstrate(figure, { watch: svg, steps: [[0, { k: 6 }], [900, { k: 2 }]] });
//   demo(state);                              // what is drawn now: something else may have moved the figure
//
// Nothing runs where motion is not wanted, nor where the address asks for a state. The figure is of the class "demo"
// meanwhile. A press on the figure leaves it as it stands; anything else brings it to the last of the states.
const demonstrate = (figure, { watch, steps }) => {
  const hands = ["pointerdown", "keydown"];
  let timers = [],
    wanted = {};
  const go = (partial) => figure.instrument.set((wanted = partial));
  const end = () => {
    timers.forEach(clearTimeout);
    timers = [];
    figure.classList.remove("demo");
    hands.forEach((kind) => removeEventListener(kind, stop, true));
    seen.disconnect();
  };
  const stop = ({ target }) => {
    const playing = timers.length > 0;
    end();
    if (playing && !figure.contains(target)) go(steps.at(-1)[1]);
  };
  const seen = new IntersectionObserver(
    (all) => {
      if (!all.some((one) => one.isIntersecting)) return;
      seen.disconnect();
      figure.classList.add("demo");
      timers = steps.map(([time, partial]) => setTimeout(() => go(partial), time));
      timers.push(setTimeout(end, steps.at(-1)[0] + 1000));
    },
    { threshold: 0.6 },
  );
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches || location.hash.length > 1;
  if (steps.length && !still) {
    seen.observe(watch);
    hands.forEach((kind) => addEventListener(kind, stop, { capture: true, passive: true }));
  }
  return (state) => Object.keys(wanted).some((part) => wanted[part] !== state[part]) && end();
};
