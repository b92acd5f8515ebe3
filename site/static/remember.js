// What readers have guessed and answered is kept in their own browser, and nothing of it leaves that: an answer that was
// opened is open when they come back, and the page "Your guesses" shows them all. Where nothing can be kept, every page
// works as on a first visit.
/** A button that deletes what is kept under a key; another one then brings it back. */
const forgetButton = (words, key, place, show) => {
  const button = (text, onclick) =>
    element("button", { type: "button", class: "forget", onclick }, text);
  return button(words, () => {
    const before = localStorage.getItem(key);
    localStorage.removeItem(key);
    show();
    const undo = button("Undo", () => {
      localStorage.setItem(key, before);
      undo.remove();
      show();
      place.focus();
    });
    place.after(undo);
    Object.assign(place, { tabIndex: -1 }).focus();
  });
};
{
  const KEY = "lowrank-tutor-guesses",
    EXERCISES = "form.check:not([data-kind])"; // problems of practice are kept apart
  const page = location.pathname
    .split("/")
    .pop()
    .replace(/\.html$/, "");
  const all = (selector, of = document) => [...of.querySelectorAll(selector)];
  /** Whatever lies in the browser may be garbage: all but a record counts as an empty one. */
  const record = (value) =>
    value && typeof value === "object" && !Array.isArray(value) ? value : {};
  const isText = (value) => typeof value === "string",
    isNumber = (value) => typeof value === "number";
  const read = () => {
    try {
      return record(JSON.parse(localStorage.getItem(KEY)));
    } catch {
      return {};
    }
  };
  let ready = false; // once the page shows what was kept: what it shows before is no news
  const keep = (kind, name, value) => {
    if (!ready) return;
    const pages = read(),
      mine = record(pages[page]),
      others = { ...record(mine[kind]) };
    delete others[name];
    pages[page] = {
      ...mine,
      title: document.title.split(" — ")[0],
      asked: all("figure[data-name=draw_first]").length,
      exercises: all(EXERCISES).length,
      [kind]: value ? { ...others, [name]: value } : others,
    };
    localStorage.setItem(KEY, JSON.stringify(pages)); // where nothing can be kept, nothing throws: theme/head.py
  };

  const question = (figure) => figure.querySelector(".question").textContent;
  document.addEventListener("guess", ({ target: figure, detail }) => {
    const { guess, shown } = figure.instrument.state(),
      box = figure.closest(".predict");
    if (box && box.classList.contains("answered") !== shown) {
      box.classList.toggle("answered", shown);
      box.dispatchEvent(new Event("toggle")); // book.js then fits what was folded
    }
    keep(
      "guesses",
      question(figure),
      shown && { guess, grade: figure.instrument.numbers().grade, at: box?.id, ...detail },
    );
  });
  const typed = (form) => all("input", form).map((input) => input.value);
  document.addEventListener("submit", ({ target: form }) => {
    if (!form.matches(EXERCISES)) return;
    const right = all("input", form).every(
      (input) => input.getAttribute("aria-invalid") === "false",
    );
    keep(
      "answers",
      form.dataset.name,
      typed(form).some((text) => text.trim()) && { typed: typed(form), right },
    );
  });

  document.addEventListener("best", ({ target: figure, detail }) =>
    keep("bests", figure.dataset.name, detail),
  );

  const restore = async () => {
    const { guesses, answers, bests } = record(read()[page]);
    for (const figure of all("figure.instrument"))
      figure.instrument?.recall?.(record(bests)[figure.dataset.name]);
    for (const figure of all("figure[data-name=draw_first]")) {
      const kept = record(guesses)[question(figure)];
      if (!kept || figure.instrument.state().shown) continue; // an address may have brought a guess of its own
      // What the question does not understand any more is as good as none.
      await figure.instrument
        .set({ guess: record(kept).guess ?? null, shown: true })
        .catch(() => {});
    }
    for (const form of all(EXERCISES)) {
      const texts = record(record(answers)[form.dataset.name]).typed,
        inputs = all("input", form);
      if (!Array.isArray(texts) || texts.length !== inputs.length || !texts.every(isText)) continue;
      inputs.forEach((input, i) => (input.value = texts[i].slice(0, input.maxLength)));
      const output = form.querySelector("output");
      output.ariaLive = "off"; // nobody has asked for it now
      form.requestSubmit();
      setTimeout(() => (output.ariaLive = "polite"), 1000);
    }
  };

  const GRADES = { 1: "right", 0.5: "near", 0: "not near" };
  /** How a guess went; a drawn curve has no words. */
  const verdict = ({ guess, grade, you, answer }) => {
    const words = (label, value) => (value && isText(value) ? label + value : "");
    const part = guess == null ? "shown without a guess" : (isNumber(grade) && GRADES[grade]) || "";
    const said = [words("you: ", you), grade === 1 ? "" : words("answer: ", answer)]
      .filter(Boolean)
      .join(", ");
    return said ? `${part} (${said})` : part;
  };
  /** A part of an address; half of a letter of two halves has no place in one. */
  const inAddress = (text) => {
    try {
      return encodeURIComponent(text);
    } catch {
      return "";
    }
  };
  /** The page that shows them: a heading for each chapter, a link for each guess. */
  const overview = (place) => {
    const empty = [...place.childNodes];
    const show = () => {
      const pages = Object.entries(read())
        .map(([name, of]) => [name, record(of)])
        .sort(([one], [other]) => (one < other ? -1 : 1));
      const parts = pages.flatMap(
        ([name, { title, asked, exercises, guesses, answers, bests }]) => {
          const address = inAddress(name) + ".html",
            made = Object.entries(record(guesses)).map(([q, one]) => [q, record(one)]);
          const tried = Object.keys(record(answers)).length,
            done = Object.values(record(answers)).filter(
              (one) => record(one).right === true,
            ).length;
          const found = Object.values(record(bests))
            .map((one) => record(one).words)
            .filter(isText);
          if (!made.length && !tried && !found.length) return [];
          const count = (grade) =>
            made.filter(([, one]) => one.guess != null && one.grade === grade).length;
          const scored = `${made.length} answered: ${count(1)} right and ${count(0.5)} near, of ${(isNumber(asked) && asked) || made.length} questions. `;
          return [
            element("h2", {}, element("a", { href: address }, isText(title) ? title : name)),
            ...found.map((words) => element("p", {}, words)),
            made.length + tried === 0
              ? ""
              : element(
                  "p",
                  {},
                  scored,
                  tried
                    ? `Exercises: ${done} of ${(isNumber(exercises) && exercises) || tried} right.`
                    : "",
                ),
            element(
              "ul",
              {},
              ...made.map(([words, one]) =>
                element(
                  "li",
                  {},
                  element(
                    "a",
                    { href: `${address}#${isText(one.at) ? inAddress(one.at) : ""}` },
                    words,
                  ),
                  ` ${verdict(one)}`,
                ),
              ),
            ),
          ];
        },
      );
      place.replaceChildren(...(parts.length ? [...parts, forget] : empty));
    };
    const forget = forgetButton("Forget all", KEY, place, show);
    addEventListener("pageshow", show);
    addEventListener("storage", show);
    show();
  };

  addEventListener("DOMContentLoaded", () => {
    restore().finally(() => (ready = true));
    const place = document.getElementById("guesses-kept");
    if (place) overview(place);
  });
}
