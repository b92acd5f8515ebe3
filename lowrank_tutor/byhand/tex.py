r"""Write numbers and matrices in LaTeX that no Markdown parser changes.

So ``\cr`` ends a row, because plain CommonMark halves the usual two backslashes; no command is a
backslash and a punctuation mark; no subscript follows a brace; each formula is one line.
"""

from decimal import Decimal
from typing import Any

import sympy
from sympy import Matrix, Rational


def tex_matrix(matrix: Matrix, *, decimals: bool = False) -> str:
    """Write a matrix, exactly or in decimals."""
    write = _rounded if decimals else tex_number
    rows = [" & ".join(write(entry) for entry in matrix[row, :]) for row in range(matrix.rows)]
    return r"\begin{pmatrix} " + _apart(rows, r"\Big") + r" \end{pmatrix}"


def _apart(rows: list[str], height: str) -> str:
    r"""Join rows; an invisible parenthesis keeps rows of fractions from nearly touching."""
    # Behind the last entry: before a minus it would make that a difference.
    strut = rf" \vphantom{{{height}(}}"
    return r" \cr ".join(row + strut if r"\frac" in row and len(rows) > 1 else row for row in rows)


def _rounded(number: Any) -> str:
    value = number.evalf(50)  # a sum of 12 products of long numbers has at most 42 digits above 1
    return "0.000" if abs(value) < Rational(1, 10**4) else f"{Decimal(str(value)):z.3f}"


def tex_lines(*equations: tuple[str, str], nearly: tuple[str, str] | None = None) -> str:
    r"""Write equations, as pairs of sides, one below the other, and an approximate one last."""
    rows = [f"{left} &= {right}" for left, right in equations]
    if nearly:
        rows.append(rf"{nearly[0]} &\approx {nearly[1]}")
    return r"\begin{aligned} " + _apart(rows, r"\Bigg") + r" \end{aligned}"


def tex_number(number: Any) -> str:
    """Write a number."""
    text: str = sympy.latex(number, order="none")  # 3/2 + √5/2, in this order
    return text


def tex_factor(number: Any) -> str:
    """Write a number as a factor.

    It is in parentheses unless it is a whole number or a root, and positive.
    """
    text = tex_number(number)
    return (
        rf"\left( {text} \right)"
        if number < 0 or number.is_Add or (number.is_Rational and number.q != 1)
        else text
    )


def tex_dot(row: Matrix, column: Matrix) -> str:
    """Write a sum of products, entry by entry."""
    return " + ".join(
        rf"{tex_factor(left)} \cdot {tex_factor(right)}"
        for left, right in zip(row, column, strict=True)
    )


def tex_product(name: str, left: Matrix, right: Matrix, product: Matrix) -> str:
    """Write a product: its factors, and its value below them."""
    return tex_lines((name, f"{tex_matrix(left)} {tex_matrix(right)}"), ("", tex_matrix(product)))
