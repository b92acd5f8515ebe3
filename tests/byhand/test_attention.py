"""Each step of a worked attention follows from the one before, and PyTorch finds the same."""

import math
import re

import mpmath
import numpy as np
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import E, Matrix, Rational, exp, sqrt
from worked import (
    assert_equal_to_60_digits,
    fractions,
    matrices,
    plain_product,
    read_lines,
    read_matrices,
    read_number,
    sides,
    small_integers,
    small_rationals,
)

from lowrank_tutor import attention, linformer
from lowrank_tutor.byhand import linformer_attention, softmax_attention

# Three tokens: the first two queries cannot tell tokens 1 and 2 apart, the third can.
Q = [[1, 1, 0, 0], [0, 0, 1, 1], [2, 0, 0, 0]]
K = [[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 1]]
V = [[2, 0], [0, 4], [2, 0]]
COMPRESS = [["1/2", "1/2", 0], [0, 0, 1]]


@st.composite
def heads(draw, entries=small_rationals):
    """Draw queries, keys and values whose shapes match."""
    n_q, n_k, d, d_v = (draw(sides) for _ in range(4))
    return tuple(
        draw(matrices(st.just(m), st.just(n), entries)) for m, n in ((n_q, d), (n_k, d), (n_k, d_v))
    )


@st.composite
def compressed_heads(draw, entries=small_rationals):
    """Draw them with a compression."""
    q, k, v = draw(heads(entries))
    return q, k, v, draw(matrices(st.integers(1, len(k)), st.just(len(k)), entries))


# Judges that share nothing with the package


def read(latex):
    return read_number(latex).subs(sympy.Symbol("e"), E)


def read_rows(latex):
    return [matrix.subs(sympy.Symbol("e"), E) for matrix in read_matrices(latex)]


def plain_softmax(q, k, v):
    """Return scores, weights and output by loops, to 60 digits, from fractions."""
    q, k, v = fractions(q), fractions(k), fractions(v)
    scores = plain_product(q, list(zip(*k, strict=True)))
    with mpmath.workdps(60):
        number = [[mpmath.mpf(entry.numerator) / entry.denominator for entry in row] for row in v]
        weights = []
        for row in scores:
            scaled = [
                mpmath.mpf(entry.numerator) / entry.denominator / mpmath.sqrt(len(q[0]))
                for entry in row
            ]
            powers = [mpmath.exp(entry) for entry in scaled]
            weights.append([power / sum(powers) for power in powers])
        return scores, weights, plain_product(weights, number)


def assert_near(exact, judged, tolerance="1e-45"):
    """Compare an exact matrix with numbers of 60 digits."""
    assert exact.shape == (len(judged), len(judged[0]))
    for row, expected in zip(exact.tolist(), judged, strict=True):
        for entry, other in zip(row, expected, strict=True):
            with mpmath.workdps(60):
                assert abs(mpmath.mpf(str(entry.evalf(60))) - other) < mpmath.mpf(tolerance)


def assert_rounded(printed, exact):
    assert printed.shape == exact.shape
    for shown, entry in zip(printed, exact, strict=True):
        assert abs(entry.evalf(50) - shown) < 0.0005 + 1e-12


def check_product(step, left, right, *names):
    """Check a printed product: its name, its factors as they went in, and its result."""
    lines = read_lines(step.latex)
    *definition, factors, product = (line[2] for line in lines)
    assert (lines[0][0], *definition) == names
    assert {line[:2] for line in lines[1:]} == {("", "=")}
    assert read_matrices(factors) == [left, right]
    assert read_matrices(product) == [step.value]
    assert step.value == Matrix(plain_product(fractions(left), fractions(right)))


def check_rows_over(lines, numerators, divisors):
    """Check printed rows, each over a number."""
    for row, line in enumerate(lines):
        (printed,) = read_rows(line)
        before = line.split(r"\begin")[0].strip()
        divisor = 1 / read(before) if before else 1
        assert before != r"\frac{1}{1}"
        assert_equal_to_60_digits(printed, numerators[row, :])
        assert_equal_to_60_digits([divisor], [divisors[row]])


