// The page of what was found: sections, terms, and functions that hold the words of a question, best first, each with the
// lines where they stand (search-data.js, see site/search.py). A rare word counts more than a common one, a title more than
// text, words that stand together more than words apart, and a chapter more than a page of reference.
{
  const LEAST = 8,
    MOST = 25,
    LINES = 30; // results; words shown of each
  const COMMON = new Set(
    "a about after all an and are as at be before between but by can confused confusion do does for from get has have how i if in into is issue it its me my no not of on or paper question questions should support so than that the their them then there this to too versus vs was we what when where which while who why will with would you your".split(
      " ",
    ),
  );
  const cut = (text) =>
    text
      .normalize("NFD")
      .replace(/\p{M}/gu, "")
      .toLowerCase()
      .replace(/['’](ll|re|s|t|ve)\b/g, "")
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  const stem = (word) =>
    word.length > 4
      ? word
          .replace(/(?<=\D)\d+$/, "")
          .replace(/(?<=..)(ations?|ions?|ates?|ated|ating|ies|ied|ing|ed|es|s|ly|y|e)$/, "")
          .replace(/([bgmnprt])\1$/, "$1")
      : word.replace(/(?<=...)s$/, "");
  const stems = (text) => cut(text).map(stem);

  // What was asked, and what it is worth
  /** The words as this book writes them: "kvcache" as "kv cache", and "power sgd" as "powersgd", too. */
  const respelled = (asked, documents) => {
    const book = documents.map(({ words }) => words),
      known = new Set(book.flat());
    const apart = (word) => {
      for (const words of book) {
        const i = words.findIndex(
          (each, at) => each[1] && words[at + 1]?.[1] && word === each + words[at + 1],
        );
        if (i >= 0) return words.slice(i, i + 2);
      }
      return word;
    };
    const words = cut(asked).flatMap((word) => (known.has(word) ? word : apart(word)));
    const both = words.map((word, i) => word + words[i + 1]).filter((word) => known.has(word));
    return [...words, ...both].join(" ");
  };
  const understood = (asked, documents) => {
    const all = cut(asked),
      rare = all.filter((word) => !COMMON.has(word)),
      query = [...new Set((rare.length ? rare : all).map(stem))].slice(0, 20);
    // Words that this book uses for what was asked (site/synonyms.json) count, too, but less.
    const spaced = (text) => ` ${stems(text).join(" ")} `;
    const also = Object.entries(window.synonyms)
      .filter(([words]) => spaced(asked).includes(spaced(words)))
      .flatMap(([, words]) => stems(words));
    const share = new Map([...also.map((word) => [word, 0.5]), ...query.map((word) => [word, 1])]);
    const worth = new Map(
      [...share].map(([word, part]) => {
        const holding = documents.filter(({ counts }) => counts.has(word)).length;
        return [word, part * Math.log(1 + documents.length / (holding + 0.5))];
      }),
    );
    return { query, worth };
  };
  const counted = ([address, page, title, text]) => {
    const heads = stems(title),
      words = [...cut(title), ...cut(text)],
      inside = words.map(stem),
      counts = new Map();
    for (const word of inside) counts.set(word, (counts.get(word) ?? 0) + 1);
    const pages = new Set(stems(page));
    return { address, page, title, text, heads: new Set(heads), pages, words, inside, counts };
  };
  const weight = (address) => {
    if (/\/\d\d-/.test(address)) return 1.2;
    if (/glossary|bibliography/.test(address)) return 0.8;
    return /#(module-)?lowrank_tutor/.test(address) ? 0.4 : 1;
  };
  const score = (asked, { query, worth }, { address, title, heads, pages, inside, counts }) => {
    let sum = 0;
    for (const [word, each] of worth) {
      const count = counts.get(word) ?? 0;
      const often = (2.2 * count) / (count + 0.6 + inside.length / 200);
      if (count) sum += each * (often + 1.5 * heads.has(word) + 0.5 * pages.has(word));
    }
    if (!sum) return 0;
    const together = new Set(inside.map((word, i) => `${word} ${inside[i + 1]}`));
    query.slice(1).forEach((word, i) => {
      if (together.has(`${query[i]} ${word}`)) sum += 0.7 * (worth.get(word) + worth.get(query[i]));
    });
    if (/[._]/.test(asked) && `.${title}`.toLowerCase().endsWith(`.${asked.toLowerCase()}`))
      sum *= 3; // a function, by its name
    return sum * weight(address);
  };
  const found = (asked, known, documents) => {
    const best = documents
      .map((each) => [score(asked, known, each), each])
      .filter(([points]) => points > 0)
      .sort((a, b) => b[0] - a[0]);
    return best
      .filter(([points], i) => i < LEAST || points > 0.3 * best[0][0])
      .slice(0, MOST)
      .map(([, each]) => each);
  };
  let documents;
  /** The places that a question finds, best first, and how it was understood. */
  window.findPlaces = (asked) => {
    documents ??= window.places.map(counted);
    const words = respelled(asked, documents),
      known = understood(words, documents);
    return { words, known, shown: found(asked, known, documents) };
  };

  // The page
  /** The words around those that were asked for, as many of them as stand together. */
  const lines = (text, worth) => {
    const parts = text.split(" "),
      points = parts.map((part) => Math.max(0, ...stems(part).map((word) => worth.get(word) ?? 0)));
    let sum = 0,
      most = -1,
      start = 0;
    points.forEach((point, i) => {
      sum += point - (points[i - LINES] ?? 0);
      if (sum > most + 1e-9) [most, start] = [sum, Math.max(0, i - LINES + 1)];
    });
    start = Math.min(start + 8 * (start > 0), Math.max(0, parts.length - LINES)); // what was found is not the last word
    const paragraph = element("p", {}, start ? "… " : "");
    parts.slice(start, start + LINES).forEach((part, i) => {
      paragraph.append(points[start + i] > 0 ? element("mark", {}, part) : part, " ");
    });
    if (start + LINES < parts.length) paragraph.append("…");
    return paragraph;
  };
  const item = ({ address, page, title, text }, { query, worth }) => {
    const [file, anchor] = address.split("#"),
      href = `${file}?highlight=${encodeURIComponent(query.join(" "))}${anchor ? `#${anchor}` : ""}`,
      made = element("li", {}, element("a", { href }, title));
    if (!title.endsWith(page)) made.append(element("small", {}, ` ${page}`));
    if (text) made.append(lines(text, worth));
    return made;
  };
  const status = (asked, { query }, documents, many) => {
    const absent = (word) =>
      query.includes(word) && !documents.some(({ counts }) => counts.has(word));
    const missing = cut(asked).filter((word) => absent(stem(word)));
    const nowhere = missing.length ? `; not in the book: ${missing.join(", ")}` : "";
    return many
      ? `${many} ${many > 1 ? "places" : "place"}, best first${nowhere}`
      : "These words did not match any place in the book.";
  };
  addEventListener("DOMContentLoaded", () => {
    const asked = new URLSearchParams(location.search).get("q")?.trim() ?? "";
    document.querySelector(".bd-search-container input").value = asked;
    if (!asked) return;
    const { words, known, shown } = window.findPlaces(asked);
    document
      .querySelector("#search-results")
      .append(
        element("p", { role: "status" }, status(words, known, documents, shown.length)),
        element("ul", {}, ...shown.map((each) => item(each, known))),
      );
  });
}
