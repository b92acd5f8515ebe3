// Mends for readers who use the keyboard or a screen reader, each for something that the theme leaves undone.
addEventListener("DOMContentLoaded", () => {
  // Several scripts take the focus away from a button that was pressed: the next Tab would begin at the top.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    setTimeout(() => {
      const lost = document.activeElement === document.body || button?.matches(".copybtn");
      if (lost && button?.isConnected && !document.querySelector("dialog[open]"))
        button.focus({ preventScroll: true });
    });
  });
  // A dialog gives the focus back to what opened it, and has a name.
  let last = null;
  document.addEventListener("focusin", ({ target }) => {
    if (!target.closest("dialog")) last = target;
  });
  const names = {
    "pst-search-dialog": "Search",
    "pst-primary-sidebar-modal": "Chapters",
    "pst-secondary-sidebar-modal": "On this page",
  };
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
  const mode = () =>
    document
      .querySelectorAll(".theme-switch-button")
      .forEach((button) =>
        button.setAttribute("aria-label", `Color mode: ${document.documentElement.dataset.mode}`),
      );
  new MutationObserver(mode).observe(document.documentElement, { attributeFilter: ["data-mode"] });
  mode();
});
// What is copied keeps its formulas, in TeX, as notes, chats and translators read them.
document.addEventListener("copy", (event) => {
  const selection = getSelection(),
    copied = document.createElement("div");
  for (let i = 0; i < selection.rangeCount; i++)
    copied.append(selection.getRangeAt(i).cloneContents());
  const formulas = copied.querySelectorAll("mjx-container[data-tex]");
  if (!formulas.length) return;
  formulas.forEach((formula) => formula.replaceWith(formula.dataset.tex));
  copied
    .querySelectorAll("button, script, style, .headerlink")
    .forEach((element) => element.remove());
  copied.style.cssText = "position: fixed; opacity: 0";
  document.body.append(copied); // lines break as they do on the page
  event.clipboardData.setData("text/plain", copied.innerText);
  event.clipboardData.setData("text/html", copied.innerHTML);
  copied.remove();
  event.preventDefault();
});
// Each fold is called by what it folds, and a proof by its theorem. Folds of one name are counted.
addEventListener("load", () => {
  const seen = {};
  document.querySelectorAll(".toggle-button").forEach((button) => {
    const box = button.closest(".admonition");
    const title = box.querySelector(".admonition-title").cloneNode(true);
    title.querySelectorAll("button").forEach((b) => b.remove());
    let before = box.previousElementSibling; // there may be words between a theorem and its proof
    while (before && !before.querySelector(".caption-number"))
      before = before.previousElementSibling;
    const stated = before?.querySelector(".caption-number").textContent.trim();
    const of = box.matches("div.proof") && stated ? ` of ${stated}` : "";
    const name = title.textContent.trim() + of;
    seen[name] = (seen[name] ?? 0) + 1;
    button.setAttribute("aria-label", seen[name] > 1 ? `${name}, ${seen[name]}` : name);
  });
});
// A formula wider than its place becomes smaller, down to 15 pixels, and is then scrolled. A table too wide for a phone is
// stacked: each row is a block, and its cells stand in it under the heads of their columns (book.css). What is still wider,
// as code may be, scrolls, too: the keyboard must reach it, and an edge that fades must say so.
addEventListener("DOMContentLoaded", async () => {
  const SMALLEST = 15,
    TALLEST = 110; // pixels: the letters of a formula; a row's name, about six lines
  const formulas = () => document.querySelectorAll(".bd-content .math");
  const scrolling = () =>
    document.querySelectorAll(".bd-content :is(.math, table, pre, .cell_output)");
  const phone = matchMedia("(max-width: 600px)");
  const stack = (table) => {
    const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    const rows = [...table.querySelectorAll("tbody tr")].map((row) => [...row.cells]);
    let longest = 0;
    rows.forEach((cells) =>
      cells.forEach((cell, i) => {
        const words = cell.textContent.trim();
        cell.classList.toggle("blank", !words);
        if (!i || cell.colSpan > 1) return;
        cell.dataset.head = heads[i] ?? "";
        longest = Math.max(longest, words.length);
      }),
    );
    table.classList.add(longest > 20 ? "stacked-words" : "stacked");
  };
  const cue = (box) =>
    box.toggleAttribute?.("data-more", box.scrollWidth - box.clientWidth - box.scrollLeft > 2);
  const fit = () => {
    const tables = [...document.querySelectorAll(".bd-article table:has(thead)")];
    tables.forEach((table) => table.classList.remove("stacked", "stacked-words"));
    const drawn = [...formulas()]
      .map((box) => [box, box.querySelector("mjx-container")])
      .filter(([, formula]) => formula);
    drawn.forEach(
      ([, formula]) => (formula.style.fontSize = formula.dataset.size ??= formula.style.fontSize),
    );
    // A line's formula is measured itself: beside it lies, unseen, what a screen reader reads, which may be wider.
    const share = ([box, formula]) => {
      if (box.matches("div")) return box.clientWidth / box.scrollWidth;
      const place = box.closest("p, li, td, th, dt, dd, div");
      const { paddingLeft, paddingRight } = getComputedStyle(place);
      return (
        (place.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)) /
        formula.getBoundingClientRect().width
      );
    };
    drawn.forEach(([box]) => box.classList.remove("scrolls"));
    const shares = drawn.map(share),
      sizes = drawn.map(([, formula]) => parseFloat(getComputedStyle(formula).fontSize));
    drawn.forEach(([box, formula], i) => {
      if (!(shares[i] > 0 && shares[i] < 0.995)) return;
      const least = Math.min(1, SMALLEST / sizes[i]);
      formula.style.fontSize = `${parseFloat(formula.dataset.size || "100%") * Math.max(least, 0.98 * shares[i])}%`;
      if (box.matches("span") && shares[i] < least) box.classList.add("scrolls");
    });
    const tall = (table) =>
      [...table.querySelectorAll("tbody tr > :first-child:not([colspan])")].some(
        (cell) => cell.clientHeight > TALLEST,
      );
    const narrow = phone.matches
      ? tables.filter((table) => table.scrollWidth > table.clientWidth + 1 || tall(table))
      : [];
    narrow.forEach(stack);
    const wide = [...scrolling()].map((box) => [
      box,
      !box.matches("span:not(.scrolls)") && box.scrollWidth > box.clientWidth + 1,
    ]);
    wide.forEach(([box, is]) => {
      if (is || box.matches(":not(span)")) cue(box);
      if (box.matches(".math"))
        is ? box.setAttribute("tabindex", "0") : box.removeAttribute("tabindex");
    });
  };
  fit(); // tables, before they are seen
  if (document.readyState !== "complete") await new Promise((go) => addEventListener("load", go));
  await window.MathJax?.startup?.promise;
  fit();
  document.fonts.ready.then(fit); // the letters of formulas come late, and have other widths
  let width = innerWidth; // a phone whose address bar comes and goes changes the height alone, at every scroll
  addEventListener("resize", () => {
    if (innerWidth !== width) {
      width = innerWidth;
      fit();
    }
  });
  // What was folded has a width only once it is unfolded.
  document.addEventListener("toggle", fit, true);
  document.addEventListener("click", ({ target }) => {
    if (target.closest?.(".dropdown")) setTimeout(fit);
  });
  document.addEventListener(
    "scroll",
    ({ target }) => {
      if (target.matches?.(".bd-content *")) cue(target);
    },
    { capture: true, passive: true },
  );
});
