// What make_epub.py takes from the book that print.js has prepared: each page as XHTML, each formula as MathML.
const epub = {
  LETTERS: { normal: {}, "double-struck": { R: "ℝ", E: "𝔼" }, bold: { 1: "𝟏" } }, // browsers have dropped mathvariant

  /** Answers with the front page and the pages of the book. */
  pages: () => {
    const mark = ':scope > span[id^="document-"]';
    const front = [...document.querySelector(".toctree-wrapper").parentElement.children].filter(
      (e) => !e.matches(".toctree-wrapper"),
    );
    const pages = [...document.querySelectorAll(".toctree-wrapper > section")].filter((e) =>
      e.querySelector(mark),
    );
    for (const e of [...front, ...pages].flatMap((page) => [
      ...page.querySelectorAll(":not(mjx-container *)"),
    ])) {
      if (getComputedStyle(e).display === "none") e.setAttribute("data-unseen", "");
    }
    const title = document.createElement("section");
    title.append(...front.map((e) => e.cloneNode(true)));
    const files = [title, ...pages.map((e) => e.cloneNode(true))].map((page) => ({
      page,
      name: page.querySelector(mark)?.id.split("/").pop() ?? "front",
    }));
    files.forEach(({ page }) => epub.clean(page));
    const homes = new Map(
      files
        .toReversed()
        .flatMap(({ page, name }) => [...page.querySelectorAll("[id]")].map((e) => [e.id, name])),
    );
    return files.map(({ page, name }) => {
      epub.link(page, homes);
      const words = (heading) => heading.textContent.replace(/\s+/g, " ").trim();
      const sections = [...page.querySelectorAll(":scope > section > h3")].map((e) => [
        e.parentElement.id,
        words(e),
      ]);
      return {
        name,
        title: words(page.querySelector("h1, h2")),
        sections,
        body: new XMLSerializer().serializeToString(page),
      };
    });
  },

  /** Leaves of a page what an e-reader shows: no scripts, no fields, no name twice, and of a formula its MathML. */
  clean: (page) => {
    page
      .querySelectorAll("[data-unseen], .explorer-said, script, style, noscript")
      .forEach((e) => e.remove());
    for (const formula of page.querySelectorAll("mjx-container")) {
      const math = formula.querySelector("mjx-assistive-mml > math");
      math.setAttribute("alttext", formula.dataset.tex);
      for (const e of math.querySelectorAll("[mathvariant]")) {
        e.textContent = epub.LETTERS[e.getAttribute("mathvariant")][e.textContent] ?? e.textContent;
        if (e.getAttribute("mathvariant") !== "normal") e.removeAttribute("mathvariant");
      }
      for (const table of math.querySelectorAll("mtable")) epub.align(table);
      formula.replaceWith(math);
    }
    const names = new Set();
    for (const e of page.querySelectorAll("*")) {
      e.getAttributeNames()
        .filter((name) => /^(data-|tabindex|aria-live)/.test(name))
        .forEach((name) => e.removeAttribute(name));
      if (e.id) e.id = epub.named(e.id);
      if (names.has(e.id)) e.removeAttribute("id");
      names.add(e.id);
    }
  },
  /** Says in CSS how columns of formulas stand: browsers have dropped these attributes, too. */
  align: (table) => {
    const [sides, gaps] = ["columnalign", "columnspacing"].map(
      (name) => table.getAttribute(name)?.split(" ") ?? [],
    );
    const half = (i) => `calc(${gaps[Math.min(i, gaps.length - 1)] ?? "1em"} / 2)`;
    for (const row of table.children)
      [...row.children].forEach((cell, i) => {
        const [left, right] = [i ? half(i - 1) : 0, i < row.children.length - 1 ? half(i) : 0];
        cell.setAttribute(
          "style",
          `text-align: ${sides[Math.min(i, sides.length - 1)] ?? "center"}; padding-left: ${left}; padding-right: ${right}`,
        );
      });
  },
  named: (id) => id.replace(/[^\w.-]/g, "_").replace(/^(?=[\d.-])/, "_"),

  /** Turns links within the book into links between its files; what leads to no place of it stays as words. */
  link: (page, homes) => {
    for (const a of page.querySelectorAll('a:not([href^="http"])')) {
      const id = epub.named(decodeURIComponent(a.getAttribute("href")?.replace(/^#/, "") ?? ""));
      if (page.querySelector("#" + CSS.escape(id))) a.setAttribute("href", "#" + id);
      else if (homes.has(id)) a.setAttribute("href", homes.get(id) + ".xhtml#" + id);
      else a.replaceWith(...a.childNodes);
    }
  },
};
