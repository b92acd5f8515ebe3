// What every figure has on its page: a state, numbers, one sentence, and an address that carries the state.
//
// An instrument is one function of the tools {figure, place, data, move, morph, tell}, in a file of its name:
//
//   const score = ({ place, data, move }) => ({
//     clean: (state) => state,          // a state as wished: returns it, or throws an Error that says the rule
//     draw: (state) => {},              // draws into `place`; returns a promise if something is still being computed
//     numbers: () => ({ score: 1 }),    // of what is drawn, under the names that the Python module gives them
//     table: () => ({ w: [[1]] }),      // the arrays that the numbers are computed from
//     values: () => ({}),               // optional: more words for the sentence
//     remarks: () => ["flat"],          // optional: names of `remarks` in Python, which follow the sentence
//     clear: () => {},                  // optional: what the state does not hold begins again, too
//     begun: () => true,                // optional: whether there is anything yet to start again, or to link to
//     share: (state) => [state, ""],    // optional: what the address may carry, and a sentence about it
//     eases: { s: 0, k: 1 },            // optional: what a morph moves through, and whether by whole numbers (1)
//   });
//
// Its controls and handles call move({ name: value }), which says in words what is wrong; `check` (values.js) has rules
// for `clean`. Presets call morph({ name: value }), which goes there in MORPH; after a choice among radio buttons lines
// and boxes glide by themselves (instrument.css), if they still have as many points. While numbers() has no names, the numbers
// of the page stay as Python wrote them.
// Milliseconds of rest before the sentence is said; it is shown at once
const PAUSE = 400;
// Milliseconds of a morph
const MORPH = 300;

/** Hand an event of the window on to a figure, and do not keep one that a notebook has thrown away. */
const passOn = (kind, figure) => {
  const held = new WeakRef(figure);
  addEventListener(kind, () => held.deref()?.dispatchEvent(new Event(kind)));
};

/** The part of the page's address that is a figure's. */
const addressOf = (figure) => {
  const { name } = figure.dataset;
  const alike = document.querySelectorAll('figure.instrument[data-name="' + name + '"]');
  const earlier = [...alike].indexOf(figure);
  // A second one of a page has an address of its own
  const key = (earlier > 0 ? name + "-" + (earlier + 1) : name) + "=";
  const parts = () => location.hash.slice(1).split("&").filter(Boolean);
  return {
    read: () =>
      parts()
        .find((part) => part.startsWith(key))
        ?.slice(key.length),
    write: (packed) => {
      const others = parts().filter((part) => !part.startsWith(key));
      history.replaceState(history.state, "", "#" + [...others, key + packed].join("&"));
    },
  };
};

/** The sentence of a figure: shown at once, and told to those who hear the page. */
const speech = (figure) => {
  const said = figure.querySelector("p[role=status]");
  // The room of the longest sentence
  const [room, line] = [element("span"), element("p")];
  said.before(element("div", { class: "instrument-said", "aria-hidden": "true" }, room, line));
  let rest = 0;
  const self = {
    grows: false,
    show: (text) => {
      if (self.grows && text.length > room.textContent.length) room.textContent = text;
      stage.say(line, text);
    },
    tell: (text) => {
      self.wait();
      said.textContent = text;
      self.show(text);
    },
    /** Tell a sentence once nothing has moved for PAUSE. */
    later: (sentence) => {
      self.wait();
      rest = setTimeout(() => self.tell(sentence()), PAUSE);
    },
    wait: () => clearTimeout(rest),
  };
  return self;
};

const between = (from, to, share, whole) => {
  if (Array.isArray(to)) return to.map((value, i) => between(from[i], value, share, whole));
  return whole && share < 1 ? Math.round(from + share * (to - from)) : from + share * (to - from);
};

/** How a figure gets to a state: at once, or on a way that any later wish ends. `own` has what only mount knows. */
const journeys = (figure, own) => {
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let goal = null,
    wishes = 0;
  const set = (partial) => {
    wishes++;
    goal = null;
    return own.put(partial);
  };
  const move = async (partial) => {
    own.spoken.wait();
    try {
      await set(partial);
      own.spoken.later(own.sentence);
    } catch (error) {
      own.spoken.tell(error.message);
    }
  };
  /** Whether what is drawn goes to its new place in MORPH, by the style: after a choice, and until a hand moves on. */
  const glide = (on) => figure.classList.toggle("glides", on);
  /** Move there in MORPH; any other wish ends it. A reader who wants no motion is there at once. */
  const morph = async (partial) => {
    const from = own.state(),
      to = { ...from, ...partial },
      begun = performance.now();
    const eased = Object.entries(own.eases()).filter(
      ([part]) => String(from[part]) !== String(to[part]),
    );
    const mine = ++wishes;
    goal = partial;
    glide(!eased.length);
    own.busy(1);
    try {
      for (let share = 0; !calm.matches && eased.length && share < 1 && mine === wishes;) {
        await new Promise(requestAnimationFrame);
        // The time of a frame may be before `begun`
        share = Math.min(1, (performance.now() - begun) / MORPH);
        const parts = eased.map(([part, whole]) => [
          part,
          between(from[part], to[part], 1 - (1 - share) ** 3, whole),
        ]);
        if (share < 1 && mine === wishes) await own.put({ ...to, ...Object.fromEntries(parts) });
      }
    } finally {
      own.busy(-1);
    }
    if (mine !== wishes) return;
    goal = null;
    await move(partial);
  };
  /** What a reader does on the way begins at its end. */
  const land = () => {
    glide(false);
    if (goal) set(goal);
  };
  ["pointerdown", "click", "keydown"].forEach((kind) => figure.addEventListener(kind, land, true));
  figure.addEventListener("change", ({ target }) => glide(target.matches("[type=radio]")), true);
  return { set, move, morph };
};

