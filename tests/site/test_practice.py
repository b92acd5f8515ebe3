"""Practice on the page: it replies as the package does, fades, comes back, and needs no storage and
no server.
"""

import json
import time

import numpy as np
import pytest
from visits import FINGER, PAGES, SITE, violations

from lowrank_tutor.course import practice

KEY, RANK, SVD = "lowrank-practice", "book/01-rank.html", "book/02-svd-pca.html"
NO_STORAGE = (
    "Object.defineProperty(window, 'localStorage', "
    "{ configurable: true, get() { throw Error(); } })"
)
SUBMIT = """(texts) => {
  const form = document.querySelector("form[data-kind]");
  form.querySelectorAll("input").forEach((input, i) => (input.value = texts[i]));
  form.requestSubmit();
  return form.querySelector("output").textContent;
}"""


def opened(page, kind):
    """The form of a kind, unfolded, with a problem in it."""
    page.locator(f"#practice-{kind} > summary").click()
    form = page.locator(f"#practice-{kind} form")
    form.locator(".question").wait_for()
    return form


def solve(form):
    """Type the values of every blank."""
    for place, (*_, values) in enumerate(form.evaluate("(form) => form.problem().steps")):
        for field, value in zip(
            form.locator(f"input[id*='-{place}-']").all(), values, strict=False
        ):
            field.fill(repr(value))
    form.locator("input").last.press("Enter")


@pytest.mark.parametrize("kind", practice.KINDS)
def test_page_and_package_agree(browser, kind):
    """A form in a notebook says to right answers, slips, and others what ``check`` says."""
    page, rng = browser.new_page(), np.random.default_rng(1)
    for _ in range(3):
        problem = practice.another(kind, rng=rng)
        slips = [wrong for wrong, _ in problem.slips]
        for given in (problem.answer, *slips, [1.03 * one + 0.01 for one in problem.answer]):
            page.set_content(f"<html lang=en><body>{problem._repr_html_()}</body></html>")
            said = page.evaluate(SUBMIT, [repr(one) for one in given])
            assert said == str(problem.check(given)), given
    page.close()


def test_hints_differ_then_show(browser):
    page, problem = browser.new_page(), practice.another("svd-2x2", rng=0)
    page.set_content(f"<html lang=en><body>{problem._repr_html_()}</body></html>")
    said = [page.evaluate(SUBMIT, [str(wrong), "1"]) for wrong in (900, 900, 901, 901, 902)]
    assert len(set(said)) == 5
    assert ["same answer" in words for words in said] == [False, True, False, True, False]
    assert problem.steps[-1].work in said[4]
    page.close()


def test_fading(visit):
    """A right answer leaves more to the reader, by keys alone; a miss gives more steps again."""
    page = visit(SVD, maths=True, **FINGER)
    form = opened(page, "svd-2x2")
    for level in (1, 2, 3):
        assert form.get_attribute("data-level") == str(level)
        assert form.locator("input").count() == (2, 4, 2)[level - 1]
        solve(form)
        assert "All right" in form.locator("output").last.inner_text()
        form.get_by_role("button", name="Another one").press("Enter")
        page.wait_for_function("document.activeElement.matches('form[data-kind] input')")
    for wrong in "123":
        for field in form.locator("input").all():
            field.fill(wrong)
        form.get_by_role("button", name="Check").press("Enter")
    assert "This is how it goes" in form.inner_text()
    kept = json.loads(page.evaluate(f"localStorage['{KEY}']"))["svd-2x2"]
    assert (len(kept["days"]), kept["missed"], kept["level"]) == (1, True, 2)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page) == []


def record(days_ago, right=1, missed=False):
    days = [f"2026-01-{i + 1:02}" for i in range(right)]
    return {
        "days": days,
        "last": 1000 * (time.time() - 86400 * days_ago),
        "missed": missed,
        "level": 3,
    }


