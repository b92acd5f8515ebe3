"""The checks of the exercises: right answers pass, common wrong ones get their hint, bad input is
refused.
"""

import re
from fractions import Fraction

import numpy as np
import pytest
import sympy
from chapters import CHAPTERS

from lowrank_tutor.course.answers import QUESTIONS
from lowrank_tutor.kit.environment import PAGE_VARIABLE
from lowrank_tutor.kit.questions import check, register
from lowrank_tutor.kit.questions.judge import COUNTED

each_question = pytest.mark.parametrize("name", QUESTIONS)
HINTS = [
    (name, wrong, words) for name, question in QUESTIONS.items() for wrong, words in question.hints
]


def test_questions_match_exercises():
    texts = [path.read_text(encoding="utf-8") for path in CHAPTERS]
    labels = [
        label
        for text in texts
        for label in re.findall(r"^```\{exercise\}.*\n:label: (\S+)", text, re.M)
    ]
    assert labels == list(QUESTIONS), "a question for each exercise, in the order of the book"


@each_question
def test_right_answers(name):
    question = QUESTIONS[name]
    right = question.right if len(question.right) > 1 else question.right[0]
    as_asked = [
        n.right if n.whole else float(f"{n.right:.{max(n.digits, 3) - 1}e}")
        for n in question.numbers
    ]
    for form in (
        right,
        np.array(right),
        np.float64(right) if np.isscalar(right) else list(right),
        as_asked,
    ):
        assert check(name, form), form
        assert repr(check(name, form)) == "✓ Right."


@pytest.mark.parametrize(("name", "wrong", "words"), HINTS)
def test_hints(name, wrong, words):
    assert not check(name, wrong)
    assert f"ot yet. {words}" in repr(check(name, wrong))
    assert not re.search(r"[$\\{}]", words), "a hint is shown as plain text"
    for number, one in zip(QUESTIONS[name].numbers, wrong, strict=True):
        assert one == number.right or not number.accepts(float(f"{one:.{number.digits - 1}e}")), (
            number
        )
    assert QUESTIONS[name].unreachable() is None


@each_question
def test_other_answers(name):
    numbers = QUESTIONS[name].numbers
    verdict = check(name, [-123.0 - i for i in range(len(numbers))])
    assert not verdict
    assert repr(verdict).splitlines()[0].endswith(f"ot yet. {QUESTIONS[name].otherwise}")
    too_many = check(name, [*(number.right for number in numbers), 1.0])
    assert not too_many
    asked = "one number: " if len(numbers) == 1 else f"a list of {COUNTED[len(numbers)]} numbers: "
    assert repr(too_many).startswith(f"○ Not yet. Give {asked}{numbers[0].name} (")


NEAR = "not yet. You are near: give three digits, and round only at the end."


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        # rounded too early, or not at all
        (
            "ex-jl-orthogonal",
            [0, 0.05, 0.05],
            "○ Share beyond 0.1: not yet. You are near: give two digits, and round",
        ),
        (
            "ex-linformer-crossover",
            [303.7, 137.7],
            "for D = 512: not yet. The answer is a whole number",
        ),
        (
            "ex-bilinear-million",
            [7.9e8, 4.92e10, 6.4e7],
            "You are near, but not within 2%. Round only at the end.",
        ),
        # too far off for that
        (
            "ex-rank-tenth",
            204.8,
            "A rank is a whole number: round down.",
        ),  # a hint of its own goes first
        ("ex-family-axis", [1.5, 4, 6, 1], "Invert the scatter"),  # this solution rounds nothing
        ("ex-svd-hand", [1.69, 0.618], "They are the square roots of the eigenvalues"),  # 4% off
        # several hints are near
        ("ex-family-axis", [1, 4, 2.0, 1], "That is the ratio along the first coordinate."),
        # the right numbers in another order; a hint of its own goes first
        (
            "ex-rank-build",
            [16, 20],
            "○ Not yet. These are the right numbers, but in another order.",
        ),
        ("ex-svd-hand", [0.618, 1.618], "another order."),
        # a hint that explains two numbers is said once
        (
            "ex-attention-hand",
            [2.88, 3.24, 4, ...],
            "one half.\n○ Softmax, output for 2: not yet.\n✓ Linear, output for",
        ),
    ],
)
def test_verdicts(name, answer, words):
    assert words in repr(check(name, answer))