def check_softmax_steps(steps, q, k, v, key_name="K", value_name="V"):
    """Check the five steps that both functions share; return weights and output."""
    scores, scaled, raised, weights, output = steps
    check_product(scores, q, k.T, rf"Q {key_name}^\top")

    d = q.cols
    assert f"d = {d} " in scaled.plain
    ((*names, result),) = read_lines(scaled.latex)
    assert names == [rf"\frac{{1}}{{\sqrt{{d}}}} Q {key_name}^\top", "="]
    assert read_rows(result) == [scaled.value]
    assert all(
        entry == score / sqrt(d) for entry, score in zip(scaled.value, scores.value, strict=True)
    )

    powers, sums = raised.value
    (*names, matrix), *sum_lines = read_lines(raised.latex)
    key = "k_j" if key_name == "K" else r"\bar k_j"
    assert names == [rf"e^{{q_i^\top {key} / \sqrt{{d}}}}", "="]
    assert read_rows(matrix) == [powers]
    assert all(power == exp(entry) for power, entry in zip(powers, scaled.value, strict=True))
    assert len(sum_lines) == len(sums) == q.rows
    for row, (name, _, line) in enumerate(sum_lines):
        assert name == f"z_{{{row + 1}}}"
        assert sums[row] == sum(powers[row, :])
        *written, collected = line.split(" = ")
        assert read(collected) == sums[row]
        assert bool(written) == (
            len(set(powers[row, :])) < k.rows
        )  # written out where something is collected
        for terms in written:
            assert [read(term) for term in terms.split(" + ")] == list(powers[row, :])

    # each row over its sum; where a power of e cancels, once more without it
    *weight_lines, (name, relation, decimals) = read_lines(weights.latex)
    assert (name, relation) == ("P", r"\approx")
    assert_rounded(read_matrices(decimals)[0], weights.value)
    starts = [i for i, line in enumerate(weight_lines) if line[0]]
    assert [weight_lines[i][0] for i in starts] == [
        rf"p_{{{row + 1}}}^\top" for row in range(q.rows)
    ]
    check_rows_over([weight_lines[i][2] for i in starts], powers, sums)
    ends = [weight_lines[i - 1][2] for i in [*starts[1:], len(weight_lines)]]
    lowest = [min(scores.value[row, :]) for row in range(q.rows)]
    reduced = Matrix(*powers.shape, lambda i, j: exp((scores.value[i, j] - lowest[i]) / sqrt(d)))
    totals = Matrix([sum(reduced[row, :]) for row in range(q.rows)])
    check_rows_over(ends, reduced, totals)
    assert len(weight_lines) == q.rows + sum(low != 0 for low in lowest)
    assert ("cancels" in weights.plain) == any(low != 0 for low in lowest)
    for row in range(q.rows):
        assert (
            sympy.Add(*(entry * totals[row] for entry in weights.value[row, :])) == totals[row]
        )  # they add up to 1

    (name, _, matrix), *output_lines, (approximate, relation, decimals) = read_lines(output.latex)
    assert (name, approximate, relation) == (value_name, f"P {value_name}", r"\approx")
    assert read_matrices(matrix) == [v]
    assert [line[0] for line in output_lines] == [
        rf"p_{{{row + 1}}}^\top {value_name}" for row in range(q.rows)
    ]
    check_rows_over([line[2] for line in output_lines], reduced * v, totals)
    assert_rounded(read_matrices(decimals)[0], output.value)
    assert f"multiply P by {value_name}." in output.plain

    judged_scores, judged_weights, judged_output = plain_softmax(q, k, v)
    assert_near(scores.value, judged_scores)
    assert_near(weights.value, judged_weights)
    assert_near(output.value, judged_output)
    return weights.value, output.value


