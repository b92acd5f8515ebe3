r"""Work half a step of alternating least squares (ALS) number by number: the rows of a table with gaps.

Chapter ``book/03-family.md``; readers import ``als_half_step`` from ``lowrank_tutor.byhand``. Letters: R holds ratings,
with gaps, and is estimated by $P Q^\top$; $Q_i$ and $r_i$ are what is known of row i.
"""

from typing import Any, NamedTuple

import sympy
from sympy import Matrix

from lowrank_tutor.byhand.exact import as_exact_matrix, as_exact_number, check_length
from lowrank_tutor.byhand.tex import tex_factor, tex_lines, tex_matrix, tex_number, tex_squares
from lowrank_tutor.byhand.worked import Step, Worked


def als_half_step(ratings: Any, q: Any, regularization: Any = 0) -> Worked:
    r"""Fit the rows of a table with gaps, each by least squares over its known entries: half a step of ALS.

    Row i minimizes $\sum_j (r_{ij} - p_i^\top q_j)^2 + \lambda \|p_i\|^2$ over its known entries j. Collect those as
    $r_i$, and their rows of Q as $Q_i$; the answer solves the normal equations
    $(Q_i^\top Q_i + \lambda I)\, p_i = Q_i^\top r_i$. The other half of the step does the same for Q, column by column
    (Koren, Bell and Volinsky, 2009, doi:10.1109/MC.2009.263).

    Parameters
    ----------
    ratings : (n, m) exact numbers, or None
        The table; ``None`` where a rating is not known. At least one is.
    q : (m, k) exact numbers
        A row of factors for each column of the table.
    regularization : exact number
        $\lambda$, at least 0. It must be above 0 where the known ratings of a row leave more than one solution.

    Returns
    -------
    Worked
        The values of the steps: the table, with NaN for ``None``; for each row its normal equations, a pair of a matrix
        (k, k) and a vector (k, 1), and their solution (k, 1), or one step of NaN for a row of which nothing is known;
        the estimates $P Q^\top$ (n, m). The result is P (n, k). An unknown row is NaN, never zero, also under
        regularization: zero would be an estimate.

    Examples
    --------
    >>> ratings = [[2, 3, 2], [3, None, 5], [None, None, None]]
    >>> worked = als_half_step(ratings, q=[[1, 0], [0, 1], [1, 1]])
    >>> worked.result
    Matrix([
    [  1,   2],
    [  3,   2],
    [nan, nan]])
    >>> print(worked.steps[-1].plain)
    Multiply P with Qᵀ. This estimates every rating of the known rows. The squared error E over the 5 known ratings: 3.
    """
    table, factors, penalty = _read_table(ratings, q, regularization)  # (n, m), (m, k)
    steps, rows = [_table_step(table, factors)], []
    for number in range(1, table.rows + 1):
        fit = _fit_row(number, table[number - 1, :], factors, penalty)
        steps += _unknown_row_steps(number, factors.cols) if fit is None else _row_steps(fit, penalty)
        rows.append(steps[-1].value.T)
    found = Matrix.vstack(*rows)  # (n, k)
    return Worked((*steps, _estimate_step(table, found, factors)), found)


def _read_table(ratings: Any, q: Any, regularization: Any) -> tuple[Matrix, Matrix, Any]:
    """Read the three arguments; a gap of the table becomes NaN."""
    table, factors = as_exact_matrix("ratings", ratings, gaps_allowed=True), as_exact_matrix("q", q)
    penalty = as_exact_number("regularization", regularization)
    if factors.rows != table.cols:
        raise ValueError(
            f"q must have a row for each column of ratings, got q of shape {factors.shape} and ratings of {table.shape}"
        )
    if penalty < 0:
        raise ValueError(f"regularization must be at least 0, got {penalty}")
    if all(entry is sympy.nan for entry in table):
        raise ValueError("ratings must hold at least one known entry, got none")
    return table, factors, penalty


