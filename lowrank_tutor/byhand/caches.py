r"""Work a latent and an update of low rank number by number.

Chapter ``book/08-caches.md``; readers import both functions from ``lowrank_tutor.byhand``. Letters: C holds latents, a
row for each token, and $W_{UK}$ turns them into keys; W is a weight and $\tfrac{\alpha}{r} B A$ its update.
"""

from typing import Any

from sympy import Matrix

from lowrank_tutor.byhand.exact import as_exact_matrix, as_exact_number, as_exact_vector
from lowrank_tutor.byhand.tex import tex_factor, tex_lines, tex_matrix, tex_product
from lowrank_tutor.byhand.worked import Step, Worked, saving

UPDATE = r"\frac{\alpha}{r} B"


def latent_scores(c: Any, w_uk: Any, q: Any) -> Worked:
    r"""Score a query against keys made from latents, by both routes: $q^\top (W_{UK}^\top c) = (W_{UK} q)^\top c$.

    The values of the steps: the keys (n, d_h); the scores (n, 1); the query brought to the latents (d_c, 1); the scores
    again; the numbers stored as keys and as latents; the multiplications of both routes. The result is the scores.

    Parameters
    ----------
    c : (n, d_c) exact numbers
        Latents, one a row.
    w_uk : (d_c, d_h) exact numbers
        Turns latents into keys, $K = C W_{UK}$.
    q : (d_h,) exact numbers
        The query.

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
        Step("Make the keys from the latents.", tex_product("C W_{UK}", latents, up, keys), keys),
        Step("Score each key against the query.", tex_product("K q", keys, query, scores), scores),
        Step(
            "Now the other way: map the query to the latents.",
            tex_product("W_{UK} q", up, query, absorbed),
            absorbed,
        ),
        Step(
            "Score each latent against the mapped query. The scores are the same, and no key was made.",
            tex_product("C (W_{UK} q)", latents, absorbed, again),
            again,
        ),
        Step(
            f"The keys are {n * d_h} numbers to store and the latents {n * d_c}, {saving(n * d_c, n * d_h)}.",
            tex_lines(("n d_h", rf"{n} \cdot {d_h} = {n * d_h}"), ("n d_c", rf"{n} \cdot {d_c} = {n * d_c}")),
            (n * d_h, n * d_c),
        ),
        Step(
            f"The keys cost {long} multiplications and the latents {short}, {saving(short, long)}.",
            tex_lines(("n d_c d_h + n d_h", str(long)), ("d_c d_h + n d_c", str(short))),
            (long, short),
        ),
    )
    return Worked(steps, scores)


def lora(w: Any, b: Any, a: Any, x: Any, alpha: Any = None) -> Worked:
    r"""Map a vector with a weight and its update, first beside each other, then merged.

    $W x + \tfrac{\alpha}{r} B (A x) = (W + \tfrac{\alpha}{r} B A) x$.

    The values of the steps: W x (m, 1); A x (r, 1); what the update adds (m, 1); the sum (m, 1); the merged weight
    (m, n); its product with x (m, 1); the numbers of the update, those of the weight. The result is the output.

    Parameters
    ----------
    w : (m, n) exact numbers
        The weight.
    b : (m, r) exact numbers
        The columns that the update adds.
    a : (r, n) exact numbers
        The rows by which it reads the input.
    x : (n,) exact numbers
        The input.
    alpha : exact number, optional
        The strength of the update; by default r, which makes its factor 1.

    Examples
    --------
    >>> lora(w=[[2, 0], [0, 1]], b=[[1], [2]], a=[[1, -1]], x=[1, 2]).result
    Matrix([
    [1],
    [0]])
    """
    weight, left, right, vector = _read_update(w, b, a, x)
    (m, n), r = weight.shape, right.rows
    factor = as_exact_number("alpha", r if alpha is None else alpha) / r
    plain, seen = weight * vector, right * vector
    added, merged = factor * left * seen, weight + factor * left * right
    output, again = plain + added, merged * vector
    kept, full = r * (m + n), m * n
    scaled = "" if factor == 1 else f"{tex_factor(factor)} "
    steps = (
        Step("Map $x$ with the weight.", tex_product("W x", weight, vector, plain), plain),
        Step("Let $A$ read the input.", tex_product("A x", right, vector, seen), seen),
        Step(
            "Turn that into what the update adds to the output.",
            tex_lines((rf"{UPDATE} (A x)", f"{scaled}{tex_matrix(left)} {tex_matrix(seen)}"), ("", tex_matrix(added))),
            added,
        ),
        Step(
            "Add the two. This is the output.",
            rf"W x + {UPDATE} (A x) = {tex_matrix(plain)} + {tex_matrix(added)} = {tex_matrix(output)}",
            output,
        ),
        Step(
            "Merge the update into the weight.",
            tex_lines(
                (rf"W + {UPDATE} A", f"{tex_matrix(weight)} + {scaled}{tex_matrix(left)} {tex_matrix(right)}"),
                ("", tex_matrix(merged)),
            ),
            merged,
        ),
        Step(
            "Map $x$ with the merged weight. The output is the same.",
            tex_product(rf"\left(W + {UPDATE} A\right) x", merged, vector, again),
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
