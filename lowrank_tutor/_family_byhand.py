r"""What does each of PCA's relatives compute, number by number? One step of NMF, half a step of ALS, an axis of LDA.

Chapter ``book/03-family.md``; readers import the functions from ``lowrank_tutor.byhand``. Letters: X is approximated by
W H, all non-negative, and a prime marks what an update made; R holds ratings, with gaps, and is estimated by
$P Q^\top$; A and B hold the points of two classes, one a row, $m$ is a mean, $S$ a scatter matrix and $w$ the axis.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sympy
from sympy import Matrix

from lowrank_tutor._exact import (
    Step,
    Worked,
    as_exact_matrix,
    as_exact_number,
    tex_factor,
    tex_lines,
    tex_matrix,
    tex_number,
    without_common_factor,
)

# Fractions grow with every sum, and Python refuses to print those of more than 4300 digits.
LONGEST = 1000


class NonnegativeFactors(NamedTuple):
    """Non-negative factors of a matrix, x ~ w h: ``w`` (n, k) and ``h`` (k, d)."""

    w: Matrix
    h: Matrix


class Discriminant(NamedTuple):
    """An axis (2, 1) and a threshold: a point x is of the second class where axisᵀ x is above it."""

    axis: Matrix
    threshold: Any


def _short_enough(names: str, *results: Any) -> None:
    """Refuse examples whose fractions grow beyond all reason."""
    digits = max(max(abs(number.p), number.q).bit_length() * 3 // 10 for number in results)  # a bit is 0.3 of a digit
    if digits > LONGEST:
        raise ValueError(f"{names} must be small enough to work by hand, got a fraction of some {digits} digits")


# Non-negative factors


def nmf_update(x: Any, w: Any, h: Any) -> Worked:
    r"""Improve non-negative factors once by the multiplicative rule, H first and then W with the new H.

    $H_{aj} \leftarrow H_{aj} (W^\top X)_{aj} / (W^\top W H)_{aj}$, then
    $W_{ia} \leftarrow W_{ia} (X H^\top)_{ia} / (W H H^\top)_{ia}$. No factor is negative, so nothing can become
    negative, and an entry that is zero stays zero. The squared error never rises. Where a denominator is zero the entry
    stays as it is: it is zero, or all that it is multiplied with is, so that the product does not change.

    Parameters
    ----------
    x : (n, d) exact numbers
        The matrix, non-negative; at most 12 rows and columns.
    w : (n, k) exact numbers
        How much of each part a row holds, non-negative.
    h : (k, d) exact numbers
        The parts, non-negative.

    Returns
    -------
    Worked
        The values of the steps: the squared error; the numerators and the denominators of H (k, d); the new H; the
        error with it; the numerators and the denominators of W (n, k); the new W; the error with both. The result is
        ``NonnegativeFactors(w, h)``, both new.

    Raises
    ------
    TypeError, ValueError
        If an argument does not hold exact numbers, one of them is negative, the shapes do not match, or the fractions
        grow beyond 1000 digits.

    Examples
    --------
    >>> worked = nmf_update([[0, 2], [0, 3], [3, 1]], w=[[1, 1]] * 3, h=[[1, 2], [0, 2]])
    >>> print(*(step.text for step in worked.steps[::4]), sep="\n")
    Multiply W with H, and add up the squares of what is left of X. This is the squared error, 20.
    With the new H the squared error falls from 20 to 8.
    With both new factors the squared error falls from 8 to 95/18.
    >>> worked.result.h, worked.result.w
    (Matrix([
    [1, 1],
    [0, 1]]), Matrix([
    [2/3,   1],
    [  1, 3/2],
    [4/3, 1/2]]))

    References
    ----------
    Lee and Seung (2001), *Algorithms for non-negative matrix factorization*, theorem 1.
    """
    matrix, left, right = _nonnegative("x", x), _nonnegative("w", w), _nonnegative("h", h)  # (n, d), (n, k), (k, d)
    if left.rows != matrix.rows:
        raise ValueError(f"w must have a row for each row of x, got shapes {left.shape} and {matrix.shape}")
    if right.cols != matrix.cols:
        raise ValueError(f"h must have a column for each column of x, got shapes {right.shape} and {matrix.shape}")
    if left.cols != right.rows:
        raise ValueError(f"w must have a column for each row of h, got shapes {left.shape} and {right.shape}")
    before, lines = _squared_error(matrix, left, right, "W H")
    opening = "Multiply W with H, and add up the squares of what is left of X. This is the squared error"
    steps = [Step(f"{opening}, {before}.", lines, before)]

    numerators, gram = left.T * matrix, left.T * left
    denominators = gram * right
    new_right, update = _update("H", right, numerators, denominators)
    after_h, lines = _squared_error(matrix, left, new_right, "W H'")
    steps += [
        Step(
            "Multiply Wᵀ with X. These are the numerators for H.",
            tex_lines((r"W^\top X", f"{tex_matrix(left.T)} {tex_matrix(matrix)}"), ("", tex_matrix(numerators))),
            numerators,
        ),
        Step(
            "Multiply Wᵀ W with H. These are the denominators.",
            tex_lines(
                (r"W^\top W", f"{tex_matrix(left.T)} {tex_matrix(left)} = {tex_matrix(gram)}"),
                (r"W^\top W H", f"{tex_matrix(gram)} {tex_matrix(right)} = {tex_matrix(denominators)}"),
            ),
            denominators,
        ),
        update,
        Step(f"With the new H the squared error {_change(before, after_h)}.", lines, after_h),
    ]

    numerators, gram = matrix * new_right.T, new_right * new_right.T
    denominators = left * gram
    new_left, update = _update("W", left, numerators, denominators)
    after, lines = _squared_error(matrix, new_left, new_right, "W' H'")
    steps += [
        Step(
            "Multiply X with the transpose of the new H. These are the numerators for W.",
            tex_lines((r"X H'^\top", f"{tex_matrix(matrix)} {tex_matrix(new_right.T)}"), ("", tex_matrix(numerators))),
            numerators,
        ),
        Step(
            "Multiply W with the new H times its transpose. These are the denominators.",
            tex_lines(
                (r"H' H'^\top", f"{tex_matrix(new_right)} {tex_matrix(new_right.T)} = {tex_matrix(gram)}"),
                (r"W H' H'^\top", f"{tex_matrix(left)} {tex_matrix(gram)} = {tex_matrix(denominators)}"),
            ),
            denominators,
        ),
        update,
        Step(f"With both new factors the squared error {_change(after_h, after)}.", lines, after),
    ]
    return Worked(tuple(steps), NonnegativeFactors(new_left, new_right))


def _nonnegative(name: str, value: Any) -> Matrix:
    matrix = as_exact_matrix(name, value)
    for row in range(matrix.rows):
        for column in range(matrix.cols):
            if matrix[row, column] < 0:
                raise ValueError(f"{name}[{row}][{column}] must be at least 0, got {matrix[row, column]}")
    return matrix


def _update(name: str, factor: Matrix, numerators: Matrix, denominators: Matrix) -> tuple[Matrix, Step]:
    """Multiply each entry by its fraction; where that is over zero, keep it."""

    def entry(row: int, column: int) -> Any:
        below = denominators[row, column]
        return factor[row, column] if below == 0 else factor[row, column] * numerators[row, column] / below

    updated = Matrix(*factor.shape, entry)
    lines = []
    for row in range(factor.rows):
        for column in range(factor.cols):
            old, above, below = (m[row, column] for m in (factor, numerators, denominators))
            formula = tex_number(old)
            if below != 0:
                fraction = rf"\frac{{{tex_number(above)}}}{{{tex_number(below)}}}"
                formula = rf"{tex_factor(old)} \cdot {fraction} = {tex_number(updated[row, column])}"
            lines.append((f"{name}_{{{row + 1} {column + 1}}}'", formula))
    kept = " Where the denominator is zero, the entry stays as it is." if 0 in denominators else ""
    zeros = " An entry that is zero stays zero." if 0 in factor else ""
    sentence = (
        f"Multiply each entry of {name} by its numerator over its denominator.{kept}{zeros} This is the new {name}."
    )
    return updated, Step(sentence, tex_lines(*lines, (f"{name}'", tex_matrix(updated))), updated)


def _squared_error(matrix: Matrix, left: Matrix, right: Matrix, name: str) -> tuple[Any, str]:
    product = left * right
    rest = matrix - product
    error = sum(entry**2 for entry in rest)
    _short_enough("x, w and h", error)
    lines = tex_lines(
        (name, f"{tex_matrix(left)} {tex_matrix(right)} = {tex_matrix(product)}"),
        (f"X - {name}", tex_matrix(rest)),
        (rf"\lVert X - {name} \rVert^2", f"{_tex_squares(rest)} = {tex_number(error)}"),
    )
    return error, lines


def _tex_squares(entries: Any) -> str:
    return " + ".join(f"{tex_factor(entry)}^2" for entry in entries)


def _change(before: Any, after: Any) -> str:
    return f"stays {after}" if before == after else f"falls from {before} to {after}"


# A table with gaps


def als_half_step(ratings: Any, q: Any, regularization: Any = 0) -> Worked:
    r"""Fit the rows of a table with gaps, each by least squares over its known entries: half a step of ALS.

    Row i minimizes $\sum_j (r_{ij} - p_i^\top q_j)^2 + \lambda \|p_i\|^2$ over its known entries j. Collect those as
    $r_i$, and their rows of Q as $Q_i$; the answer solves the normal equations
    $(Q_i^\top Q_i + \lambda I)\, p_i = Q_i^\top r_i$. The other half of the step does the same for Q, column by column.

    Parameters
    ----------
    ratings : (n, m) exact numbers, or None
        The table, at most 12 rows and columns; ``None`` where a rating is not known. At least one is.
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

    Raises
    ------
    TypeError, ValueError
        If an argument does not hold exact numbers, no rating is known, the shapes do not match, ``regularization`` is
        negative, the normal equations of a row have more than one solution, or the fractions grow beyond 1000 digits.

    Examples
    --------
    >>> ratings = [[2, 3, 2], [3, None, 5], [None, None, None]]
    >>> worked = als_half_step(ratings, q=[[1, 0], [0, 1], [1, 1]])
    >>> worked.result
    Matrix([
    [  1,   2],
    [  3,   2],
    [nan, nan]])
    >>> print(worked.steps[-1].text)
    Multiply P with Qᵀ. This estimates every rating of the known rows. The squared error E over the 5 known ratings: 3.

    References
    ----------
    Koren, Bell and Volinsky (2009), doi:10.1109/MC.2009.263.
    """
    table = _with_gaps(ratings)  # (n, m)
    factors = as_exact_matrix("q", q)  # (m, k)
    penalty = as_exact_number("regularization", regularization)
    if factors.rows != table.cols:
        raise ValueError(
            f"q must have a row for each column of ratings, got q of shape {factors.shape} and ratings of {table.shape}"
        )
    if penalty < 0:
        raise ValueError(f"regularization must be at least 0, got {penalty}")
    if all(entry is sympy.nan for entry in table):
        raise ValueError("ratings must hold at least one known entry, got none")
    gaps = "" if sympy.nan not in table else " A question mark stands for a rating that is not known."
    start = tex_lines(("R", _tex_table(table)), ("Q", tex_matrix(factors)))
    steps = [Step(f"Start from the ratings R and the factors Q of their columns.{gaps}", start, table)]
    rows = []
    for row in range(table.rows):
        known = [column for column in range(table.cols) if table[row, column] is not sympy.nan]
        if known:
            steps += _regression(row, table[row, :], known, factors, penalty)
        else:
            sentence = f"Row {row + 1} has no known rating. Its row of P is not a number: zero would be an estimate."
            unknown = sympy.ones(factors.cols, 1) * sympy.nan
            steps.append(Step(sentence, f"p_{{{row + 1}}} = {_tex(unknown)}", unknown))
        rows.append(steps[-1].value.T)
    found = Matrix.vstack(*rows)  # (n, k)
    estimates = found * factors.T
    misses = [entry - guess for entry, guess in zip(table, estimates, strict=True) if entry is not sympy.nan]
    error = sum(miss**2 for miss in misses)
    _short_enough("ratings and q", error)
    lines = tex_lines(
        (r"P Q^\top", f"{_tex(found)} {tex_matrix(factors.T)}"),
        ("", _tex(estimates)),
        ("E", f"{_tex_squares(misses)} = {tex_number(error)}"),
    )
    which = "every rating" if sympy.nan not in found else "every rating of the known rows"
    counted = "the known rating" if len(misses) == 1 else f"the {len(misses)} known ratings"
    sentence = f"Multiply P with Qᵀ. This estimates {which}. The squared error E over {counted}: {error}."
    steps.append(Step(sentence, lines, estimates))
    return Worked(tuple(steps), found)


def _with_gaps(ratings: Any) -> Matrix:
    """Read a table, with NaN for None."""

    def listed(value: Any) -> Any:
        value = value.tolist() if hasattr(value, "tolist") else value
        return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else value

    rows = listed(ratings)
    rows = [listed(row) for row in rows] if isinstance(rows, list) else rows
    gaps = [
        (i, j)
        for i, row in enumerate(rows if isinstance(rows, list) else [])
        for j, entry in enumerate(row if isinstance(row, list) else [])
        if entry is None
    ]
    for i, j in gaps:
        rows[i][j] = 0
    table = as_exact_matrix("ratings", rows)
    for i, j in gaps:
        table[i, j] = sympy.nan
    return table


def _regression(row: int, ratings: Matrix, known: list[int], factors: Matrix, penalty: Any) -> list[Step]:
    """Set up and solve the normal equations of one row."""
    i, k = row + 1, factors.cols
    mine, wanted = factors.extract(known, list(range(k))), ratings.extract([0], known).T
    gram, right = mine.T * mine, mine.T * wanted
    matrix = gram + penalty * sympy.eye(k)
    if matrix.det() == 0:
        raise ValueError(
            f"regularization must be above 0 where a row has more than one solution, got {penalty}: row {i} of ratings "
            f"has known entries of rank {mine.rank()} in q, for k = {k}"
        )
    inverse = matrix.inv()
    solution = inverse * right
    _short_enough("ratings and q", *inverse)
    lines = [
        (f"Q_{{{i}}}", tex_matrix(mine)),
        (f"r_{{{i}}}", tex_matrix(wanted)),
        (rf"Q_{{{i}}}^\top Q_{{{i}}}", tex_matrix(gram)),
        (rf"Q_{{{i}}}^\top r_{{{i}}}", tex_matrix(right)),
    ]
    left = rf"Q_{{{i}}}^\top Q_{{{i}}}"
    if penalty != 0:
        left = rf"{left} + {tex_factor(penalty)} I"
        lines.insert(3, (left, tex_matrix(matrix)))
        left = rf"\left( {left} \right)"
    columns = [str(column + 1) for column in known]
    where = f"column {columns[0]}" if len(columns) == 1 else f"columns {', '.join(columns[:-1])} and {columns[-1]}"
    take = "this row" if len(columns) == 1 else "these rows"
    added = "" if penalty == 0 else f", with {penalty} added along the diagonal"
    return [
        Step(
            f"Row {i} has known ratings in {where}. Take {take} of Q for the normal equations{added}.",
            tex_lines(*lines),
            (matrix, right),
        ),
        Step(
            f"Solve them. This is row {i} of P.",
            tex_lines(
                (f"{left} p_{{{i}}}", rf"Q_{{{i}}}^\top r_{{{i}}}"),
                (f"{tex_matrix(matrix)} p_{{{i}}}", tex_matrix(right)),
                (f"p_{{{i}}}", f"{tex_matrix(inverse)} {tex_matrix(right)} = {tex_matrix(solution)}"),
            ),
            solution,
        ),
    ]


def _tex(matrix: Matrix) -> str:
    return tex_matrix(matrix).replace(r"\text{NaN}", r"\operatorname{NaN}")


def _tex_table(table: Matrix) -> str:
    return tex_matrix(table).replace(r"\text{NaN}", "?")


# Two classes


def linear_discriminant(a: Any, b: Any) -> Worked:
    r"""Find the axis that sets two classes of points in the plane apart best, $w = T^{-1} (m_b - m_a)$.

    Along w the squared gap between the two means, over the scatter within the classes, is the largest that any axis
    gives. The plain difference of the means ignores how the points scatter, and is in general another direction.

    Parameters
    ----------
    a : (n, 2) exact numbers
        The points of one class; at most 12.
    b : (m, 2) exact numbers
        The points of the other class.

    Returns
    -------
    Worked
        The values of the steps: the pair of means, each (2, 1); the scatter (2, 2) of each class; their sum; its
        inverse; the axis (2, 1), in whole numbers without a common factor and from a to b; the threshold, midway
        between the projected means; the squared gap over the scatter along the plain difference of the means, and along
        the axis. The result is ``Discriminant(axis, threshold)``.

    Raises
    ------
    TypeError, ValueError
        If ``a`` or ``b`` does not hold exact points in the plane, the means coincide, all points of both classes lie in
        one direction from their means, or the fractions grow beyond 1000 digits.

    Examples
    --------
    >>> worked = linear_discriminant([[0, 2], [1, 1], [3, 1], [4, 0]], [[3, 2], [4, 1], [6, 1], [7, 0]])
    >>> worked.result
    Discriminant(axis=Matrix([
    [1],
    [2]]), threshold=11/2)
    >>> print(worked.steps[-1].text)
    Compare: along the plain difference d of the means, 6 of 8 points lie on the side of their class. The squared gap
    over the scatter is 9/20; along w it is 9/4.

    References
    ----------
    Fisher (1936), doi:10.1111/j.1469-1809.1936.tb02137.x.
    """
    classes = {"a": as_exact_matrix("a", a), "b": as_exact_matrix("b", b)}  # (n, 2), (m, 2)
    for name, points in classes.items():
        if points.cols != 2:
            raise ValueError(f"{name} must hold points of two coordinates, got shape {points.shape}")
    means = {name: _column_means(points) for name, points in classes.items()}
    gap = means["b"] - means["a"]
    if gap.is_zero_matrix:
        raise ValueError(f"b must have another mean than a, got {tuple(means['b'])} for both")
    deviations = {name: points - sympy.ones(points.rows, 1) * means[name].T for name, points in classes.items()}
    scatters = {name: rows.T * rows for name, rows in deviations.items()}
    within = scatters["a"] + scatters["b"]
    if within.det() == 0:
        raise ValueError(
            f"a and b must spread in two directions around their means, got a scatter of rank {within.rank()}"
        )
    inverse = within.inv()
    raw = inverse * gap
    _short_enough("a and b", gap.dot(raw))
    axis, difference = _scaled(raw), _scaled(gap)
    steps = (
        Step(
            "Average the points of each class, coordinate by coordinate.",
            tex_lines(*((f"m_{name}", tex_matrix(mean)) for name, mean in means.items())),
            tuple(means.values()),
        ),
        *(_scatter_step(name, deviations[name], scatters[name]) for name in classes),
        Step(
            "Add the two. This is the scatter within the classes.",
            f"T = S_a + S_b = {tex_matrix(scatters['a'])} + {tex_matrix(scatters['b'])} = {tex_matrix(within)}",
            within,
        ),
        _inverse_step(within, inverse),
        Step(
            "Multiply the inverse with the difference of the means. In whole numbers without a common factor, this is "
            "the axis w.",
            tex_lines(
                ("m_b - m_a", tex_matrix(gap)),
                ("T^{-1} (m_b - m_a)", f"{tex_matrix(inverse)} {tex_matrix(gap)} = {tex_matrix(raw)}"),
                ("w", tex_matrix(axis)),
            ),
            axis,
        ),
    )
    threshold, right_side, lines = _cut(classes, means, axis)
    total = sum(points.rows for points in classes.values())
    cut = Step(
        "Multiply each point by w. Midway between the products of the means is the threshold c, and class b is above "
        f"it: {right_side} of {total} points lie on the side of their class.",
        lines,
        threshold,
    )
    compare = _compare_step(within, gap, axis, difference, f"{_cut(classes, means, difference)[1]} of {total}")
    return Worked((*steps, cut, compare), Discriminant(axis, threshold))


def _column_means(points: Matrix) -> Matrix:
    return (sympy.ones(1, points.rows) * points).T / points.rows


def _scaled(vector: Matrix) -> Matrix:
    """Scale to whole numbers without a common factor, in the same direction."""
    scaled = without_common_factor(vector)
    return scaled if scaled.dot(vector) > 0 else -scaled


def _scatter_step(name: str, deviations: Matrix, scatter: Matrix) -> Step:
    return Step(
        f"Subtract the mean of {name} from each of its points. The deviations, multiplied with themselves, are the "
        f"scatter of {name}.",
        tex_lines(
            (f"D_{name}", tex_matrix(deviations)),
            (f"S_{name}", rf"D_{name}^\top D_{name} = {tex_matrix(deviations.T)} {tex_matrix(deviations)}"),
            ("", tex_matrix(scatter)),
        ),
        scatter,
    )


def _inverse_step(matrix: Matrix, inverse: Matrix) -> Step:
    determinant = matrix.det()
    (p, q), (r, s) = matrix.tolist()
    swapped = Matrix([[s, -q], [-r, p]])
    product = rf"{tex_factor(p)} \cdot {tex_factor(s)} - {tex_factor(q)} \cdot {tex_factor(r)}"
    fraction = "" if determinant == 1 else rf"\frac{{1}}{{{tex_number(determinant)}}} "
    return Step(
        "Invert it: swap the diagonal, change the other two signs, divide by the determinant.",
        tex_lines(
            (r"\det T", f"{product} = {tex_number(determinant)}"),
            ("T^{-1}", f"{fraction}{tex_matrix(swapped)}"),
            ("", tex_matrix(inverse)),
        ),
        inverse,
    )


def _cut(classes: dict[str, Matrix], means: dict[str, Matrix], axis: Matrix) -> tuple[Any, int, str]:
    """Cut midway between the projected means; say how many points lie on the side of their class."""
    below, above = (axis.dot(mean) for mean in means.values())
    threshold = (below + above) / 2
    low, high = (points * axis for points in classes.values())
    right_side = sum(bool(entry < threshold) for entry in low) + sum(bool(entry > threshold) for entry in high)
    lines = tex_lines(
        (r"w^\top A^\top", tex_matrix(low.T)),
        (r"w^\top B^\top", tex_matrix(high.T)),
        (r"w^\top m_a", tex_number(below)),
        (r"w^\top m_b", tex_number(above)),
        ("c", rf"\frac{{1}}{{2}} \left( {tex_number(below)} + {tex_factor(above)} \right) = {tex_number(threshold)}"),
    )
    return threshold, right_side, lines


def _compare_step(within: Matrix, gap: Matrix, axis: Matrix, difference: Matrix, count: str) -> Step:
    """Put the plain difference of the means beside the axis."""

    def ratio(direction: Matrix) -> tuple[Any, str]:
        apart, scatter = direction.dot(gap), (direction.T * within * direction)[0]
        value = apart**2 / scatter
        return value, rf"\frac{{{tex_number(apart)}^2}}{{{tex_number(scatter)}}} = {tex_number(value)}"

    (plain, plain_line), (best, best_line) = ratio(difference), ratio(axis)
    lines = tex_lines(
        ("d", tex_matrix(difference)),
        (r"\frac{(d^\top (m_b - m_a))^2}{d^\top T d}", plain_line),
        (r"\frac{(w^\top (m_b - m_a))^2}{w^\top T w}", best_line),
    )
    if difference == axis:
        sentence = f"Compare: the plain difference d of the means is the same direction, with the same ratio {best}."
    else:
        sentence = (
            f"Compare: along the plain difference d of the means, {count} points lie on the side of their class. The "
            f"squared gap over the scatter is {plain}; along w it is {best}."
        )
    return Step(sentence, lines, (plain, best))
