r"""Work through half a step of alternating least squares (ALS) number by number: the rows of a table with gaps.

Chapter ``book/03-family.md``; readers import ``als_half_step`` from ``lowrank_tutor.byhand``. Letters: X holds ratings,
with gaps, and is estimated by $C F$; $x_i$ holds the known ratings of row i, and $F_i$ their columns of F.
"""

from typing import Any, NamedTuple

import sympy
from sympy import Matrix

from lowrank_tutor.byhand.exact import as_exact_matrix, as_exact_number, check_length
from lowrank_tutor.byhand.tex import tex_factor, tex_lines, tex_matrix, tex_number, tex_squares
from lowrank_tutor.byhand.worked import Step, Worked


def als_half_step(ratings: Any, f: Any, regularization: Any = 0) -> Worked:
    r"""Fit each row of a table with gaps by least squares over its known entries: half a step of ALS.

    For row i, $c_i$ minimizes $\sum_j (x_{ij} - c_i^\top f_j)^2 + \mu \|c_i\|^2$ over the known entries j. Collect
    these in $x_i$, and their columns of F in $F_i$; the answer solves the normal equations
    $(F_i F_i^\top + \mu I)\, c_i = F_i x_i$. The other half of the step does the same for F, column by column
    (Koren, Bell and Volinsky, 2009, doi:10.1109/MC.2009.263).

    The values of the steps: the table, with NaN for ``None``; for each row its normal equations, a pair of a matrix (k,
    k) and a vector (k, 1), and their solution (k, 1), or one step of NaN for a row without known ratings; the estimates
    $C F$ (n, m). The result is C (n, k). A row without known ratings is NaN, never zero, even with regularization: zero
    would be an estimate.

    Parameters
    ----------
    ratings : (n, m) exact numbers, or None
        The table; ``None`` where a rating is not known. At least one is.
    f : (k, m) exact numbers
        A column of factors for each column of the table.
    regularization : exact number
        $\mu$, at least 0. It must be above 0 where the known ratings of a row leave more than one solution.

    Examples
    --------
    >>> ratings = [[2, 3, 2], [3, None, 5], [None, None, None]]
    >>> worked = als_half_step(ratings, f=[[1, 0, 1], [0, 1, 1]])
    >>> worked.result
    Matrix([
    [  1,   2],
    [  3,   2],
    [nan, nan]])
    >>> print(worked.steps[-1].plain)
    Multiply C by F. This estimates every rating in the known rows. The squared error over the 5 known ratings is 3.
    """
    table, factors, penalty = _read_table(ratings, f, regularization)  # (n, m), (k, m)
    steps, rows = [_table_step(table, factors)], []
    for number in range(1, table.rows + 1):
        fit = _fit_row(number, table[number - 1, :], factors, penalty)
        steps += _unknown_row_steps(number, factors.rows) if fit is None else _row_steps(fit, penalty)
        rows.append(steps[-1].value.T)
    found = Matrix.vstack(*rows)  # (n, k)
    return Worked((*steps, _estimate_step(table, found, factors)), found)


def _read_table(ratings: Any, f: Any, regularization: Any) -> tuple[Matrix, Matrix, Any]:
    """Read the three arguments; a gap in the table becomes NaN."""
    table, factors = as_exact_matrix("ratings", ratings, gaps_allowed=True), as_exact_matrix("f", f)
    penalty = as_exact_number("regularization", regularization)
    if factors.cols != table.cols:
        raise ValueError(
            f"f must have a column for each column of ratings, got shapes {factors.shape} and {table.shape}"
        )
    if penalty < 0:
        raise ValueError(f"regularization must be at least 0, got {penalty}")
    if all(entry is sympy.nan for entry in table):
        raise ValueError("ratings must hold at least one known entry, got none")
    return table, factors, penalty


class _RowFit(NamedTuple):
    """Hold the normal equations of one row of C, and their solution."""

    number: int  # of the row
    known: list[int]  # columns with a rating, counted from 0
    factors: Matrix  # their columns of F
    ratings: Matrix
    gram: Matrix
    matrix: Matrix  # the gram matrix, with the penalty along its diagonal
    right: Matrix
    inverse: Matrix
    solution: Matrix


