// A word is chosen; the right one is then marked where it stands. guesses.js says what is returned.
guesses.ways.choice = (asked, holder, { truth, choices, words }) => {
  let chosen = null;
  const named = Object.fromEntries(choices.map((word, i) => ["choice " + i, word]));
  const input = (at) => (chosen = named[at]);
  const options = controls.choice(asked, { label: words.choose, options: named, input });
  return {
    rule: (guess) => check.one("guess", String(guess), choices), // an address cannot tell 5 from "5"
    gap: (guess) => Number(guess !== truth),
    far: (gap) => words.hits[gap],
    write: (guess) => guess,
    said: (guess) => guess === truth ? "correct" : "choice",
    read: () => chosen,
    clear: () => (chosen = null),
    draw: ({ guess, shown }) => {
      options.show("choice " + choices.indexOf(shown ? guess : chosen));
      asked.querySelectorAll("label").forEach((label, i) => {
        label.firstChild.disabled = shown;
        label.querySelectorAll("b").forEach((mark) => mark.remove());
        if (shown && choices[i] === truth) label.append(controls.element("b", {}, words.right_one));
      });
    },
  };
};
