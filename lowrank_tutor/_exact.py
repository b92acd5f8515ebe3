"""What is a worked example made of? Steps, exact numbers, square roots undone exactly, and formulas.

No chapter of its own: ``byhand`` and its attention share it. Exact numbers are read and floats refused; square roots
stay exact; formulas are LaTeX that every reader of Markdown leaves alone.
"""

import math
import numbers
import re
import reprlib
import textwrap
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import sympy
from sympy import Matrix, Rational, sqrt

# Nobody works a larger example by hand, and its steps would fill the page.
MAX_SIDE = 12
MAX_DIGITS = 20

# Worked examples.


class Step(NamedTuple):
    """One step of a worked example: a sentence, its formula, and what the step established.

    Attributes
    ----------
    text : str
        The sentence, in plain words without mark-up.
    latex : str
        The formula, without dollar signs.
    value : object
        The exact SymPy object that the formula ends in (decimals aside), for the next step and for tests.
    """

    text: str
    latex: str
    value: Any


class Worked(NamedTuple):
    """A worked example: its steps in order, and the result.

    Examples
    --------
    >>> from lowrank_tutor.byhand import project
    >>> print(project([[1, 0, 0]], [2, 4, 6]))
    1. Multiply row 1 of W with x, entry by entry, and add.
    2
    2. Collect the entries.
       [2]
    3. W is 1 by 3, of rank 1 (full). It turns 3 numbers into 1, so it cannot be applied twice: a compression map, not a
       projection (that needs P² = P).
       1
    """

    steps: tuple[Step, ...]
    result: Any

    def _repr_markdown_(self) -> str:
        # No lists: every reader of Markdown treats an indented $$ block in its own way. One line a formula, so that no
        # line can be mistaken for the underline of a heading.
        return "\n\n".join(f"**{i}.** {step.text}\n\n$${step.latex}$$" for i, step in enumerate(self.steps, start=1))

    def __str__(self) -> str:
        return "\n".join(f"{i}. {step.text}\n{plain_text(step.value)}" for i, step in enumerate(self.steps, start=1))

    def __repr__(self) -> str:
        return str(self)


def saving(few: int, many: int) -> str:
    """Say what ``few`` saves against ``many``."""
    if few == many:
        return "which saves nothing"
    return f"which saves {many - few}" if few < many else f"which costs {few - many} more"


# Input.


def as_exact_matrix(name: str, value: Any, *, vector_allowed: bool = False) -> Matrix:
    """Read a matrix of exact numbers; with ``vector_allowed`` a flat list is one column."""
    rows = _unpack(value)
    if not _is_list(rows):
        raise TypeError(f"{name} must be a list of rows of exact numbers, got {_short(value)}")
    rows = [_unpack(row) for row in rows]
    if vector_allowed and rows and not any(_is_list(row) for row in rows):
        rows = [[entry] for entry in rows]
    if not rows or any(_is_list(row) and not row for row in rows):
        raise ValueError(f"{name} must have at least one row and one column, got {_short(value)}")
    if not all(_is_list(row) for row in rows) or any(_is_list(entry) for row in rows for entry in row):
        axes = "1 or 2 axes" if vector_allowed else "2 axes, a list of rows"
        raise ValueError(f"{name} must have {axes}, got {_short(value)}")
    lengths = [len(row) for row in rows]
    if len(set(lengths)) > 1:
        raise ValueError(f"{name} must have rows of one length, got lengths {_short(lengths)}")
    if max(len(rows), lengths[0]) > MAX_SIDE:
        raise ValueError(
            f"{name} must be small enough to work by hand, at most {MAX_SIDE} rows and columns, "
            f"got shape {(len(rows), lengths[0])}"
        )
    return Matrix(
        [[as_exact_number(f"{name}[{i}][{j}]", entry) for j, entry in enumerate(row)] for i, row in enumerate(rows)]
    )


def as_exact_number(name: str, value: Any) -> Any:
    """Read one exact number as a SymPy rational, or refuse it and say how to write it."""
    rule = 'a number given exactly (an integer, a Fraction, or a string such as "1/3")'
    if isinstance(value, str):
        if not re.fullmatch(r"\s*[+-]?(\d+(/\d+)?|\d*\.\d+|\d+\.)\s*", value, re.ASCII) or len(value) > 3 * MAX_DIGITS:
            raise ValueError(f"{name} must be {rule}, got {_short(value)}")
        try:
            value = Fraction(value)
        except ZeroDivisionError:
            raise ValueError(f"{name} must have a denominator other than zero, got {_short(value)}") from None
    if isinstance(value, bool) or not isinstance(value, numbers.Real | sympy.Number):
        raise TypeError(f"{name} must be {rule}, got {_short(value)}")
    if value != value or abs(value) == math.inf or value is sympy.nan:
        raise ValueError(f"{name} must be finite, got {value}")
    if not isinstance(value, numbers.Rational):
        raise TypeError(f"{name} must be {rule}, got the float {value}; write {_as_fraction(str(value))}")
    number = Rational(int(value.numerator), int(value.denominator))
    if max(abs(number.p), number.q) >= 10**MAX_DIGITS:
        raise ValueError(f"{name} must have at most {MAX_DIGITS} digits above and below the fraction bar, got more")
    return number


def _as_fraction(number: str) -> str:
    fraction = Fraction(number)
    if max(abs(fraction.numerator), fraction.denominator) >= 10**MAX_DIGITS:
        return "it as a Fraction"
    return str(fraction) if fraction.denominator == 1 else f"Fraction({fraction.numerator}, {fraction.denominator})"


