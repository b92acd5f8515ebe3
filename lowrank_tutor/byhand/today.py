r"""What does a latent, an update of low rank or a state of fixed size do, number by number? Four examples.

Chapters ``book/08-caches.md`` (`latent_scores`, `lora`) and ``book/09-states.md`` (`delta_rule`, `semiseparable`);
readers import all four from ``lowrank_tutor.byhand``. Letters: C holds latents, a row for each token, and $W_{UK}$
makes keys of them; W is a weight and $s B A$ its update; S is a state, written by keys $k_t$ and values $v_t$; L is a
mask that decays, $L_{ij} = a_{j+1} \cdots a_i$.
"""

from typing import Any

import sympy
from sympy import Integer, Matrix

from lowrank_tutor.byhand.exact import as_exact_matrix, as_exact_number, as_exact_vector, check_length
from lowrank_tutor.byhand.tex import tex_factor, tex_lines, tex_matrix, tex_number
from lowrank_tutor.byhand.worked import Step, Worked, saving


def latent_scores(c: Any, w_uk: Any, q: Any) -> Worked:
    r"""Score a query against keys made of latents, by both routes: $q^\top (W_{UK}^\top c) = (W_{UK} q)^\top c$.

    Parameters
    ----------
    c : (n, d_c) exact numbers
        Latents, one a row.
    w_uk : (d_c, d_h) exact numbers
        Makes the keys, $K = C W_{UK}$.
    q : (d_h,) exact numbers
        The query.

    Returns
    -------
    Worked
        The values of the steps: the keys (n, d_h); the scores (n, 1); the query brought to the latents (d_c, 1); the
        scores again; the numbers stored as keys and as latents; the multiplications of both routes. The result is the
        scores.

    Examples
    --------
    >>> latent_scores(c=[[1], [2], [-1]], w_uk=[[2, 3]], q=[1, -1]).result
    Matrix([
    [-1],
    [-2],
    [ 1]])
    """
    latents, up = as_exact_matrix("c", c), as_exact_matrix("w_uk", w_uk)
    query = as_exact_vector("q", q)
    if up.rows != latents.cols:
        raise ValueError(f"w_uk must have a row for each number of a latent, got shapes {up.shape} and {latents.shape}")
    if query.rows != up.cols:
        raise ValueError(f"q must be as long as w_uk is wide, got length {query.rows} and shape {up.shape}")
    keys, absorbed = latents * up, up * query
    scores, again = keys * query, latents * absorbed
    (n, d_c), d_h = latents.shape, up.cols
    long, short = n * d_c * d_h + n * d_h, d_c * d_h + n * d_c
    steps = (
        Step("Make the keys of the latents.", _product("C W_{UK}", latents, up, keys), keys),
        Step("Score each key against the query.", _product("K q", keys, query, scores), scores),
        Step(
            "Now the other way. Bring the query to the latents.",
            _product("W_{UK} q", up, query, absorbed),
            absorbed,
        ),
        Step(
            "Score each latent against that. The scores are the same, and no key was made.",
            _product("C (W_{UK} q)", latents, absorbed, again),
            again,
        ),
        Step(
            f"Keys are {n * d_h} numbers to store and latents {n * d_c}, {saving(n * d_c, n * d_h)}.",
            tex_lines(("n d_h", rf"{n} \cdot {d_h} = {n * d_h}"), ("n d_c", rf"{n} \cdot {d_c} = {n * d_c}")),
            (n * d_h, n * d_c),
        ),
        Step(
            f"Multiplications: {long} by way of the keys and {short} by way of the latents, {saving(short, long)}.",
            tex_lines(("n d_c d_h + n d_h", str(long)), ("d_c d_h + n d_c", str(short))),
            (long, short),
        ),
    )
    return Worked(steps, scores)


def lora(w: Any, b: Any, a: Any, x: Any, s: Any = 1) -> Worked:
    r"""Map a vector with a weight and its update, beside each other and merged: $W x + s B (A x) = (W + s B A) x$.

    Parameters
    ----------
    w : (m, n) exact numbers
        The weight.
    b : (m, r) exact numbers
        What the update adds.
    a : (r, n) exact numbers
        What the update looks at.
    x : (n,) exact numbers
        The input.
    s : exact number
        The factor of the update.

    Returns
    -------
    Worked
        The values of the steps: W x (m, 1); A x (r, 1); s B (A x) (m, 1); the sum (m, 1); the merged weight (m, n); its
        product with x (m, 1); the numbers of the update, those of the weight. The result is the output.

    Examples
    --------
    >>> lora(w=[[2, 0], [0, 1]], b=[[1], [2]], a=[[1, -1]], x=[1, 2]).result
    Matrix([
    [1],
    [0]])
    """
    weight, left, right, vector = _read_update(w, b, a, x)
    factor = as_exact_number("s", s)
    (m, n), r = weight.shape, right.rows
    plain, seen = weight * vector, right * vector
    added, merged = factor * left * seen, weight + factor * left * right
    output, again = plain + added, merged * vector
    kept, full = r * (m + n), m * n
    scaled = "" if factor == 1 else f"{tex_factor(factor)} "
    steps = (
        Step("Map $x$ with the weight.", _product("W x", weight, vector, plain), plain),
        Step("See what the update looks at.", _product("A x", right, vector, seen), seen),
        Step(
            "Turn that into what the update adds.",
            tex_lines((r"s B (A x)", f"{scaled}{tex_matrix(left)} {tex_matrix(seen)}"), ("", tex_matrix(added))),
            added,
        ),
        Step(
            "Add both. This is the output.",
            rf"W x + s B (A x) = {tex_matrix(plain)} + {tex_matrix(added)} = {tex_matrix(output)}",
            output,
        ),
        Step(
            "Merge the update into the weight.",
            tex_lines(
                ("W + s B A", f"{tex_matrix(weight)} + {scaled}{tex_matrix(left)} {tex_matrix(right)}"),
                ("", tex_matrix(merged)),
            ),
            merged,
        ),
        Step(
            "Map $x$ with the merged weight. It is the same.",
            _product("(W + s B A) x", merged, vector, again),
            again,
        ),
        Step(
            f"The update has {kept} numbers to learn and the weight {full}, {saving(kept, full)}.",
            tex_lines(("r (m + n)", rf"{r} \cdot ({m} + {n}) = {kept}"), ("m n", rf"{m} \cdot {n} = {full}")),
            (kept, full),
        ),
    )
    return Worked(steps, output)


