"""A table says what it is given: the right cell in the right place, numbers flush right, and nothing silent."""

import numpy as np
import pytest

from lowrank_tutor.tables import number, table


def test_numbers_are_written_as_asked_and_as_people_write_them():
    made = table({"n": [10, np.int64(2000)], "share": [0.125, np.float64(1 / 3)], "map": ["a", "b"]}, {"share": ".1%"})
    assert made.rows == (("10", "12.5%", "a"), ("2,000", "33.3%", "b"))
    assert made.right == (True, True, False)
    assert table({"x": [0.123456, 12.3456]}).rows == (("0.123",), ("12.3",))
    assert table({"x": [None, 0.5]}, {"x": ".0%"}) == (("x",), (("",), ("50%",)), (True,))


@pytest.mark.parametrize(
    ("value", "form", "words"),
    [
        (2.34e-7, ".1e", "2.3 · 10⁻⁷"),
        (np.float64(-6e12), ".3g", "-6 · 10¹²"),
        (0.0, ".0e", "0"),
        (0.00123, ".2g", "0.0012"),
        (0.5, ".1%", "50.0%"),
    ],
)
def test_exponents_stand_raised_and_break_no_line(value, form, words):
    assert number(value, form) == words.replace(" ", "\u202f")
    assert table({"x": [value]}, {"x": form}).rows == ((number(value, form),),)


def test_a_page_gets_a_markdown_table_and_a_terminal_straight_columns():
    made = table({"k": [1, 100], "word": ["one", "hundred"]})
    assert made._repr_markdown_() == "| k | word |\n|  ---: | :---  |\n| 1 | one |\n| 100 | hundred |"
    assert repr(made) == "  k  word\n  1  one\n100  hundred"


@pytest.mark.parametrize("columns", [{}, {"a": [1], "b": [1, 2]}])
def test_columns_of_different_lengths_and_none_at_all_are_refused(columns):
    with pytest.raises(ValueError, match=r"^columns must be at least one and equally long, got \{"):
        table(columns)