def check_counts(lines, **sizes):
    """Check that each line's letters give, with these sizes, the numbers put in and the total."""
    totals = []
    for letters, relation, numbers in lines:
        formula = read_number(letters.replace(" (", " * (")).subs(sizes)
        assert relation == "="
        assert all(read(number) == formula for number in numbers.split(" = "))
        totals.append(formula)
    return totals


def check_check(step, weights, n_keys):
    """Check the step that adds up the rows of P and counts its numbers."""
    (left, _, right), *counts = read_lines(step.latex)
    assert left.startswith("P ")
    assert read_matrices(left) == [sympy.ones(weights.cols, 1)]
    assert read_matrices(right) == [sympy.ones(weights.rows, 1)]
    totals = check_counts(counts, n_q=weights.rows, n_k=n_keys, k=weights.cols)
    assert totals[0] == len(weights)
    assert totals[-1] == weights.rows * n_keys
    assert step.plain.endswith(f"Numbers in P: {' in place of '.join(map(str, totals))}.")
    return totals


def multiplications(*shapes):
    """Count the multiplications of products of matrices, each given as (rows, inner, columns)."""
    return sum(math.prod(shape) for shape in shapes)


# Softmax attention


def check_softmax(q, k, v):
    worked = softmax_attention(q, k, v)
    q, k, v = (Matrix(fractions(a)) for a in (q, k, v))
    *steps, check, work = worked.steps
    weights, output = check_softmax_steps(steps, q, k, v)
    assert worked.result == output
    assert output.shape == (q.rows, v.cols)
    assert check_check(check, weights, k.rows) == [check.value]
    scores = multiplications((q.rows, q.cols, k.rows))
    averages = multiplications((q.rows, k.rows, v.cols))
    assert work.value == (scores, averages, scores + averages)
    assert list(map(int, re.findall(r"\d+", work.plain))) == list(work.value)
    counted = check_counts(read_lines(work.latex), n_q=q.rows, n_k=k.rows, d=q.cols, d_v=v.cols)
    assert counted == [scores, averages]


def test_softmax_by_hand():
    worked = softmax_attention(Q, K, V)
    e2 = exp(2)
    z = Matrix([2 * E + 1, E + 2, e2 + 2])
    assert [step.value for step in worked.steps] == [
        Matrix([[2, 2, 0], [0, 0, 2], [4, 0, 0]]),
        Matrix([[1, 1, 0], [0, 0, 1], [2, 0, 0]]),
        (Matrix([[E, E, 1], [1, 1, E], [e2, 1, 1]]), z),
        Matrix(
            [
                [E / z[0], E / z[0], 1 / z[0]],
                [1 / z[1], 1 / z[1], E / z[1]],
                [e2 / z[2], 1 / z[2], 1 / z[2]],
            ]
        ),
        worked.result,
        9,
        (36, 18, 54),
    ]
    above = Matrix([[2 * E + 2, 4 * E], [2 * E + 2, 4], [2 * e2 + 2, 4]])
    assert worked.result == Matrix(3, 2, lambda i, j: above[i, j] / z[i])
    shown = [read_matrices(worked.steps[i].latex)[-1] for i in (3, 4)]
    assert shown[0] == Matrix(
        [["0.422", "0.422", "0.155"], ["0.212", "0.212", "0.576"], ["0.787", "0.107", "0.107"]]
    )
    assert shown[1] == Matrix([["1.155", "1.689"], ["1.576", "0.848"], ["1.787", "0.426"]])
    assert r"z_{1} &= e + e + 1 = 1 + 2 e \cr" in worked.steps[2].latex
    assert (
        r"p_{3}^\top &= \frac{1}{2 + e^{2}} \begin{pmatrix} e^{2} & 1 & 1 \end{pmatrix}"
        in worked.steps[3].latex
    )
    check_softmax(Q, K, V)


