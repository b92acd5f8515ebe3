// A number is typed; the truth then stands beside it on a line (ruler.js). predictions.js says what is returned.
predictions.ways.number = (asked, holder, data, commit) => {
  const { truth, spec, unit, whole, words } = data, line = ruler(holder, data);
  const isPercent = predictions.isPercent(spec), times = isPercent ? 100 : 1;
  const look = { type: "text", inputmode: "decimal", autocomplete: "off", size: 12, maxlength: 64 };
  const field = controls.element("input", look);
  asked.append(controls.element("label", { class: "control" }, words.field, field, isPercent ? "%" : unit));
  const [low, high] = data.limits || [-1e15, 1e15];
  let how = {}; // a guess was read that could be read otherwise
  // A press that is not stopped here would go on to the button that gets the focus.
  field.addEventListener("keydown", (event) => event.key === "Enter" && (event.preventDefault(), commit()));
  return {
    ...predictions.judge(data),
    rule: (guess) => check.number("guess", guess, -1e15, 1e15),
    read: () => {
      const all = readings(isPercent ? field.value.replace("%", "") : field.value).map(Number), typed = field.value.trim();
      const allowed = all.filter((value) => value / times >= low && value / times <= high);
      const [first, second] = allowed.length ? allowed : all;
      if (first === undefined) return null;
      // 4,223 and 4.223 can be read in two ways. If both lie within the limits, digits are grouped where the answer is a
      // whole number; elsewhere a comma groups and a dot does not. The verdict says how the guess was read.
      const value = whole && Math.abs(second) > Math.abs(first) ? second : first;
      how = all.length > 1 ? { guess: value / times, words: fill(words.sentences.read, { typed, value }) } : {};
      return value / times;
    },
    reading: (guess) => (how.guess === guess ? how.words : ""),
    clear: () => (field.value = ""),
    draw: ({ guess, shown }) => {
      field.disabled = shown;
      holder.hidden = !shown;
      if (!shown) return;
      if (guess !== null) field.value = Number((guess * times).toPrecision(12));
      const all = [0, truth, ...(guess === null ? [] : [guess])];
      const [low, high] = [1.15 * Math.min(...all), 1.15 * Math.max(...all)];
      line.limit([low, high > low ? high : 1]);
      line.reveal({ guess, shown });
    },
  };
};
