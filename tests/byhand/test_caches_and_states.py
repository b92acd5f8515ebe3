"""Each step of a latent, an update, a state and a mask follows from the one before."""

import re

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Matrix, Rational
from worked import (
    ends,
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

from lowrank_tutor.byhand import delta_rule, latent_scores, lora, semiseparable


def drawn(data, *shape):
    rows, columns = shape
    return data.draw(matrices(st.just(rows), st.just(columns)))


@settings(max_examples=15)
@given(sides, sides, sides, st.data())
def test_latent_steps_follow(n, d_c, d_h, data):
    c, w, q = drawn(data, n, d_c), drawn(data, d_c, d_h), drawn(data, d_h, 1)
    worked = latent_scores(c, w, [entry for (entry,) in q])
    keys, scores, absorbed, again, stored, work = (step.value for step in worked.steps)
    assert fractions(keys) == plain_product(c, w)
    assert fractions(absorbed) == plain_product(w, q)
    assert fractions(scores) == fractions(again) == plain_product(plain_product(c, w), q)
    assert worked.result == scores
    assert stored == (n * d_h, n * d_c)
    assert work == (n * d_c * d_h + n * d_h, d_c * d_h + n * d_c)
    for step in worked.steps[:4]:
        assert read_matrices(step.latex)[-1] == step.value


@settings(max_examples=15)
@given(sides, sides, sides, small_rationals, st.data())
def test_lora_steps_follow(m, n, r, alpha, data):
    s = alpha / r
    w, b, a, x = drawn(data, m, n), drawn(data, m, r), drawn(data, r, n), drawn(data, n, 1)
    worked = lora(w, b, a, [entry for (entry,) in x], alpha)
    plain, seen, added, output, merged, again, counts = (step.value for step in worked.steps)
    assert fractions(plain) == plain_product(w, x)
    assert fractions(seen) == plain_product(a, x)
    assert fractions(added) == [[s * y for y in row] for row in plain_product(b, plain_product(a, x))]
    full = plain_product(b, a)
    assert fractions(merged) == [[w[i][j] + s * full[i][j] for j in range(n)] for i in range(m)]
    assert output == again == worked.result == plain + added
    assert counts == (r * (m + n), m * n)
    for step in worked.steps[:6]:
        assert read_matrices(step.latex)[-1] == step.value
    assert (r"\left(" in worked.steps[2].latex.split(r"\begin{pmatrix}")[0]) == (s < 0 or s.denominator > 1)


@settings(max_examples=15)
@given(sides, sides, sides, small_rationals, st.data())
def test_delta_steps_follow(n, d, d_v, beta, data):
    k, v = drawn(data, n, d), drawn(data, n, d_v)
    worked = delta_rule(k, v, beta)
    state = [[Rational(0)] * d_v for _ in range(d)]
    for t in range(n):
        held = plain_product([k[t]], state)
        assert fractions(worked.steps[2 * t].value) == held
        missing = [v[t][j] - held[0][j] for j in range(d_v)]
        state = [[state[i][j] + beta * k[t][i] * missing[j] for j in range(d_v)] for i in range(d)]
        assert worked.steps[2 * t + 1].value == Matrix(state)
    read, plain = worked.steps[-2:]
    assert worked.result == Matrix(state)
    assert read.value == Matrix(k) * Matrix(state)
    assert fractions(plain.value) == plain_product(k, plain_product([*zip(*k, strict=True)], v))
    for step in worked.steps[:-1]:
        assert read_matrices(step.latex)[-1] == step.value


@settings(max_examples=15)
@given(st.lists(st.tuples(small_integers, small_rationals), min_size=2, max_size=5))
def test_semiseparable_steps_follow(numbers):
    a, x = ([one for one, _ in numbers], [other for _, other in numbers])
    worked = semiseparable(a, x)
    mask, *blocks, product, recurrence, work = worked.steps
    n, y = len(a), sympy.Integer(0)
    for i in range(n):
        y = a[i] * y + Rational(x[i].numerator, x[i].denominator)
        assert worked.result[i] == y
        assert read_number(read_lines(recurrence.latex)[i][2].rpartition("= ")[2]) == y
        for j in range(n):
            assert mask.value[i, j] == (sympy.prod(a[j + 1 : i + 1]) if j <= i else 0)
    assert len(blocks) == n - 1
    for i, block in enumerate(blocks, start=1):
        whole, left, right = read_matrices(block.latex)
        assert whole == block.value == mask.value[i:, :i] == left * right
    assert product.value == worked.result
    assert work.value == (n * (n + 1) // 2, n - 1)
    assert ends(work.latex) == [str(number) for number in work.value]


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (latent_scores, ([[1]], [[1], [2]], [1]),
         "w_uk must have a row for each number of a latent, got shapes (2, 1) and (1, 1)"),
        (latent_scores, ([[1]], [[1, 2]], [1]), "q must be as long as w_uk is wide, got length 1 and shape (1, 2)"),
        (latent_scores, ([[1]], [[1, 2]], [[1, 2]]), "q must be one vector, got shape (1, 2)"),
        (lora, ([[1, 2]], [[1], [2]], [[1, 2]], [1, 2]),
         "b and a must be of shapes (m, r) and (r, n) where w is (m, n), got shapes (2, 1), (1, 2) and (1, 2)"),
        (lora, ([[1, 2]], [[1]], [[1]], [1, 2]),
         "b and a must be of shapes (m, r) and (r, n) where w is (m, n), got shapes (1, 1), (1, 1) and (1, 2)"),
        (lora, ([[1, 2]], [[1]], [[1, 2]], [1]), "x must be as long as w is wide, got length 1 and shape (1, 2)"),
        (delta_rule, ([[1]], [[1], [2]]),
         "v must have a row for each key, got v of shape (2, 1) and k of shape (1, 1)"),
        (semiseparable, ([1, 2], [1]), "x must be as long as a, got lengths 1 and 2"),
        (semiseparable, ([1], [1]), "a must have at least two numbers, got 1"),
    ],
)  # fmt: skip
def test_bad_shapes_are_refused(function, arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        function(*arguments)
