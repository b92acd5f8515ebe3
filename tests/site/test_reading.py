"""What a reader's hand does on the built site: unfold, answer, search, press, and find the way by
keys alone.
"""

import re
from urllib.parse import quote

import pytest
from chapters import CHAPTERS, each_chapter
from visits import address_of, settle

from lowrank_tutor.course.answers import QUESTIONS

# Folds


# Is a fold closed, then open after a click on its title, closed after one on its button, and can
# keys reach that?
CLICK = """
(folds) => folds.map((fold) => {
  const inside = fold.querySelector("p:not(.admonition-title), table, pre");
  const title = fold.querySelector(".admonition-title");
  const visible = () => inside.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const button = fold.querySelector("button.toggle-button");
  const seen = [title.textContent.trim() !== "", visible()];
  for (const press of [title, button]) {
    press.click();
    seen.push(visible());
  }
  button.focus();
  return [...seen, document.activeElement === button];
})
"""


@each_chapter
def test_folds_open(readers, path):
    page = readers["light"].open(address_of(path))
    page.add_style_tag(content="*{animation:none!important;transition:none!important}")
    folds = page.locator("div.admonition.dropdown, div.proof.dropdown, div.solution.dropdown")
    source = path.read_text(encoding="utf-8")
    assert folds.count() == source.count(":class: dropdown") - page.locator(".predict").count()
    assert folds.evaluate_all(CLICK) == [[True, False, True, False, True]] * folds.count()
    if not folds.count():
        return
    fold = folds.first
    inside = fold.locator("p:not(.admonition-title)").first
    fold.locator("button.toggle-button").first.focus()
    for key, visible in (("Enter", True), ("Space", False)):
        page.keyboard.press(key)
        assert inside.is_visible() == visible


@each_chapter
def test_fold_names(readers, path):
    facts = readers["light"].see(address_of(path)).facts
    names = facts["folds"]
    assert len(set(names)) == len(names), names
    assert not [name for name in names if "Toggle" in name or len(name) < 8]
    assert facts["namedSummaries"] == 0


# The fields that check an answer


@each_chapter
def test_answer_fields(readers, path):
    forms = readers["light"].open(address_of(path)).locator("form.check:not([data-kind])")
    for form in forms.all():
        question = QUESTIONS[form.get_attribute("data-name")]
        told = form.evaluate(
            """(form) => [...form.querySelectorAll("input")].map((input) => {
              const [id] = input.getAttribute("aria-describedby").split(" ");
              const rule = document.getElementById(id);
              return [input.labels[0].textContent.trim(), rule.textContent,
                rule === input.nextElementSibling];
            })"""
        )
        assert told == [[number.name, number.rule, True] for number in question.numbers]
    form = forms.first  # all are made by one function: one of them is worked by hand
    for number in QUESTIONS[form.get_attribute("data-name")].numbers:
        field = form.get_by_label(number.name, exact=True)
        field.fill(repr(number.right))
    field.press("Enter")
    assert form.locator("output").inner_text() == "✓ Right."
    good = form.locator(".check-right > span").evaluate("(e) => getComputedStyle(e).color")
    field.fill("-123")
    form.get_by_role("button", name="Check").click()
    assert "ot yet." in form.locator("output").inner_text()
    assert (
        form.locator(".check-open > span").last.evaluate("(e) => getComputedStyle(e).color") != good
    )


# Ways through the site


ASKED = {  # what is typed, and a title among the first three places
    "linear attention": "Another kernel: linear attention",
    "PCA vs SVD": "2. SVD and PCA",
    "How do I choose k?": "2.7 Choosing k",
    "how much memory does a kv-cache take": "A cache that does not fit",
    "why does averaging LoRA adapters fail": "Averaged factors are not averaged adapters",
    "SVD gradient gives NaNs": "Gradient of SVD is NaN",
    "Catastrophic forgetting problem": "LoRA: catastrophic forgetting",
    "randomized_svd": "lowrank_tutor.svd.randomized_svd",
    "randomized SVD, leverage": "not in the book: leverage",
    "constructor __proto__ hasOwnProperty": "",
}


