r"""Work through one step of NMF number by number: new factors, and an error that never rises.

Chapter ``book/03-family.md``; readers import ``nmf_update`` from ``lowrank_tutor.byhand``. Letters: X is approximated
by C F, all non-negative, and a prime marks an updated factor.
"""

from typing import Any, NamedTuple

from sympy import Matrix

from lowrank_tutor.byhand.exact import as_exact_matrix, check_length
from lowrank_tutor.byhand.tex import tex_factor, tex_lines, tex_matrix, tex_number, tex_product, tex_squares
from lowrank_tutor.byhand.worked import Step, Worked


class NonnegativeFactors(NamedTuple):
    """Hold non-negative factors of a matrix, x ~ c f: ``c`` (n, k) and ``f`` (k, d)."""

    c: Matrix
    f: Matrix


def nmf_update(x: Any, c: Any, f: Any) -> Worked:
    r"""Improve non-negative factors once by the multiplicative rule, F first and then C with the new F.

    $F_{aj} \leftarrow F_{aj} (C^\top X)_{aj} / (C^\top C F)_{aj}$, then
    $C_{ia} \leftarrow C_{ia} (X F^\top)_{ia} / (C F F^\top)_{ia}$ (Lee and Seung, 2001, *Algorithms for non-negative
    matrix factorization*, theorem 1). No entry becomes negative, and one that is zero stays zero. The squared error
    never rises. Where a denominator is zero, the entry stays as it is: either the entry itself is zero, or it is only
    ever multiplied by zeros, so that the product does not change.

    The values of the steps: the squared error; the numerators and the denominators of F (k, d); the new F; the error
    with it; the numerators and the denominators of C (n, k); the new C; the error with both. The result is
    ``NonnegativeFactors(c, f)``, both new.

    Parameters
    ----------
    x : (n, d) exact numbers
        The matrix, non-negative.
    c : (n, k) exact numbers
        How much of each part a row contains, non-negative.
    f : (k, d) exact numbers
        The parts, non-negative.

    Examples
    --------
    >>> worked = nmf_update([[0, 2], [0, 3], [3, 1]], c=[[1, 1]] * 3, f=[[1, 2], [0, 2]])
    >>> print(*(step.plain for step in worked.steps[::4]), sep="\n")
    Multiply C by F, and add up the squares of what is left of X. This is the squared error, 20.
    With the new F the squared error falls from 20 to 8.
    With both new factors the squared error falls from 8 to 95/18.
    >>> worked.result.f, worked.result.c
    (Matrix([
    [1, 1],
    [0, 1]]), Matrix([
    [2/3,   1],
    [  1, 3/2],
    [4/3, 1/2]]))
    """
    matrix, left, right = _read_factors(x, c, f)  # (n, d), (n, k), (k, d)
    new_right = _multiplied(right, left.T * matrix, left.T * left * right)
    new_left = _multiplied(left, matrix * new_right.T, left * (new_right * new_right.T))
    before = _squared_error(matrix, left, right)
    between = _squared_error(matrix, left, new_right)
    after = _squared_error(matrix, new_left, new_right)
    opening = "Multiply $C$ by $F$, and add up the squares of what is left of $X$. This is the squared error"
    steps = (
        _error_step(f"{opening}, {before}.", "C F", matrix, left, right),
        *_steps_for_f(matrix, left, right, new_right),
        _error_step(f"With the new $F$ the squared error {_change(before, between)}.", "C F'", matrix, left, new_right),
        *_steps_for_c(matrix, left, new_right, new_left),
        _error_step(
            f"With both new factors the squared error {_change(between, after)}.", "C' F'", matrix, new_left, new_right
        ),
    )
    return Worked(steps, NonnegativeFactors(new_left, new_right))


def _read_factors(x: Any, c: Any, f: Any) -> tuple[Matrix, Matrix, Matrix]:
    matrix, left, right = _nonnegative("x", x), _nonnegative("c", c), _nonnegative("f", f)
    if left.rows != matrix.rows:
        raise ValueError(f"c must have a row for each row of x, got shapes {left.shape} and {matrix.shape}")
    if right.cols != matrix.cols:
        raise ValueError(f"f must have a column for each column of x, got shapes {right.shape} and {matrix.shape}")
    if left.cols != right.rows:
        raise ValueError(f"c must have a column for each row of f, got shapes {left.shape} and {right.shape}")
    return matrix, left, right