# What is kept -> what chapter 4 asks first; then come what it needs: centering, spectra, a line.
CHOICES = {
    "nothing": ({}, ["center-project", "spectrum-error", "project-line"]),
    "missed": (
        {"storage": record(0, 0, missed=True)},
        ["storage", "center-project", "spectrum-error"],
    ),
    "due after a day": (
        {"rank-rows": record(1.1)},
        ["rank-rows", "center-project", "spectrum-error"],
    ),
    "not yet due": (
        {"rank-rows": record(6, right=2)},
        ["center-project", "spectrum-error", "project-line"],
    ),
    "a clock ran ahead": (
        {"rank-rows": record(-30000)},
        ["rank-rows", "center-project", "spectrum-error"],
    ),
    "due after a month": (
        {
            "rank-rows": record(29, right=3),
            "storage": record(31, right=4),
            "svd-2x2": record(99, right=2),
        },
        ["svd-2x2", "storage", "center-project"],
    ),
    "missed before due": (
        {
            "rank-rows": record(50),
            "lda-step": record(2, missed=True),
            "causal-state": record(2, missed=True),
        },
        ["lda-step", "rank-rows", "center-project"],
    ),
    "garbage": (
        {"lda-step": 5, "storage": {"days": "x"}},
        ["storage", "lda-step", "center-project"],
    ),
}
CHOOSE = """([kept, earlier]) => {
  localStorage["lowrank-practice"] = kept;
  const { needs } = document.querySelector("[data-name=three-before]").dataset;
  return Object.values(window.lowrankTutor)
    .find((one) => one.fromBefore).fromBefore(needs.split(" "), earlier);
}"""


def test_three_from_before(visit):
    """The page asks what its rule says, for each record that a browser may hold."""
    page = visit("book/04-johnson-lindenstrauss.html", kept={KEY: CHOICES["missed before due"][0]})
    section = page.locator("section[data-name=three-before]")
    section.locator(".question").nth(2).wait_for(state="attached")
    kinds = section.locator("form").evaluate_all(
        "(forms) => forms.map((form) => form.dataset.kind)"
    )
    assert kinds == CHOICES["missed before due"][1]
    earlier = [kind for kind, chapter in practice.KINDS.items() if chapter < 4]
    for case, (kept, wanted) in CHOICES.items():
        assert page.evaluate(CHOOSE, [json.dumps(kept), earlier]) == wanted, case


def test_without_storage_or_server(visit):
    page = visit(RANK, NO_STORAGE, base=SITE.as_uri())
    form = opened(page, "storage")
    solve(form)
    assert "All right" in form.locator("output").last.inner_text()


def bring(page, kept):
    """Import a file, and return what the page then says."""
    said = page.locator("#practice-kept + p output")
    said.evaluate("(said) => (said.textContent = '')")
    text = kept if isinstance(kept, str) else json.dumps(kept)
    page.locator("input[type=file]").set_input_files(
        {"name": "a", "mimeType": "", "buffer": text.encode()}
    )
    page.wait_for_function("(said) => said.textContent", arg=said.element_handle())
    return said.inner_text()


def test_progress_in_sight(visit):
    """Two days make a promise kept: beside the chapter, on the front page, and on the page that
    deletes it.
    """
    page = visit(RANK, kept={KEY: {"storage": record(3)}})
    form = opened(page, "storage")
    solve(form)
    assert (
        page.locator(".bd-sidebar-primary .ring").first.get_attribute("title")
        == "1 of 3 kinds of problem kept"
    )
    home = visit("book/index.html", context=page.context)
    states = home.locator(".promises li[data-kind]").evaluate_all(
        "(all) => all.map((one) => one.dataset.state)"
    )
    assert (states.count("2"), len(states)) == (1, len(practice.KINDS))
    kept = {"rank-rows": record(0, missed=True), "storage": record(2), "svd-2x2": record(0)}
    due = visit("book/index.html", kept={KEY: kept}).locator("#due")
    assert (due.locator("a").count(), due.inner_text().count("(you missed it)")) == (2, 1)
    over = visit("book/guesses.html", context=page.context)
    place = over.locator("#practice-kept")
    assert "kept: right without a step on 2 days" in place.inner_text()
    with over.expect_download() as download:
        place.get_by_text("Export").click()
    before = json.loads(download.value.path().read_text())
    assert violations(over) == []
    for text in (
        "",
        "[]",
        '{"storage": 5}',
        '{"strange": 5}',
        json.dumps({**before, "svd-2x2": {"days": ["today"]}}),
    ):
        assert "Nothing has changed" in bring(over, text)
        assert json.loads(over.evaluate(f"localStorage['{KEY}']")) == before
    place.get_by_role("button", name="Delete").click()
    assert over.evaluate(f"localStorage.getItem('{KEY}')") is None
    over.get_by_role("button", name="Undo").click()
    assert place.locator("li").count() == 1
    mine = before["storage"]
    days = [*record(0, 2)["days"], *mine["days"][1:]]
    over.evaluate(f"localStorage['{KEY}'] = '{json.dumps({'storage': record(9, 2)})}'")
    assert bring(over, {"storage": mine}) == "Imported 1 of the kinds."
    assert json.loads(over.evaluate(f"localStorage['{KEY}']")) == {
        "storage": {**mine, "days": days}
    }
    over.evaluate("Storage.prototype.setItem = () => {}")
    assert "Nothing has changed" in bring(over, {"svd-2x2": record(9, 2)})


