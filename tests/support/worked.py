"""Draw input for worked examples, read their printed formulas, and check their form."""

import functools
import itertools
import re
from fractions import Fraction

import numpy as np
import sympy
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from sympy import Matrix, Rational
from sympy.parsing.sympy_parser import implicit_multiplication as implicit
from sympy.parsing.sympy_parser import parse_expr, standard_transformations

small_rationals = st.builds(Fraction, st.integers(-9, 9), st.integers(1, 5))
small_integers = st.integers(-4, 4)
up_to_five, sides = st.integers(1, 5), st.integers(1, 4)


def matrices(rows=up_to_five, columns=up_to_five, entries=small_rationals):
    """Draw small rational matrices, a good share of them with dependent rows."""

    def build(shape):
        m, n = shape
        row = st.lists(entries, min_size=n, max_size=n)
        free = st.lists(row, min_size=m, max_size=m)
        repeated = st.builds(
            lambda one, scales: [[scale * entry for entry in one] for scale in scales],
            row,
            st.lists(st.integers(-2, 2), min_size=m, max_size=m),
        )
        return st.one_of(free, repeated)

    return st.tuples(rows, columns).flatmap(build)


def as_floats(matrix):
    return np.array(sympy.Matrix(matrix).evalf(30).tolist(), dtype=float)


def assert_equal_to_60_digits(left, right):
    assert all(numerically_zero(entry) for entry in Matrix([left]) - Matrix([right]))


def numerically_zero(number):
    return abs(number.evalf(80, maxn=400)) < sympy.Float("1e-60")


@functools.cache
def read_number(latex):
    """Read the number that a printed formula stands for."""
    if plain := re.fullmatch(
        r"(- ?)?(?:(\d+)|\\frac\{(\d+)\}\{(\d+)\})", latex
    ):  # most are: the parser is slow
        sign, whole, above, below = plain.groups()
        return (-1 if sign else 1) * Rational(int(whole or above), int(below or 1))
    text = latex
    while r"\frac{" in text:  # the innermost fraction first
        start = text.rindex(r"\frac{")
        depth = list(
            itertools.accumulate({"{": 1, "}": -1}.get(character, 0) for character in text[start:])
        )
        middle = start + depth.index(0, depth.index(1))
        end = start + depth.index(0, middle - start + 2)
        over, under = text[start + 6 : middle], text[middle + 2 : end]
        text = f"{text[:start]}(({over})/({under})){text[end + 1 :]}"
    for printed, meant in (
        (r"\left", ""),
        (r"\right", ""),
        (r"\cdot", "*"),
        (r"\sqrt", "sqrt"),
        (r"\lambda", "t"),
        ("^", "**"),
    ):
        text = text.replace(printed, meant)
    return parse_expr(
        text.replace("{", "(").replace("}", ")"),
        transformations=(*standard_transformations, implicit),
    )


def without_struts(latex):
    """Remove from a formula what only holds rows apart."""
    return re.sub(r" \\vphantom\{\\Bigg?\(\}", "", latex)


def read_matrices(latex):
    bodies = re.findall(r"\\begin\{pmatrix\} (.*?) \\end\{pmatrix\}", without_struts(latex))
    return [
        Matrix([[read_number(x) for x in row.split(" & ")] for row in body.split(r" \cr ")])
        for body in bodies
    ]


def check_markdown(worked):
    markdown = worked._repr_markdown_()
    tokens = MarkdownIt().use(dollarmath_plugin).parse(markdown)
    assert [token.type for token in tokens] == [
        "paragraph_open",
        "inline",
        "paragraph_close",
        "math_block",
    ] * len(worked.steps)
    for number, step in enumerate(worked.steps, start=1):
        sentence, formula = tokens[4 * number - 3], tokens[4 * number - 1]
        assert sentence.content == f"**{number}.** {step.text}"
        begin, *rest = [
            child.type for child in sentence.children if child.type != "text" or child.content
        ]
        assert [begin, *rest[:2]] == ["strong_open", "text", "strong_close"]
        assert set(rest[2:]) <= {"text", "math_inline"}
        assert rest.count("math_inline") == step.text.count("$") / 2, "each letter is typeset"
        assert formula.content == step.latex


def check_commonmark(worked):
    tokens = MarkdownIt("commonmark").parse(worked._repr_markdown_())
    for number, step in enumerate(worked.steps, start=1):
        *_, sentence = tokens[6 * number - 5].children  # no emphasis, no link, no lost backslash
        assert sentence.content == f" {step.text}"
        (text,) = tokens[6 * number - 2].children
        assert text.content == f"$${step.latex}$$"


def check_formulas(worked):
    known = set(
        "begin end cr frac sqrt left right cdot top qquad approx lambda sigma Sigma bar pm det "
        "lVert rVert operatorname vphantom Big Bigg".split()
    )
    for step in worked.steps:
        assert "\n" not in step.latex
        assert "$" not in step.latex + step.plain
        assert "\\\\" not in step.latex
        depth = list(
            itertools.accumulate({"{": 1, "}": -1}.get(character, 0) for character in step.latex)
        )
        assert depth[-1] == 0
        assert min(depth) >= 0
        assert set(re.findall(r"\\([a-zA-Z]+|.)", step.latex)) <= known
        opened, closed = (
            re.findall(rf"\\{side}\{{(\w+)\}}", step.latex) for side in ("begin", "end")
        )
        assert sorted(opened) == sorted(closed)
        assert step.latex.count(r"\left(") == step.latex.count(r"\right)")
        assert step.text.endswith(".")
        assert not re.search(r"[\\`*_<>\[\]{}^]", step.plain)
        words = re.sub(r"\$.*?\$", "", step.text)
        assert not re.search(r"\b(?!A(?!\w))[B-Zb-z]\b|[ᵀ²√λσ]|[A-Za-z]\d", words), (
            "a letter that is not typeset"
        )


def check_terminal(worked):
    shown = str(worked)
    assert repr(worked) == shown
    assert [line for line in shown.splitlines() if re.match(r"\d+\. ", line)] == [
        f"{number}. {step.plain}" for number, step in enumerate(worked.steps, start=1)
    ]


def read_lines(latex):
    """Split aligned equations into lines, each as (left, relation, right)."""
    latex = without_struts(latex)
    body = latex.removeprefix(r"\begin{aligned} ").removesuffix(r" \end{aligned}")
    assert len(body) + len(r"\begin{aligned}  \end{aligned}") == len(latex)
    hidden = re.sub(
        r"\\begin\{pmatrix\}.*?\\end\{pmatrix\}",
        lambda m: m[0].replace("&", "@").replace("cr", "#"),
        body,
    )
    lines = [
        re.fullmatch(r"(.*?) ?&(=|\\approx) (.*)", line).groups() for line in hidden.split(r" \cr ")
    ]
    return [tuple(part.replace("@", "&").replace(r"\#", r"\cr") for part in line) for line in lines]


def ends(latex):
    """Return the right sides of aligned equations."""
    return [right for _, _, right in read_lines(latex)]


def plain_product(left, right):
    """Multiply by loops over fractions."""
    return [
        [
            sum(x * y for x, y in zip(row, column, strict=True))
            for column in zip(*right, strict=True)
        ]
        for row in left
    ]


def fractions(a):
    return [[Fraction(str(entry)) for entry in row] for row in Matrix(a).tolist()]


def check_worked(worked):
    """Check the form of a worked example in Markdown, in TeX and in a terminal."""
    check_markdown(worked)
    check_commonmark(worked)
    check_formulas(worked)
    check_terminal(worked)
