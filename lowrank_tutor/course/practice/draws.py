"""Draw the numbers of each kind of problem.

A function returns, by name, the numbers that ``problems.md`` speaks of. A mistake whose number is
None does not occur with these numbers. ``draw`` is `whole` with a generator.
"""

# ruff: noqa: D103
from collections.abc import Callable
from fractions import Fraction
from math import ceil, gcd, isqrt, log
from typing import Any

import numpy as np

Draw = Callable[..., Any]
Names = dict[str, Any]
UNITS = Fraction(1, 5) * np.array([[3, 4], [4, 3], [-3, 4], [4, -3]])


def whole(rng: Any, low: int, high: int, count: int = 0, *, zero: bool = True) -> Any:
    """Draw whole numbers from ``low`` to ``high``; without a zero, ``high`` comes in its place.

    They are Python's own, which stay exact beside fractions.
    """
    drawn = rng.integers(low, high + 1, count or 1).astype(object)
    if not zero:
        drawn[drawn == 0] = high
    return drawn if count else drawn[0]


def rank_rows(draw: Draw) -> Names:
    a, b = draw(2, 4, 2)
    times = draw(1, 3)
    last = draw(1, 3) * draw(0, 1)
    first = np.array([1, *draw(-3, 3, 3)])
    second = np.array([0, *draw(1, 3, 2), draw(-2, 2)])
    left = np.array([0, 0, 0, last])
    third = left + times * second
    return {
        "a": a,
        "b": b,
        "times": times,
        "first": first,
        "second": second,
        "third": third,
        "left": left,
        "rows": [first, second + a * first, third + b * first],
        "rank": 2 + bool(last),
        "one": 1,
        "columns": 4,
        "two": 2 if last else None,
        "three": None if last else 3,
    }


def storage(draw: Draw) -> Names:
    m = 10 * draw(4, 40)
    n = 10 * draw(4, 40)
    k = draw(3, 15)
    table = m * n
    sheet = m + n
    after = ceil(table / sheet)
    return {
        "m": m,
        "n": n,
        "k": k,
        "table": table,
        "sheet": sheet,
        "held": k * sheet,
        "ratio": table / sheet,
        "most": after - 1,
        "half": k * m,
        "whole_tables": k * table,
        "after": after,
        "full": min(m, n),
    }


def project_line(draw: Draw) -> Names:
    f = draw(-3, 3, 3, zero=False)
    rest = np.cross(f, draw(-3, 3, 3))
    times = draw(2, 4)
    square = f @ f
    shadow = times * f
    inner = times * square
    return {
        "f": f,
        "x": shadow + rest,
        "inner": inner,
        "square": square,
        "shadow": shadow,
        "long": inner * f,
        "rest": rest,
    }


def svd_2x2(draw: Draw) -> Names:
    fits = False
    while not fits:
        a, b, c, d = draw(-7, 7, 4)
        # Squares of the sum and the difference of the singular values.
        squares = (a + d) ** 2 + (b - c) ** 2, (a - d) ** 2 + (b + c) ** 2
        one, other = map(isqrt, squares)
        fits = (
            (one**2, other**2) == squares
            and (one + other) % 2 == 0
            and one * other * (one - other) * (b or c) != 0
        )
    matrix = np.array([[a, b], [c, d]])
    gram = matrix.T @ matrix
    s = np.array([one + other, abs(one - other)]) // 2
    return {
        "matrix": matrix,
        "gram": gram,
        "trace": gram.trace(),
        "det": (a * d - b * c) ** 2,
        "squares": s**2,
        "s": s,
        "diagonal": gram.diagonal() if gram[0, 1] else None,
    }


def spectrum_error(draw: Draw) -> Names:
    fits = False
    while not fits:
        s = np.sort(draw(1, 14, 4))[::-1]
        k = draw(1, 3)
        cut = s[k:]
        tail = cut @ cut
        total = s @ s
        root = isqrt(tail * total)
        fits = root**2 == tail * total and s[k - 1] > s[k]
    share = Fraction(tail, total)
    return {
        "s": s,
        "k": k,
        "listed": ", ".join(map(str, s)),
        "total": total,
        "cut": cut,
        "tail": tail,
        "error": Fraction(root, total),
        "share": share,
        "kept": (1 - share) ** 0.5,
        "sums": Fraction(cut.sum(), s.sum()),
        "last": s[k - 1],
        "norm": tail**0.5 if k < 3 else None,
    }


