r"""Reduce a matrix, factor it, and score two vectors with it, entry by entry.

Chapters ``book/01-rank.md`` and ``book/05-bilinear-scoring.md``; readers import the functions from
``lowrank_tutor.byhand``. Letters: ``a`` is the matrix, called A in the formulas; ``s`` and ``h``
are scored by way of ``u`` and ``v``.
"""

from typing import Any, NamedTuple

from sympy import Matrix, Rational

from lowrank_tutor.byhand.exact import as_exact_matrix, as_exact_vector, without_common_factor
from lowrank_tutor.byhand.tex import tex_dot, tex_factor, tex_lines, tex_matrix, tex_number
from lowrank_tutor.byhand.worked import Step, Worked, saving


class OuterProduct(NamedTuple):
    """Factors of a rank-1 matrix, a = u vᵀ: ``u`` (m, 1) and ``v`` (n, 1)."""

    u: Matrix
    v: Matrix


def row_reduce(a: Any) -> Worked:
    """Bring a matrix ``a`` (m, n) to reduced row echelon form, one row operation per step.

    Column by column, the first non-zero entry at or below the next free row becomes the pivot: it
    is swapped up, scaled to 1, and cleared from every other row. The number of pivots is the rank.
    Each step's value is the matrix after it; the last one's is the tuple of pivot columns, counted
    from 1. The result is the reduced matrix.

    >>> print(row_reduce([[1, 2], [2, 4]]))
    1. Start from A.
       ⎡1  2⎤
       ⎢    ⎥
       ⎣2  4⎦
    2. Subtract 2 times row 1 from row 2.
       ⎡1  2⎤
       ⎢    ⎥
       ⎣0  0⎦
    3. The matrix is reduced. It has 1 pivot, in column 1, so the rank is 1.
       (1,)
    """
    matrix = as_exact_matrix("a", a)  # (m, n)
    steps = [Step("Start from $A$.", f"A = {tex_matrix(matrix)}", matrix.copy())]

    def record(sentence: str) -> None:
        steps.append(Step(sentence, tex_matrix(matrix), matrix.copy()))

    pivots: list[int] = []
    for column in range(matrix.cols):
        top = len(pivots)  # the next free row
        candidates = [row for row in range(top, matrix.rows) if matrix[row, column] != 0]
        if not candidates:
            continue
        if candidates[0] != top:
            matrix.row_swap(top, candidates[0])
            record(f"Swap rows {top + 1} and {candidates[0] + 1}.")
        pivot = matrix[top, column]
        if pivot != 1:
            matrix[top, :] = matrix[top, :] / pivot
            record(
                f"Change the sign of row {top + 1}."
                if pivot == -1
                else f"Divide row {top + 1} by {pivot}."
            )
        for row in range(matrix.rows):
            factor = matrix[row, column]
            if row != top and factor != 0:
                matrix[row, :] = matrix[row, :] - factor * matrix[top, :]
                times = "" if abs(factor) == 1 else f"{abs(factor)} times "
                verb, link = ("Subtract", "from") if factor > 0 else ("Add", "to")
                record(f"{verb} {times}row {top + 1} {link} row {row + 1}.")
        pivots.append(column + 1)
    rank, where = len(pivots), ", ".join(map(str, pivots))
    pivot_words = {0: "no pivot", 1: f"1 pivot, in column {where}"}.get(
        rank, f"{rank} pivots, in columns {where}"
    )
    sentence = f"The matrix is reduced. It has {pivot_words}, so the rank is {rank}."
    steps.append(Step(sentence, rf"\operatorname{{rank}} A = {rank}", tuple(pivots)))
    return Worked(tuple(steps), matrix)


def rank_one(a: Any) -> Worked:
    r"""Write a matrix ``a`` (m, n) of rank 1 as $A = u v^\top$, and count what that saves.

    ``v`` is the first non-zero row in whole numbers without a common divisor, the first of them
    positive. ``u`` holds the multiple of ``v`` that each row is. The values of the steps: ``v`` (n,
    1); ``u`` (m, 1); the product; and three counts, the numbers in the matrix, the numbers in the
    factors, the degrees of freedom. The result is ``OuterProduct(u, v)``.

    >>> rank_one([[1, 2, 3], [2, 4, 6], [3, 6, 9]]).result.v.T
    Matrix([[1, 2, 3]])
    """
    matrix = as_exact_matrix("a", a)  # (m, n)
    if matrix.rank() != 1:
        raise ValueError(f"a must be a matrix of rank 1, got rank {matrix.rank()}")
    rows, columns = matrix.shape
    first = next(row for row in range(rows) if any(matrix[row, :]))
    v = without_common_factor(matrix[first, :].T)  # (n, 1)
    lead = next(column for column in range(columns) if v[column] != 0)
    u = matrix[:, lead] / v[lead]  # (m, 1)
    factor = u[first]
    taken = "Call it $v$" if factor == 1 else f"Take out its factor {factor} and call the rest $v$"
    multiples = [
        (tex_matrix(matrix[row, :]), rf"{tex_factor(u[row])} v^\top") for row in range(rows)
    ]
    full, few = rows * columns, rows + columns
    steps = (
        Step(
            f"Row {first + 1} is the first that is not zero. {taken}.",
            rf"v^\top = {tex_matrix(v.T)}",
            v,
        ),
        Step(
            "Every row is a multiple of $v$. The multiples form $u$.",
            tex_lines(*multiples, ("u", tex_matrix(u))),
            u,
        ),
        Step(
            "Multiply $u$ by $v$ to check.",
            rf"u v^\top = {tex_matrix(u)} {tex_matrix(v.T)} = {tex_matrix(u * v.T)} = A",
            u * v.T,
        ),
        Step(
            f"The matrix has {full} numbers, and the factors have {few}, {saving(few, full)}. One "
            f"of the {few} is redundant, because $2u$ and $v/2$ give the same matrix: "
            f"there are {few - 1} degrees of freedom.",
            rf"{rows} \cdot {columns} = {full}, \qquad {rows} + {columns} = {few}, "
            rf"\qquad {few} - 1 = {few - 1}",
            (full, few, few - 1),
        ),
    )
    return Worked(steps, OuterProduct(u, v))


