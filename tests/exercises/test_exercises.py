"""The checks of the exercises: right answers pass, common wrong ones get their hint, and all else is refused."""

import re
from fractions import Fraction

import numpy as np
import pytest
import sympy
from chapters import CHAPTERS

from lowrank_tutor.exercises import check, register
from lowrank_tutor.exercises.questions import COUNTED, QUESTIONS, numbers_of
from lowrank_tutor.sphinxext import PAGE_VARIABLE

each_question = pytest.mark.parametrize("name", QUESTIONS)
HINTS = [(name, wrong, words) for name, question in QUESTIONS.items() for wrong, words in question.hints]


@each_question
def test_right_answers(name):
    question = QUESTIONS[name]
    right, numbers = question.right, question.numbers
    rounded = [n.right if n.whole else float(f"{n.right:.{max(n.digits, 3) - 1}e}") for n in numbers]
    for form in (right, np.array(right), np.float64(right) if np.isscalar(right) else list(right), rounded):
        assert repr(check(name, form)) == "✓ Right.", form
    exact = [float(number.right) for number in numbers]
    for i, number in enumerate(numbers):
        for sign in (-1, 1):  # the tolerance is kept on both sides
            near, off = list(exact), list(exact)
            near[i] += sign * 0.98 * number.slack(number.right)
            off[i] += sign * (1.02 * number.slack(number.right) or 1e-6)
            assert check(name, near), near
            assert not check(name, off), off


@pytest.mark.parametrize(
    ("name", "i", "rule", "slack"),
    [
        ("ex-rank-hand", 0, "a whole number", 0),
        ("ex-svd-hand", 0, "to 3 digits", 0.01),  # 1.62
        ("ex-svd-hand", 1, "to 3 digits", 0.001),  # 0.618
        ("ex-jl-orthogonal", 0, "to 2 digits", 0.01),  # 0
        ("ex-svd-noise", 0, "a whole number", 0),  # 5% of zero is zero
        ("ex-svd-noise", 1, "within 5%", 25.4),
        ("ex-jl-twice", 0, "within 1%", 5.94126154),
    ],
)
def test_rules(name, i, rule, slack):
    number = QUESTIONS[name].numbers[i]
    assert number.rule == rule
    assert number.slack(number.right) == pytest.approx(slack)
    assert f"{number.name} ({rule})" in repr(check(name, ...))


@pytest.mark.parametrize(("name", "wrong", "words"), HINTS)
def test_hints(name, wrong, words):
    verdict = check(name, wrong)
    assert not verdict
    assert f"ot yet. {words}" in repr(verdict)
    for number, one in zip(QUESTIONS[name].numbers, numbers_of(wrong), strict=True):
        assert one == number.right or not number.accepts(one), number
        assert one == number.right or not number.accepts(float(f"{one:.{number.digits - 1}e}")), number
    assert QUESTIONS[name].unreachable() is None


@each_question
def test_other_answers(name):
    question = QUESTIONS[name]
    numbers = question.numbers
    first, *_ = repr(check(name, [-123.0] * len(numbers))).splitlines()
    assert first.endswith(f"ot yet. {question.otherwise}")
    too_many = repr(check(name, [*(number.right for number in numbers), 1.0]))
    asked = "Give one number: " if len(numbers) == 1 else f"Give a list of {COUNTED[len(numbers)]} numbers: "
    assert too_many.startswith(f"○ Not yet. {asked}{numbers[0].name} (")
    for i, wanted in enumerate(numbers if len(numbers) > 1 else ()):  # each number is judged alone
        given = [number.right for number in numbers]
        for missing, said in ((..., "still empty."), (-123.0, "not yet. ")):
            given[i] = missing
            lines = repr(check(name, given)).splitlines()
            assert lines.pop(i).startswith(f"○ {wanted.name}: {said}")
            assert lines == [f"✓ {n.name}: right." for n in numbers if n is not wanted]


def test_hint_is_said_once():
    assert repr(check("ex-attention-hand", [2.88, 3.24, 4, ...])).splitlines() == [
        "○ Softmax, output for 1: not yet. The first key is minus ln 2, and its exponential is one half.",
        "○ Softmax, output for 2: not yet.",
        "✓ Linear, output for 1: right.",
        "○ Linear, output for 2: still empty.",
    ]


