r"""Work one head of attention number by number: softmax attention and Linformer.

Chapter ``book/07-linformer.md``; readers import both functions from ``lowrank_tutor.byhand``.
Letters: Q, K and V are queries, keys and values, a row for each token; E compresses keys and values
along the sequence, and $\bar k_j$ is row j of E K; $z_i$ is the sum of the powers of e in row i,
and P holds the weights, of which $p_i^\top$ is row i.

After the scores, every number is a sum of powers of e with rational factors, or one such sum over
another. Once equal powers are collected, such a sum is zero only if all its factors are (the
theorem of Lindemann and Weierstrass). So nothing here needs a general simplifier, which would be
slow, and may change from version to version.
"""

from typing import Any

import sympy
from sympy import Matrix, Rational, sqrt

from lowrank_tutor.byhand.exact import as_exact_matrix
from lowrank_tutor.byhand.tex import tex_lines, tex_matrix, tex_number, tex_product
from lowrank_tutor.byhand.worked import Step, Worked, saving


def softmax_attention(q: Any, k: Any, v: Any) -> Worked:
    r"""Average values by the softmax of scores, $\mathrm{softmax}(Q K^\top / \sqrt{d})\, V$.

    ``q`` (n_queries, d), ``k`` (n_keys, d) and ``v`` (n_keys, d_v) are exact, and so stay the
    powers of e. A notebook shows weights and output also in decimals, rounded to three places.

    The values of the steps: the scores (n_queries, n_keys); the scores over √d; the powers of e,
    and the sum of each row (n_queries, 1); the weights; the output (n_queries, d_v); how many
    weights there are; the multiplications for the scores, for the output, and together. The result
    is the output.

    >>> softmax_attention(q=[[2]], k=[[1], [0]], v=[[4, 1], [0, 1]]).result
    Matrix([[4*exp(2)/(1 + exp(2)), 1]])
    """
    queries, keys, values = _read(q, k, v)
    steps, output = _softmax_steps(queries, keys, values)
    (n_q, d), (n_k, d_v) = queries.shape, values.shape
    scores, averages = n_q * n_k * d, n_q * n_k * d_v
    work = Step(
        f"Multiplications: {scores} for the scores and {averages} for the output, "
        f"together {scores + averages}.",
        tex_lines(
            ("n_q n_k d", rf"{n_q} \cdot {n_k} \cdot {d} = {scores}"),
            ("n_q n_k d_v", rf"{n_q} \cdot {n_k} \cdot {d_v} = {averages}"),
        ),
        (scores, averages, scores + averages),
    )
    return Worked((*steps, _check_step(n_q, n_k), work), output)


def linformer_attention(q: Any, k: Any, v: Any, e: Any) -> Worked:
    r"""Compress keys and values, then attend: $\mathrm{softmax}(Q (E K)^\top / \sqrt{d})\, (E V)$.

    ``e`` (k, n_keys) holds the share of each key and value in each of the k compressed ones; the
    others are as in `softmax_attention`. Source: Wang et al. (2020), arXiv:2006.04768, equation 7,
    with E = F.

    The values of the steps: E K (k, d); E V (k, d_v); then as in `softmax_attention`, with weights
    (n_queries, k); how many weights there are, and how many without compression; the
    multiplications to compress, those after it, both together, those without compression, and the k
    at which these are as many. The result is the output (n_queries, d_v).

    >>> linformer_attention([[2]], [[2], [0]], [[1, 0], [5, 2]], [["1/2", "1/2"]]).result
    Matrix([[3, 1]])
    """
    queries, keys, values = _read(q, k, v)
    shares = as_exact_matrix("e", e, ("k", keys.rows))
    short_keys, short_values = shares * keys, shares * values  # (k, d), (k, d_v)
    compress = (
        Step(
            f"Compress the keys, {keys.rows} to {shares.rows}: multiply $E$ by $K$.",
            tex_product("E K", shares, keys, short_keys),
            short_keys,
        ),
        Step(
            "Compress the values with the same $E$: multiply $E$ by $V$.",
            tex_product("E V", shares, values, short_values),
            short_values,
        ),
    )
    steps, output = _softmax_steps(queries, short_keys, short_values, "(E K)", "E V")
    check = _check_step(queries.rows, keys.rows, shares.rows)
    work = _linformer_work(queries.rows, keys.rows, shares.rows, queries.cols, values.cols)
    return Worked((*compress, *steps, check, work), output)


def _read(q: Any, k: Any, v: Any) -> tuple[Matrix, Matrix, Matrix]:
    queries = as_exact_matrix("q", q)
    keys = as_exact_matrix("k", k, ("n_keys", queries.cols))
    return queries, keys, as_exact_matrix("v", v, (keys.rows, "d_v"))


