// Once there is an answer, the next figure of the page moves to the state that shows it: an instrument by its state, an
// explorer by the words of its sliders. It waits until it can be seen, and stops when the reader takes hold of it.
const CARRY = 900; // milliseconds
const carryOn = (figure, wanted) => {
  const all = [...document.querySelectorAll("figure.instrument, figure.explorer")];
  const next = all.slice(all.indexOf(figure) + 1).find((one) => one.dataset.name !== "draw_first");
  if (!wanted || !next) return;
  const whole = (one) => Number.isInteger(one);

  const sliders = () => {
    const texts = JSON.parse(
      next.querySelector('script[type="application/json"]').textContent,
    ).sliders;
    const at = [...next.querySelectorAll("[data-slider]")]
      .map((control, i) => {
        const choices = [...control.querySelectorAll("input")],
          { slider } = control.dataset;
        return choices.length
          ? {
              slider,
              texts: texts[i],
              now: choices.findIndex((one) => one.checked),
              go: (to) => choices[to].click(),
            }
          : {
              slider,
              texts: texts[i],
              now: (control.value - control.min) / control.step,
              go: (to) => {
                control.value = Number(control.min) + to * control.step;
                control.dispatchEvent(new Event("input", { bubbles: true }));
              },
            };
      })
      .filter(({ slider }) => slider in wanted);
    const to = Object.fromEntries(
      at.map(({ slider, texts }) => [
        slider,
        texts.indexOf(check.one(slider, String(wanted[slider]), texts)),
      ]),
    );
    const show = (places) => at.forEach(({ slider, go }) => go(places[slider]));
    return [Object.fromEntries(at.map(({ slider, now }) => [slider, now])), to, show];
  };
  const walk = async () => {
    const [from, to, show] = next.instrument
      ? [next.instrument.state(), wanted, next.instrument.set]
      : sliders();
    const stop = new AbortController(),
      { signal } = stop;
    ["pointerdown", "keydown"].forEach((kind) =>
      next.addEventListener(kind, () => stop.abort(), { signal }),
    );
    const begin = performance.now(),
      calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    for (let share = 0; share < 1 && !signal.aborted;) {
      await new Promise(requestAnimationFrame);
      share = calm ? 1 : Math.min(1, (performance.now() - begin) / CARRY);
      const eased = share * (2 - share);
      await show(
        Object.fromEntries(
          Object.entries(to).map(([name, end]) => {
            if (share === 1 || typeof end !== "number") return [name, end];
            const value = from[name] + eased * (end - from[name]);
            return [name, whole(end) && whole(from[name]) ? Math.round(value) : value];
          }),
        ),
      );
    }
    stop.abort();
  };
  new IntersectionObserver(
    (entries, seer) => {
      if (!entries.some((one) => one.isIntersecting)) return;
      seer.disconnect();
      walk();
    },
    { threshold: 0.4 },
  ).observe(next);
};
