// What all parts of the page "A microscope" say things with. Names of files and of weights are written as text, never as
// markup.
{
  /** Text in which no name turns its neighbors around: marks of direction are shown as such, quotes stand apart. */
  const plain = (part) =>
    typeof part === "string"
      ? part
          .replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd")
          .replace(/“.*”/s, "\u2068$&\u2069")
      : part;
  /** An element whose children are such texts. */
  const make = (tag, attributes = {}, ...children) =>
    element(tag, attributes, ...children.map(plain));
  const button = (words, onclick, className = "") =>
    make("button", { type: "button", onclick, class: className }, words);
  const number = (x) =>
    x === null
      ? ""
      : x !== 0 && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5)
        ? x.toExponential(3).replace("-", "\u2212")
        : String(Number(x.toPrecision(4)));
  const percent = (x) => (Number.isFinite(x) ? `${Number((100 * x).toPrecision(3))}%` : "\u2013");
  const several = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
  const time = (seconds) =>
    seconds < 2
      ? "a moment"
      : seconds < 90
        ? `about ${Math.round(seconds)} seconds`
        : `about ${Math.round(seconds / 60)} minutes`;
  /** A sentence, with the way into the book that the list below the microscope has for it. */
  const says = (name, words) =>
    make(
      "p",
      {},
      `${words} `,
      document.querySelector(`[data-says="${name}"]`)?.cloneNode(true) ?? "",
    );
  const table = (heads, body, caption) =>
    make(
      "div",
      {},
      make(
        "table",
        { class: "table", tabindex: 0 },
        make("caption", { class: "visually-hidden" }, caption),
        make(
          "thead",
          {},
          make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head))),
        ),
        body,
      ),
    );
  const SHARES = ["90%", "95%", "99%"]; // of the energy
  window.microscopeWords = {
    SHARES,
    plain,
    make,
    button,
    number,
    percent,
    several,
    time,
    says,
    table,
  };
}
