(() => {
  const root = document.currentScript.closest("figure");
  const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  const img = root.querySelector("img");
  const first = img.src;
  const url = (i) => (data.frames[i] ? "data:image/webp;base64," + data.frames[i] : first);
  const inputs = [...root.querySelectorAll("input")];
  const outputs = [...root.querySelectorAll("output")];
  const numbers = [...root.querySelectorAll("data")];
  const said = root.querySelector('[role="status"]');
  let pause = 0;
  let shown = -1;
  let moved = false;
  const show = () => {
    let frame = 0;
    inputs.forEach((input, j) => {
      const position = Math.round((input.value - input.min) / input.step);
      const text = data.sliders[j][position];
      frame = frame * data.sliders[j].length + position;
      outputs[j].textContent = text;
      if (input.hasAttribute("aria-valuetext")) input.setAttribute("aria-valuetext", text);
    });
    if (frame === shown) return;
    shown = frame;
    img.src = url(frame);
    img.alt = data.alts[frame];
    numbers.forEach((number, j) => {
      [number.value, number.textContent] = data.numbers[frame][j];
    });
    // For those who hear the page: one sentence, once the slider rests.
    clearTimeout(pause);
    pause = setTimeout(() => (said.textContent = moved ? data.alts[frame] : ""), 400);
  };
  inputs.forEach((input) =>
    input.addEventListener("input", () => {
      moved = true;
      show();
    })
  );
  addEventListener("pageshow", show); // a browser may bring a slider back where it was left
  // Pictures are decoded before they are asked for, so that a step never waits.
  const keep = [];
  const warm = () => {
    if (keep.length) return;
    data.frames.forEach((_, i) => {
      keep[i] = new Image();
      keep[i].src = url(i);
    });
  };
  ["pointerenter", "focusin"].forEach((event) => root.addEventListener(event, warm, { once: true }));
})();
