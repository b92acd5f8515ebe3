// Mends for readers who use the keyboard or a screen reader, each for something that the theme leaves undone.
addEventListener("DOMContentLoaded", () => {
  // Several scripts take the focus away from a button that was pressed: the next Tab would begin at the top.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    setTimeout(() => {
      const lost = document.activeElement === document.body || button?.matches(".copybtn");
      if (lost && button?.isConnected && !document.querySelector("dialog[open]")) button.focus({ preventScroll: true });
    });
  });
  // A dialog gives the focus back to what opened it, and has a name.
  let last = null;
  document.addEventListener("focusin", ({ target }) => { if (!target.closest("dialog")) last = target; });
  const names = { "pst-search-dialog": "Search", "pst-primary-sidebar-modal": "Chapters", "pst-secondary-sidebar-modal": "On this page" };
  for (const dialog of document.querySelectorAll("dialog")) {
    if (names[dialog.id]) dialog.setAttribute("aria-label", names[dialog.id]);
    dialog.addEventListener("close", () => last?.focus({ preventScroll: true }));
  }
  // The skip link goes to the text, past the buttons above it.
  const text = document.querySelector("article.bd-article");
  const skip = document.querySelector('a[href="#main-content"]');
  if (text && skip) {
    text.id ||= "text";
    text.tabIndex = -1;
    skip.hash = text.id;
  }
  // The button says which mode it stands in.
  const mode = () => document.querySelectorAll(".theme-switch-button").forEach((button) =>
    button.setAttribute("aria-label", `Color mode: ${document.documentElement.dataset.mode}`));
  new MutationObserver(mode).observe(document.documentElement, { attributeFilter: ["data-mode"] });
  mode();
});
// Each fold is called by what it folds, and a proof by its theorem.
addEventListener("load", () => document.querySelectorAll(".toggle-button").forEach((button) => {
  const box = button.closest(".admonition");
  const title = box.querySelector(".admonition-title").cloneNode(true);
  title.querySelectorAll("button").forEach((b) => b.remove());
  const stated = box.previousElementSibling?.querySelector(".caption-number")?.textContent.trim();
  const of = box.matches("div.proof") && stated ? ` of ${stated}` : "";
  button.setAttribute("aria-label", title.textContent.trim() + of);
}));
// A formula wider than its place scrolls there: a keyboard must reach it.
addEventListener("load", async () => {
  const reach = () => document.querySelectorAll(".bd-content :is(div, span).math").forEach((box) =>
    box.scrollWidth > box.clientWidth + 1 ? box.setAttribute("tabindex", "0") : box.removeAttribute("tabindex"));
  await window.MathJax?.startup?.promise;
  reach();
  addEventListener("resize", reach);
});
