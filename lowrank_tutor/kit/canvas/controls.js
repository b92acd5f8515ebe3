// Native controls, each with its words: a slider, choices, a button.
//
//   const tilt = controls.range(place, { label: "tilt", min: 0, max: 45, step: 1, input: (tilt) => move({ tilt }) });
//   tilt.show(5, "5 degrees");
//   const picture = controls.choice(place, { label: "picture", options: { disc: "a disc" }, input: (it) => ... });
//   picture.show("disc"); picture.offer("disc", false);        // a choice that is not offered is hidden
//   controls.button(place, "Another", () => ...);
//   controls.player(place, { stations: [0, 1, 3], seconds: 5, at: () => state.t, input: (t) => move({ t }) });
//   const panels = controls.box(place, "panels");               // a part of the place; the class is one of the style's
//   const holder = controls.titled(panels, "the spectrum");     // one with a title above it
const controls = (() => {
  let made = 0; // groups of radio buttons need names of their own
  const box = (place, look) => place.appendChild(element("div", look ? { class: look } : {}));
  const titled = (place, title) => place.appendChild(element("div", {}, element("p", {}, title)));

  const range = (place, { label, min, max, step, input }) => {
    const slider = element("input", { type: "range", min, max, step, autocomplete: "off" });
    const output = element("output", { "aria-live": "off" });
    const name = element("label", {}, element("span", {}, label), slider);
    place.append(element("div", { class: "control slider" }, name, output));
    onSlide(slider, () => input(Number(slider.value)));
    return {
      input: slider,
      show: (value, text = String(value)) => {
        if (Number(slider.value) !== value) slider.value = value; // while it is dragged it knows better
        stage.write(slider, { "aria-valuetext": text });
        stage.say(output, text);
      },
    };
  };

  const choice = (place, { label, options, input }) => {
    const group = element("fieldset", { class: "control choice" }, element("legend", {}, label));
    const name = "choice-" + Math.random().toString(36).slice(2) + made++;
    const buttons = Object.entries(options).map(([value, words]) => {
      const radio = element("input", { type: "radio", name, value, autocomplete: "off" });
      radio.addEventListener("change", () => input(value));
      group.append(element("label", {}, radio, words));
      return radio;
    });
    place.append(group);
    return {
      show: (value) => buttons.forEach((radio) => (radio.checked = radio.value === value)),
      offer: (value, on) =>
        buttons.forEach((radio) => radio.value === value && (radio.parentNode.hidden = !on)),
    };
  };

  const button = (place, words, press) => {
    const made = element("button", { type: "button" }, words);
    made.addEventListener("click", press);
    place.append(made);
    return made;
  };

  /**
   * A button that lets a value run from where it stands through its stations, evenly from each to the next; at the end
   * it begins again. Any hand on the figure pauses it. A reader who wants no motion goes from station to station.
   */
  const player = (place, { words: name = "Play", stations, seconds, at, input }) => {
    const still = matchMedia("(prefers-reduced-motion: reduce)"),
      last = stations.length - 1;
    const words = () => stage.say(press, still.matches ? "Next" : frame ? "Pause" : name);
    let frame = 0;
    const pause = () => {
      cancelAnimationFrame(frame);
      frame = 0;
      words();
    };
    /** How many stations lie behind a value, with the share of the way to the next. */
    const behind = (value) => {
      const i = Math.max(
        0,
        stations.findLastIndex((one) => one <= value),
      );
      return i >= last ? last : i + (value - stations[i]) / (stations[i + 1] - stations[i]);
    };
    const run = () => {
      const began = performance.now(),
        from = behind(at()) >= last ? 0 : behind(at());
      const go = () => {
        const way = Math.min(last, from + ((performance.now() - began) / 1000 / seconds) * last),
          i = Math.floor(way);
        frame = way < last ? requestAnimationFrame(go) : 0;
        words();
        input(
          i >= last ? stations[last] : stations[i] + (way - i) * (stations[i + 1] - stations[i]),
        );
      };
      frame = requestAnimationFrame(go);
    };
    const press = button(place, name, () => {
      if (still.matches) input(stations[Math.floor(behind(at()) + 1) % (last + 1)]);
      else if (frame) pause();
      else run();
      words();
    });
    press.classList.add("player");
    const by = ({ target }) => target === press || pause();
    ["pointerdown", "keydown"].forEach((kind) =>
      place.closest("figure").addEventListener(kind, by, true),
    );
    words();
    return press;
  };

  return { box, titled, range, choice, button, player };
})();