HINTED = [
    # Rounded too early is no misconception,
    ("ex-linformer-half", [0.7, 0.902, 1], "norm rule, as a multiple of c: not yet. You are near: give three"),
    ("ex-linformer-half", [0.7071, 0.9, 1], "norm rule, as a multiple of c: not yet. You are near: give three digits,"),
    ("ex-jl-orthogonal", [0, 0.05, 0.05], "○ Share beyond 0.1: not yet. You are near: give two digits, and round"),
    ("ex-svd-hand", [1.6, 0.618], "○ The larger singular value: not yet. You are near: give three digits,"),
    ("ex-svd-hand", [2, 0.618], "○ The larger singular value: not yet. You are near: give three digits,"),
    ("ex-linformer-crossover", [303.7, 137.7], "saves for D = 512: not yet. The answer is a wh"),
    (
        "ex-bilinear-million",
        [7.9e8, 4.92e10, 6.4e7],
        "not yet. You are near, but not within 2%. Round only at the end.",
    ),
    # but a number further off is.
    ("ex-linformer-half", [0.65, 0.902, 1], "Four of eight tokens are real."),
    ("ex-linformer-crossover", [302.9, 138], "Set the operations of the two layers equal"),
    ("ex-rank-tenth", 204.8, "A rank is a whole number: round down."),  # a hint of its own goes first
    ("ex-bilinear-million", [8.2e8, 4.92e10, 6.4e7], "Us depends on the query alone"),
    ("ex-family-axis", [1.5, 4, 2, 1], "Invert the scatter"),  # this solution rounds nothing
    ("ex-family-cloud", 0.826, "PCA keeps two of ten directions."),  # 8% off
    # A mistake gets the hint of no other,
    ("ex-svd-tail", [0.302, 2.236, 3], "That is the Frobenius norm of what is cut."),
    ("ex-svd-center", 33_913, "That is the singular value of the constant alone."),
    ("ex-svd-center", 33_984, "Squares add up where two layers are orthogonal."),  # though near the one above
    ("ex-svd-center", 36_106, "Norms add up where two layers are parallel."),
    ("ex-family-axis", [-1, -4, 2, 1], "An axis has no sign"),
    ("ex-family-axis", [0.5, 2, 2, 1], "The direction is right. Multiply by 2"),
    ("ex-family-multiply", [2, 3, 7, 2], "without a factor of one half"),
    ("ex-bilinear-million", [768_589_824, 768_098_304, 6.4e7], "That is another order"),
    ("ex-bilinear-penalty", [2, 1.41, 1.41, 2], "The cut lowers nothing"),
    ("ex-attention-polynomial", [7, 28], "After degree 6 the remainder, times e, is still above 1/5000"),
    ("ex-caches-cache", [65536, 17.2], "A GiB has 2^30 bytes."),
    # and the right numbers in another order are called that.
    ("ex-rank-build", [16, 20], "○ Not yet. These are the right numbers, but in another order."),
    ("ex-jl-orthogonal", [0.05, 0, 0.0455], "another order."),
    ("ex-svd-hand", [0.618, 1.618], "larger one comes first"),  # a hint of its own goes first
]


@pytest.mark.parametrize(("name", "answer", "words"), HINTED)
def test_chosen_hint(name, answer, words):
    assert words in repr(check(name, answer))


def test_words_of_hints():
    for name, question in QUESTIONS.items():
        assert question.hints, name
        names = [number.name for number in question.numbers]
        assert len(set(names)) == len(names)
        assert not [one for one in names if one.endswith(":") or re.search(r"digits|within|3\.2e5", one)], (
            "the rule says it"
        )
        for words in (question.otherwise, *(words for _, words in question.hints)):
            assert words.endswith((".", "?")), words
            assert not re.search(r"[$\\{}]", words), "a hint is shown as plain text"
        assert len({words for _, words in question.hints} | {question.otherwise}) == len(question.hints) + 1, name


@pytest.mark.parametrize("half", [Fraction(1, 2), sympy.Rational(1, 2), [0.5], np.float32(0.5), np.array([[0.5]])])
def test_kinds_of_numbers(half):
    assert check("ex-rank-projection", half)


NO_NUMBERS = [
    True, "2", None, 2 + 0j, [1, None], sympy.Symbol("x"), ["a"], ["a", 1], [1, [2, 3]], [True, 2], {1: 2}, object(),
    np.ma.array(2, mask=True),
]  # fmt: skip
INFINITE = [np.nan, np.inf, [-np.inf], 10**400, [1, -(10**400)]]


@pytest.mark.parametrize(
    ("answer", "error", "rule"),
    [
        *((answer, TypeError, "a number or a list of numbers, got ") for answer in NO_NUMBERS),
        *((answer, ValueError, "finite, ") for answer in INFINITE),
    ],
)
def test_bad_answers(answer, error, rule):
    with pytest.raises(error, match=f"^answer must be {rule}"):
        check("ex-rank-hand", answer)


@pytest.mark.parametrize("answer", [2, ...])
def test_unknown_name(answer):
    with pytest.raises(ValueError, match=r"name must be one of ex-rank-hand, .*, got 'ex-rank'"):
        check("ex-rank", answer)


def test_dots_in_a_notebook(monkeypatch):
    monkeypatch.delenv(PAGE_VARIABLE, raising=False)
    verdict = check("ex-rank-hand", ...)
    assert not verdict
    assert "in place of the dots" in repr(verdict)
    assert verdict._repr_html_() is None


def test_dots_on_a_page(monkeypatch):
    monkeypatch.setenv(PAGE_VARIABLE, "1")
    form = check("ex-rank-gram", ...)._repr_html_()
    assert form.startswith('<form class="check" data-name="ex-rank-gram"')
    assert "http" not in form
    assert check("ex-rank-gram", 1)._repr_html_() is None


