// A figure that shows once, when it is first seen, what can be done with it. Whatever a reader does ends it.
//
//   const demo = demonstrate(figure, { watch: svg, steps: [[0, () => go(6)], [900, () => go(2)]], settle: () => go(2) });
//   demo.end();                               // something else has moved the figure
//
// Nothing runs where motion is not wanted, nor where the address asks for a state. The figure is of the class "demo"
// meanwhile. A press on the figure leaves it as it stands; anything else brings it back to where it started.
const demonstrate = (figure, { watch, steps, settle }) => {
  const hands = ["pointerdown", "keydown"];
  let timers = [];
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
    if (playing && !figure.contains(target)) settle();
  };
  const seen = new IntersectionObserver(
    (all) => {
      if (!all.some((one) => one.isIntersecting)) return;
      seen.disconnect();
      figure.classList.add("demo");
      timers = [...steps, [steps[steps.length - 1][0] + 1000, end]].map(([time, step]) =>
        setTimeout(step, time),
      );
    },
    { threshold: 0.6 },
  );
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches || location.hash.length > 1;
  if (!still) seen.observe(watch);
  if (!still)
    hands.forEach((kind) => addEventListener(kind, stop, { capture: true, passive: true }));
  return { end };
};