def bilinear(s: Any, u: Any, v: Any, h: Any) -> Worked:
    r"""Score a pair by both routes, $(U s)^\top (V h) = s^\top W h$, and count the cost.

    Here $W = U^\top V$. The query ``s`` (d2,) meets the factor ``u`` (k, d2), and the key ``h``
    (d1,) the factor ``v`` (k, d1). The short route never forms W: it sends both vectors to k
    numbers and multiplies those. The long route writes W out and applies it to the longer vector
    first, which needs the fewest multiplications.

    The values of the steps: U s (k, 1); V h (k, 1); the score; W (d2, d1); W h (d2, 1), or Wᵀ s
    (d1, 1) where d1 is smaller than d2; the score again; the numbers in the factors, in W, and the
    k at which they are as many; the multiplications of the short route, of the long route, and of
    each once its products are known. The result is the score.

    >>> bilinear([1, 2], [[2, 1]], [[1, -1]], [3, 4]).result
    -4
    """
    query, key = as_exact_vector("s", s), as_exact_vector("h", h)  # (d2, 1), (d1, 1)
    left = as_exact_matrix("u", u, ("k", query.rows))
    right = as_exact_matrix("v", v, (left.rows, key.rows))
    w = left.T * right  # (d2, d1)
    apply_to_key = query.rows <= key.rows
    small = _product_step("x", "U", left, "s", query)
    large = _product_step("y", "V", right, "h", key)
    if apply_to_key:
        middle = _product_step("z", "W", w, "h", key)
        rest, other = "s", query
    else:
        middle = _product_step("z", r"W^\top", w.T, "s", query)
        rest, other = "h", key
    score, again = small.value.dot(large.value), other.dot(middle.value)
    steps = (
        small,
        large,
        Step(
            "Multiply $x$ and $y$, entry by entry, and add. This is the score.",
            rf"(U s)^\top (V h) = x^\top y = {tex_dot(small.value.T, large.value)} = "
            f"{tex_number(score)}",
            score,
        ),
        Step(
            f"Now go the long way. Multiply out $W$, {w.rows} by {w.cols}.",
            rf"W = U^\top V = {tex_matrix(left.T)} {tex_matrix(right)} = {tex_matrix(w)}",
            w,
        ),
        middle,
        Step(
            f"Multiply $z$ by ${rest}$, entry by entry, and add. It is the same score.",
            rf"s^\top W h = {rest}^\top z = {tex_dot(other.T, middle.value)} = {tex_number(again)}",
            again,
        ),
        *_cost_steps(w.rows, w.cols, left.rows),
    )
    return Worked(steps, score)


def _product_step(
    letter: str, symbol: str, matrix: Matrix, vector_name: str, vector: Matrix
) -> Step:
    """Multiply a matrix by a vector, and print one sum a row."""
    product = matrix * vector
    entries = (
        (
            rf"{letter}_{{{row + 1}}}",
            rf"{tex_dot(matrix[row, :], vector)} = {tex_number(product[row])}",
        )
        for row in range(matrix.rows)
    )
    formula = tex_lines(
        (letter, rf"{symbol} {vector_name} = {tex_matrix(matrix)} {tex_matrix(vector)}"), *entries
    )
    sentence = f"Multiply ${symbol}$ by ${vector_name}$, row by row. Call the result ${letter}$."
    return Step(sentence, formula, product)


def _cost_steps(d2: int, d1: int, k: int) -> tuple[Step, Step]:
    """Count the numbers kept and the multiplications of both routes."""
    few, full = k * (d1 + d2), d1 * d2
    break_even = Rational(full, d1 + d2)
    numbers_step = Step(
        f"The factors hold {few} numbers and $W$ holds {full}, {saving(few, full)}. "
        f"The factors hold fewer only if $k$ is below {break_even}.",
        rf"k (d_1 + d_2) = {k} \cdot ({d1} + {d2}) = {few}, \qquad d_1 d_2 = {d1} \cdot {d2} = "
        rf"{full}, \qquad \frac{{d_1 d_2}}{{d_1 + d_2}} = {tex_number(break_even)}",
        (few, full, break_even),
    )
    short, least = few + k, min(d1, d2)
    known, symbol = ("W h", "d_2") if d2 <= d1 else (r"W^\top s", "d_1")
    work_step = Step(
        f"The short way needs {short} multiplications and the long way {full + least}, "
        f"{saving(short, full + least)}. Once $U s$ and $V h$ are known, a score needs {k}; once "
        f"${known}$ is known, it needs {least}.",
        f"k (d_1 + d_2) + k = {few} + {k} = {short}, "
        rf"\qquad d_1 d_2 + {symbol} = {full} + {least} = {full + least}",
        (short, full + least, k, least),
    )
    return numbers_step, work_step
