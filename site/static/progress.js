// What practice has left in the reader's browser, in sight: a ring beside each chapter, a map of promises on the front page,
// and on "Your guesses" a list that can be exported and deleted.
{
  const KEY = "lowrank-practice",
    record = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});
  const all = (selector) => [...document.querySelectorAll(selector)];
  const parsed = (text) => {
    try {
      return record(JSON.parse(text));
    } catch {
      return {};
    }
  };
  const stored = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  };
  const read = () => parsed(stored());
  const STATES = ["", "practiced", "kept"];
  /** 2 once the question alone was answered right on two different days, 1 if it was tried. */
  const state = (kept, kind) => (kind in kept ? (record(kept[kind]).days?.length >= 2 ? 2 : 1) : 0);
  const rings = (kept, kinds) => {
    for (const link of all(".bd-sidebar-primary .toctree-l1 > a")) {
      const mine = kinds.filter(([, [, , page]]) => link.pathname.split(/[/.]/).includes(page));
      link.querySelector(".ring")?.remove();
      const states = mine.map(([kind]) => state(kept, kind)),
        done = states.filter((one) => one === 2).length,
        tried = states.filter(Boolean).length;
      if (!tried) continue;
      const title = `${done} of ${mine.length} kinds of problem kept`,
        words = element("span", { class: "visually-hidden" }, ` (${title})`),
        ring = element("span", { class: "ring", title }, words);
      ring.style.setProperty("--kept", done / mine.length);
      ring.style.setProperty("--tried", tried / mine.length);
      link.append(ring);
    }
  };
  const map = (kept) =>
    all(".promises li[data-kind]").forEach((item) => {
      const now = state(kept, item.dataset.kind);
      item.dataset.state = now;
      item.querySelector(".state")?.remove();
      const words = isMissed(kept[item.dataset.kind]) ? "missed the last time" : STATES[now];
      if (now) item.append(element("span", { class: "state" }, ` ${words}`));
    });
  /** Above the map, with links: what was missed, and what has rested as long as practice.js says. */
  const due = (kept, kinds) => {
    const place = document.querySelector(".promises"),
      wait = ({ days }) => 864e5 * [1, 7, 30][Math.max(0, Math.min(2, (days?.length ?? 0) - 1))];
    const ripe = kinds.filter(
      ([kind]) =>
        kind in kept &&
        (isMissed(kept[kind]) || Date.now() - when(record(kept[kind])) >= wait(record(kept[kind]))),
    );
    document.getElementById("due")?.remove();
    if (!place || !ripe.length) return;
    const links = ripe.flatMap(([kind, [, promise, page]], i) => [
      i ? ", " : "",
      element("a", { href: `${page}.html#practice-${kind}` }, promise),
      isMissed(kept[kind]) ? " (you missed it)" : "",
    ]);
    place.before(element("p", { id: "due" }, element("strong", {}, "Due: "), ...links, "."));
  };
  const isMissed = (one) => record(one).missed === true;
  const isDay = (day) => typeof day === "string" && /^\d{4}-\d\d-\d\d$/.test(day);
  const isKept = (one) =>
    Array.isArray(record(one).days) &&
    one.days.every(isDay) &&
    Number.isFinite(one.last) &&
    typeof one.missed === "boolean" &&
    [1, 2, 3].includes(one.level);
  /** A clock ran ahead where a time lies after now: that time is as good as none. */
  const when = ({ last }) => (last <= Date.now() ? last : 0);
  /** Add what a file holds to what is kept, all days and otherwise the newer of the two, and say how it went. */
  const bring = async (file) => {
    const brought = Object.entries(parsed(await file.text())).filter(([kind]) =>
      Object.hasOwn(window.lowrankKinds, kind),
    );
    if (!brought.length || !brought.every(([, one]) => isKept(one)))
      return "This file holds no record of practice. Nothing has changed.";
    // Somewhere on Earth, tomorrow may have begun.
    const kept = read(),
      tomorrow = new Date(Date.now() + 864e5).toISOString();
    for (const [kind, one] of brought) {
      const mine = isKept(kept[kind]) ? kept[kind] : { days: [], last: 0 },
        newer = when(one) >= when(mine) ? one : mine;
      const days = [...new Set([...mine.days, ...one.days])].filter((day) => day <= tomorrow);
      kept[kind] = { ...newer, last: when(newer), days: days.sort() };
    }
    const written = JSON.stringify(kept);
    localStorage.setItem(KEY, written);
    if (stored() !== written) return "This browser keeps nothing. Nothing has changed.";
    return `Imported ${brought.length} of the kinds.`;
  };
  /** Below the list, a button that takes a file in. */
  const addImport = (place) => {
    const onchange = async () => {
      const words = await bring(file.files[0]);
      // The same file may be chosen again.
      file.value = "";
      show();
      said.textContent = words;
    };
    const accept = ".json,application/json",
      file = element("input", { type: "file", accept, hidden: true, onchange }),
      said = element("output", { "aria-live": "polite" });
    place.after(
      element(
        "p",
        {},
        element(
          "button",
          { type: "button", class: "forget", onclick: () => file.click() },
          "Import",
        ),
        " ",
        file,
        said,
      ),
    );
  };
  const list = (place, kept, kinds) => {
    const known = kinds.filter(([kind]) => kind in kept);
    if (!place.empty) {
      place.empty = [...place.childNodes];
      addImport(place);
    }
    if (!known.length) return place.replaceChildren(...place.empty);
    const items = known.map(([kind, [, promise, page]]) => {
      const { days } = record(kept[kind]),
        count = Array.isArray(days) ? days.length : 0;
      const said = `${STATES[state(kept, kind)]}: right without a step on ${count} ${count === 1 ? "day" : "days"}${isMissed(kept[kind]) ? ", missed the last time" : ""}`;
      return element(
        "li",
        {},
        element("a", { href: `${page}.html#practice-${kind}` }, promise),
        ` ${said}`,
      );
    });
    const save = element(
      "a",
      {
        class: "forget",
        download: "lowrank-practice.json",
        href: `data:application/json,${encodeURIComponent(stored())}`,
      },
      "Export",
    );
    const forget = forgetButton("Delete", KEY, place, show);
    place.replaceChildren(element("ul", {}, ...items), element("p", {}, save, " ", forget));
  };
  const show = () => {
    const kept = read(),
      kinds = Object.entries(window.lowrankKinds ?? {}),
      place = document.getElementById("practice-kept");
    rings(kept, kinds);
    map(kept);
    due(kept, kinds);
    if (place) list(place, kept, kinds);
  };
  const unfold = () => {
    const at = document.getElementById(location.hash.slice(1)),
      fold = at?.closest("details:not([open])");
    if (!fold) return;
    fold.open = true;
    at.scrollIntoView();
  };
  addEventListener("DOMContentLoaded", () => {
    show();
    unfold();
  });
  addEventListener("hashchange", unfold);
  addEventListener("storage", show);
  addEventListener("pageshow", show);
  document.addEventListener("practiced", show);
}