NO_NUMBERS = [True, "2", None, 2j, [1, None], sympy.Symbol("x"), [1, [2, 3]], {1: 2}, 10**400]


@pytest.mark.parametrize(
    ("name", "answers", "error", "words"),
    [
        (
            "ex-rank-tenth",
            NO_NUMBERS,
            TypeError,
            "answer must be a finite number or a list of them, got ",
        ),
        ("ex-rank-tenth", [np.nan, [-np.inf]], ValueError, "answer must be finite, got "),
        ("ex-rank", [2, ...], ValueError, r"name must be one of ex-rank-tenth, .*, got 'ex-rank'"),
    ],
)
def test_bad_answers(name, answers, error, words):
    for answer in answers:
        with pytest.raises(error, match=f"^{words}"):
            check(name, answer)


@pytest.mark.parametrize("nothing", [..., [...], [...] * 9, []])
def test_no_answer(nothing):
    assert repr(check("ex-rank-projection", nothing)).startswith(
        "Put your answer in place of the dots"
    )


def test_dots(monkeypatch):
    monkeypatch.setenv(PAGE_VARIABLE, "0")
    verdict = check("ex-rank-projection", ...)
    assert not verdict
    assert verdict._repr_html_() is None
    monkeypatch.setenv(PAGE_VARIABLE, "1")
    assert (
        check("ex-rank-projection", ...)
        ._repr_html_()
        .startswith('<form class="check" data-name="ex-rank-projection"')
    )
    assert check("ex-rank-projection", 1 / 2)._repr_html_() is None


@pytest.fixture
def own(monkeypatch):
    """Register a question that is forgotten after the test."""
    monkeypatch.setattr("lowrank_tutor.kit.questions.exercises.QUESTIONS", QUESTIONS.copy())
    given = {"name": "ex-own", "ask": "a", "right": 1, "otherwise": "Think."}
    return lambda **more: register(**given | more)


def test_arrays_and_hints(own):
    own(right=np.float64(0.5))
    forms = (Fraction(1, 2), sympy.Rational(1, 2), [0.5], np.float32(0.5), np.array([[0.5]]))
    assert all(check("ex-own", form) for form in forms)
    hints = {(np.int64(1), 3.02): "Not three.", (1, 3.0): "Not quite three."}
    own(right=np.array([1, 2.5]), ask=["a", "b"], hints=hints, digits=np.int64(2), note="As 1.5.")
    assert check("ex-own", np.array([1, 2.5]))
    assert "Not three." in repr(check("ex-own", [5, 3.02])), "the nearest of two"


REFUSED = "hints must be answers that are refused, each apart from the others, got "


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"right": "a"}, "right must be a finite number or a list of them, got 'a'"),
        ({"right": [1, 2]}, "right must have a number for each name in ask, 1, got [1, 2]"),
        ({"ask": ["a"] * 10}, "ask must name 1 to 9 numbers, got "),
        ({"hints": {"a": "No."}}, "hints must be a finite number or a list of them, got 'a'"),
        ({"within": 1}, "within must be at least 0 and below 1, got 1"),
        ({"digits": 10}, "digits must be between 1 and 9, got 10"),
        ({"name": "Mine"}, "name must be lower-case words joined by hyphens, got 'Mine'"),
        ({"hints": {1: "No."}}, f"{REFUSED}(1,)"),
        ({"within": 0.06, "right": 100, "hints": {95: "No."}}, REFUSED),
    ],
)
def test_bad_questions(own, wrong, words):
    with pytest.raises((TypeError, ValueError), match="^" + re.escape(words)):
        own(**wrong)
    with pytest.raises(ValueError, match="name must be one of"):
        check("ex-own", 1)
