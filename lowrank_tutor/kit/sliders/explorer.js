const still = matchMedia("(prefers-reduced-motion: reduce), print");
// Milliseconds from one position to the next
const TIME = 200;
// Attributes whose numbers say where something is
const TRAVELS = ["d", "x", "y", "transform"];
const NUMBER = /-?[\d.]+/g;
/** A button that moves a slider by itself; where motion is not wanted, one position a press. Returns what stops it. */
const autoplay = (button, slider, move) => {
  let clock = 0;
  const atEnd = () => slider.value === slider.max;
  const step = () => {
    if (atEnd()) slider.value = slider.min;
    else slider.stepUp();
    move();
  };
  const rest = () => {
    clearInterval(clock);
    clock = 0;
    button.textContent = still.matches ? "Next" : "Play";
  };
  button.addEventListener("click", () => {
    if (clock || still.matches) {
      if (!clock) step();
      return rest();
    }
    button.textContent = "Pause";
    step();
    // Shorter than the pause before a sentence is said: it is said once, at the end.
    clock = setInterval(() => (atEnd() ? rest() : step()), 350);
  });
  still.addEventListener("change", rest);
  button.hidden = false;
  rest();
  return rest;
};
/**
 * Turn one SVG into another. Children are paired by their kind, and words by what they say but for numbers, which travel
 * with what they measure. Each change is added to `moves`, as a function of how much of the way is done, from 0 to 1.
 */
const become = (old, wanted, moves) => {
  const kind = (e) => {
    const name = e.tagName + e.dataset.of;
    return name + e.getAttributeNames() + (/text|tick/.test(name) ? rest(e.textContent) : "");
  };
  const rest = (text) => text.replace(NUMBER, "");
  for (const { name, value } of wanted.attributes) {
    const before = old.getAttribute(name);
    if (before === value) continue;
    const travels = TRAVELS.includes(name) && rest(before) === rest(value);
    const from = before.match(NUMBER);
    moves.push((share) => {
      let i = 0;
      const between = (to) => (from[i++] * (1 - share) + to * share).toFixed(3);
      old.setAttribute(name, travels && share < 1 ? value.replace(NUMBER, between) : value);
    });
  }
  if (!wanted.children[0]) old.textContent = wanted.textContent;
  const free = [...old.children];
  const children = [...wanted.children].map((child) => {
    const at = free.findIndex((e) => kind(e) === kind(child));
    if (at < 0) return child;
    const [twin] = free.splice(at, 1);
    become(twin, child, moves);
    return twin;
  });
  if (free[0] || children.some((child, i) => child !== old.children[i]))
    old.replaceChildren(...children);
};
/** Whoever drags across the pictures moves a slider, from where it stands: the whole width is its whole range. */
const dragAcross = (panels, slider) => {
  let down, wide, before;
  const slide = (value) => {
    const at = slider.value;
    // The browser takes the nearest step
    slider.value = value;
    if (slider.value !== at) slider.dispatchEvent(new Event("input"));
  };
  panels.classList.add("drags");
  panels.addEventListener("pointerdown", (event) => {
    if (event.button || !event.isPrimary) return;
    wide =
      panels.lastChild.getBoundingClientRect().right -
      panels.firstChild.getBoundingClientRect().left;
    down = event;
    before = Number(slider.value);
    panels.setPointerCapture(event.pointerId);
  });
  panels.addEventListener("pointermove", (event) => {
    if (down) slide(before + ((event.clientX - down.clientX) / wide) * (slider.max - slider.min));
  });
  // The page scrolls instead
  panels.addEventListener("pointercancel", () => down && slide(before));
  panels.addEventListener("lostpointercapture", () => (down = null));
};
/** Bring the <figure> of an explorer to life. */
const explorer = async (root) => {
  const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  // The pictures of each panel: SVG, packed.
  const bytes = Uint8Array.from(atob(data.pictures), (letter) => letter.charCodeAt());
  const opened = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const pictures = await new Response(opened).json();
  const panels = root.querySelector(".explorer-panels");
  // A range input, or a fieldset with a radio button for each position.
  const controls = [...root.querySelectorAll("[data-slider]")];
  const position = (control) =>
    control.matches("fieldset")
      ? [...control.querySelectorAll("input")].findIndex((choice) => choice.checked)
      : Math.round((control.value - control.min) / control.step);
  let pause, shown, clock;
  const draw = (frame) => {
    const moves = [];
    const wanted = panels.cloneNode();
    wanted.innerHTML = frame.map((i, panel) => pictures[panel][i]).join("");
    become(panels, wanted, moves);
    cancelAnimationFrame(clock);
    const start = performance.now();
    const step = () => {
      const share = still.matches ? 1 : Math.min(1, (performance.now() - start) / TIME);
      moves.forEach((move) => move(share));
      if (share < 1) clock = requestAnimationFrame(step);
    };
    step();
  };
  const show = () => {
    let frame = 0;
    controls.forEach((control, j) => {
      const at = position(control);
      frame = frame * data.sliders[j].length + at;
      if (control.matches("fieldset")) return;
      const text = data.sliders[j][at];
      control.parentElement.nextElementSibling.textContent = text;
      if (control.ariaValueText) control.ariaValueText = text;
    });
    if (frame === shown) return;
    shown = frame;
    draw(data.frames[frame]);
    panels.ariaLabel = data.alts[frame];
    root.querySelectorAll("data").forEach((number, j) => {
      [number.value, number.textContent] = data.numbers[frame][j];
    });
  };
  const move = () => {
    show();
    // For those who hear the page: one sentence, once the slider rests.
    clearTimeout(pause);
    pause = setTimeout(() => {
      root.querySelector('[role="status"]').textContent = data.alts[shown];
    }, 400);
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
  if (slid) dragAcross(panels, slid);
  // A browser may bring a slider back where it was left
  addEventListener("pageshow", show);
  show();
};
