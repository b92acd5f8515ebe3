"""Draw the numbers of each kind of problem.

A function returns, by name, the numbers that ``problems.md`` speaks of. A mistake whose number is
None does not occur with these numbers.
"""

# ruff: noqa: D103
from fractions import Fraction
from math import ceil, gcd, isqrt, log
from typing import Any

import numpy as np

Names = dict[str, Any]
FIFTHS = ((3, 4), (4, 3), (-3, 4), (4, -3))  # of unit vectors


def dot(a: Any, b: Any) -> Any:
    return sum(x * y for x, y in zip(a, b, strict=True))


def add(a: Any, b: Any, times: Any = 1) -> list[Any]:
    return [x + times * y for x, y in zip(a, b, strict=True)]


def whole(rng: Any, low: int, high: int, count: int = 0, *, zero: bool = True) -> Any:
    """Draw whole numbers from ``low`` to ``high``; without a zero, ``high`` comes in its place."""
    drawn = [
        one if one or zero else high for one in rng.integers(low, high + 1, count or 1).tolist()
    ]
    return drawn if count else drawn[0]


def rank_rows(rng: Any) -> Names:
    a, b = whole(rng, 2, 4, 2)
    times = whole(rng, 1, 3)
    last = whole(rng, 1, 3) * whole(rng, 0, 1)
    first = [1, *whole(rng, -3, 3, 3)]
    second = [0, *whole(rng, 1, 3, 2), whole(rng, -2, 2)]
    left = [0, 0, 0, last]
    third = add(left, second, times)
    return {
        "a": a,
        "b": b,
        "times": times,
        "first": first,
        "second": second,
        "third": third,
        "left": left,
        "rows": [first, add(second, first, a), add(third, first, b)],
        "rank": 2 + bool(last),
        "one": 1,
        "columns": 4,
        "two": 2 if last else None,
        "three": None if last else 3,
    }


def storage(rng: Any) -> Names:
    m = 10 * whole(rng, 4, 40)
    n = 10 * whole(rng, 4, 40)
    k = whole(rng, 3, 15)
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


def project_line(rng: Any) -> Names:
    f = whole(rng, -3, 3, 3, zero=False)
    rest = np.cross(f, whole(rng, -3, 3, 3)).tolist()
    times = whole(rng, 2, 4)
    square = dot(f, f)
    shadow = [times * one for one in f]
    inner = times * square
    return {
        "f": f,
        "x": add(shadow, rest),
        "inner": inner,
        "square": square,
        "shadow": shadow,
        "long": [inner * one for one in f],
        "rest": rest,
    }


def svd_2x2(rng: Any) -> Names:
    fits = False
    while not fits:
        a, b, c, d = whole(rng, -7, 7, 4)
        # Squares of the sum and the difference of the singular values.
        squares = (a + d) ** 2 + (b - c) ** 2, (a - d) ** 2 + (b + c) ** 2
        one, other = map(isqrt, squares)
        fits = (
            (one**2, other**2) == squares
            and (one + other) % 2 == 0
            and one * other * (one - other) * (b or c) != 0
        )
    large = (one + other) // 2
    small = abs(one - other) // 2
    corner = a * a + c * c
    mixed = a * b + c * d
    low = b * b + d * d
    return {
        "matrix": [[a, b], [c, d]],
        "gram": [[corner, mixed], [mixed, low]],
        "corner": corner,
        "mixed": mixed,
        "low": low,
        "trace": corner + low,
        "det": (a * d - b * c) ** 2,
        "squares": [large**2, small**2],
        "large": large,
        "small": small,
        "diagonal": [corner, low] if mixed else None,
    }


def spectrum_error(rng: Any) -> Names:
    fits = False
    while not fits:
        s = sorted(whole(rng, 1, 14, 4), reverse=True)
        k = whole(rng, 1, 3)
        cut = s[k:]
        tail = dot(cut, cut)
        total = dot(s, s)
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
        "next": s[k],
        "share": share,
        "kept": (1 - share) ** 0.5,
        "sums": Fraction(sum(cut), sum(s)),
        "last": s[k - 1],
        "norm": tail**0.5 if k < 3 else None,
    }


def center_project(rng: Any) -> Names:
    u = [Fraction(one, 5) for one in FIFTHS[whole(rng, 0, 3)]]
    mean = whole(rng, 1, 9, 2)
    score = 5 * whole(rng, -1, 2, zero=False)
    along = [score * one for one in u]
    off = add(along, [-u[1], u[0]], 5 * whole(rng, 1, 2))
    other = whole(rng, -4, 4, 2)
    points = [add(mean, one) for one in (off, other, add([0, 0], add(off, other), -1))]
    raw = [dot(u, points[0]) * one for one in u]
    return {
        "points": points,
        "u": u,
        "mean": mean,
        "off": off,
        "score": score,
        "back": add(mean, along),
        "along": along,
        "raw": raw,
        "moved": add(mean, raw),
    }


