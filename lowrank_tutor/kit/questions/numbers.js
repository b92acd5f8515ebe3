// Reads a text as the numbers that it can mean, says how near is near enough, as judge.py does, and marks
// what is said of it.
//
// readings("4,223") is [4223, 4.223]: an English page groups digits by commas, and most of the world has a decimal
// comma. The first is the reading of an English page. [] is no number. "1/2", "24%", "7.7*10^8", "1e-5", "1.234,5", the
// typographic minus and a dash in its place are read, too, and so are "√(20/245)" and "sqrt(2)".
//
// Notebooks read a dollar as the beginning of a formula: (?![^]) is the end of a text here.
const readings = (text) => {
  if (text.length > 64) return [];
  const [, minus, under] =
    text.trim().match(/^([-\u2212]?) ?(?:√|sqrt) ?\(?([^()√]+)\)?(?![^])/i) ?? [];
  if (under)
    return readings(under)
      .filter((value) => value >= 0)
      .map((value) => (minus ? -1 : 1) * Math.sqrt(value));
  const plain = text
    .trim()
    .replace(/^[([]\s*|\s*[)\]](?![^])/g, "")
    .replace(/[\u2212\u2013]/g, "-")
    .replace(/\u2044/g, "/")
    .replace(/[\s\u2019']/g, " ")
    .replace(/^([+-]) /, (_, sign) => sign)
    .replace(/(\d) ?[x\u00b7\u00d7] ?(?=10)/i, (_, digit) => digit + "*")
    .replace(/ *([/%^*]) */g, (_, mark) => mark)
    .replace(/^([+-]?)10(?:\^|\*\*)/, (_, sign) => sign + "1*10^")
    .replace(/\*10(?:\^|\*\*)[(]?([+-]?\d+)[)]?/, (_, power) => "e" + power);
  /** Digits with one kind of decimal point: all that signs and separators leave open. */
  const decimals = (digits) => {
    const groups = /^([1-9]\d{0,2}(?:([., ])\d{3})(?:\2\d{3})*)((?:[.,]\d*)?)(?![^])/;
    const [, whole, mark, rest] = digits.match(groups) || [];
    const grouped =
      mark && rest[0] !== mark ? [whole.split(mark).join("") + rest.replace(",", ".")] : [];
    const single = /^(?:\d+(?:[.,]\d*)?|[.,]\d+)(?![^])/.test(digits)
      ? [digits.replace(",", ".")]
      : [];
    return mark === "." ? [...single, ...grouped] : [...grouped, ...single];
  };
  const form = /^([+-]?)(\d[\d., ]*|[.,]\d+)(?:e([+-]?\d+))?(?:\/([\d., ]+))?(%?)(?![^])/i;
  const [, sign, top, power = "0", bottom, percent] = plain.match(form) || [];
  if (top === undefined) return [];
  const tops = decimals(top).map((digits) => Number(sign + digits + "e" + power));
  const bottoms = (bottom === undefined ? ["1"] : decimals(bottom)).map(
    (digits) => digits * (percent ? 100 : 1),
  );
  const all = tops.flatMap((a) => bottoms.map((b) => a / b));
  return all.every(Number.isFinite) ? all : [];
};
const apart = (one, other) => Math.abs(one - other);
const broken = (value) => value !== Math.floor(value);
const near = (given, wanted, slack = broken(wanted) ? lastDigit(wanted) : 0) =>
  slack || broken(wanted)
    ? apart(given, wanted) <= slack * (1 + 1e-9)
    : apart(given, wanted) <= (broken(given) ? 1e-9 : 0);
/** One unit of the third digit. */
const lastDigit = (value) => 10 ** (Math.floor(Math.log10(Math.abs(value))) - 2);
/** What is said of an answer, behind a mark that those who hear the page need not hear: the words say it, too. */
const marked = (isRight, ...words) => {
  const [mark, look] = isRight ? ["\u2713 ", "check-right"] : ["\u25cb ", "check-open"];
  return element(
    "span",
    { class: look },
    element("span", { "aria-hidden": "true" }, mark),
    ...words,
  );
};