def _softmax_steps(
    queries: Matrix, keys: Matrix, values: Matrix, key_name: str = "K", value_name: str = "V"
) -> tuple[list[Step], Matrix]:
    """Score, scale, exponentiate, divide and average, for all keys or for compressed ones."""
    d = queries.cols
    what, key = ("key", "k_j") if key_name == "K" else ("compressed key", r"\bar k_j")
    scores, scale = queries * keys.T, 1 / sqrt(d)
    powers = (scores * scale).applyfunc(sympy.exp)
    # The powers over the smallest in each row, which is a factor of the row and of its sum.
    lowest = [min(scores[row, :]) for row in range(scores.rows)]
    reduced = Matrix(*scores.shape, lambda i, j: sympy.exp((scores[i, j] - lowest[i]) * scale))
    totals, mixed = _row_sums(reduced), reduced * values
    output = _divide_rows(mixed, totals)
    steps = [
        Step(
            rf"Score each query against each {what}: multiply $Q$ by ${key_name}^\top$.",
            tex_product(rf"Q {key_name}^\top", queries, keys.T, scores),
            scores,
        ),
        Step(
            rf"Divide the scores by $\sqrt{{d}}$, where $d = {d}$ is the width of a query.",
            tex_lines((rf"\frac{{1}}{{\sqrt{{d}}}} Q {key_name}^\top", tex_matrix(scores * scale))),
            scores * scale,
        ),
        _power_step(powers, key),
        _weight_step(powers, reduced),
        Step(
            f"Average the values with these weights: multiply $P$ by ${value_name}$.",
            tex_lines(
                (value_name, tex_matrix(values)),
                *(
                    (rf"p_{{{row + 1}}}^\top {value_name}", _tex_row_over(total, mixed[row, :]))
                    for row, total in enumerate(totals)
                ),
                nearly=(f"P {value_name}", tex_matrix(output, decimals=True)),
            ),
            output,
        ),
    ]
    return steps, output


def _power_step(powers: Matrix, key: str) -> Step:
    lines, sums = [], _row_sums(powers)
    for row, total in enumerate(sums):
        terms, collected = powers[row, :], tex_number(total)
        if len(sympy.Add.make_args(total)) < len(terms):
            collected = f"{' + '.join(map(tex_number, terms))} = {collected}"
        lines.append((f"z_{{{row + 1}}}", collected))
    return Step(
        "Raise $e$ to each of these powers, and add up each row. Call the sums $z$.",
        tex_lines((rf"e^{{q_i^\top {key} / \sqrt{{d}}}}", tex_matrix(powers)), *lines),
        (powers, sums),
    )


def _weight_step(powers: Matrix, reduced: Matrix) -> Step:
    lines: list[tuple[str, str]] = []
    for row in range(powers.rows):
        forms = [_tex_row_over(sum(each[row, :]), each[row, :]) for each in (powers, reduced)]
        names = (rf"p_{{{row + 1}}}^\top", "")
        # A single form where nothing cancels.
        lines += zip(names, dict.fromkeys(forms), strict=False)
    cancels = reduced != powers
    cancelled = " A power of $e$ that is a factor of a whole row cancels." if cancels else ""
    weights = _divide_rows(reduced, _row_sums(reduced))
    return Step(
        f"Divide each row by its sum. This gives the weights $P$, with rows $p$.{cancelled}",
        tex_lines(*lines, nearly=("P", tex_matrix(weights, decimals=True))),
        weights,
    )


def _check_step(n_queries: int, n_keys: int, k: int | None = None) -> Step:
    """Add up the rows of P and count its numbers, with compression to ``k`` keys or without."""
    full, width = n_queries * n_keys, n_keys if k is None else k
    lines = [
        (f"P {tex_matrix(sympy.ones(width, 1))}", tex_matrix(sympy.ones(n_queries, 1))),
        ("n_q n_k", rf"{n_queries} \cdot {n_keys} = {full}"),
    ]
    if k is None:
        return Step(
            f"Check: each row of $P$ adds up to 1. Numbers in $P$: {full}.", tex_lines(*lines), full
        )
    few = n_queries * k
    lines.insert(1, ("n_q k", rf"{n_queries} \cdot {k} = {few}"))
    sentence = f"Check: each row of $P$ adds up to 1. Numbers in $P$: {few} in place of {full}."
    return Step(sentence, tex_lines(*lines), (few, full))


def _linformer_work(n_queries: int, n_keys: int, k: int, d: int, d_v: int) -> Step:
    """Count the multiplications with compression and without."""
    width = d + d_v
    full = n_queries * n_keys * width
    before, after = k * n_keys * width, n_queries * k * width
    break_even = Rational(n_queries * n_keys, n_queries + n_keys)

    def line(name: str, left: int, right: int, total: int) -> tuple[str, str]:
        return rf"{name} (d + d_v)", rf"{left} \cdot {right} \cdot ({d} + {d_v}) = {total}"

    return Step(
        f"Multiplications: {before} to compress and {after} for scores and output, together "
        f"{before + after} in place of {full}, {saving(before + after, full)}. Compression takes "
        f"fewer only where $k$ is below {break_even}.",
        tex_lines(
            line("k n_k", k, n_keys, before),
            line("n_q k", n_queries, k, after),
            line("n_q n_k", n_queries, n_keys, full),
            (r"\frac{n_q n_k}{n_q + n_k}", tex_number(break_even)),
        ),
        (before, after, before + after, full, break_even),
    )


def _row_sums(matrix: Matrix) -> Matrix:
    return Matrix([sum(matrix[row, :]) for row in range(matrix.rows)])


def _divide_rows(matrix: Matrix, divisors: Matrix) -> Matrix:
    return Matrix(*matrix.shape, lambda row, column: _ratio(matrix[row, column], divisors[row]))


def _ratio(numerator: Any, denominator: Any) -> Any:
    """Divide two sums of powers of e, and cancel the rational factor that they share."""
    (above, numerator), (below, denominator) = numerator.primitive(), denominator.primitive()
    factor = above / below
    if numerator in (denominator, -denominator):
        return factor if numerator == denominator else -factor
    return factor.p * numerator / (factor.q * denominator)


def _tex_row_over(divisor: Any, row: Matrix) -> str:
    return (
        tex_matrix(row)
        if divisor == 1
        else rf"\frac{{1}}{{{tex_number(divisor)}}} {tex_matrix(row)}"
    )
