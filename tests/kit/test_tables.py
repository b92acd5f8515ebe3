"""Tables and numbers as people write them."""

import numpy as np
import pytest
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.substitution import substitution_plugin

from lowrank_tutor.kit.tables import number, table


def test_table():
    made = table(
        {"n": [10, np.int64(2000)], "share": [0.125, np.float64(1 / 3)], "map": ["a", "b"]},
        {"share": ".1%"},
    )
    assert made.rows == (("10", "12.5%", "a"), ("2,000", "33.3%", "b"))
    assert made.right == (True, True, False)
    assert table({"x": [0.123456, 12.3456]}).rows == (("0.123",), ("12.3",))
    assert table({"x": [None, 0.5]}, {"x": ".0%"}) == (("x",), (("",), ("50%",)), (True,))


@pytest.mark.parametrize(
    ("value", "form", "words"),
    [
        (2.34e-7, ".1e", "2.3 · 10⁻⁷"),
        (np.float64(-6e12), ".3g", "\u22126 · 10¹²"),
        (0.0, ".0e", "0"),
        (-0.0, ".3g", "0"),
        (-1e-9, ".0%", "0%"),
        (0.00123, ".2g", "0.0012"),
        (0.5, ".1%", "50.0%"),
    ],
)
def test_number(value, form, words):
    assert number(value, form) == words.replace(" ", "\u202f")
    assert table({"x": [value]}, {"x": form}).rows == ((number(value, form),),)


def test_markdown_and_text():
    made = table({"k": [1, 100], "word": ["one", "hundred"]})
    assert (
        made._repr_markdown_() == "| k | word |\n|  ---: | :---  |\n| 1 | one |\n| 100 | hundred |"
    )
    assert repr(made) == "  k  word\n  1  one\n100  hundred"


HOSTILE = (
    "<script>1</script>",
    "a|b",
    "cost $5 and $6",
    "a*b*c",
    "_x_ `y` ~z~",
    "[a](b)",
    "&amp;",
    "one\ntwo",
    "\\|",
)
HOSTILE += ("\\(x\\)", "{{x}}")


@pytest.mark.parametrize("preset", ["commonmark", "gfm-like"])
def test_words_are_escaped(preset):
    parser = MarkdownIt(preset, {"html": True, "linkify": False}).enable("table")
    parser.use(dollarmath_plugin).use(substitution_plugin)  # a book may have both
    made = table({"name": HOSTILE, HOSTILE[1]: range(len(HOSTILE))})
    tokens = [token for token in parser.parse(made._repr_markdown_()) if token.type == "inline"]
    parts = [part for token in tokens for part in token.children]
    assert {part.type for part in parts} <= {"text", "text_special", "html_inline"}
    marks = {part.content for part in parts if part.type == "html_inline"}
    assert marks == {"<span>", "</span>"}
    shown = [
        "".join(part.content for part in token.children if part.type != "html_inline")
        for token in tokens
    ]
    cells = [*made.header, *(cell for row in made.rows for cell in row)]
    assert shown == [cell.replace("\n", " ") for cell in cells]


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"^columns must be at least one and equally long, got "):
        table({"a": [1], "b": [1, 2]})
    with pytest.raises(ValueError, match=r"^formats must be by names of columns, k, got \['n'\]$"):
        table({"k": [1]}, {"n": ","})
