"""What stands in the head of every page: its policy, and scripts that run before it is shown."""

# A page may load what lies in this site, and nothing else. Not every browser counts the folder of a
# page as "self", hence "file:", which a page from a server could not read anyway.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' file:; style-src 'self' 'unsafe-inline' "
    "file:; img-src 'self' data: file:; font-src 'self' data: file:; worker-src blob:; "
    "form-action 'self' file:; base-uri 'none'"
)


# Where the browser stores nothing for a site, a mere look at its storage throws, and would end the
# theme's script. Where the storage is full, each attempt to keep something would.
STORAGE = """<script>
for (const name of ["localStorage", "sessionStorage"]) try { window[name] } catch {
  const kept = {}, getItem = (key) => kept[key] ?? null;
  const setItem = (key, value) => (kept[key] = String(value));
  const removeItem = (key) => delete kept[key];
  Object.defineProperty(window, name, { value: { getItem, setItem, removeItem } });
}
{
  const { setItem } = Storage.prototype;
  Storage.prototype.setItem = function (...pair) {
    try { setItem.apply(this, pair) } catch { /* it is full */ }
  };
}</script>"""


# Without a choice of the reader's the theme waits for its last script to see whether the browser
# asks for a dark page.
MODE = """if (document.documentElement.dataset.theme === "auto")
  document.documentElement.dataset.theme =
    matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
{ // Until the letters have come, upright and italic, no line in other letters is shown, and until
  // remember.js has come, no answer: both would move what is below.
  const { classList } = document.documentElement, show = () => classList.remove("unpacking");
  classList.add("unpacking", "guessing");
  const letters = ["", "italic "].map((cut) => document.fonts.load(cut + '1em "Source Serif 4"'));
  Promise.allSettled(letters).then(show);
  setTimeout(show, 500);
}"""


# MathJax's menu can switch on a speech explorer whose files the site does not carry (and file://
# would refuse), and remembers that for every page; without the menu formulas are no stops of the
# Tab key either. What a screen reader reads is in the page: the assistive MathML. Letters of
# formulas are as high as those of the book's serif (book.css), whose height MathJax would otherwise
# measure, perhaps before the font has come. A few formulas are typeset at a time, those in sight
# first, so that a touch need not wait; each keeps its TeX, which book.js copies.
MATHJAX = """window.MathJax = {
  options: {
    processHtmlClass: "tex2jax_process|mathjax_process|math|output_area", enableMenu: false
  },
  chtml: { matchFontHeight: false, scale: 1.06 },
  startup: { typeset: false, ready() {
    const { Menu } = MathJax._.ui.menu.Menu;
    Menu.prototype.mergeUserSettings = Menu.prototype.saveUserSettings = () => {};
    MathJax.startup.defaultReady();
    MathJax.startup.promise = MathJax.startup.promise.then(async () => {
      const boxes = [...document.querySelectorAll(".math")]
        .map((box) => [box, box.getBoundingClientRect()]);
      const seen = ([, { top, bottom }]) => bottom > 0 && top < innerHeight;
      const order = [...boxes.filter(seen), ...boxes.filter((one) => !seen(one))]
        .map(([box]) => box);
      while (order.length) {
        await MathJax.typesetPromise(order.splice(0, 10));
        await new Promise((done) => setTimeout(done));
      }
      for (const { math, display, typesetRoot } of MathJax.startup.document.math) {
        typesetRoot.dataset.tex = display ? "$$" + math.trim() + "$$" : "$" + math.trim() + "$";
      }
    });
  } },
};"""