def center_project(draw: Draw) -> Names:
    u = UNITS[draw(0, 3)]
    mean = draw(1, 9, 2)
    score = 5 * draw(-1, 2, zero=False)
    along = score * u
    off = along + 5 * draw(1, 2) * np.array([-u[1], u[0]])
    other = draw(-4, 4, 2)
    points = np.array([off, other, -off - other]) + mean
    raw = u @ points[0] * u
    return {
        "points": points,
        "u": u,
        "mean": mean,
        "off": off,
        "score": score,
        "back": mean + along,
        "along": along,
        "raw": raw,
        "moved": mean + raw,
    }


def _lowest(vector: Any) -> Any:
    """Divide two numbers by their common factor, so that the first that is not zero is positive."""
    divisor = gcd(*vector) or 1
    return vector // (-divisor if tuple(vector) < (0, 0) else divisor)


def lda_step(draw: Draw) -> Names:
    det = first = 0
    while det <= 0 or first <= 0:
        a = draw(1, 6)
        b = draw(-2, 2)
        c = draw(1, 6)
        w = _lowest(draw(-4, 4, 2))
        first = w[0]
        det = a * c - b * b
    scatter = np.array([[a, b], [b, c]])
    gap = scatter @ w
    return {
        "scatter": scatter,
        "gap": gap,
        "det": det,
        "inverse": [[c, -b], [-b, a]],
        "solved": det * w,
        "w": w,
        "plain": _lowest(gap),
        "times": _lowest(scatter @ gap),
        "sign": _lowest(scatter[::-1, ::-1] @ gap) if b else None,
        "twice": 2 * w,
    }


def nmf_step(draw: Draw) -> Names:
    fits = False
    while not fits:
        c = draw(0, 3, 4).reshape(2, 2)
        f = draw(1, 4, 2)
        x = draw(1, 9, 2)
        made = c @ f
        top, bottom = x @ c, made @ c
        fits = all(top) and all(bottom) and not any(20 * f * top % bottom)
    ratio = np.array([*map(Fraction, top, bottom)])
    return {
        "x": x[:, None],
        "c": c,
        "f": f[:, None],
        "top": top,
        "made": made,
        "bottom": bottom,
        "new": f * ratio,
        "flipped": f / ratio,
        "added": f + top - bottom,
        "ratio": ratio,
    }


def rating_step(draw: Draw) -> Names:
    fits = False
    while not fits:
        f = draw(1, 4, 4)
        x = draw(1, 9, 4)
        penalty = draw(1, 3)
        gap = draw(0, 3)
        known = np.delete(f, gap)
        seen = np.delete(x, gap)
        top = known @ seen
        squares = known @ known
        bottom = squares + penalty
        fits = 2 * top % bottom == 0
    x[gap] = "?"
    missing = f[gap]

    def answer(divisor: int) -> Any:
        return Fraction(top, divisor) * np.array([1, missing])

    return {
        "f": f,
        "x": x,
        "penalty": penalty,
        "known": known,
        "seen": seen,
        "missing": missing,
        "top": top,
        "bottom": bottom,
        "best": answer(bottom),
        "free": answer(squares),
        "zero": answer(bottom + missing**2),
        "linear": answer(known.sum() + penalty),
    }


def least_k(draw: Draw) -> Names:
    fits = False
    while not fits:  # k must not depend on how the logarithm is rounded
        n = 10 * draw(1, 39)
        eps = Fraction(1, draw(2, 10))
        inverse = (10, 20, 50, 100)[draw(0, 3)]
        square = eps**2 / 2
        cube = eps**3 / 3
        below = square - cube
        inside = n * (n - 1) * inverse
        logarithm = log(inside)
        bound = 2 * logarithm / below
        off = 2 * 0.0051 / below
        fits = ceil(bound - off) == ceil(bound + off)
    return {
        "n": n,
        "n1": n - 1,
        "eps": eps,
        "delta": Fraction(1, inverse),
        "inverse": inverse,
        "inside": inside,
        "logarithm": logarithm,
        "square": square,
        "cube": cube,
        "below": below,
        "bound": bound,
        "k": ceil(bound),
        "early": ceil(bound) - 1,
        "once": ceil(2 * log(inside / 2) / below),
        "flat": ceil(2 * logarithm / square),
        "half": ceil(bound / 2),
    }


def factor_score(draw: Draw) -> Names:
    s, h = draw(-3, 3, 6).reshape(2, 3)
    left, right = draw(-2, 2, 12).reshape(2, 2, 3)
    x = left @ s
    y = right @ h
    products = x * y
    negative = min(products) < 0
    return {
        "s": s,
        "h": h,
        "left": left,
        "right": right,
        "x": x,
        "y": y,
        "score": x @ y,
        "added": x.sum() + y.sum(),
        "direct": s @ h,
        "products": products,
        "unsigned": abs(products).sum() if negative else None,
        "crossed": None if negative else x.sum() * y.sum(),
    }


