// An answer is pressed; the right one is then marked where it stands. predictions.js says what is returned.
predictions.ways.choice = (asked, holder, { truth, choices, words }, commit) => {
  let chosen = null;
  const group = element("div", {
    class: "answers",
    role: "group",
    "aria-label": words.choose,
  });
  asked.append(group);
  const buttons = choices.map((word) =>
    controls.button(group, word, () => {
      chosen = word;
      commit();
    }),
  );
  return {
    rule: (guess) => check.one("guess", String(guess), choices), // an address cannot tell 5 from "5"
    gap: (guess) => Number(guess !== truth),
    grade: (guess) => Number(guess === truth),
    far: () => "",
    write: (guess) => guess,
    said: (guess) => (guess === truth ? "correct" : "wrong"),
    read: () => chosen,
    clear: () => (chosen = null),
    draw: ({ guess, shown }) =>
      buttons.forEach((button, i) => {
        const word = choices[i],
          right = shown && word === truth;
        button.disabled = shown;
        button.className = right ? "right" : word === guess ? "chosen" : "";
        button.replaceChildren(right ? words.right_one + word : word);
      }),
  };
};