def test_roots_stay_exact():
    worked = softmax_attention([[1, 0], [1, -1]], [[1, 1], [2, 0]], [[1], ["1/3"]])
    assert worked.steps[1].value == sqrt(2) * Matrix([["1/2", 1], [0, 1]])
    x = exp(sqrt(2) / 2)
    assert worked.steps[3].value == Matrix(
        [[1 / (1 + x), x / (1 + x)], [1 / (1 + x**2), x**2 / (1 + x**2)]]
    )
    assert worked.result == Matrix([(3 + x) / (3 + 3 * x), (3 + x**2) / (3 + 3 * x**2)])
    assert worked.steps[3].plain.endswith("A power of e that is a factor of a whole row cancels.")
    check_softmax([[1, 0], [1, -1]], [[1, 1], [2, 0]], [[1], ["1/3"]])


@settings(max_examples=25)
@given(heads())
def test_softmax_steps_follow(head):
    check_softmax(*head)


@pytest.mark.parametrize(
    "head",
    [
        ([[0]], [[0]], [[0]]),
        ([[3]], [[-2]], [["5/7"]]),  # one key has the weight 1
        ([[1]] * 3, [[1]] * 4, [[4], [0], [1], [3]]),  # equal scores: the mean
        ([[1], [-1]], [[1], [0], [-1]], [[1], [2], [3]]),
        ([[0, 1, 0]], [[1, 2, 3]] * 2, [[-1, 1], [1, 1]]),
        ([[60]], [[1], [-1]], [[1], [2]]),
        ([[1]], [[1], [0], [-1]], [[0], [0], [2]]),  # a negative power of e cancels
    ],
    ids=str,
)
def test_softmax_edge_cases(head):
    check_softmax(*head)


@pytest.mark.parametrize(
    ("values", "output"),
    [
        ([4, 4, 4, 4], 4),
        (["-2/3"] * 4, Rational(-2, 3)),
        ([0, 0, 0, 0], 0),
        ([4, 4, 2, 2], (4 * E + 2) / (E + 1)),
        ([1, -1, 2, -2], 0),
        (["1/2", 0, 0, "1/3"], (3 * E + 2) / (12 * E + 12)),
    ],
)
def test_common_factors_cancel(values, output):
    assert softmax_attention(
        [[1]], [[1], [1], [0], [0]], [[value] for value in values]
    ).result == Matrix([output])


# Linformer


def check_linformer(q, k, v, e):
    worked = linformer_attention(q, k, v, e)
    q, k, v, e = (Matrix(fractions(a)) for a in (q, k, v, e))
    short_keys, short_values, *steps, check, work = worked.steps
    check_product(short_keys, e, k, "E K")
    check_product(short_values, e, v, "E V")
    weights, output = check_softmax_steps(
        steps, q, short_keys.value, short_values.value, "(E K)", "E V"
    )
    assert worked.result == output
    assert output.shape == (q.rows, v.cols)
    assert weights.shape == (q.rows, e.rows)
    assert check_check(check, weights, k.rows) == list(check.value)
    before = multiplications((e.rows, k.rows, q.cols), (e.rows, k.rows, v.cols))
    after = multiplications((q.rows, q.cols, e.rows), (q.rows, e.rows, v.cols))
    full = multiplications((q.rows, q.cols, k.rows), (q.rows, k.rows, v.cols))
    few, break_even = before + after, work.value[-1]
    assert work.value == (before, after, few, full, break_even)
    said = (
        "saves nothing"
        if few == full
        else f"saves {full - few}"
        if few < full
        else f"costs {few - full} more"
    )
    assert f"together {few} in place of {full}, which {said}." in work.plain
    counted = check_counts(
        read_lines(work.latex), n_q=q.rows, n_k=k.rows, k=e.rows, d=q.cols, d_v=v.cols
    )
    assert counted == [before, after, full, break_even]
    assert (few < full) == (e.rows < break_even)
    assert (few == full) == (e.rows == break_even)