def _nonnegative(name: str, value: Any) -> Matrix:
    matrix = as_exact_matrix(name, value)
    for row in range(matrix.rows):
        for column in range(matrix.cols):
            if matrix[row, column] < 0:
                raise ValueError(f"{name}[{row}][{column}] must be at least 0, got {matrix[row, column]}")
    return matrix


def _multiplied(factor: Matrix, numerators: Matrix, denominators: Matrix) -> Matrix:
    """Multiply each entry by its fraction; keep it if the denominator is zero."""

    def entry(row: int, column: int) -> Any:
        below = denominators[row, column]
        return factor[row, column] if below == 0 else factor[row, column] * numerators[row, column] / below

    return Matrix(*factor.shape, entry)


def _squared_error(matrix: Matrix, left: Matrix, right: Matrix) -> Any:
    error = sum(entry**2 for entry in matrix - left * right)
    check_length("x, c and f", error)
    return error


def _change(before: Any, after: Any) -> str:
    return f"stays {after}" if before == after else f"falls from {before} to {after}"


def _error_step(sentence: str, name: str, matrix: Matrix, left: Matrix, right: Matrix) -> Step:
    product = left * right
    rest = matrix - product
    error = _squared_error(matrix, left, right)
    lines = tex_lines(
        (name, f"{tex_matrix(left)} {tex_matrix(right)} = {tex_matrix(product)}"),
        (f"X - {name}", tex_matrix(rest)),
        (rf"\lVert X - {name} \rVert^2", f"{tex_squares(rest)} = {tex_number(error)}"),
    )
    return Step(sentence, lines, error)


def _steps_for_f(matrix: Matrix, left: Matrix, right: Matrix, new_right: Matrix) -> tuple[Step, Step, Step]:
    numerators, gram = left.T * matrix, left.T * left
    denominators = gram * right
    return (
        Step(
            r"Multiply $C^\top$ by $X$. These are the numerators for $F$.",
            tex_product(r"C^\top X", left.T, matrix, numerators),
            numerators,
        ),
        Step(
            r"Multiply $C^\top C$ by $F$. These are the denominators.",
            tex_lines(
                (r"C^\top C", f"{tex_matrix(left.T)} {tex_matrix(left)} = {tex_matrix(gram)}"),
                (r"C^\top C F", f"{tex_matrix(gram)} {tex_matrix(right)} = {tex_matrix(denominators)}"),
            ),
            denominators,
        ),
        _update_step("F", right, numerators, denominators, new_right),
    )


def _steps_for_c(matrix: Matrix, left: Matrix, right: Matrix, new_left: Matrix) -> tuple[Step, Step, Step]:
    numerators, gram = matrix * right.T, right * right.T
    denominators = left * gram
    return (
        Step(
            "Multiply $X$ by the transpose of the new $F$. These are the numerators for $C$.",
            tex_product(r"X F'^\top", matrix, right.T, numerators),
            numerators,
        ),
        Step(
            "Multiply $C$ by the new $F$ times its transpose. These are the denominators.",
            tex_lines(
                (r"F' F'^\top", f"{tex_matrix(right)} {tex_matrix(right.T)} = {tex_matrix(gram)}"),
                (r"C F' F'^\top", f"{tex_matrix(left)} {tex_matrix(gram)} = {tex_matrix(denominators)}"),
            ),
            denominators,
        ),
        _update_step("C", left, numerators, denominators, new_left),
    )


def _update_step(name: str, factor: Matrix, numerators: Matrix, denominators: Matrix, updated: Matrix) -> Step:
    kept = " Where the denominator is zero, the entry stays as it is." if 0 in denominators else ""
    zeros = " An entry that is zero stays zero." if 0 in factor else ""
    sentence = (
        f"Multiply each entry of ${name}$ by its numerator over its denominator.{kept}{zeros} This is the new ${name}$."
    )
    lines = []
    for row in range(factor.rows):
        for column in range(factor.cols):
            old, above, below = (m[row, column] for m in (factor, numerators, denominators))
            formula = tex_number(old)
            if below != 0:
                fraction = rf"\frac{{{tex_number(above)}}}{{{tex_number(below)}}}"
                formula = rf"{tex_factor(old)} \cdot {fraction} = {tex_number(updated[row, column])}"
            lines.append((f"{name}_{{{row + 1} {column + 1}}}'", formula))
    return Step(sentence, tex_lines(*lines, (f"{name}'", tex_matrix(updated))), updated)