/** What brings a figure to its start, and a link to what it shows. */
const addButtons = (place, words, reset, copy) => {
  const buttons = controls.box(place, "instrument-buttons");
  controls.button(buttons, words.reset, reset);
  // Nobody sees the address of a frame, and nobody else can open that of JupyterLab.
  if (window === window.top && !document.getElementById("jupyter-config-data")) {
    controls.button(buttons, words.copy, copy);
  }
  return buttons;
};

const mount = (figure, build) => {
  if (figure.instrument) return;
  const content = figure.querySelector('script[type="application/json"]').textContent;
  const { state: start, data, formats, say, remarks, words } = JSON.parse(content);
  const address = addressOf(figure),
    spoken = speech(figure);
  const place = figure.querySelector(".instrument-live");
  const shown = Object.fromEntries(
    [...figure.querySelectorAll("dl data")].map((one) => [one.dataset.name, one]),
  );
  let state = start,
    pending = 0;

  const sentence = () => {
    const values = { ...state, ...me.numbers(), ...(me.values ? me.values() : {}) };
    const more = me.remarks ? me.remarks() : [];
    return [say, ...more.map((remark) => remarks[remark])]
      .map((template) => fill(template, values))
      .join(" ");
  };
  const write = () =>
    Object.entries(me.numbers()).forEach(([number, value]) => {
      // The instrument itself writes a number that it has not from the start
      if (!shown[number]) return;
      stage.write(shown[number], { value });
      stage.say(shown[number], format(value, formats[number] || ","));
    });
  const describe = () => spoken.show(me.begun && !me.begun() ? "" : sentence());
  const busy = (by) => figure.setAttribute("aria-busy", String(Boolean((pending += by))));
  const put = async (partial) => {
    const unknown = Object.keys(partial).find((part) => !Object.hasOwn(start, part));
    if (unknown) check.fail("state", "made of " + Object.keys(start).join(", "), unknown);
    state = me.clean({ ...state, ...partial });
    const later = me.draw(state);
    buttons.hidden = Boolean(me.begun) && !me.begun();
    write();
    if (!later) return describe();
    busy(1);
    try {
      await later;
    } finally {
      busy(-1);
    }
    write();
    describe();
  };
  const now = { state: () => state, eases: () => me.eases || {} };
  const { set, move, morph } = journeys(figure, { ...now, put, busy, spoken, sentence });

  const fromAddress = async () => {
    const mine = address.read();
    if (mine === undefined) return false;
    try {
      await set(unpack(mine, start));
      const { top, bottom } = figure.getBoundingClientRect();
      if (top > innerHeight / 2 || bottom < innerHeight / 2)
        figure.scrollIntoView({ block: "nearest" });
    } catch (_) {
      await set({});
      spoken.tell(words.bad_address);
    }
    return true;
  };
  const copy = async () => {
    const [carried, note] = me.share ? me.share(state) : [state, ""];
    address.write(pack(carried));
    const copied = await navigator.clipboard?.writeText(location.href).then(
      () => true,
      () => false,
    );
    spoken.tell([copied ? words.copied : words.in_address, note].join(" ").trim());
  };

  const me = build({ figure, place, data, move, morph, tell: spoken.tell });
  spoken.grows = !me.begun;
  const longest = Object.values(remarks).reduce(
    (most, one) => (one.length > most.length ? one : most),
    "",
  );
  spoken.show([say, longest].join(" ").replace(/\{[^}]*\}/g, "00000"));
  spoken.show("");
  figure.classList.add("live");
  figure.instrument = {
    state: () => structuredClone(state),
    set,
    morph,
    numbers: () => ({ ...me.numbers() }),
    table: () => structuredClone(me.table()),
  };
  const reset = () => {
    me.clear?.();
    morph(start);
  };
  const buttons = addButtons(place, words, reset, copy);
  fromAddress().then((found) => found || set({}));
  figure.addEventListener("hashchange", fromAddress);
  passOn("hashchange", figure);
  // JupyterLab takes keys for its own, "d d" deletes a cell, unless what has the focus says this itself.
  figure.addEventListener("focusin", ({ target }) =>
    target.setAttribute("data-lm-suppress-shortcuts", "true"),
  );
};
