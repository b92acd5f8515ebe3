"""The fields of a page say what the package says, and read the numbers of many countries."""

import math

import pytest

from lowrank_tutor.course.answers import QUESTIONS
from lowrank_tutor.kit.block import asset
from lowrank_tutor.kit.questions import check, exercises, register

# As Enter does it, for one answer after the other: a text for each field.
SUBMIT = """
([name, answers]) => answers.map((texts) => {
  const form = document.querySelector(`form[data-name="${name}"]`),
    inputs = [...form.querySelectorAll("input")];
  inputs.forEach((input, i) => (input.value = texts[i]));
  form.requestSubmit();
  const lines = [...form.querySelectorAll("output > span")].map((line) => line.textContent);
  return [lines.join("\\n"), inputs.map((input) => input.getAttribute("aria-invalid") === "false")];
})
"""


@pytest.fixture(scope="module")
def submit(browser):
    """Submit many answers, each a text for each field, to a form alone on its page."""
    page = browser.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))

    def submit(name, answers):
        form = exercises.answer_form(name, exercises.QUESTIONS[name])
        page.set_content(f"<html lang=en><body>{form.to_html()}</body></html>")
        return page.evaluate(SUBMIT, [name, answers])

    yield submit
    assert problems == []
    page.close()


@pytest.fixture(scope="module")
def readings(browser):
    page = browser.new_page()
    source = asset("kit/questions/numbers.js")
    code = f"(texts) => {{ {source}\nreturn texts.map((t) => readings(t).map(String)) }}"
    yield lambda texts: page.evaluate(code, texts)
    page.close()


def answers_to(question):
    """Answers of every kind: right, common, any, in another order, rounded too early, and each
    number alone.
    """
    right = question.right
    yield from (right, right[::-1], (-123.0,) * len(right))
    yield from (tuple(factor * one for one in right) for factor in (-1, 2, 0.5, 0.3333, 0))
    yield from (wrong for wrong, _ in question.hints)
    for i, one in enumerate(right):
        for other in (..., -123.0, float(f"{one:.1e}"), 1.015 * one, one + 0.5):
            yield (*right[:i], other, *right[i + 1 :])


@pytest.mark.parametrize("name", QUESTIONS)
def test_field_and_package_agree(submit, name):
    question = QUESTIONS[name]
    right = question.right
    given = [answer for answer in answers_to(question) if answer != (...,)]
    said = submit(name, [["" if one is ... else repr(one) for one in answer] for answer in given])
    for answer, (words, marks) in zip(given, said, strict=True):
        assert words == repr(check(name, list(answer))), answer
        judged = zip(
            question.parts, question.judge([None if a is ... else a for a in answer]), strict=True
        )
        assert marks == [hint is None for (_, part), hint in judged for _ in right[part]]
    for words, _ in submit(
        name, [[text] * len(question.numbers) for text in ["two", "1 + 1", "1/0", "1..2", "1 2"]]
    ):
        assert "rite one number" in words


NUMBERS = {  # the reading of an English page comes first
    "4,223": ["4223", "4.223"], "4.223": ["4.223", "4223"], "-35,598": ["-35598", "-35.598"],
    "1,5": ["1.5"],
    "0,500": ["0.5"], ",5": ["0.5"], "5,": ["5"], "1.234,5": ["1234.5"], "1,234.5": ["1234.5"],
    "1\u202f234,5": ["1234.5"], "1'234.5": ["1234.5"], "1,234,567": ["1234567"],
    "1.234.567,8": ["1234567.8"], "1,23,456": [], "1,234,": [], "12.5 %": ["0.125"],
    "1 / 2": ["0.5"],
    "(1/2)": ["0.5"], "2,5/0,5": ["5"], "1/0": [], "1 2": [], "1..2": [], "1 + 1": [], "two": [],
    "0x10": [],
    "Infinity": [], "1e400": [], "": [], "-": [], "\u22123.5": ["-3.5"], "\u20134": ["-4"],
    "- 4": ["-4"],
    "1\u20442": ["0.5"], "3 - 4": [], "7,7\u00b710^8": ["770000000"], "5 \u00b7 10^(-1)": ["0.5"],
    "10^5": ["100000"],
    "-10**5": ["-100000"], "2.04 x 10^2": ["204"], "1e30": ["1e+30"], "1" * 100_000 + "x": [],
    "√(20/245)": ["0.2857142857142857"], "sqrt(6.25)": ["2.5"], "-√9": ["-3"], "√(-4)": [], "√": [],
}  # fmt: skip


def test_readings(readings):
    assert dict(zip(NUMBERS, readings(list(NUMBERS)), strict=True)) == NUMBERS


