"""A question opens its answer, and on return both are there; where nothing can be kept, all works
but that.
"""

import json

import pytest
from chapters import each_chapter
from visits import FINGER, address_of, violations

RANK = "book/01-rank.html"
KEY = "lowrank-tutor-guesses"
OPEN = (
    "(all) => all.map((e) => e.clientHeight > 0 && e.checkVisibility({ visibilityProperty: true }))"
)


def answers(page):
    return page.locator(".predict > .answer").evaluate_all(OPEN)


def by_mouse(box):
    box.locator(".answers button").first.click()


def by_keys(box):
    box.locator("[role=slider]").press("End")
    box.get_by_role("button", name="That is my guess").press("Enter")


def by_touch(box):
    box.get_by_role("button", name="Show me").tap()


@pytest.mark.parametrize(
    ("which", "way", "settings"),
    [(1, by_mouse, {}), (0, by_keys, {}), (0, by_touch, FINGER)],
    ids=["mouse", "keys", "touch"],
)
def test_guess_opens_answer(visit, which, way, settings):
    page = visit(RANK, **settings)
    boxes = page.locator(".predict")
    assert not any(answers(page))
    way(boxes.nth(which))
    page.wait_for_function(f"document.querySelectorAll('.predict')[{which}].matches('.answered')")
    opened = [i == which for i in range(boxes.count())]
    assert answers(page) == opened
    if which == 0:
        page.locator("figure[data-name=tilt]").scroll_into_view_if_needed()
        page.wait_for_function(
            "document.querySelector('figure[data-name=tilt]').instrument.state().k === 7"
        )
    again = visit(RANK, context=page.context)
    again.wait_for_function("document.querySelector('.answered')")
    assert answers(again) == opened
    state = "(figure) => figure.instrument.state()"
    figures = [each.locator("figure[data-name=draw_first]").nth(which) for each in (page, again)]
    assert figures[0].evaluate(state) == figures[1].evaluate(state)
    again.locator(".predict").nth(which).get_by_role("button", name="Start again").click()
    again.wait_for_function("!document.querySelector('.answered')")
    assert not any(answers(visit(RANK, context=page.context)))


def test_overview(visit):
    page = visit(RANK)
    box = page.locator(".predict")
    by_keys(box.nth(0))
    box.nth(1).get_by_role("button", name="A alone").click()
    box.nth(2).get_by_role("button", name="Show me").click()
    form = page.locator("form.check:not([data-kind])").first
    form.locator("input").first.fill("204")
    form.get_by_role("button").click()
    assert form.locator("output").inner_text() == "✓ Right."
    again = visit(RANK, context=page.context)
    again.wait_for_function(
        "document.querySelector('form.check:not([data-kind]) input').value === '204'"
    )
    assert again.locator("form.check:not([data-kind]) output").first.inner_text() == "✓ Right."
    over = visit("book/guesses.html", context=page.context)
    place = over.locator("#guesses-kept")
    assert place.locator("li").count() == 3
    assert "1 right and 0 near, of 5 questions" in place.locator("p").inner_text()
    assert "1 of" in place.locator("p").inner_text()
    assert violations(over) == []
    place.locator("li a").nth(1).click()
    over.wait_for_url("**/01-rank.html#predict-2")
    over.go_back()
    place.get_by_role("button", name="Forget all").click()
    assert place.locator("li, button").count() == 0
    assert place.inner_text().strip()
    assert over.evaluate(f"localStorage.getItem('{KEY}')") is None
    assert not any(answers(visit(RANK, context=page.context)))


QUESTION = "Which of A, B and the photograph have low rank?"
BARE = {"toString": 1, "valueOf": 1}  # cannot be written, nor made a number
STORED = [
    "nonsense", '{"01-rank": 5}',
    json.dumps({"01-rank": {"guesses": {QUESTION: {"guess": BARE, "grade": BARE}}}}),
    json.dumps({"01-rank": {"title": BARE, "asked": BARE, "exercises": BARE,
                            "guesses": {"a": {"at": BARE}}, "answers": {"b": BARE}}}),
    json.dumps({"javascript:alert(1)": {"title": "<img src=x>",
                                        "guesses": {"a": {"grade": "b", "at": 5}}}}),
]  # fmt: skip
KEEP = "if (!sessionStorage.done) {{ sessionStorage.done = 1; localStorage.setItem('{}', {}); }}"
SPOILED = """for (const name of ['getItem', 'setItem', 'removeItem']) {{
  const own = Storage.prototype[name];
  Storage.prototype[name] = function (key, ...more) {{
    if (key.startsWith("lowrank")) {};
    return own.call(this, key, ...more);
  }};
}}"""
BROKEN = {
    "throws": SPOILED.format("throw Error()"),
    "full": SPOILED.format("throw new DOMException('full', 'QuotaExceededError')").replace(
        "'getItem', ", ""
    ),
    "missing": "Object.defineProperty(window, 'localStorage', { configurable: true, "
    "get() { throw Error(); } })",
    **{f"garbage {i}": KEEP.format(KEY, json.dumps(text)) for i, text in enumerate(STORED)},
}


@pytest.mark.parametrize("what", BROKEN)
def test_storage_fails(visit, what):
    page = visit(RANK, BROKEN[what])
    box = page.locator(".predict").nth(2)
    by_keys(box)
    page.wait_for_function("document.querySelectorAll('.predict')[2].matches('.answered')")
    if what.startswith("garbage"):
        assert "predict-3" in page.evaluate(f"localStorage.getItem('{KEY}')"), (
            "the page keeps what is guessed now"
        )
    over = visit("book/guesses.html", context=page.context)
    assert over.locator("#guesses-kept").inner_text().strip()
    assert over.locator("#guesses-kept img").count() == 0
    if over.get_by_role("button", name="Forget all").count():
        over.get_by_role("button", name="Forget all").click()
        assert over.locator("#guesses-kept li").count() == 0


@each_chapter
def test_each_question_has_its_answer(readers, path):
    page = readers["light"].open(address_of(path))
    boxes = page.locator(".predict")
    assert boxes.count() == path.read_text(encoding="utf-8").count("\ndraw_first(")
    assert boxes.evaluate_all(
        "(all) => all.every((e) => e.querySelector('.answer').textContent.trim().length > 40)"
    )
    then = page.locator("figure[data-name=draw_first]").evaluate_all(
        """(figures) => Promise.all(figures.map(async (figure) => {
          await figure.instrument.set({ shown: true });
          return figure.closest(".predict").matches(".answered");
        }))"""
    )
    assert all(then)
    page.locator("figure[data-name=draw_first]").evaluate_all(
        "(all) => Promise.all(all.map((figure) => figure.instrument.set({ shown: false })))"
    )


def test_without_scripts_and_on_paper(visit):
    page = visit(RANK, java_script_enabled=False)
    assert page.locator(".predict > .answer").first.is_visible()
    page = visit(RANK)
    assert not any(answers(page))
    page.emulate_media(media="print")
    assert all(answers(page))
