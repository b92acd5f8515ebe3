// Tells a finger that drags from one that scrolls: it drags once it goes sideways, or where it is lifted at once.

/** Whether a finger that came down at one event has gone more sideways than up or down by another. */
const sideways = (down, event) =>
  Math.abs(event.clientX - down.clientX) > Math.abs(event.clientY - down.clientY);

/**
 * Call change() whenever a slider moves. A browser moves it as soon as a finger touches it: nothing is called until the
 * finger goes sideways or is lifted, and where the page scrolls instead, the slider goes back.
 */
const onSlide = (slider, change) => {
  let before = null; // the value where a finger came down that may want to scroll
  slider.addEventListener("input", () => before ?? change());
  slider.addEventListener("pointerdown", (down) => {
    if (before !== null || down.pointerType !== "touch") return;
    before = slider.value;
    const stop = new AbortController(),
      { signal } = stop;
    const settle = (value) => {
      const moved = value !== before;
      stop.abort();
      [slider.value, before] = [value, null];
      if (moved) change();
    };
    slider.addEventListener(
      "pointermove",
      (event) => sideways(down, event) && settle(slider.value),
      { signal },
    );
    slider.addEventListener("pointerup", () => settle(slider.value), { signal });
    slider.addEventListener("pointercancel", () => settle(before), { signal });
  });
};