def test_linformer_by_hand():
    worked = linformer_attention(Q, K, V, COMPRESS)
    above = [(E + 2) / (E + 1), 2 * E / (E + 1)]
    powers = Matrix([[E, 1], [1, E], [E, 1]])
    assert [step.value for step in worked.steps] == [
        Matrix([[1, 1, 0, 0], [0, 0, 1, 1]]),
        Matrix([[1, 2], [2, 0]]),
        Matrix([[2, 0], [0, 2], [2, 0]]),
        Matrix([[1, 0], [0, 1], [1, 0]]),
        (powers, Matrix([E + 1, E + 1, E + 1])),
        powers / (E + 1),
        worked.result,
        (6, 9),
        (36, 36, 72, 54, Rational(3, 2)),
    ]
    assert worked.result == Matrix([above, [(2 * E + 1) / (E + 1), 2 / (E + 1)], above])
    shown = [read_matrices(worked.steps[i].latex)[-1] for i in (5, 6)]
    assert shown[0] == Matrix([["0.731", "0.269"], ["0.269", "0.731"], ["0.731", "0.269"]])
    assert shown[1] == Matrix([["1.269", "1.462"], ["1.731", "0.538"], ["1.269", "1.462"]])
    assert r"z_{1} &= 1 + e \cr" in worked.steps[4].latex
    check_linformer(Q, K, V, COMPRESS)


@settings(max_examples=25)
@given(compressed_heads())
def test_linformer_steps_follow(head):
    check_linformer(*head)


@settings(max_examples=12)
@given(compressed_heads(small_integers))
def test_pytorch_agrees(head):
    q, k, v, e = head
    *tensors, e_tensor = (torch.tensor(a, dtype=torch.float64) for a in head)
    tensors = [one[None, None] for one in tensors]
    for exact, numeric in (
        (softmax_attention(q, k, v), attention.softmax_attention(*tensors)),
        (linformer_attention(q, k, v, e), linformer.linformer_attention(*tensors, e_tensor)),
    ):
        ours = np.array(exact.result.evalf(30).tolist(), dtype=float)
        np.testing.assert_allclose(ours, numeric[0, 0].numpy(), rtol=1e-12, atol=1e-12)
    ours = np.array(softmax_attention(q, k, v).steps[3].value.evalf(30).tolist(), dtype=float)
    np.testing.assert_allclose(
        ours, attention.attention_weights(*tensors[:2])[0, 0].numpy(), rtol=1e-12, atol=1e-12
    )


def test_long_numbers():
    long = 10**20 - 1
    worked = softmax_attention(
        [[long, -long]], [[long, 0], [0, long], [long, 1]], [[long], [1], [-long]]
    )
    assert worked.steps[3].latex.endswith(
        r"P &\approx \begin{pmatrix} 1.000 & 0.000 & 0.000 \end{pmatrix} \end{aligned}"
    )
    assert worked.steps[4].latex.endswith(
        rf"P V &\approx \begin{{pmatrix}} {long}.000 \end{{pmatrix}} \end{{aligned}}"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 2]], [[1]], [[1]]),
         "k must be as wide as q, got k of shape (1, 1) and q of shape (1, 2)"),
        (([[1]], [[1]], [[1], [2]]),
         "v must have a row for each key, got v of shape (2, 1) and k of shape (1, 1)"),
        (([[1]], *[[[1], [2]]] * 2, [[1]]),
         "e must have a column for each key, got e of shape (1, 1) and k of shape (2, 1)"),
        (([[1]], *[[[1], [2]]] * 2, [[1, 2]] * 3),
         "e must have at most n_keys = 2 rows, got shape (3, 2)"),
        (([[1, 2]], [[1]], [[1]], [[1]]),
         "k must be as wide as q, got k of shape (1, 1) and q of shape (1, 2)"),
    ],
)  # fmt: skip
def test_bad_shapes_are_refused(arguments, message):
    function = softmax_attention if len(arguments) == 3 else linformer_attention
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        function(*arguments)