def _unpack(value: Any) -> Any:
    """Turn NumPy arrays and SymPy matrices into lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _short(value: Any) -> str:
    return reprlib.repr(value)


# Square roots. Before it takes any, svd_2x2 meets only numbers x + y√D, with rational x, y and one fixed D. Keeping
# to that form is what makes it fast and exact; a general simplifier is neither.


def _sign(number: Any) -> int:
    """Sign of x + y√D, decided by rational arithmetic."""
    rational, rest = number.as_coeff_Add()
    y_sign = int(sympy.sign(rest.as_coeff_Mul()[0]))
    if rational == 0 or rational * y_sign > 0:
        return y_sign
    return int(sympy.sign(rational)) if rational**2 > sympy.expand(rest**2) else y_sign


def square_root(number: Any) -> Any:
    """Square root of x + y√D >= 0, as √a ± √b with rational a and b where that exists.

    It exists where n = √(x² - y²D) is rational: then a, b = (x ± n)/2.
    """
    rational, rest = number.as_coeff_Add()
    norm = sqrt(rational**2 - sympy.expand(rest**2))
    if not norm.is_Rational:
        return sqrt(number)
    return sqrt((rational + norm) / 2) + _sign(rest) * sqrt((rational - norm) / 2)


def eigenvectors(gram: Matrix, eigenvalues: tuple[Any, Any]) -> list[Matrix]:
    """Find an eigenvector of a symmetric 2 by 2 matrix for each eigenvalue; the axes where every direction is one."""
    if gram[0, 1] == 0:
        axes = [Matrix([1, 0]), Matrix([0, 1])]
        return axes if gram[0, 0] >= gram[1, 1] else axes[::-1]
    slopes = [sympy.expand((eigenvalue - gram[0, 0]) / gram[0, 1]) for eigenvalue in eigenvalues]
    return [without_common_factor(Matrix([1, slope])) for slope in slopes]


def unit_vector(vector: Matrix) -> Matrix:
    """Divide a vector of numbers x + y√D by its length."""
    squares = vector.applyfunc(lambda entry: sympy.expand(entry**2))
    length = sympy.expand(sum(squares))
    return Matrix(
        [
            _sign(sympy.expand(entry)) * square_root(sympy.expand(sympy.radsimp(square / length)))
            for entry, square in zip(vector, squares, strict=True)
        ]
    )


def perpendicular(unit: Matrix) -> Matrix:
    """Turn a unit vector by a right angle; its first non-zero entry is positive."""
    turned = Matrix([-unit[1], unit[0]])
    return turned * next(_sign(entry) for entry in turned if entry != 0)


def svd_layer(eigenvalue: Any, left: Matrix, right: Matrix) -> Matrix:
    """Multiply out √λ u vᵀ. Each entry is again x + y√D, found from its square."""

    def entry(row: int, column: int) -> Any:
        square = sympy.expand(eigenvalue * sympy.expand(left[row] ** 2) * sympy.expand(right[column] ** 2))
        return _sign(left[row]) * _sign(right[column]) * square_root(square)

    return Matrix(2, 2, entry)


def without_common_factor(vector: Matrix) -> Matrix:
    """Scale a rational vector to whole numbers without a common divisor, the first non-zero one positive."""
    if not all(entry.is_Rational for entry in vector):
        return vector
    whole = vector * math.lcm(*(entry.q for entry in vector))
    lead = next(entry for entry in whole if entry != 0)
    return whole / (math.gcd(*(int(entry) for entry in whole)) * sympy.sign(lead))


# Formulas. They keep to what every reader of Markdown leaves alone: \cr ends a row, because plain CommonMark halves the
# usual two backslashes; no command is a backslash and a sign; no subscript follows a brace; each formula is one line.


def tex_matrix(matrix: Matrix, *, decimals: bool = False) -> str:
    """Write a matrix, exactly or in decimals."""
    write = _rounded if decimals else tex_number
    rows = [" & ".join(write(entry) for entry in matrix[row, :]) for row in range(matrix.rows)]
    return r"\begin{pmatrix} " + r" \cr ".join(rows) + r" \end{pmatrix}"


def _rounded(number: Any) -> str:
    value = number.evalf(50)  # 42 digits above 1 are the most that a sum of 12 products of long numbers can have
    return "0.000" if abs(value) < Rational(1, 10**4) else f"{Decimal(str(value)):z.3f}"


def tex_lines(*equations: tuple[str, str], nearly: tuple[str, str] | None = None) -> str:
    r"""Write equations, given as left and right sides, one below the other; below them one that holds nearly."""
    rows = [f"{left} &= {right}" for left, right in equations]
    if nearly:
        rows.append(rf"{nearly[0]} &\approx {nearly[1]}")
    return r"\begin{aligned} " + r" \cr ".join(rows) + r" \end{aligned}"


def tex_number(number: Any) -> str:
    """Write a number."""
    text: str = sympy.latex(number, order="none")  # 3/2 + √5/2, in this order
    return text


def tex_factor(number: Any) -> str:
    """Write a number as a factor: in parentheses unless it is a whole number or a root, and positive."""
    text = tex_number(number)
    return rf"\left( {text} \right)" if number < 0 or number.is_Add or (number.is_Rational and number.q != 1) else text


def tex_dot(row: Matrix, column: Matrix) -> str:
    """Write a sum of products, entry by entry."""
    return " + ".join(rf"{tex_factor(left)} \cdot {tex_factor(right)}" for left, right in zip(row, column, strict=True))


def plain_text(value: Any) -> str:
    """Write a value for a terminal, indented."""
    order = None if getattr(value, "free_symbols", None) else "none"
    text: str = sympy.pretty(value, order=order, use_unicode=True, wrap_line=False)
    return textwrap.indent(text.replace("\N{SCRIPT SMALL E}", "e"), "   ")