def _fit_row(number: int, ratings: Matrix, factors: Matrix, penalty: Any) -> _RowFit | None:
    """Solve the normal equations of one row; a row without ratings has none."""
    known = [column for column, rating in enumerate(ratings) if rating is not sympy.nan]
    if not known:
        return None
    k = factors.rows
    mine, wanted = factors.extract(list(range(k)), known), ratings.extract([0], known).T
    gram, right = mine * mine.T, mine * wanted
    matrix = gram + penalty * sympy.eye(k)
    if matrix.det() == 0:
        raise ValueError(
            f"regularization must be above 0 where a row has more than one solution, got {penalty}: row {number} of "
            f"ratings has known entries of rank {mine.rank()} in f, for k = {k}"
        )
    inverse = matrix.inv()
    check_length("ratings and f", *inverse)
    return _RowFit(number, known, mine, wanted, gram, matrix, right, inverse, inverse * right)


def _table_step(table: Matrix, factors: Matrix) -> Step:
    gaps = "" if sympy.nan not in table else " A question mark stands for a rating that is not known."
    lines = tex_lines(("X", _tex_table(table)), ("F", tex_matrix(factors)))
    return Step(f"Start from the ratings $X$ and the factors $F$ of their columns.{gaps}", lines, table)


def _unknown_row_steps(number: int, k: int) -> list[Step]:
    unknown = sympy.ones(k, 1) * sympy.nan
    sentence = f"Row {number} has no known rating. Its row of $C$ is NaN (not a number): zero would be an estimate."
    return [Step(sentence, f"c_{{{number}}} = {_tex(unknown)}", unknown)]


def _row_steps(fit: _RowFit, penalty: Any) -> list[Step]:
    i, columns = fit.number, [str(column + 1) for column in fit.known]
    where = f"column {columns[0]}" if len(columns) == 1 else f"columns {', '.join(columns[:-1])} and {columns[-1]}"
    take = "this column" if len(columns) == 1 else "these columns"
    added = "" if penalty == 0 else f", with {penalty} added along the diagonal"
    sentence = f"Row {i} has known ratings in {where}. Take {take} of $F$ for the normal equations{added}."

    gram, right = rf"F_{{{i}}} F_{{{i}}}^\top", f"F_{{{i}}} x_{{{i}}}"
    penalized = rf"{gram} + {tex_factor(penalty)} I"
    equations = tex_lines(
        (f"F_{{{i}}}", tex_matrix(fit.factors)),
        (f"x_{{{i}}}", tex_matrix(fit.ratings)),
        (gram, tex_matrix(fit.gram)),
        *([] if penalty == 0 else [(penalized, tex_matrix(fit.matrix))]),
        (right, tex_matrix(fit.right)),
    )
    left = gram if penalty == 0 else rf"\left( {penalized} \right)"
    solution = tex_lines(
        (f"{left} c_{{{i}}}", right),
        (f"{tex_matrix(fit.matrix)} c_{{{i}}}", tex_matrix(fit.right)),
        (f"c_{{{i}}}", f"{tex_matrix(fit.inverse)} {tex_matrix(fit.right)} = {tex_matrix(fit.solution)}"),
    )
    return [
        Step(sentence, equations, (fit.matrix, fit.right)),
        Step(f"Solve them. This is row {i} of $C$.", solution, fit.solution),
    ]


def _estimate_step(table: Matrix, found: Matrix, factors: Matrix) -> Step:
    estimates = found * factors
    misses = [entry - guess for entry, guess in zip(table, estimates, strict=True) if entry is not sympy.nan]
    error = sum(miss**2 for miss in misses)
    check_length("ratings and f", error)
    which = "every rating" if sympy.nan not in found else "every rating in the known rows"
    counted = "the known rating" if len(misses) == 1 else f"the {len(misses)} known ratings"
    lines = tex_lines(
        ("C F", f"{_tex(found)} {tex_matrix(factors)}"),
        ("", _tex(estimates)),
        (r"\text{squared error}", f"{tex_squares(misses)} = {tex_number(error)}"),
    )
    sentence = f"Multiply $C$ by $F$. This estimates {which}. The squared error over {counted} is {error}."
    return Step(sentence, lines, estimates)


def _tex(matrix: Matrix) -> str:
    return tex_matrix(matrix).replace(r"\text{NaN}", r"\operatorname{NaN}")


def _tex_table(table: Matrix) -> str:
    return tex_matrix(table).replace(r"\text{NaN}", "?")