@pytest.mark.parametrize("base", ["http", "file"])
def test_search(visit, site, address, base):
    """Whole questions are understood, and each place shows the lines in which their words stand."""
    page = visit("book/index.html", base=address if base == "http" else site.as_uri())
    # From a file two questions are enough; the second and the others come from the page of what was
    # found.
    for question, title in [*ASKED.items()][: None if base == "http" else 2]:
        page.locator(".search-button__button:visible").first.click()
        page.keyboard.type(question)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**q={question.split()[0]}*")
        places = page.locator("#search-results li")
        said = page.locator("#search-results [role=status]")
        said.wait_for()
        if title.startswith("not in the book"):
            assert title in said.inner_text()
        else:
            shown = places.all_inner_texts()
            assert any(title in place for place in shown[:3]) == bool(title), question
            assert places.locator("mark").count() >= bool(title)
            assert bool(shown) == bool(title)


MARKED = """
() => ({
  figures: [...document.querySelectorAll("figure")].map((figure) => figure.offsetHeight),
  words: [...new Set([...document.querySelectorAll(".highlighted")]
    .map((mark) => mark.textContent.toLowerCase()))],
  inside: document.querySelectorAll(
    ":is(style, script, svg, figure) .highlighted, svg rect.highlighted").length,
})
"""


def test_search_words_are_marked(visit, address):
    """Only in the text; and an address marks a few words, however many it names."""
    path = address_of(CHAPTERS[0])
    words = "position instrument width line word weight range rank display " + "e " * 3000
    page = visit(path, maths=True, viewport={"width": 1280, "height": 900})
    settle(page)
    plain = page.evaluate(MARKED)
    page.goto(f"{address}/{path}?highlight={quote(words)}")
    page.locator(".highlighted").first.wait_for(state="attached")
    settle(page)
    marked = page.evaluate(MARKED)
    assert plain["words"] == []
    assert marked == {"figures": plain["figures"], "words": marked["words"], "inside": 0}
    assert {"rank"} <= set(marked["words"]) <= set(words.split()[:8])


def test_page_by_keys(visit):
    """The first Tab skips to the text, a pressed button keeps the focus, and a theme stays."""
    page = visit("book/01-rank.html", maths=True, viewport={"width": 1280, "height": 900})
    settle(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent.trim()") == "Skip to main content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('article.bd-article') !== null")
    for button in (".cell:not(:has(details)) button.copybtn", ".theme-switch-button"):
        page.locator(f"{button}:visible").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_timeout(100)
        assert page.evaluate("(css) => document.activeElement.matches(css)", button)
    look = "() => [document.documentElement.dataset.mode, document.documentElement.dataset.theme]"

    def turn():
        before = page.evaluate(look)
        page.wait_for_timeout(200)  # no hand presses sooner, and a browser may drop such a press
        page.keyboard.press("Enter")
        page.wait_for_function(f"(before) => ({look})()[0] !== before[0]", arg=before, timeout=5000)
        return page.evaluate(look)

    seen = [turn() for _ in range(3)]
    assert {mode for mode, _ in seen} == {"auto", "light", "dark"}
    assert all(theme == mode for mode, theme in seen if mode != "auto")
    while page.evaluate(look)[0] != "dark":
        turn()
    page.reload()
    assert page.evaluate(look)[1] == "dark"


# Copying

COPY = """
(paragraphs) => paragraphs.map((paragraph) => {
  getSelection().selectAllChildren(paragraph);
  const clipboardData = new DataTransfer();
  document.dispatchEvent(new ClipboardEvent("copy",
    { clipboardData, bubbles: true, cancelable: true }));
  return [paragraph.querySelectorAll("mjx-container").length, clipboardData.getData("text/plain")];
})
"""


@each_chapter
def test_copied_text_keeps_formulas(readers, path):
    page, source = readers["light"].open(address_of(path)), path.read_text(encoding="utf-8")
    settle(page)
    copied = page.locator("section > p:has(mjx-container)").evaluate_all(COPY)
    assert copied
    for count, text in copied:
        formulas = re.findall(r"\$([^$]+)\$", text)
        assert len(formulas) == count, text
        assert all(formula in source for formula in formulas), text
