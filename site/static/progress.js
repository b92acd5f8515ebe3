// What practice has left in the reader's browser, in sight: a ring beside each chapter, a map of promises on the front page,
// and on "Your guesses" a list that can be exported and deleted.
(() => {
  const KEY = "lowrank-practice",
    record = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});
  const all = (selector) => [...document.querySelectorAll(selector)];
  const read = () => {
    try {
      return record(JSON.parse(localStorage.getItem(KEY)));
    } catch {
      return {};
    }
  };
  const STATES = ["", "practiced", "kept"];
  /** 2 once the question alone was answered right on two different days, 1 if it was tried. */
  const state = (kept, kind) => (kind in kept ? (record(kept[kind]).days?.length >= 2 ? 2 : 1) : 0);
  const rings = (kept, kinds) => {
    for (const link of all(".bd-sidebar-primary .toctree-l1 > a")) {
      const page = new URL(link.href).pathname
        .split("/")
        .pop()
        .replace(/\.html$/, "");
      const mine = kinds.filter(([, [, , where]]) => where === page);
      link.querySelector(".ring")?.remove();
      const states = mine.map(([kind]) => state(kept, kind)),
        done = states.filter((one) => one === 2).length;
      if (!states.some(Boolean)) continue;
      const ring = element(
        "span",
        { class: "ring", title: `${done} of ${mine.length} kinds of problem kept` },
        element(
          "span",
          { class: "visually-hidden" },
          ` (${done} of ${mine.length} kinds of problem kept)`,
        ),
      );
      ring.style.setProperty("--kept", done / mine.length);
      ring.style.setProperty("--tried", states.filter(Boolean).length / mine.length);
      link.append(ring);
    }
  };
  const map = (kept) =>
    all(".promises li[data-kind]").forEach((item) => {
      const now = state(kept, item.dataset.kind);
      item.dataset.state = now;
      item.querySelector(".state")?.remove();
      if (now) item.append(element("span", { class: "state" }, ` ${STATES[now]}`));
    });
  const isDay = (day) => typeof day === "string" && /^\d{4}-\d\d-\d\d$/.test(day);
  const isKept = (one) =>
    Array.isArray(record(one).days) &&
    one.days.every(isDay) &&
    Number.isFinite(one.last) &&
    typeof one.missed === "boolean" &&
    [1, 2, 3].includes(one.level);
  /** Add what a file holds to what is kept, all days and otherwise the newer of the two, and say how it went. */
  const bring = async (file) => {
    const kept = read(),
      text = await file.text();
    let brought = [];
    try {
      brought = Object.entries(record(JSON.parse(text))).filter(([kind]) =>
        Object.hasOwn(window.lowrankKinds, kind),
      );
    } catch {
      /* nothing was brought */
    }
    if (!brought.length || !brought.every(([, one]) => isKept(one)))
      return "This file holds no record of practice. Nothing has changed.";
    for (const [kind, one] of brought) {
      const mine = isKept(kept[kind]) ? kept[kind] : { days: [], last: 0 };
      kept[kind] = {
        ...(one.last > mine.last ? one : mine),
        days: [...new Set([...mine.days, ...one.days])].sort(),
      };
    }
    try {
      localStorage.setItem(KEY, JSON.stringify(kept));
    } catch {
      return "This browser keeps nothing. Nothing has changed.";
    }
    return `Imported ${brought.length} of the kinds.`;
  };
  const list = (place, kept, kinds) => {
    const known = kinds.filter(([kind]) => kind in kept);
    if (!place.empty) {
      const file = element("input", {
          type: "file",
          accept: ".json,application/json",
          hidden: true,
        }),
        said = element("output", { "aria-live": "polite" });
      file.addEventListener("change", async () => {
        const words = await bring(file.files[0]);
        file.value = ""; // the same file may be chosen again
        show();
        said.textContent = words;
      });
      place.empty = [...place.childNodes];
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
    }
    if (!known.length) return place.replaceChildren(...place.empty);
    const items = known.map(([kind, [, promise, page]]) => {
      const { days, missed } = record(kept[kind]),
        count = Array.isArray(days) ? days.length : 0;
      const said = `${STATES[state(kept, kind)]}: right without a step on ${count} ${count === 1 ? "day" : "days"}${missed === true ? ", missed the last time" : ""}`;
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
        href: `data:application/json,${encodeURIComponent(localStorage.getItem(KEY))}`,
      },
      "Export",
    );
    const forget = element(
      "button",
      {
        type: "button",
        class: "forget",
        onclick: () => {
          const before = localStorage.getItem(KEY);
          localStorage.removeItem(KEY);
          show();
          place.append(
            element(
              "button",
              {
                type: "button",
                class: "forget",
                onclick: () => {
                  localStorage.setItem(KEY, before);
                  show();
                  place.focus();
                },
              },
              "Undo",
            ),
          );
          Object.assign(place, { tabIndex: -1 }).focus();
        },
      },
      "Delete",
    );
    place.replaceChildren(element("ul", {}, ...items), element("p", {}, save, " ", forget));
  };
  const show = () => {
    const kept = read(),
      kinds = Object.entries(window.lowrankKinds ?? {}),
      place = document.getElementById("practice-kept");
    rings(kept, kinds);
    map(kept);
    if (place) list(place, kept, kinds);
  };
  const unfold = () =>
    location.hash.startsWith("#practice-") &&
    document.getElementById(location.hash.slice(1))?.setAttribute("open", "");
  addEventListener("DOMContentLoaded", () => {
    show();
    unfold();
  });
  addEventListener("hashchange", unfold);
  addEventListener("storage", show);
  addEventListener("pageshow", show);
  document.addEventListener("practiced", show);
})();
