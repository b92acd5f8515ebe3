// What a term or a function means, in a box beside it: while the mouse rests on it, while it has the focus, and at the
// first tap of a finger; a second tap follows the link. Escape closes the box. site/meanings.py writes the meanings.
{
  const source = document.currentScript.src.replace(/meanings\.js.*/, "meanings-data.js");
  const NAMES = ".bd-article a:has(> .std-term, > code.py)";
  let loading = null;
  const load = () =>
    (loading ??= new Promise((done) => {
      document.head.append(
        element("script", {
          src: source,
          onload: () => done(window.meanings),
          onerror: () => done({}),
        }),
      );
    }));
  const box = element("div", { id: "meaning", hidden: true, role: "tooltip" });
  let shown = null,
    wanted = null,
    timer = 0;

  const hide = () => {
    clearTimeout(timer);
    shown?.removeAttribute("aria-describedby");
    shown = wanted = null;
    box.hidden = true;
  };
  const show = async (link) => {
    wanted = link;
    const meaning = (await load())[decodeURIComponent(link.hash.slice(1))];
    if (wanted !== link) return;
    hide();
    if (!meaning) return;
    box.innerHTML = meaning;
    box.hidden = false;
    document.body.append(box);
    shown = wanted = link;
    link.setAttribute("aria-describedby", box.id);
    await window.MathJax?.typesetPromise?.([box]);
    const { left, top, bottom } = link.getBoundingClientRect(),
      { offsetWidth, offsetHeight } = box;
    const above = bottom + offsetHeight + 8 > innerHeight && top > offsetHeight + 8;
    box.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - offsetWidth - 8)) + scrollX}px`;
    box.style.top = `${(above ? top - offsetHeight - 6 : bottom + 6) + scrollY}px`;
  };
  const later = (then, milliseconds) => {
    clearTimeout(timer);
    timer = setTimeout(then, milliseconds);
  };
  const name = (target) => target.closest?.(NAMES);

  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType !== "mouse") return;
    const link = name(target);
    if (link && link !== shown) later(() => show(link), 150);
    else if (link || box.contains(target)) clearTimeout(timer);
    else later(hide, shown ? 250 : 0);
  });
  document.addEventListener("focusin", ({ target }) => {
    if (target.matches(":focus-visible") && name(target)) show(name(target));
  });
  document.addEventListener("focusout", ({ target }) => {
    if (name(target)) hide();
  });
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") hide();
  });
  document.addEventListener("click", (event) => {
    const link = name(event.target);
    if (link && event.pointerType === "touch" && link !== shown) {
      event.preventDefault();
      show(link);
    } else if (!box.contains(event.target)) hide();
  });
}