def attention_three(draw: Draw) -> Names:
    fits = False
    while not fits:
        base = draw(2, 3)
        keys = draw(0, 2, 3)
        values = draw(-6, 9, 3)
        powers = base**keys
        total = powers.sum()
        top = powers @ values
        fits = top % total == 0 and len({*keys}) > 1
    return {
        "base": base,
        "keys": keys,
        "values": values,
        "powers": powers,
        "total": total,
        "top": top,
        "output": top // total,
        "mean": Fraction(values.sum(), 3),
        "strongest": values[keys.argmax()],
        "logits": Fraction(keys @ values, keys.sum()),
    }


def masked_mixtures(draw: Draw) -> Names:
    real = draw(1, 3)
    sums = [1, 1]
    while sums[0] % 4 or sums[1] % real or 4 * sum(sums) % (4 + real):
        full = draw(0, 12, 4)
        part = draw(1, 12, real)
        sums = [full.sum(), part.sum()]
    mean = sums[0] // 4
    mine = sums[1] // real
    diluted = Fraction(sums[1], 4)
    share = Fraction(real, 4)
    top = mean + share * mine
    return {
        "full": full,
        "real": real,
        "verb": "is" if real == 1 else "are",
        "named": f"value {part[0]}" if real == 1 else f"values ({', '.join(map(str, part))})",
        "sums": sums,
        "mean": mean,
        "mine": mine,
        "share": share,
        "top": top,
        "output": top / (1 + share),
        "equal": Fraction(mean + mine, 2),
        "zeros": (mean + diluted) / 2,
        "unscaled": (mean + share * diluted) / (1 + share),
    }


def latent_score(draw: Draw) -> Names:
    up = draw(-2, 2, 6).reshape(2, 3)
    q = draw(-3, 3, 3, zero=False)
    n = draw(2, 5)
    c = draw(-3, 3, 4, zero=False).reshape(2, 2)
    short = up @ q
    return {
        "n": n,
        "c": c,
        "up": up,
        "q": q,
        "short": short,
        "scores": c @ short,
        "count": 6 + 2 * n,
        "free": 2 * n,
        "made": 9 * n,
        "each": 8 * n,
        "turned": c @ short[::-1],
    }


def lora_update(draw: Draw) -> Names:
    w = draw(-3, 3, 4).reshape(2, 2)
    a = draw(-2, 3, 2)
    alpha = draw(2, 4)
    b, x = draw(-3, 3, 4, zero=False).reshape(2, 2)
    inner = a @ x
    base = w @ x
    update = alpha * inner * b
    return {
        "w": w,
        "a": [a],
        "b": b,
        "column": b[:, None],
        "alpha": alpha,
        "x": x,
        "inner": inner,
        "update": update,
        "base": base,
        "y": base + update,
        "weak": base + inner * b,
        "turned": base + update[::-1],
    }


def cache_bytes(draw: Draw) -> Names:
    layers = 8 * draw(2, 10)
    width = 2 ** draw(6, 7)
    groups = 2 ** draw(1, 4)
    times = 2 ** draw(1, 3)
    tokens = 2 ** draw(12, 15)
    layer = 2 * groups * width
    each = layer * layers
    gib = Fraction(2 * each * tokens, 2**30)
    return {
        "layers": layers,
        "heads": groups * times,
        "width": width,
        "groups": groups,
        "tokens": tokens,
        "layer": layer,
        "each": each,
        "gib": gib,
        "all_heads": [each * times, gib * times],
        "halves": [each // 2, gib / 2],
        "one_layer": [layer, gib / layers],
        "billions": gib * 2**30 / 10**9,
    }


def causal_state(draw: Draw) -> Names:
    keys, values = draw(-2, 3, 12).reshape(2, 3, 2)
    q = draw(-3, 3, 2, zero=False)
    first, state, last = (keys[:, :, None] * values[:, None]).cumsum(axis=0)
    return {
        "keys": keys,
        "values": values,
        "q": q,
        "first": first,
        "state": state,
        "columns": state.T,
        "out": q @ state,
        "future": q @ last,
        "alone": q @ first,
        "rows": state @ q,
    }


def delta_step(draw: Draw) -> Names:
    fits = False
    while not fits:
        key = UNITS[draw(0, 3)]
        state = draw(-6, 6, 2)
        value = draw(-9, 9)
        held = state @ key
        gap = value - held
        fits = held * value * gap != 0 and gap % 5 == 0
    return {
        "state": state,
        "value": value,
        "key": key,
        "held": held,
        "gap": gap,
        "new": state + gap * key,
        "sum": state + value * key,
        "change": gap * key,
        "turned": state - gap * key,
    }