def _read_update(w: Any, b: Any, a: Any, x: Any) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    weight, left, right = as_exact_matrix("w", w), as_exact_matrix("b", b), as_exact_matrix("a", a)
    vector = as_exact_vector("x", x)
    (m, n), r = weight.shape, right.rows
    if left.shape != (m, r) or right.cols != n:
        raise ValueError(
            f"b and a must be of shapes (m, r) and (r, n) where w is (m, n), got shapes {left.shape}, {right.shape} "
            f"and {weight.shape}"
        )
    if vector.rows != n:
        raise ValueError(f"x must be as long as w is wide, got length {vector.rows} and shape {weight.shape}")
    return weight, left, right, vector


def delta_rule(k: Any, v: Any, beta: Any = 1) -> Worked:
    r"""Write pairs into a state by the delta rule, then read them all: $S \leftarrow S + \beta k (v - S^\top k)^\top$.

    Each pair takes two steps: what the state already holds under the key, and the state after the difference was added.

    Parameters
    ----------
    k : (n, d) exact numbers
        Keys, one a row.
    v : (n, d_v) exact numbers
        Values.
    beta : exact number
        The share of the difference that is added. With 1 and a key of length 1 the value is stored exactly.

    Returns
    -------
    Worked
        The values of the steps: for each pair what its key reads before it is written (1, d_v), and the state after
        (d, d_v); then what all keys read at the end (n, d_v), and what they would read from the plain sum of all
        $k v^\top$ (n, d_v). The result is the state.

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
            "Now read the state with all keys, one a row.",
            rf"K S = {tex_matrix(keys)} {tex_matrix(state)} = {tex_matrix(read)}",
            read,
        )
    )
    steps.append(
        Step(
            "A plain sum of all products of key and value would be read like this.",
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
            f"Value {number} should be there instead: add the difference under the key.",
            tex_lines(
                ("S", rf"{tex_matrix(state)} + {scaled}{tex_matrix(key.T)} {tex_matrix(value - held)}"),
                ("", tex_matrix(new)),
            ),
            new,
        ),
    )


def semiseparable(a: Any, x: Any) -> Worked:
    r"""Write a recurrence as a matrix, $y_i = a_i y_{i-1} + x_i$ as $y = L x$, and see that its blocks have rank one.

    Parameters
    ----------
    a : (n,) exact numbers
        What is kept of the state at each time; the first is never used.
    x : (n,) exact numbers
        The inputs.

    Returns
    -------
    Worked
        The values of the steps: L (n, n); each block below the diagonal, of the rows from i on and the columns before
        i, for i from 2 to n; L x (n, 1); the recurrence's y (n, 1); the multiplications of both. The result is y.

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
            "What is left at time $i$ of what came at time $j$ is the product of the numbers from time $j + 1$ to $i$.",
            rf"L = {tex_matrix(mask)}",
            mask,
        )
    ]
    for i in range(1, n):
        block = mask[i:, :i]
        column, row = mask[i:, i], decays[i] * mask[i - 1, :i]
        steps.append(
            Step(
                f"Take the rows from {i + 1} on and the columns before: one column times one row.",
                rf"{tex_matrix(block)} = {tex_matrix(column)} {tex_matrix(row)}",
                block,
            )
        )
    product, recurrence = mask * inputs, _recurrence_step(decays, inputs)
    many, few = n * (n + 1) // 2, n - 1
    steps += [
        Step("Multiply $L$ with $x$.", _product("L x", mask, inputs, product), product),
        recurrence,
        Step(
            f"Multiplications: {many} with the lower half of $L$ and {few} with the recurrence, {saving(few, many)}.",
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
    return Step("The recurrence gives the same, with one number to remember.", tex_lines(*lines), output)


def _product(name: str, left: Matrix, right: Matrix, product: Matrix) -> str:
    return tex_lines((name, f"{tex_matrix(left)} {tex_matrix(right)}"), ("", tex_matrix(product)))
