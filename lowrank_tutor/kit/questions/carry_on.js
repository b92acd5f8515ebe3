// Once there is an answer, the next figure of the page shows it as soon as it can be seen: an instrument moves to its
// state, and an explorer to the words of its sliders.
const carryOn = (figure, wanted) => {
  const all = [...document.querySelectorAll("figure.instrument, figure.explorer")];
  const next = all.slice(all.indexOf(figure) + 1).find((one) => one.dataset.name !== "draw_first");
  if (!wanted || !next) return;
  const slide = () => {
    const { sliders } = JSON.parse(
      next.querySelector('script[type="application/json"]').textContent,
    );
    next.querySelectorAll("[data-slider]").forEach((control, i) => {
      const { slider } = control.dataset;
      if (!(slider in wanted)) return;
      const at = sliders[i].indexOf(check.one(slider, String(wanted[slider]), sliders[i]));
      if (control.matches("fieldset")) return control.querySelectorAll("input")[at].click();
      control.value = Number(control.min) + at * control.step;
      control.dispatchEvent(new Event("input", { bubbles: true }));
    });
  };
  new IntersectionObserver(
    (entries, seer) => {
      if (!entries.some((one) => one.isIntersecting)) return;
      seer.disconnect();
      if (next.instrument) next.instrument.morph(wanted);
      else slide();
    },
    { threshold: 0.4 },
  ).observe(next);
};
