/** Bring the <figure> of an explorer to life. */
const explorer = (root) => {
  const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  const imgs = [...root.querySelectorAll(".explorer-panels img")];
  const first = imgs.map((img) => img.src);
  const url = (panel, i) => {
    const text = data.pictures[panel][i];
    return text ? "data:image/webp;base64," + text : first[panel];
  };
  // A range input, or a fieldset with a radio button for each position.
  const controls = [...root.querySelectorAll("[data-slider]")];
  const position = (control) =>
    control.matches("fieldset")
      ? [...control.querySelectorAll("input")].findIndex((choice) => choice.checked)
      : Math.round((control.value - control.min) / control.step);
  const numbers = [...root.querySelectorAll("data")];
  const said = root.querySelector('[role="status"]');
  let pause = 0;
  let shown = -1;
  let moved = false;
  const show = () => {
    let frame = 0;
    controls.forEach((control, j) => {
      const at = position(control);
      frame = frame * data.sliders[j].length + at;
      if (control.matches("fieldset")) return;
      const text = data.sliders[j][at];
      control.parentElement.nextElementSibling.textContent = text;
      if (control.hasAttribute("aria-valuetext")) control.setAttribute("aria-valuetext", text);
    });
    if (frame === shown) return;
    shown = frame;
    imgs.forEach((img, j) => {
      const picture = url(j, data.frames[frame][j]);
      if (img.src !== picture) img.src = picture;
    });
    imgs[0].alt = data.alts[frame];
    numbers.forEach((number, j) => {
      [number.value, number.textContent] = data.numbers[frame][j];
    });
    // For those who hear the page: one sentence, once the slider rests.
    clearTimeout(pause);
    pause = setTimeout(() => (said.textContent = moved ? data.alts[frame] : ""), 400);
  };
  // A button that moves a slider by itself, one position after the other; where motion is not wanted, one a press.
  const button = root.querySelector(".explorer-play");
  let clock = 0;
  let rest = () => {};
  if (button) {
    const slider = controls.find((control) => control.dataset.slider === root.dataset.plays);
    const stepwise = matchMedia("(prefers-reduced-motion: reduce)");
    const atEnd = () => Number(slider.value) >= Number(slider.max);
    const step = () => {
      slider.value = atEnd() ? slider.min : Number(slider.value) + Number(slider.step);
      moved = true;
      show();
    };
    rest = () => {
      clearInterval(clock);
      clock = 0;
      button.textContent = stepwise.matches ? "Next" : "Play";
    };
    button.addEventListener("click", () => {
      if (clock || stepwise.matches) {
        if (!clock) step();
        return rest();
      }
      button.textContent = "Pause";
      step();
      // Shorter than the pause before a sentence is said: it is said once, at the end.
      clock = setInterval(() => (atEnd() ? rest() : step()), 350);
    });
    stepwise.addEventListener("change", rest);
    button.hidden = false;
    rest();
  }
  controls.forEach((control) => {
    const change = () => {
      rest();
      moved = true;
      show();
    };
    if (control.matches("fieldset")) control.addEventListener("input", change);
    else onSlide(control, change);
  });
  // Whoever drags across the picture moves a slider, from where it stands: the whole width is its whole range.
  const ranges = controls.filter((control) => control.matches("input"));
  const slid = ranges.find((control) => control.dataset.slider === root.dataset.plays) ?? ranges[0];
  if (slid) {
    const panels = imgs[0].parentElement;
    let down = null,
      wide = 1,
      before = 0;
    const slide = (value) => {
      const at = slid.value;
      slid.value = value; // the browser takes the nearest step
      if (slid.value !== at) slid.dispatchEvent(new Event("input"));
    };
    panels.classList.add("drags");
    panels.addEventListener("dragstart", (event) => event.preventDefault());
    panels.addEventListener("pointerdown", (event) => {
      if (event.button || !event.isPrimary) return;
      const sides = imgs.flatMap((img) => [
        img.getBoundingClientRect().left,
        img.getBoundingClientRect().right,
      ]);
      [down, wide, before] = [event, Math.max(...sides) - Math.min(...sides), Number(slid.value)];
      panels.setPointerCapture(event.pointerId);
    });
    panels.addEventListener("pointermove", (event) => {
      if (down) slide(before + ((event.clientX - down.clientX) / wide) * (slid.max - slid.min));
    });
    panels.addEventListener("pointercancel", () => down && slide(before)); // the page scrolls instead
    ["pointerup", "pointercancel"].forEach((event) =>
      panels.addEventListener(event, () => (down = null)),
    );
  }
  addEventListener("pageshow", show); // a browser may bring a slider back where it was left
  // Pictures are decoded before they are asked for, so that a step never waits.
  const keep = [];
  const warm = () => {
    if (keep.length) return;
    data.pictures.forEach((strip, panel) =>
      strip.forEach((_, i) => {
        const image = new Image();
        image.src = url(panel, i);
        keep.push(image);
      }),
    );
  };
  ["pointerenter", "focusin"].forEach((event) =>
    root.addEventListener(event, warm, { once: true }),
  );
};