class _RowFit(NamedTuple):
    """The normal equations of one row of P, and their solution."""

    number: int  # of the row
    known: list[int]  # columns with a rating, counted from 0
    factors: Matrix  # their rows of Q
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
    k = factors.cols
    mine, wanted = factors.extract(known, list(range(k))), ratings.extract([0], known).T
    gram, right = mine.T * mine, mine.T * wanted
    matrix = gram + penalty * sympy.eye(k)
    if matrix.det() == 0:
        raise ValueError(
            f"regularization must be above 0 where a row has more than one solution, got {penalty}: row {number} of "
            f"ratings has known entries of rank {mine.rank()} in q, for k = {k}"
        )
    inverse = matrix.inv()
    check_length("ratings and q", *inverse)
    return _RowFit(number, known, mine, wanted, gram, matrix, right, inverse, inverse * right)


def _table_step(table: Matrix, factors: Matrix) -> Step:
    gaps = "" if sympy.nan not in table else " A question mark stands for a rating that is not known."
    lines = tex_lines(("R", _tex_table(table)), ("Q", tex_matrix(factors)))
    return Step(f"Start from the ratings $R$ and the factors $Q$ of their columns.{gaps}", lines, table)


def _unknown_row_steps(number: int, k: int) -> list[Step]:
    unknown = sympy.ones(k, 1) * sympy.nan
    sentence = f"Row {number} has no known rating. Its row of $P$ is not a number: zero would be an estimate."
    return [Step(sentence, f"p_{{{number}}} = {_tex(unknown)}", unknown)]


def _row_steps(fit: _RowFit, penalty: Any) -> list[Step]:
    i, columns = fit.number, [str(column + 1) for column in fit.known]
    where = f"column {columns[0]}" if len(columns) == 1 else f"columns {', '.join(columns[:-1])} and {columns[-1]}"
    take = "this row" if len(columns) == 1 else "these rows"
    added = "" if penalty == 0 else f", with {penalty} added along the diagonal"
    sentence = f"Row {i} has known ratings in {where}. Take {take} of $Q$ for the normal equations{added}."

    gram, right = rf"Q_{{{i}}}^\top Q_{{{i}}}", rf"Q_{{{i}}}^\top r_{{{i}}}"
    penalized = rf"{gram} + {tex_factor(penalty)} I"
    equations = tex_lines(
        (f"Q_{{{i}}}", tex_matrix(fit.factors)),
        (f"r_{{{i}}}", tex_matrix(fit.ratings)),
        (gram, tex_matrix(fit.gram)),
        *([] if penalty == 0 else [(penalized, tex_matrix(fit.matrix))]),
        (right, tex_matrix(fit.right)),
    )
    left = gram if penalty == 0 else rf"\left( {penalized} \right)"
    solution = tex_lines(
        (f"{left} p_{{{i}}}", right),
        (f"{tex_matrix(fit.matrix)} p_{{{i}}}", tex_matrix(fit.right)),
        (f"p_{{{i}}}", f"{tex_matrix(fit.inverse)} {tex_matrix(fit.right)} = {tex_matrix(fit.solution)}"),
    )
    return [
        Step(sentence, equations, (fit.matrix, fit.right)),
        Step(f"Solve them. This is row {i} of $P$.", solution, fit.solution),
    ]


def _estimate_step(table: Matrix, found: Matrix, factors: Matrix) -> Step:
    estimates = found * factors.T
    misses = [entry - guess for entry, guess in zip(table, estimates, strict=True) if entry is not sympy.nan]
    error = sum(miss**2 for miss in misses)
    check_length("ratings and q", error)
    which = "every rating" if sympy.nan not in found else "every rating of the known rows"
    counted = "the known rating" if len(misses) == 1 else f"the {len(misses)} known ratings"
    lines = tex_lines(
        (r"P Q^\top", f"{_tex(found)} {tex_matrix(factors.T)}"),
        ("", _tex(estimates)),
        ("E", f"{tex_squares(misses)} = {tex_number(error)}"),
    )
    sentence = rf"Multiply $P$ with $Q^\top$. This estimates {which}. The squared error $E$ over {counted}: {error}."
    return Step(sentence, lines, estimates)


def _tex(matrix: Matrix) -> str:
    return tex_matrix(matrix).replace(r"\text{NaN}", r"\operatorname{NaN}")


def _tex_table(table: Matrix) -> str:
    return tex_matrix(table).replace(r"\text{NaN}", "?")
