r"""Work a state of fixed size number by number, and a recurrence as a matrix.

Chapter ``book/09-states.md``; readers import both functions from ``lowrank_tutor.byhand``. Letters: S is a state,
into which keys $k_t$ and values $v_t$ are written; L is a recurrence as a matrix, $L_{ij} = a_{j+1} \cdots a_i$.
"""

from typing import Any

import sympy
from sympy import Integer, Matrix

from lowrank_tutor.byhand.exact import as_exact_matrix, as_exact_number, as_exact_vector, check_length
from lowrank_tutor.byhand.tex import tex_factor, tex_lines, tex_matrix, tex_number, tex_product
from lowrank_tutor.byhand.worked import Step, Worked, saving


def delta_rule(k: Any, v: Any, beta: Any = 1) -> Worked:
    r"""Write pairs into a state by the delta rule, then read them all: $S \leftarrow S + \beta k (v - S^\top k)^\top$.

    Each pair takes two steps: what the state already holds under the key, and the state with the difference added.

    The values of the steps: for each pair what its key reads before it is written (1, d_v), and the state after (d,
    d_v); then what all keys read at the end (n, d_v), and what they would read from the plain sum of all $k v^\top$ (n,
    d_v). The result is the state.

    Parameters
    ----------
    k : (n, d) exact numbers
        Keys, one a row.
    v : (n, d_v) exact numbers
        Values.
    beta : exact number
        The share of the difference that is added. With 1 and a key of length 1 the value is stored exactly.

    Examples
    --------
    >>> delta_rule(k=[[1, 0], ["3/5", "4/5"]], v=[[5], [0]]).result
    Matrix([
    [ 16/5],
    [-12/5]])
    """
    keys, values, share = as_exact_matrix("k", k), as_exact_matrix("v", v), as_exact_number("beta", beta)
    if values.rows != keys.rows:
        raise ValueError(f"v must have a row for each key, got v of shape {values.shape} and k of shape {keys.shape}")
    state: Matrix = sympy.zeros(keys.cols, values.cols)
    steps: list[Step] = []
    for t in range(keys.rows):
        steps += _write_steps(t + 1, state, keys[t, :], values[t, :], share)
        state = steps[-1].value
    read, plain = keys * state, keys * (keys.T * values)
    steps.append(
        Step(
            "Now read the state with all keys, one per row.",
            rf"K S = {tex_matrix(keys)} {tex_matrix(state)} = {tex_matrix(read)}",
            read,
        )
    )
    steps.append(
        Step(
            "From the plain sum of all products of key and value, the keys would read this instead of $V$.",
            tex_lines((r"K (K^\top V)", tex_matrix(plain)), ("V", tex_matrix(values))),
            plain,
        )
    )
    return Worked(tuple(steps), state)


def _write_steps(number: int, state: Matrix, key: Matrix, value: Matrix, share: Any) -> tuple[Step, Step]:
    """Read a state with a key, (1, d), and write the value, (1, d_v), under it."""
    held = key * state
    new = state + share * key.T * (value - held)
    check_length("k and v", *new)
    scaled = "" if share == 1 else f"{tex_factor(share)} "
    return (
        Step(
            f"Read the state with key {number}, before anything is written under it.",
            rf"k_{number}^\top S = {tex_matrix(key)} {tex_matrix(state)} = {tex_matrix(held)}",
            held,
        ),
        Step(
            f"It should read value {number}: add the difference under the key.",
            tex_lines(
                ("S", rf"{tex_matrix(state)} + {scaled}{tex_matrix(key.T)} {tex_matrix(value - held)}"),
                ("", tex_matrix(new)),
            ),
            new,
        ),
    )


def semiseparable(a: Any, x: Any) -> Worked:
    r"""Write a recurrence as a matrix, $y_i = a_i y_{i-1} + x_i$ as $y = L x$, and show that its blocks have rank one.

    The values of the steps: L (n, n); each block below the diagonal, of the rows from i on and the columns before i,
    for i from 2 to n; L x (n, 1); the recurrence's y (n, 1); the multiplications that both need. The result is y.

    Parameters
    ----------
    a : (n,) exact numbers
        The factor of the state at each time; the first is never used.
    x : (n,) exact numbers
        The inputs.

    Examples
    --------
    >>> semiseparable(a=[1, 2, 1, 3], x=[1, 0, 1, 0]).result
    Matrix([
    [1],
    [2],
    [3],
    [9]])
    """
    decays, inputs = as_exact_vector("a", a), as_exact_vector("x", x)
    n = decays.rows
    if inputs.rows != n:
        raise ValueError(f"x must be as long as a, got lengths {inputs.rows} and {n}")
    if n < 2:
        raise ValueError(f"a must have at least two numbers, got {n}")

    def entry(i: int, j: int) -> Any:
        return Integer(0) if j > i else sympy.prod(decays[j + 1 : i + 1])

    mask = Matrix(n, n, entry)
    steps = [
        Step(
            "By time $i$, the input of time $j$ has been multiplied by every $a$ from time $j + 1$ to $i$.",
            rf"L = {tex_matrix(mask)}",
            mask,
        )
    ]
    for i in range(1, n):
        block = mask[i:, :i]
        column, row = mask[i:, i], decays[i] * mask[i - 1, :i]
        steps.append(
            Step(
                f"The rows from {i + 1} on and the columns before {i + 1} make a block: one column times one row.",
                rf"{tex_matrix(block)} = {tex_matrix(column)} {tex_matrix(row)}",
                block,
            )
        )
    product, recurrence = mask * inputs, _recurrence_step(decays, inputs)
    many, few = n * (n + 1) // 2, n - 1
    steps += [
        Step("Multiply $L$ by $x$.", tex_product("L x", mask, inputs, product), product),
        recurrence,
        Step(
            f"Multiplications: {many} with the triangle of $L$ and {few} with the recurrence, {saving(few, many)}.",
            tex_lines((r"\frac{n (n + 1)}{2}", str(many)), ("n - 1", str(few))),
            (many, few),
        ),
    ]
    return Worked(tuple(steps), recurrence.value)


def _recurrence_step(decays: Matrix, inputs: Matrix) -> Step:
    output = Matrix(inputs)
    lines = [("y_1", tex_number(output[0]))]
    for i in range(1, inputs.rows):
        before = output[i - 1]
        output[i] = decays[i] * before + inputs[i]
        terms = rf"{tex_factor(decays[i])} \cdot {tex_factor(before)} + {tex_factor(inputs[i])}"
        lines.append((f"y_{i + 1}", f"{terms} = {tex_number(output[i])}"))
    check_length("a and x", *output)
    return Step("The recurrence gives the same, and remembers only one number.", tex_lines(*lines), output)