@pytest.fixture
def own(monkeypatch):
    """Register a question that is forgotten after the test."""
    monkeypatch.setattr("lowrank_tutor.exercises.own.OWN", {})
    return lambda right, name="ex-own", **more: register(
        name, **{"ask": "a", "right": right, "otherwise": "Think.", **more}
    )


@pytest.mark.parametrize(
    ("right", "yes", "no"),
    [
        (1e-12, [1e-12, 1.009e-12], [0, 9e-10, 1.02e-12, -1e-12]),
        (1.6e-19, [1.6e-19, 1.61e-19], [0, 1e-19, 1.62e-19]),
        (6.02e23, [6.02e23, 6.03e23], [6.04e23]),
        (2**53 + 1, [2**53 + 1], [2**53, 2.0**53, 2**53 + 2]),
        (10**30, [10**30, 1e30], [10**30 + 1, 10**30 - 1, 1.0000001e30]),
        (10**30 + 1, [10**30 + 1], [10**30, 1e30]),
        (3, [3, 3.0, 3 + 1e-12, np.float32(3)], [3.001, 2, -3]),
        (np.int64(3), [3], [4]),
        (np.float64(0.5), [0.5], [0.6]),
        (Fraction(1, 3), [1 / 3, 0.333], [0.3]),
    ],
)
def test_numbers_of_any_size(own, right, yes, no):
    own(right)
    assert [one for one in yes if not check("ex-own", one)] == []
    assert [one for one in no if check("ex-own", one)] == []


def test_register_arrays(own):
    own(np.array([1, 2]), ask=["a", "b"], hints={(np.int64(1), 3): "Not three."}, digits=np.int64(2), note="As 1.5.")
    assert check("ex-own", np.array([1, 2]))
    with pytest.raises(ValueError, match=r"got 'ex-onw' \(did you mean 'ex-own'\?\)$"):
        check("ex-onw", 3)
    assert "Not three." in repr(check("ex-own", [1, 3]))


@pytest.mark.parametrize(
    ("error", "wrong", "words"),
    [
        (TypeError, {"right": "a"}, "right must be a number or a list of numbers, got 'a'"),
        (TypeError, {"right": True}, "right must be a number or a list of numbers, got True"),
        (ValueError, {"right": np.nan}, "right must be finite, got nan"),
        (ValueError, {"right": 10**400}, "right must be finite, and below 1e308, got "),
        (ValueError, {"right": [1, 2]}, "right must have a number for each name in ask, 1, got [1, 2]"),
        (ValueError, {"right": [..., 2]}, "right must have a number for each name in ask, 1, got [Ellipsis, 2]"),
        (ValueError, {"ask": None}, "ask must name 1 to 9 numbers, got None"),
        (ValueError, {"ask": ["a"] * 10}, "ask must name 1 to 9 numbers, got "),
        (ValueError, {"ask": ["a", 2], "right": [1, 2]}, "ask must be words, got 2"),
        (ValueError, {"otherwise": " "}, "otherwise must be words, got ' '"),
        (ValueError, {"note": 5}, "note must be words, got 5"),
        (TypeError, {"hints": True}, "hints must be a dict from wrong answers to words, got True"),
        (ValueError, {"hints": {2: 5}}, "hints must hold words, got 5"),
        (TypeError, {"hints": {"a": "No."}}, "hints must be a number or a list of numbers, got 'a'"),
        (TypeError, {"within": None}, "within must be a real number, got None"),
        (ValueError, {"within": 1}, "within must be at least 0 and below 1, got 1.0"),
        (ValueError, {"digits": 2.0}, "digits must be an integer from 1 to 9, got 2.0"),
        (ValueError, {"digits": 10}, "digits must be an integer from 1 to 9, got 10"),
        (ValueError, {"name": "Mine"}, "name must be lower-case words joined by hyphens, got 'Mine'"),
        (ValueError, {"name": "ex-rank-hand"}, "name must not be that of an exercise of this book, got 'ex-rank-hand'"),
        (
            ValueError,
            {"hints": {1: "No."}},
            "hints must be answers that are refused, each apart from the others, got 1",
        ),
        (ValueError, {"within": 0.06, "right": 100, "hints": {95: "No."}}, "hints must be answers that are refused"),
        (ValueError, {"right": [1, 2], "ask": ["a", "b"], "hints": {(1, 2): "No."}}, "hints must be answers that are"),
    ],
)
def test_bad_questions(own, error, wrong, words):
    with pytest.raises(error, match="^" + re.escape(words)):
        own(**{"right": 1, **wrong})
    with pytest.raises(ValueError, match="name must be one of"):
        check("ex-own", 1)


def test_every_exercise_has_a_check():
    labels = [
        label
        for path in CHAPTERS
        for label in re.findall(r"^```\{exercise\}.*\n:label: (\S+)", path.read_text(encoding="utf-8"), re.M)
    ]
    assert labels == list(QUESTIONS), "in the order of the book"
