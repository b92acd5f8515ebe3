// A figure whose page sets a task notices when the reader rests there, and only then the sentence with the answer is shown; a
// button shows it at once. Without scripts, and in print, it stands there. In a chapter, the line below the figure
//
//     % found: storyteller k <= 3, cut = sheets, right >= 0.3 hides
//
// names the figure, and what must hold of its numbers, sliders, or state; the first of these is what the reader found, and
// may be beaten. "hides": the paragraph that follows is the answer.
addEventListener("DOMContentLoaded", () =>
  document.querySelectorAll(".found").forEach((box) => {
    const { figure: name, rule, hides } = box.dataset,
      PAUSE = 300; // milliseconds: whoever only passes has not found it
    const figure = [...document.querySelectorAll(`figure[data-name="${name}"]`)]
      .filter((one) => one.compareDocumentPosition(box) & Node.DOCUMENT_POSITION_FOLLOWING)
      .at(-1);
    if (!figure) return;
    const said = box.querySelector("output"),
      button = box.querySelector("button"),
      answer = hides ? box.nextElementSibling : null;
    const show = () => {
      answer?.classList.remove("not-found");
      button.remove();
    };
    /** A number of the figure, or where one of its sliders stands: its value, and as it is written. */
    const read = (part) => {
      const number = figure.querySelector(`data[data-name="${part}"]`),
        slider = figure.querySelector(`[data-slider="${part}"]`);
      const text =
        number?.textContent ??
        (slider?.querySelector("input:checked") ?? slider?.closest("div").querySelector("output"))
          ?.value ??
        String(figure.instrument?.state()[part]);
      return [number?.getAttribute("value") ?? text, text];
    };
    const conditions = rule.split(", ").map((one) => one.split(" "));
    /** Whether a condition holds; a number that is as large as asked may be off by what nobody sees. */
    const holds = ([part, is, wanted], [value] = read(part)) =>
      is === "="
        ? value === wanted || Math.abs(value - wanted) < 0.05
        : is === ">="
          ? Number(value) >= wanted
          : Number(value) <= wanted;
    let touched = false,
      best = Infinity,
      pause = 0;
    const look = () => {
      const [[part, is]] = conditions,
        [value, text] = read(part),
        height = { ">=": -value, "<=": Number(value) }[is] ?? 0;
      if (!touched || !conditions.every((one) => holds(one)) || !(height < best)) return;
      best = height;
      said.textContent = `Found: ${text}.${is === "=" ? "" : " Can you beat it?"}`;
      show();
    };
    const wait = () => {
      clearTimeout(pause);
      pause = setTimeout(look, PAUSE);
    };
    for (const kind of ["pointerdown", "keydown", "input"])
      figure.addEventListener(kind, () => (touched = true), true);
    new MutationObserver(wait).observe(figure, {
      subtree: true,
      childList: true,
      attributeFilter: ["value"],
    });
    button.hidden = !answer;
    button.onclick = () => {
      show();
      Object.assign(answer, { tabIndex: -1 }).focus();
    };
    answer?.classList.add("not-found");
  }),
);
