"""Practice on the page: it replies as the package does, fades, comes back, and needs no storage and no server."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from visits import SITE, violations

from lowrank_tutor import practice

KEY, RANK, SVD = "lowrank-practice", "book/01-rank.html", "book/02-svd-pca.html"
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
NO_STORAGE = "Object.defineProperty(window, 'localStorage', { configurable: true, get() { throw Error(); } })"
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
        for field, value in zip(form.locator(f"input[id*='-{place}-']").all(), values, strict=False):
            field.fill(repr(value))
            last = field
    last.press("Enter")


@pytest.mark.parametrize("kind", practice.KINDS)
def test_page_and_package_agree(browser, kind):
    """A form in a notebook says to right answers, slips, and others what ``check`` says."""
    page, rng = browser.new_page(), np.random.default_rng(1)
    for _ in range(3):
        problem = practice.another(kind, rng=rng)
        for given in (problem.answer, *(wrong for wrong, _ in problem.slips), [0.123] * len(problem.answer)):
            page.set_content(f"<html lang=en><body>{problem._repr_html_()}</body></html>")
            said = page.evaluate(SUBMIT, [repr(one) for one in given])
            assert said == str(problem.check(given)), given
    page.close()


def test_hints_differ_then_show(browser):
    page, problem = browser.new_page(), practice.another("svd-2x2", rng=0)
    page.set_content(f"<html lang=en><body>{problem._repr_html_()}</body></html>")
    said = [page.evaluate(SUBMIT, [str(wrong), "1"]) for wrong in (900, 901, 902)]
    assert len(set(said)) == 3
    assert ["Not yet" in words for words in said] == [True, True, False]
    assert problem.steps[-1].work in said[2]
    page.close()


@pytest.mark.parametrize("settings", [{}, PHONE], ids=["wide", "phone"])
def test_fading(visit, settings):
    """A right answer leaves more to the reader, by keys alone; a missed one gives more steps again."""
    page = visit(SVD, **settings)
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
    last = datetime.now(UTC) - timedelta(days=days_ago)
    days = [f"2026-01-{i + 1:02}" for i in range(right)]
    return {"days": days, "last": last.timestamp() * 1000, "missed": missed, "level": 3}


CHOICES = {  # what is kept -> what chapter 4 asks first; then come what it needs: centering, spectra, a line
    "nothing": ({}, ["center-project", "spectrum-error", "project-line"]),
    "missed": ({"storage": record(0, 0, missed=True)}, ["storage", "center-project", "spectrum-error"]),
    "due after a day": ({"rank-rows": record(1.1)}, ["rank-rows", "center-project", "spectrum-error"]),
    "not yet due": ({"rank-rows": record(6, right=2)}, ["center-project", "spectrum-error", "project-line"]),
    "due after a week": ({"rank-rows": record(8, right=2)}, ["rank-rows", "center-project", "spectrum-error"]),
    "due after a month": (
        {"rank-rows": record(29, right=3), "storage": record(31, right=4), "svd-2x2": record(99, right=2)},
        ["svd-2x2", "storage", "center-project"],
    ),
    "missed before due": (
        {"rank-rows": record(50), "lda-step": record(2, missed=True), "causal-state": record(2, missed=True)},
        ["lda-step", "rank-rows", "center-project"],
    ),
    "garbage": (
        {"lda-step": 5, "storage": {"days": "x", "last": "y"}},
        ["storage", "lda-step", "center-project"],
    ),
}
CHOOSE = """([kept, earlier]) => {
  localStorage["lowrank-practice"] = kept;
  const { needs } = document.querySelector("[data-name=three-before]").dataset;
  return Object.values(window.lowrankTutor).find((one) => one.fromBefore).fromBefore(needs.split(" "), earlier);
}"""


def kinds_before(chapter):
    return [kind for kind, of in practice.KINDS.items() if of < chapter]


def test_three_from_before(visit):
    """The page asks what its rule says, for each record that a browser may hold."""
    page = visit("book/04-johnson-lindenstrauss.html", kept={KEY: CHOICES["missed before due"][0]})
    section = page.locator("section[data-name=three-before]")
    section.locator(".question").nth(2).wait_for(state="attached")
    kinds = section.locator("form").evaluate_all("(forms) => forms.map((form) => form.dataset.kind)")
    assert kinds == CHOICES["missed before due"][1]
    for case, (kept, wanted) in CHOICES.items():
        assert page.evaluate(CHOOSE, [json.dumps(kept), kinds_before(4)]) == wanted, case


@pytest.mark.parametrize("way", ["private", "file"])
def test_without_storage_or_server(visit, way):
    where = {"base": SITE.as_uri()} if way == "file" else {}
    page = visit(RANK, *([NO_STORAGE] if way == "private" else []), **where)
    form = opened(page, "storage")
    solve(form)
    assert "All right" in form.locator("output").last.inner_text()


def test_progress_in_sight(visit):
    """Two days make a promise kept: beside the chapter, on the front page, and on the page that deletes it."""
    page = visit(RANK, kept={KEY: {"storage": record(3)}})
    form = opened(page, "storage")
    solve(form)
    assert page.locator(".bd-sidebar-primary .ring").first.get_attribute("title") == "1 of 3 promises kept"
    home = visit("book/index.html", context=page.context)
    states = home.locator(".promises li[data-kind]").evaluate_all("(all) => all.map((one) => one.dataset.state)")
    assert (states.count("2"), len(states)) == (1, len(practice.KINDS))
    over = visit("book/guesses.html", context=page.context)
    place = over.locator("#practice-kept")
    assert "kept: right without a step on 2 days" in place.inner_text()
    with over.expect_download() as download:
        place.get_by_text("Export").click()
    assert "storage" in json.loads(download.value.path().read_text())
    assert violations(over) == []
    place.get_by_role("button", name="Delete").click()
    assert over.evaluate(f"localStorage.getItem('{KEY}')") is None
    assert place.locator("li").count() == 0


def test_figure_notices(visit):
    """The answer of a task appears when a figure gets there by hand, or at the press of a button."""
    page = visit(SVD)
    box = page.locator(".found[data-figure=cloud]")
    answer = box.locator("xpath=following-sibling::*[1]")
    assert [one.evaluate("(e) => e.checkVisibility()") for one in (box.locator("button"), answer)] == [True, False]
    figure = page.locator("figure[data-name=cloud]")
    figure.locator("[role=slider]").first.press("ArrowRight")
    figure.evaluate("(figure) => figure.instrument.set({ center: [7, 6] })")
    page.wait_for_function(
        "document.querySelector('.found[data-figure=cloud] output').textContent.includes('Found: 87.8')"
    )
    assert answer.is_visible()
    other = visit(RANK)
    other.locator(".found[data-figure=tilt] button").click()
    assert other.get_by_text("The worst angles").is_visible()
    with_script = visit(SVD, java_script_enabled=False)
    assert with_script.get_by_text("degrees apart.").first.is_visible()
