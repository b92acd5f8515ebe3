// A figure whose page sets a task notices when the reader gets there, and only then the sentence with the answer is shown; a
// button shows it at once. Without scripts, and in print, it stands there.
addEventListener("DOMContentLoaded", () => document.querySelectorAll(".found").forEach((box) => {
  const { figure: name, number, least, hides } = box.dataset;
  const figure = [...document.querySelectorAll(`figure[data-name="${name}"]`)]
    .filter((one) => one.compareDocumentPosition(box) & Node.DOCUMENT_POSITION_FOLLOWING).at(-1);
  if (!figure) return;
  const said = box.querySelector("output"), button = box.querySelector("button"), answer = hides ? box.nextElementSibling : null;
  const show = () => {
    answer?.classList.remove("not-found");
    button.remove();
  };
  let touched = false, best = -Infinity;
  const look = () => {
    const readout = figure.querySelector(`data[data-name="${number}"]`), value = Number(readout?.getAttribute("value"));
    if (!touched || !(value >= least && value > best)) return;
    best = value;
    said.textContent = `Found: ${readout.textContent}. Can you beat it?`;
    show();
  };
  for (const kind of ["pointerdown", "keydown", "input"]) figure.addEventListener(kind, () => (touched = true), true);
  new MutationObserver(look).observe(figure, { subtree: true, childList: true, attributeFilter: ["value"] });
  button.hidden = !answer;
  button.onclick = () => {
    show();
    Object.assign(answer, { tabIndex: -1 }).focus();
  };
  answer?.classList.add("not-found");
}));
