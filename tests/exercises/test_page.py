"""The fields of a page say what the package says, and read the numbers of many countries."""

import pytest

from lowrank_tutor.exercises import check, register
from lowrank_tutor.exercises.answers import page_form
from lowrank_tutor.exercises.judge import numbers_of
from lowrank_tutor.exercises.own import question_named
from lowrank_tutor.exercises.questions import QUESTIONS
from lowrank_tutor.page import asset

# As Enter does it, for one answer after the other: a text for each field.
SUBMIT = """
([name, answers]) => answers.map((texts) => {
  const form = document.querySelector(`form[data-name="${name}"]`), inputs = [...form.querySelectorAll("input")];
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
        page.set_content(f"<html lang=en><body>{page_form(name, question_named(name))}</body></html>")
        return page.evaluate(SUBMIT, [name, answers])

    yield submit
    assert problems == []
    page.close()


@pytest.fixture(scope="module")
def readings(browser):
    page = browser.new_page()
    source = asset("exercises/numbers.js")
    code = f"(texts) => {{ {source}\nreturn texts.map((t) => readings(t).map(String)) }}"
    yield lambda texts: page.evaluate(code, texts)
    page.close()


def answers_to(question):
    """Answers of every kind: right, common, any, in another order, rounded too early, and each number alone."""
    right = numbers_of(question.right)
    yield from (right, right[::-1], (-123.0,) * len(right))
    yield from (numbers_of(wrong) for wrong, _ in question.hints)
    for i, one in enumerate(right):
        others = [float(f"{one:.{digits}e}") for digits in range(3)] + [1.015 * one, 1.04 * one, one + 0.5]
        for other in (..., -123.0, *others, *(numbers_of(wrong)[i] for wrong, _ in question.hints)):
            yield (*right[:i], other, *right[i + 1 :])


@pytest.mark.parametrize("name", QUESTIONS)
def test_field_and_package_agree(submit, name):
    question = QUESTIONS[name]
    given = [answer for answer in answers_to(question) if answer != (...,)]
    said = submit(name, [["" if one is ... else repr(one) for one in answer] for answer in given])
    for answer, (words, marks) in zip(given, said, strict=True):
        assert words == repr(check(name, list(answer))), answer
        assert marks == [said is None for said in question.judge([None if a is ... else a for a in answer])]
    for words, _ in submit(name, [[text] * len(question.numbers) for text in ["two", "1 + 1", "1/0", "1..2", "1 2"]]):
        assert "rite one number" in words


NUMBERS = {  # the reading of an English page comes first
    "4,223": ["4223", "4.223"], "4.223": ["4.223", "4223"], "-35,598": ["-35598", "-35.598"], "1,5": ["1.5"],
    "0,5": ["0.5"], "0,500": ["0.5"], ",5": ["0.5"], "5,": ["5"], "1.234,5": ["1234.5"], "1,234.5": ["1234.5"],
    "1 234,5": ["1234.5"], "1\u202f234,5": ["1234.5"], "1'234.5": ["1234.5"], "1,234,567": ["1234567"],
    "1.234.567,8": ["1234567.8"], "1,23,456": [], "1,234,": [], "12.5 %": ["0.125"], "1 / 2": ["0.5"],
    "(1/2)": ["0.5"], "2,5/0,5": ["5"], "1/0": [], "1 2": [], "1..2": [], "1 + 1": [], "two": [], "0x10": [],
    "Infinity": [], "1e400": [], "": [], "-": [], "\u22123.5": ["-3.5"], "\u20134": ["-4"], "- 4": ["-4"],
    "1\u20442": ["0.5"], "3 - 4": [], "7,7\u00b710^8": ["770000000"], "5 \u00b7 10^(-1)": ["0.5"], "10^5": ["100000"],
    "-10**5": ["-100000"], "2.04 x 10^2": ["204"], "1e30": [str(10**30)], str(10**30 + 1): [str(10**30 + 1)],
    "9007199254740993": ["9007199254740993"], "1" * 100_000 + "x": [],
}  # fmt: skip


def test_readings(readings):
    assert dict(zip(NUMBERS, readings(list(NUMBERS)), strict=True)) == NUMBERS


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("ex-rank-projection", ["1/2", "0.5", "0,5", "50%", " .5 ", "+0.5", "5e-1", "5*10^-1"]),
        ("ex-rank-tenth", ["204", "204.0", "2.04e2", "2,04 x 10^2"]),
        ("ex-svd-hand", ["1,618 | 0,618"]),
        ("ex-svd-center", ["35,598", "35.598", "35 598", "35598,0", "35\u00a0598", "3.56*10**4"]),
        ("ex-bilinear-million", ["7.69*10^8 | 4.92 \u00d7 10^10 | 6.4e7", "768.589.824 | 49,216,049,152 | 6,4*10^7"]),
        ("ex-attention-hand", ["4,223 | 4,836 | 4 | 4,0"]),
        ("ex-attention-derive", ["0,865 | 7,389 | 63,6"]),
    ],
)
def test_right_answers_of_many_countries(submit, name, typed):
    said = submit(name, [text.split(" | ") for text in typed])
    assert {text: words for text, (words, _) in zip(typed, said, strict=True)} == dict.fromkeys(typed, "✓ Right.")


@pytest.mark.parametrize(
    ("name", "typed", "words"),
    [
        ("ex-svd-center", "33,913", "That is the singular value of the constant alone."),
        ("ex-svd-center", "33.913", "That is the singular value of the constant alone."),
        ("ex-attention-length", "9,8 | 1,340", "The second factor is the other way round"),
        ("ex-attention-hand", "2,880 | 4,84 | 4 | 4", "The first key is minus ln 2"),
    ],
)
def test_likelier_reading(submit, name, typed, words):
    ((said, _),) = submit(name, [typed.split(" | ")])
    assert words in said


@pytest.mark.parametrize(
    ("right", "typed"),
    [
        (1e-12, {"1e-12": True, "0": False, "9e-10": False}),
        (2**53 + 1, {"9007199254740993": True, "9,007,199,254,740,993": True, "9007199254740992": False}),
        (10**30 + 1, {str(10**30 + 1): True, str(10**30): False, "1e30": False, "10^30": False}),
        (10**30, {"1e30": True, "10^30": True, str(10**30 + 1): False, "1e31": False}),
        (3, {"3.0": True, "3.001": False}),
    ],
)
def test_field_with_large_numbers(monkeypatch, submit, right, typed):
    monkeypatch.setattr("lowrank_tutor.exercises.own.OWN", {})
    register("ex-own", "a", right, otherwise="Think.", hints={2**60: "No."})
    said = submit("ex-own", [[text] for text in typed])
    assert {text: words == "✓ Right." for text, (words, _) in zip(typed, said, strict=True)} == typed
    assert submit("ex-own", [[str(2**60)], [str(2**60 + 1)]])[0][0] == "○ Not yet. No."
