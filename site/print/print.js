// What print_book.py does to the one-page book before the browser prints it.
const printing = {
  // What folds on a screen is open on paper. Folded code stays away: it draws figures and loads data. So do pages that
  // are about the site, and the reference of what only a screen can do.
  prepare: (edition) => {
    const all = (selector) => [...document.querySelectorAll(selector)];
    /** What a page calls by its name: a heading that has got another one stops the print. */
    const named = (id) => {
      const element = document.getElementById(id);
      if (!element) throw new Error(`no part of the book has the name ${id}, which print.js uses`);
      return element;
    };
    all(".toggle-hidden").forEach((e) => e.classList.remove("toggle-hidden"));
    named("document-genindex").nextElementSibling.remove();
    all('a[href="#document-genindex"]').forEach((a) => a.closest("p")?.remove());
    [
      "you-will-be-able-to",
      "keep-it",
      "links-that-leave-this-site",
      "figures-and-exercises-of-the-book",
      "the-kit",
    ].forEach((name) => named(name).remove());
    all("details.hide, .toctree-wrapper > .caption, #jb-print-docs-body").forEach((e) =>
      e.remove(),
    );
    // Pages outside the list of contents are about the site, too.
    all('a[href^="#document-"]')
      .filter((a) => !document.getElementById(decodeURIComponent(a.hash.slice(1))))
      .forEach((a) => a.replaceWith(...a.childNodes));
    // A mark goes into its page, or a link would lead to the page before. In the text only the entry is the target.
    all('.toctree-wrapper > span[id^="document-"]').forEach((mark) =>
      mark.nextElementSibling?.prepend(mark),
    );
    all("span.bibtex-citation[id]").forEach((e) => e.removeAttribute("id"));
    // The reference keeps what a function is given and gives; errors and examples are on the site.
    all("dl.py .field-list > dt")
      .filter((e) => /Raises/.test(e.textContent))
      .forEach((e) => {
        e.nextElementSibling.remove();
        e.remove();
      });
    all("dl.py p.rubric")
      .filter((e) => /Examples/.test(e.textContent))
      .forEach((e) => {
        while (e.nextElementSibling && !e.nextElementSibling.matches("p.rubric, dl, .in-the-book"))
          e.nextElementSibling.remove();
        e.remove();
      });
    // Solutions come after all exercises of their chapter, so that a reader can try first.
    for (const section of all("section").filter((e) => e.querySelector(":scope > .solution"))) {
      const heading = section.appendChild(document.createElement("h4"));
      heading.textContent = "Solutions";
      section.append(...section.querySelectorAll(":scope > .solution"));
    }
    // No line begins with the period after a formula.
    for (const formula of all("p mjx-container, li mjx-container")) {
      const inline = formula.closest("span.math") ?? formula;
      const after = inline.nextSibling;
      const [mark] =
        (after?.nodeType === Node.TEXT_NODE && after.textContent.match(/^[.,;:?!)]+/)) || [];
      if (!mark) continue;
      after.textContent = after.textContent.slice(mark.length);
      const whole = document.createElement("span");
      whole.style.whiteSpace = "nowrap";
      inline.replaceWith(whole);
      whole.append(inline, mark);
    }
    const title = document.querySelector("article h1");
    title.nextElementSibling.remove(); // what the figure of the site asks for
    title.nextElementSibling.remove(); // where to go from there
    for (const line of edition.reverse()) {
      const paragraph = document.createElement("p");
      paragraph.className = "edition";
      paragraph.textContent = line;
      title.after(paragraph);
    }
    document.querySelector(".toctree-wrapper").before(named("how-to-read-it"), named("cite-it"));
  },

  // Paper does not scroll: what is wider than the page is set smaller. Answers with the words of what still is too wide.
  fit: () => {
    for (const wide of document.querySelectorAll("article :is(div.math, table, pre)")) {
      if (wide.localName === "pre") wide.style.whiteSpace = "pre";
      const style = getComputedStyle(wide.parentElement);
      const room =
        wide.parentElement.clientWidth -
        parseFloat(style.paddingLeft) -
        parseFloat(style.paddingRight);
      const width = Math.max(wide.scrollWidth, ...[...wide.children].map((e) => e.scrollWidth));
      if (width > room) wide.style.zoom = room / width;
    }
    return [...document.querySelectorAll("article :is(div.math, table, pre, img)")]
      .filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
      .map((e) => e.textContent.slice(0, 80));
  },

  // The contents: a line for each chapter and section, which leads there.
  list: () => {
    const list = document.createElement("ol");
    list.className = "contents";
    const headings = document.querySelectorAll(
      ".toctree-wrapper > section > h2, .toctree-wrapper > section > section > h3",
    );
    headings.forEach((heading, i) => {
      heading.querySelectorAll(".headerlink").forEach((e) => e.remove());
      heading.id = "heading-" + i; // the names of sections repeat from page to page
      const line = list.appendChild(document.createElement("li"));
      line.className = heading.localName === "h2" ? "of-chapter" : "of-section";
      const link = line.appendChild(document.createElement("a"));
      link.href = "#" + heading.id;
      link.textContent = heading.textContent.replace(/\s+/g, " ").trim();
    });
    document.querySelector(".toctree-wrapper").before(list);
  },
};