TASKS = [  # chapter, figure, where the answer is found, and what the figure then says
    (1, "tilt", {"tilt": 37}, "59"),
    (1, "shadow", {"x": [4, 3]}, "100.0%"),
    (1, "one-sheet", {"k": "5"}, "5"),
    (2, "arrows", {"theta": 0.785}, "6.71"),
    (2, "spectrum", {"s": [1] * 12, "k": 9}, "9"),
    (2, "storyteller", {"cut": "sheets", "k": 3}, "3"),
    (2, "cloud", {"center": [7, 6]}, "87.8"),
    (2, "closing-gap", {"a": "0"}, "45.0"),
    (2, "noise-cut", {"noise": "3", "k": "2"}, "83.6%"),
    (3, "family-reconstruction", {"k": "9", "method": "LDA"}, "66%"),
    (3, "moving", {"t": 63}, "2.25"),
    (3, "downhill", {"step": 3}, "3"),
    (3, "completion-error", {"k": "20", "penalty": "30"}, "44.5%"),
    (4, "jl-shadows", {"k": "32"}, "32"),
    (4, "moving", {"t": 0.165}, "3.3%"),
    (4, "ada-or-ben", {"k": "64"}, "64"),
    (5, "document-ranking", {"k": "28"}, "28"),
    (5, "score", {"s": [1, -2]}, "0.00"),
    (5, "storyteller", {"k": 8}, "8"),
    (7, "storyteller", {"cut": "window", "k": 20}, "20"),
    (7, "windows", {"borders": [0, 3, 4]}, "3"),
    (7, "linformer-error", {"k": "4", "rho": "0.99"}, "4"),
    (8, "storyteller", {"cut": "bits", "k": 1}, "1"),
    (8, "storyteller", {"k": 10}, "10"),
    (9, "muon", {"rounds": "5"}, "1.68"),
    (10, "past", {"words": "17"}, "17"),
]
DRIVE = """async ([name, at, state]) => {
  const figure = document.querySelectorAll(`figure[data-name="${name}"]`)[at];
  if (figure.instrument) return figure.dispatchEvent(new Event("input")),
    figure.instrument.set(state);
  for (const [slider, text] of Object.entries(state)) {
    const control = figure.querySelector(`[data-slider="${slider}"]`);
    const choice = [...control.querySelectorAll("input")].find(({ value }) => value === text);
    if (choice) { choice.click(); continue; }
    for (control.value = control.min; ; control.stepUp()) {
      control.dispatchEvent(new Event("input", { bubbles: true }));
      if (control.closest("div").querySelector("output").value === text) break;
    }
  }
}"""


@pytest.mark.parametrize("chapter", dict.fromkeys(row[0] for row in TASKS))
def test_figure_notices(visit, chapter):
    """The answer of a task appears when a figure rests where it is found, and not before."""
    page = visit(next(path for path in PAGES if path.startswith(f"book/{chapter:02}-")))
    page.wait_for_load_state("networkidle")
    rows = [row[1:] for row in TASKS if row[0] == chapter]
    assert page.locator(".found").count() == len(rows)
    page.evaluate(DRIVE, [rows[0][0], 0, {}])  # touched, but not there
    page.wait_for_timeout(450)
    assert not "".join(page.locator(".found output").all_inner_texts())
    for row, (figure, state, words) in enumerate(rows):
        at = [earlier for earlier, *_ in rows[:row]].count(figure)
        box = page.locator(f".found[data-figure={figure}]").nth(at)
        answer = box.locator("xpath=following-sibling::*[1]")
        assert answer.is_visible() == (box.get_attribute("data-hides") == "")
        page.evaluate(DRIVE, [figure, at, state])
        box.get_by_text(f"Found: {words}.").wait_for()
        assert answer.is_visible(), figure


def test_answer_without_figure(visit):
    page = visit(RANK)
    page.locator(".found[data-figure=tilt] button").click()
    assert page.get_by_text("The worst angles").is_visible()
    assert visit(RANK, java_script_enabled=False).get_by_text("The worst angles").is_visible()