# For each question what both judges say: of a number or list, typed as Python writes it, or of
# (what is typed, the same for the package).
# The page; the package refuses what is no number, and waits for one where none is.
ASKED = "one number, such as 0.5"
OTHER, RIGHT, ORDER = (
    "○ Not yet. Think.",
    "✓ Right.",
    "○ Not yet. These are the right numbers, but in another order.",
)
NEAR, MISSING = (
    "○ Not yet. You are near: give three digits, and round only at the end.",
    "○ Not yet. A number is still missing.",
)
HALF, FOUR, HUGE, LENGTH, SIGN, ZERO = (
    f"○ Not yet. {hint}." for hint in ("Half", "Four", "Huge", "Length", "Sign", "Zero")
)
BORDERS = [
    ({"right": 3, "hints": {4: "Four.", 2.5: "Half.", 1e30: "Huge."}}, {
        RIGHT: [3, 3.0, 3.0000000001, ("  3\u00a0", 3), ("6/2", 6 / 2)],
        OTHER: [3.00000001, 2.52, 0, 1e-320, 1e31, ("\u22123", -3)],
        HALF: [2.5, 2.51], FOUR: [4], HUGE: [10**30],
        ASKED: [
            ("", ...), ("NaN", math.nan), ("-Infinity", -math.inf), ("1e400", 10**400),
            ("-", None), ("3 three", "3 three"), ("(3, 4)", [[3, 4], 5]), ("true", True),
        ],
    }),
    ({"right": 0.0, "within": 0.05}, {RIGHT: [0, -0.0, 1e-9], OTHER: [1.1e-9, 1]}),
    ({"right": 100, "within": 0.05}, {RIGHT: [105, 95.0, ("9,500%", 95)], OTHER: [105.1, 94]}),
    ({"right": 0.618}, {
        RIGHT: [0.617, 0.619, ("0,618", 0.618), ("61.8%", 0.618)],
        NEAR: [0.6169, 0.6], OTHER: [0.59, 0, 1],
    }),
    ({"right": 1e-322}, {RIGHT: [1e-322], OTHER: [1e-10, 0]}),
    ({"ask": ["a", "b"], "right": [2**53, 2**53 - 1]}, {
        RIGHT: [[2**53, 2**53 - 1]], ORDER: [[2**53 - 1, 2**53]],
        "○ a: not yet. Think.\n○ b: not yet.": [[5, 6]],
        "✓ a: right.\n○ b: still empty.": [[2**53, ...]],
        "○ a: still empty.\n○ b: not yet. Think.": [[..., 5]],
        ASKED: [[..., ...], [math.nan, 5], ("x|5", ["x", 5]), ("5|1/0", [5, math.inf])],
    }),
    ({"ask": ["a", "b", "c"], "right": [3, 0, -4], "direction": True,
      "hints": {(6, 0, -8): "Length.", (3, 0, 4): "Sign.", (0, 0, 0): "Zero."}}, {
        RIGHT: [[3, 0, -4], [3.0, -0.0, -4.0]], ORDER: [[-4, 0, 3], [0, 3, -4]], ZERO: [[0, 0, 0]],
        LENGTH: [
            [-3, 0, 4], [3e300, 0, -4e300], [3e-320, 0, -4e-320],
            ("3/7|0|-.571", [3 / 7, 0, -0.571]),
        ],
        SIGN: [[-15, 0, -20], [0.6, 0, 0.8]], MISSING: [[3, 0, ...], [..., ..., 5]],
        ASKED: [[3, math.inf, -4]],
        OTHER: [[3, 1, -4], [30, 0, -41], [3, 0, 0], [1e300, 1e-300, 0]],
    }),
    ({"ask": ["a", "b"], "right": [0.6, 0.8], "hints": {(1.2, 1.6): "Length."}, "direction": True},
     {
        RIGHT: [[0.6, 0.8], [0.601, 0.799]], LENGTH: [[3, 4], [0.06, 0.08]], NEAR: [[0.59, 0.79]],
        ORDER: [[0.8, 0.6]], OTHER: [[30, 41], [0.6, 0.7], [0.6, 80]],
    }),
]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "replies"), BORDERS, ids=[str(asked["right"]) for asked, _ in BORDERS]
)
def test_borders(monkeypatch, submit, asked, replies):
    monkeypatch.setattr(exercises, "QUESTIONS", QUESTIONS.copy())
    register("ex-own", **{"ask": "a", "otherwise": "Think.", **asked})
    for wanted, row in replies.items():
        for entry in row:
            numbers = entry if isinstance(entry, list) else [entry]
            plain = "|".join("" if one is ... else repr(one) for one in numbers)
            typed, given = entry if isinstance(entry, tuple) else (plain, entry)
            ((words, marks),) = submit("ex-own", [typed.split("|")])
            try:
                said = repr(check("ex-own", given))
            except (TypeError, ValueError) as error:
                said = str(error)
            if wanted == ASKED:
                assert ASKED in words, typed
                assert said.startswith(("answer must be ", "Put your answer ")), given
            else:
                assert (words, said) == (wanted, wanted), entry
            assert not asked.get("direction") or set(marks) == {wanted == RIGHT}, entry
