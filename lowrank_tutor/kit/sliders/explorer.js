/** A button that moves a slider by itself; where motion is not wanted, one position a press. Returns what stops it. */
const autoplay = (button, slider, move) => {
  const stepwise = matchMedia("(prefers-reduced-motion: reduce)");
  let clock = 0;
  const atEnd = () => Number(slider.value) >= Number(slider.max);
  const step = () => {
    slider.value = atEnd() ? slider.min : Number(slider.value) + Number(slider.step);
    move();
  };
  const rest = () => {
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
  return rest;
};
/** Whoever drags across the pictures moves a slider, from where it stands: the whole width is its whole range. */
const dragAcross = (imgs, slider) => {
  const panels = imgs[0].parentElement;
  let down = null,
    wide = 1,
    before = 0;
  const slide = (value) => {
    const at = slider.value;
    slider.value = value; // the browser takes the nearest step
    if (slider.value !== at) slider.dispatchEvent(new Event("input"));
  };
  panels.classList.add("drags");
  panels.addEventListener("dragstart", (event) => event.preventDefault());
  panels.addEventListener("pointerdown", (event) => {
    if (event.button || !event.isPrimary) return;
    const boxes = imgs.map((img) => img.getBoundingClientRect());
    wide =
      Math.max(...boxes.map(({ right }) => right)) - Math.min(...boxes.map(({ left }) => left));
    down = event;
    before = Number(slider.value);
    panels.setPointerCapture(event.pointerId);
  });
  panels.addEventListener("pointermove", (event) => {
    if (down) slide(before + ((event.clientX - down.clientX) / wide) * (slider.max - slider.min));
  });
  panels.addEventListener("pointercancel", () => down && slide(before)); // the page scrolls instead
  panels.addEventListener("lostpointercapture", () => (down = null));
};
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
  const move = () => {
    moved = true;
    show();
  };
  const playing = controls.find((control) => control.dataset.slider === root.dataset.plays);
  const button = root.querySelector(".explorer-play");
  const rest = button ? autoplay(button, playing, move) : () => {};
  controls.forEach((control) => {
    const change = () => {
      rest();
      move();
    };
    if (control.matches("fieldset")) control.addEventListener("input", change);
    else onSlide(control, change);
  });
  const slid = playing ?? controls.find((control) => control.matches("input"));
  if (slid) dragAcross(imgs, slid);
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
