// Rules for the values of a state, how they are written in a sentence, and how an address carries them.
const check = {
  fail: (name, rule, value) => {
    throw new Error(name + " must be " + rule + ", got " + JSON.stringify(value));
  },
  number: (name, value, low, high) =>
    typeof value === "number" && value >= low && value <= high
      ? value
      : check.fail(name, "a number from " + low + " to " + high, value),
  whole: (name, value, low, high) =>
    Number.isInteger(value) && value >= low && value <= high
      ? value
      : check.fail(
          name,
          Number.isInteger(value) ? "between " + low + " and " + high : "an integer",
          value,
        ),
  one: (name, value, choices) =>
    choices.includes(value) ? value : check.fail(name, "one of " + choices.join(", "), value),
  list: (name, value, count, low, high) => {
    if (!Array.isArray(value) || value.length !== count)
      check.fail(name, count + " numbers", value);
    return value.map((one) => check.number(name, one, low, high));
  },
};
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** Write a number, with a minus sign if it has one, by a specification of Python, "," ".2f" ".1%" ".3g" or "g", without exponents; prediction.py does so, too. */
const format = (value, spec) => plainly(value, spec).replace(/^-/, "\u2212");
const plainly = (value, spec) => {
  const digits = Number((spec.match(/\d+/) || [spec === "g" ? 6 : 0])[0]);
  if (typeof value !== "number") return String(value);
  if (spec.endsWith("%")) return (100 * value).toFixed(digits) + "%";
  if (spec.endsWith("f")) return value.toFixed(digits);
  if (spec.endsWith("g")) return String(Number(value.toPrecision(digits)));
  return spec === "," ? value.toLocaleString("en") : String(value);
};
/** Put values into "{tilt} degrees, {relative_error:.1%}". */
const fill = (template, values) =>
  template.replace(/\{(\w+)(?::([^}]*))?\}/g, (_, name, spec) => format(values[name], spec || ""));

/** A state as the address carries it: "picture:window;tilt:5;k:17". */
const pack = (state) =>
  Object.entries(state)
    .map(
      ([name, value]) =>
        name +
        ":" +
        [value]
          .flat(2)
          .map((one) => encodeURIComponent(one))
          .join(","),
    )
    .join(";");
/** A value that a state begins without: nothing yet, a number, a word, or a list of them. */
const unpackAny = (words) => {
  const one = (word) => (String(Number(word)) === word ? Number(word) : word); // "1.0" may be a word to choose
  const values = words.map((word) => (word === "null" ? null : one(word)));
  return values.length > 1 ? values : values[0];
};
const asNumber = (word) => Number(word.trim() || "none"); // an empty word is no number, though Number("") is 0
/** The state that was packed; `like` says which values are words, numbers, switches, lists, or rows of a matrix. */
const unpack = (text, like) =>
  Object.fromEntries(
    text
      .split(";")
      .filter((part) => part.includes(":"))
      .map((part) => {
        const name = part.slice(0, part.indexOf(":")),
          model = like[name];
        if (model === null)
          return [
            name,
            unpackAny(
              part
                .slice(name.length + 1)
                .split(",")
                .map(decodeURIComponent),
            ),
          ];
        const read =
          { string: String, boolean: (word) => word === "true" }[typeof [model].flat(2)[0]] ||
          asNumber;
        const flat = part
          .slice(name.length + 1)
          .split(",")
          .map((word) => read(decodeURIComponent(word)));
        if (!Array.isArray(model)) return [name, flat[0]];
        const width = Array.isArray(model[0]) ? model[0].length : 0;
        return [name, width ? model.map((_, i) => flat.slice(i * width, (i + 1) * width)) : flat];
      }),
  );
