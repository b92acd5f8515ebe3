"""The checks of the exercises: right answers pass, common wrong ones meet their hint, and nothing else is taken."""

import html
import json
import re
from fractions import Fraction

import numpy as np
import pytest
import sympy
from chapters import CHAPTERS

from lowrank_tutor.exercises import check
from lowrank_tutor.exercises.answers import page_form
from lowrank_tutor.exercises.questions import QUESTIONS, numbers_of
from lowrank_tutor.sphinxext import PAGE_VARIABLE

each_question = pytest.mark.parametrize("name", QUESTIONS)
HINTS = [(name, wrong, words) for name, question in QUESTIONS.items() for wrong, words in question.hints]


@each_question
def test_the_right_answer_is_right_in_any_form(name):
    right = QUESTIONS[name].right
    for form in (right, np.array(right), np.float64(right) if np.isscalar(right) else list(right)):
        verdict = check(name, form)
        assert verdict, form
        assert repr(verdict) == "Right."


@each_question
def test_the_tolerance_is_kept_on_both_sides(name):
    question = QUESTIONS[name]
    numbers = np.array(question.numbers, dtype=float)
    inside, outside = 0.98 * question.within, max(1.02 * question.within, 1e-6)
    for sign in (-1, 1):
        assert check(name, numbers * (1 + sign * inside))
        for i in range(len(numbers)):
            off = numbers.copy()
            off[i] += sign * outside * max(abs(off[i]), 1)  # zero must be zero
            assert not check(name, off), off


@pytest.mark.parametrize(("name", "wrong", "words"), HINTS)
def test_a_common_wrong_answer_meets_its_own_hint(name, wrong, words):
    verdict = check(name, wrong)
    assert not verdict
    assert repr(verdict) == f"Not yet. {words}"


@each_question
def test_any_other_answer_gets_a_way_to_begin(name):
    question = QUESTIONS[name]
    verdict = check(name, [-123.456] * len(question.numbers))
    assert not verdict
    assert repr(verdict) == f"Not yet. {question.otherwise}"


def test_the_right_numbers_in_another_order_are_called_that():
    assert repr(check("ex-rank-build", [16, 20])) == "Not yet. These are the right numbers, but in another order."
    assert repr(check("ex-jl-orthogonal", [0.05, 0, 0.0455])).endswith("another order.")
    assert "larger one comes first" in repr(check("ex-svd-hand", [0.618, 1.618])), "a hint of its own goes first"


@each_question
def test_too_many_numbers_are_not_cut_off(name):
    question = QUESTIONS[name]
    verdict, count = check(name, [*question.numbers, 1.0]), len(question.numbers)
    asked = "Give one number." if count == 1 else f"Give {count} numbers, in the order asked for."
    assert not verdict
    assert repr(verdict) == f"Not yet. {asked}"


def test_the_words_are_plain_and_no_hint_gives_the_answer_away():
    for name, question in QUESTIONS.items():
        assert question.hints, name
        assert question.ask.endswith(":"), name
        for words in (question.otherwise, *(words for _, words in question.hints)):
            assert words.endswith((".", "?")), words
            assert not re.search(r"[$\\{}]", words), "a hint is shown as plain text"
        assert len({words for _, words in question.hints} | {question.otherwise}) == len(question.hints) + 1


@pytest.mark.parametrize("half", [Fraction(1, 2), sympy.Rational(1, 2), [0.5], np.float32(0.5), np.array([[0.5]])])
def test_numbers_of_every_kind_are_numbers(half):
    assert check("ex-rank-projection", half)


@pytest.mark.parametrize("answer", [True, "2", None, 2 + 0j, [1, None], sympy.Symbol("x"), ["a"]])
def test_what_is_not_a_number_is_refused(answer):
    with pytest.raises(TypeError, match="answer must be a number or a list of numbers, got"):
        check("ex-rank-hand", answer)


@pytest.mark.parametrize("answer", [np.nan, np.inf, [-np.inf]])
def test_what_is_not_finite_is_refused(answer):
    with pytest.raises(ValueError, match="answer must be finite, got"):
        check("ex-rank-hand", answer)


@pytest.mark.parametrize("answer", [2, ...])
def test_an_unknown_name_is_refused(answer):
    with pytest.raises(ValueError, match=r"name must be one of ex-rank-hand, .*, got 'ex-rank'"):
        check("ex-rank", answer)


def test_dots_wait_for_an_answer(monkeypatch):
    monkeypatch.delenv(PAGE_VARIABLE, raising=False)
    verdict = check("ex-rank-hand", ...)
    assert not verdict
    assert "in place of the dots" in repr(verdict)
    assert verdict._repr_html_() is None


def test_a_page_shows_a_field_for_the_dots_alone(monkeypatch):
    monkeypatch.setenv(PAGE_VARIABLE, "1")
    form = check("ex-rank-gram", ...)._repr_html_()
    assert form.startswith('<form class="check" data-name="ex-rank-gram"')
    assert "http" not in form
    assert check("ex-rank-gram", 1)._repr_html_() is None


@each_question
def test_the_field_carries_all_that_the_check_knows(name):
    question = QUESTIONS[name]
    form = page_form(name, question)
    assert f'aria-label="Check: {html.escape(question.ask[:-1])}"' in form
    data = re.search(r'<script type="application/json">(.*?)</script>', form, re.S)[1]
    count = len(question.numbers)
    assert json.loads(data) == {
        "right": list(question.numbers),
        "within": question.within,
        "hints": [[list(numbers_of(wrong)), words] for wrong, words in question.hints],
        "otherwise": question.otherwise,
        "words": {
            "right": "Right.",
            "wrong": "Not yet.",
            "count": "Give one number." if count == 1 else f"Give {count} numbers, in the order asked for.",
            "order": "These are the right numbers, but in another order.",
        },
    }


def test_no_word_of_a_hint_can_end_the_script():
    question = QUESTIONS["ex-rank-hand"]._replace(otherwise="</script>")
    assert page_form("ex-rank-hand", question).count("</script>") == 2


def test_one_number_and_several_are_told_apart():
    assert numbers_of(2) == (2,)
    assert numbers_of((2, 3)) == (2, 3)


def test_every_exercise_of_the_book_has_a_check_and_the_other_way_round():
    labels = [
        label
        for path in CHAPTERS
        for label in re.findall(r"^```\{exercise\}.*\n:label: (\S+)", path.read_text(encoding="utf-8"), re.M)
    ]
    assert labels == list(QUESTIONS), "in the order of the book"
