"""What a reader's hand does on the built site: unfold, answer, search, press, and find the way by keys alone."""

import re
from collections.abc import Iterator

import pytest
from chapters import CHAPTERS
from playwright.sync_api import Page
from visits import address_of, settle

from lowrank_tutor import exercises
from lowrank_tutor.exercises.questions import QUESTIONS, numbers_of

each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def title_of(path) -> str:
    """A chapter's title."""
    return re.search("^# (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)[1]


# Folds


@each_chapter
def test_proofs_and_solutions_are_folded_and_unfold_by_click_and_by_key(readers, path):
    page = readers["light"].open(address_of(path))
    page.add_style_tag(content="*{animation:none!important;transition:none!important}")
    folds = page.locator("div.admonition.dropdown, div.proof.dropdown, div.solution.dropdown")
    assert folds.count() == path.read_text(encoding="utf-8").count(":class: dropdown")
    for fold in folds.all():
        title, button = fold.locator(".admonition-title").first, fold.locator("button.toggle-button").first
        inside = fold.locator("p:not(.admonition-title)").first
        assert title.inner_text().strip()
        assert not inside.is_visible()
        title.click()
        assert inside.is_visible()
        button.focus()
        page.keyboard.press("Enter")
        assert not inside.is_visible()
        page.keyboard.press("Space")
        assert inside.is_visible()
        title.click()


@each_chapter
def test_every_fold_is_called_by_what_it_folds(readers, path):
    facts = readers["light"].see(address_of(path)).facts
    names = facts["folds"]
    assert len(set(names)) == len(names), names
    assert not [name for name in names if "Toggle" in name or len(name) < 8]
    assert facts["namedSummaries"] == 0


@each_chapter
def test_folded_code_unfolds(readers, path):
    page = readers["light"].open(address_of(path))
    folds = page.locator("details.hide")
    assert folds.count() > 0
    for fold in folds.all():
        code = fold.locator("pre").first
        assert not code.is_visible()
        fold.locator("summary").focus()
        page.keyboard.press("Enter")
        assert code.is_visible()
        page.keyboard.press("Enter")


@each_chapter
def test_a_page_says_how_to_cite_it(readers, path):
    cite = readers["light"].open(address_of(path)).locator("details.cite")
    cite.locator("summary").click()
    said = cite.locator("p").inner_text()
    cite.locator("summary").click()
    assert said.startswith("The lowrank-tutor authors (2026). " + title_of(path))
    assert "Low-Rank Attention" in said
    assert said.endswith(f"/book/{path.stem}.html")


# The fields that check an answer


# As Enter does it, for one text after the other.
SUBMIT = """
(form, texts) => texts.map((text) => {
  form.querySelector("input").value = text;
  form.requestSubmit();
  return form.querySelector("output").textContent;
})
"""


@each_chapter
def test_a_field_says_of_every_answer_what_the_package_says(readers, path):
    page = readers["light"].open(address_of(path))
    fields = page.locator("form.check")
    names = fields.evaluate_all("(forms) => forms.map((form) => form.dataset.name)")
    assert names == re.findall(r"^```\{exercise\}.*\n:label: (\S+)", path.read_text(encoding="utf-8"), re.M)
    with readers["light"].cut_off():
        for name, form in zip(names, fields.all(), strict=True):
            question = QUESTIONS[name]
            several = [0.123] * (len(question.numbers) + 1)
            answers = [question.right, *(wrong for wrong, _ in question.hints), tuple(several), question.numbers[::-1]]
            given = [*map(numbers_of, answers), (-123.456,) * len(question.numbers)]
            texts = ["  ".join(map(repr, numbers)) for numbers in given]
            said = form.evaluate(SUBMIT, texts)
            assert said == [repr(exercises.check(name, numbers)) for numbers in given]
            for words in form.evaluate(SUBMIT, ["", "two", "1 + 1", "1/0", "1..2"]):
                assert words.startswith("Write numbers")
            # And by hand: with the keyboard, and with the button.
            field = form.get_by_label(question.ask)
            field.fill(texts[0])
            field.press("Enter")
            assert form.locator("output").inner_text() == "Right."
            field.fill("")
            form.get_by_role("button", name="Check").click()
            assert form.locator("output").inner_text().startswith("Write numbers")
    assert page.url.endswith(address_of(path)), "nothing was sent"


@pytest.mark.parametrize(
    ("chapter", "name", "typed"),
    [
        (
            "01-rank",
            "ex-rank-projection",
            ["1/2", "0.5", "0,5", "50%", "50 %", " .5 ", "+0.5", "1 / 2", "5e-1", "(1/2)"],
        ),
        ("01-rank", "ex-rank-build", ["20, 16", "20,16", "(20; 16)", "[20 16]", "20\u00a016"]),
        ("02-svd-pca", "ex-svd-center", ["35,598", "35 598", "35598.0", "35598,0"]),
        ("02-svd-pca", "ex-svd-tail", ["0,302; 2; 3", "0.302; 2; 3", ".302, 2, 3"]),
        ("04-johnson-lindenstrauss", "ex-jl-hundred", ["1,593; 1,199", "1593, 1199"]),
        ("05-bilinear-scoring", "ex-bilinear-hand", ["-4 5 6", "\u22124, 5, 6"]),
        ("07-linformer", "ex-linformer-crossover", ["304,138", "304 138"]),
    ],
)
def test_a_field_reads_numbers_as_people_write_them(readers, chapter, name, typed):
    form = readers["light"].open(f"book/{chapter}.html").locator(f'form.check[data-name="{name}"]')
    assert dict(zip(typed, form.evaluate(SUBMIT, typed), strict=True)) == dict.fromkeys(typed, "Right.")


def test_a_field_tells_whom_the_comma_misled(readers):
    form = readers["light"].open("book/02-svd-pca.html").locator('form.check[data-name="ex-svd-tail"]')
    (said,) = form.evaluate(SUBMIT, ["0,302 2 3"])
    assert said == "Not yet. Give 3 numbers, in the order asked for. Write 0.5, not 0,5."


# Ways through the site


@pytest.mark.parametrize("who", ["light", "dark, from a file"])
@each_chapter
def test_search_finds_the_chapter_by_a_word_of_its_title(readers, path, who):
    title = title_of(path)
    page = readers[who].open("book/index.html")
    page.locator(".search-button__button:visible").first.click()
    page.keyboard.type(max(title.split(), key=len))
    page.keyboard.press("Enter")
    hit = page.locator(f'#search-results a[href*="{path.stem}.html"]').first
    hit.wait_for()
    assert title in hit.inner_text()


@pytest.fixture
def first_page(browser, address) -> Iterator[Page]:
    """The first chapter, just opened, by a reader of whom nothing is stored."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.goto(f"{address}/book/01-rank.html")
        settle(page)
        yield page


def test_the_skip_link_leads_past_the_buttons_to_the_text(first_page):
    first_page.keyboard.press("Tab")
    assert first_page.evaluate("document.activeElement.textContent.trim()") == "Skip to main content"
    first_page.keyboard.press("Enter")
    first_page.keyboard.press("Tab")
    assert first_page.evaluate("document.activeElement.closest('article.bd-article') !== null")


def test_a_pressed_button_keeps_the_focus(first_page):
    for button in (".theme-switch-button", ".cell:not(:has(details)) button.copybtn"):
        first_page.locator(f"{button}:visible").first.focus()
        first_page.keyboard.press("Enter")
        first_page.wait_for_timeout(100)
        assert first_page.evaluate("(css) => document.activeElement.matches(css)", button)
    assert first_page.locator(".theme-switch-button").first.get_attribute("aria-label").startswith("Color mode: ")


def test_the_button_changes_between_light_and_dark_and_the_choice_stays(first_page):
    button = first_page.locator(".theme-switch-button:visible").first
    seen = {}
    for _ in range(3):
        button.click()
        seen[first_page.evaluate("document.documentElement.dataset.mode")] = first_page.evaluate(
            "[document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]"
        )
    assert seen.keys() == {"auto", "light", "dark"}
    assert seen["light"][0] == "light"
    assert seen["dark"][0] == "dark"
    assert seen["light"][1] != seen["dark"][1]
    while first_page.evaluate("document.documentElement.dataset.mode") != "dark":
        button.click()
    first_page.reload()
    assert first_page.evaluate("document.documentElement.dataset.theme") == "dark"