def _lowest(vector: list[int]) -> list[int]:
    """Divide by the common factor, so that the first entry that is not zero is positive."""
    divisor = gcd(*vector) * (-1 if next((one for one in vector if one), 1) < 0 else 1)
    return [one // (divisor or 1) for one in vector]


def lda_step(rng: Any) -> Names:
    det = 0
    w = [0, 0]
    while det <= 0 or w[0] <= 0:
        a = whole(rng, 1, 6)
        b = whole(rng, -2, 2)
        c = whole(rng, 1, 6)
        w = _lowest(whole(rng, -4, 4, 2))
        det = a * c - b * b
    scatter = [[a, b], [b, c]]
    gap = [dot(row, w) for row in scatter]
    return {
        "scatter": scatter,
        "gap": gap,
        "a": a,
        "b": b,
        "c": c,
        "det": det,
        "inverse": [[c, -b], [-b, a]],
        "solved": [det * one for one in w],
        "w": w,
        "plain": _lowest(gap),
        "times": _lowest([dot(row, gap) for row in scatter]),
        "sign": _lowest([c * gap[0] + b * gap[1], b * gap[0] + a * gap[1]]) if b else None,
        "twice": [2 * one for one in w],
    }


def nmf_step(rng: Any) -> Names:
    fits = False
    while not fits:
        c = [whole(rng, 0, 3, 2) for _ in "ab"]
        f = whole(rng, 1, 4, 2)
        x = whole(rng, 1, 9, 2)
        made = [dot(row, f) for row in c]
        top, bottom = ([c[0][j] * one[0] + c[1][j] * one[1] for j in (0, 1)] for one in (x, made))
        fits = all(top) and all(bottom) and all(20 * f[j] * top[j] % bottom[j] == 0 for j in (0, 1))
    ratio = [*map(Fraction, top, bottom)]
    return {
        "x": [[one] for one in x],
        "c": c,
        "f": f,
        "start": [[one] for one in f],
        "top": top,
        "made": made,
        "bottom": bottom,
        "new": [one * r for one, r in zip(f, ratio, strict=True)],
        "flipped": [one / r for one, r in zip(f, ratio, strict=True)],
        "added": add(add(f, top), bottom, -1),
        "ratio": ratio,
    }


def rating_step(rng: Any) -> Names:
    fits = False
    while not fits:
        f = whole(rng, 1, 4, 4)
        x = whole(rng, 1, 9, 4)
        penalty = whole(rng, 1, 3)
        gap = whole(rng, 0, 3)
        known = f[:gap] + f[gap + 1 :]
        seen = x[:gap] + x[gap + 1 :]
        top = dot(known, seen)
        squares = dot(known, known)
        bottom = squares + penalty
        fits = 2 * top % bottom == 0

    def answers(divisor: int) -> list[Fraction]:
        return [Fraction(top, divisor), Fraction(top * f[gap], divisor)]

    c, predicted = answers(bottom)
    return {
        "f": f,
        "listed": ", ".join("?" if i == gap else str(one) for i, one in enumerate(x)),
        "penalty": penalty,
        "known": known,
        "seen": seen,
        "missing": f[gap],
        "top": top,
        "bottom": bottom,
        "c": c,
        "predicted": predicted,
        "free": answers(squares),
        "zero": answers(bottom + f[gap] ** 2),
        "linear": answers(sum(known) + penalty),
    }


def least_k(rng: Any) -> Names:
    fits = False
    while not fits:  # k must not depend on how the logarithm is rounded
        n = 10 * whole(rng, 1, 39)
        eps = Fraction(1, whole(rng, 2, 10))
        inverse = int(rng.choice([10, 20, 50, 100]))
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


def factor_score(rng: Any) -> Names:
    s, h = (whole(rng, -3, 3, 3) for _ in "sh")
    left, right = ([whole(rng, -2, 2, 3) for _ in "ab"] for _ in "uv")
    x = [dot(row, s) for row in left]
    y = [dot(row, h) for row in right]
    first = x[0] * y[0]
    second = x[1] * y[1]
    negative = min(first, second) < 0
    return {
        "s": s,
        "h": h,
        "left": left,
        "right": right,
        "x": x,
        "y": y,
        "score": dot(x, y),
        "added": sum(x) + sum(y),
        "direct": dot(s, h),
        "first": first,
        "unsigned": abs(first) + abs(second) if negative else None,
        "crossed": None if negative else sum(x) * sum(y),
    }


def attention_three(rng: Any) -> Names:
    total, top = 2, 1
    keys = [0, 0, 0]
    while top % total or len(set(keys)) == 1:
        base = whole(rng, 2, 3)
        keys = whole(rng, 0, 2, 3)
        values = whole(rng, -6, 9, 3)
        powers = [base**key for key in keys]
        total = sum(powers)
        top = dot(powers, values)
    return {
        "base": base,
        "keys": keys,
        "values": values,
        "powers": powers,
        "total": total,
        "top": top,
        "output": top // total,
        "mean": Fraction(sum(values), 3),
        "strongest": values[keys.index(max(keys))],
        "logits": Fraction(dot(keys, values), sum(keys)),
    }


def masked_mixtures(rng: Any) -> Names:
    real = whole(rng, 1, 3)
    sums = [1, 1]
    while sums[0] % 4 or sums[1] % real or 4 * sum(sums) % (4 + real):
        full = whole(rng, 0, 12, 4)
        part = whole(rng, 1, 12, real)
        sums = [sum(full), sum(part)]
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


def latent_score(rng: Any) -> Names:
    up = [whole(rng, -2, 2, 3) for _ in "ab"]
    q = whole(rng, -3, 3, 3, zero=False)
    n = whole(rng, 2, 5)
    c1, c2 = (whole(rng, -3, 3, 2, zero=False) for _ in "ab")
    short = [dot(row, q) for row in up]
    return {
        "n": n,
        "c1": c1,
        "c2": c2,
        "up": up,
        "q": q,
        "short": short,
        "scores": [dot(c1, short), dot(c2, short)],
        "count": 6 + 2 * n,
        "free": 2 * n,
        "made": 9 * n,
        "each": 8 * n,
        "turned": [dot(c1, short[::-1]), dot(c2, short[::-1])],
    }


def lora_update(rng: Any) -> Names:
    w = [whole(rng, -3, 3, 2) for _ in "ab"]
    a = whole(rng, -2, 3, 2)
    alpha = whole(rng, 2, 4)
    b, x = (whole(rng, -3, 3, 2, zero=False) for _ in "bx")
    inner = dot(a, x)
    base = [dot(one, x) for one in w]
    update = [alpha * inner * one for one in b]
    return {
        "w": w,
        "a": a,
        "b": b,
        "row": [a],
        "column": [[one] for one in b],
        "alpha": alpha,
        "x": x,
        "inner": inner,
        "update": update,
        "base": base,
        "y": add(base, update),
        "weak": add(base, b, inner),
        "turned": add(base, update[::-1]),
    }


def cache_bytes(rng: Any) -> Names:
    layers = 8 * whole(rng, 2, 10)
    width = int(rng.choice([64, 128]))
    groups = int(rng.choice([2, 4, 8, 16]))
    times = int(rng.choice([2, 4, 8]))
    tokens = int(rng.choice([4096, 8192, 16384, 32768]))
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


def causal_state(rng: Any) -> Names:
    keys, values = ([whole(rng, -2, 3, 2) for _ in "abc"] for _ in "kv")
    q = whole(rng, -3, 3, 2, zero=False)
    sheets = np.array([np.outer(key, value) for key, value in zip(keys, values, strict=True)])
    state = (sheets[0] + sheets[1]).tolist()
    alone, out, future = ((sheets[:count].sum(axis=0).T @ q).tolist() for count in (1, 2, 3))
    return {
        "keys": keys,
        "values": values,
        "q": q,
        "first": sheets[0].tolist(),
        "state": state,
        "columns": np.transpose(state).tolist(),
        "out": out,
        "future": future,
        "alone": alone,
        "rows": [dot(row, q) for row in state],
    }


def delta_step(rng: Any) -> Names:
    fits = False
    while not fits:
        fifths = FIFTHS[whole(rng, 0, 3)]
        state = whole(rng, -6, 6, 2)
        value = whole(rng, -9, 9)
        held, rest = divmod(dot(state, fifths), 5)
        gap = value - held
        fits = rest == 0 and held * value * gap != 0 and gap % 5 == 0
    key = [Fraction(one, 5) for one in fifths]
    return {
        "state": state,
        "value": value,
        "key": key,
        "held": held,
        "gap": gap,
        "new": add(state, key, gap),
        "sum": add(state, key, value),
        "change": [gap * one for one in key],
        "turned": add(state, key, -gap),
    }
