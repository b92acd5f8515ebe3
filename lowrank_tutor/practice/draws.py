"""Draw the numbers of each kind of problem.

A function returns by name whatever ``problems.md`` speaks of. A mistake whose number is None does
not occur with these numbers.
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
    (a, b), times, last = whole(rng, 2, 4, 2), whole(rng, 1, 3), whole(rng, 1, 3) * whole(rng, 0, 1)
    first, second = [1, *whole(rng, -3, 3, 3)], [0, *whole(rng, 1, 3, 2), whole(rng, -2, 2)]
    left = [0, 0, 0, last]
    third = add(left, second, times)
    rows = [first, add(second, first, a), add(third, first, b)]
    rank, one, columns = 2 + bool(last), 1, 4
    three, two = (None, 2) if last else (3, None)
    return locals()


def storage(rng: Any) -> Names:
    m, n, k = 10 * whole(rng, 4, 40), 10 * whole(rng, 4, 40), whole(rng, 3, 15)
    table, sheet, full, half = m * n, m + n, min(m, n), k * m
    held, ratio, after, whole_tables = k * sheet, table / sheet, ceil(table / sheet), k * table
    most = after - 1
    return locals()


def project_line(rng: Any) -> Names:
    f, o, times = whole(rng, -3, 3, 3, zero=False), whole(rng, -3, 3, 3), whole(rng, 2, 4)
    rest = np.cross(f, o).tolist()
    shadow, square = [times * one for one in f], dot(f, f)
    x, inner = add(shadow, rest), times * square
    long = [inner * one for one in f]
    return locals()


def svd_2x2(rng: Any) -> Names:
    fits = False
    while not fits:
        a, b, c, d = whole(rng, -7, 7, 4)
        both = (
            (a + d) ** 2 + (b - c) ** 2,
            (a - d) ** 2 + (b + c) ** 2,
        )  # squares of the sum and the difference
        one, other = map(isqrt, both)
        fits = (
            (one**2, other**2) == both
            and (one + other) % 2 == 0
            and one * other * (one - other) * (b or c) != 0
        )
    matrix, large, small = [[a, b], [c, d]], (one + other) // 2, abs(one - other) // 2
    corner, mixed, low = a * a + c * c, a * b + c * d, b * b + d * d
    gram, squares, trace = [[corner, mixed], [mixed, low]], [large**2, small**2], corner + low
    det = (a * d - b * c) ** 2
    diagonal = [corner, low] if mixed else None
    return locals()


def spectrum_error(rng: Any) -> Names:
    fits = False
    while not fits:
        s, k = sorted(whole(rng, 1, 14, 4), reverse=True), whole(rng, 1, 3)
        cut, last, next = s[k:], s[k - 1], s[k]
        tail, total = dot(cut, cut), dot(s, s)
        fits = isqrt(tail * total) ** 2 == tail * total and last > next
    error, share, sums = (
        Fraction(isqrt(tail * total), total),
        Fraction(tail, total),
        Fraction(sum(cut), sum(s)),
    )
    kept, listed, norm = (1 - share) ** 0.5, ", ".join(map(str, s)), tail**0.5 if k < 3 else None
    return locals()


def center_project(rng: Any) -> Names:
    u = [Fraction(one, 5) for one in FIFTHS[whole(rng, 0, 3)]]
    mean, score, across = (
        whole(rng, 1, 9, 2),
        5 * whole(rng, -1, 2, zero=False),
        5 * whole(rng, 1, 2),
    )
    off, other = add([score * one for one in u], [-u[1], u[0]], across), whole(rng, -4, 4, 2)
    points = [add(mean, one) for one in (off, other, add([0, 0], add(off, other), -1))]
    along, raw = [score * one for one in u], [dot(u, points[0]) * one for one in u]
    back, moved = add(mean, along), add(mean, raw)
    return locals()


def _lowest(vector: list[int]) -> list[int]:
    """Divide by the common factor, so that the first entry that is not zero is positive."""
    divisor = gcd(*vector) * (-1 if next((one for one in vector if one), 1) < 0 else 1)
    return [one // (divisor or 1) for one in vector]


def lda_step(rng: Any) -> Names:
    det, w = 0, [0, 0]
    while det <= 0 or w[0] <= 0:
        a, b, c, w = (
            whole(rng, 1, 6),
            whole(rng, -2, 2),
            whole(rng, 1, 6),
            _lowest(whole(rng, -4, 4, 2)),
        )
        det = a * c - b * b
    scatter, inverse, solved = [[a, b], [b, c]], [[c, -b], [-b, a]], [det * one for one in w]
    gap = [dot(row, w) for row in scatter]
    plain, times, twice = (
        _lowest(gap),
        _lowest([dot(row, gap) for row in scatter]),
        [2 * one for one in w],
    )
    sign = _lowest([c * gap[0] + b * gap[1], b * gap[0] + a * gap[1]]) if b else None
    return locals()


def nmf_step(rng: Any) -> Names:
    fits = False
    while not fits:
        c, f, x = [whole(rng, 0, 3, 2) for _ in "ab"], whole(rng, 1, 4, 2), whole(rng, 1, 9, 2)
        made = [dot(row, f) for row in c]
        top, bottom = ([c[0][j] * one[0] + c[1][j] * one[1] for j in (0, 1)] for one in (x, made))
        fits = all(top) and all(bottom) and all(20 * f[j] * top[j] % bottom[j] == 0 for j in (0, 1))
    ratio, added, start = (
        [*map(Fraction, top, bottom)],
        add(add(f, top), bottom, -1),
        [[one] for one in f],
    )
    new = [one * r for one, r in zip(f, ratio, strict=True)]
    flipped = [one / r for one, r in zip(f, ratio, strict=True)]
    x = [[one] for one in x]
    return locals()


def rating_step(rng: Any) -> Names:
    fits = False
    while not fits:
        f, x, penalty, gap = (
            whole(rng, 1, 4, 4),
            whole(rng, 1, 9, 4),
            whole(rng, 1, 3),
            whole(rng, 0, 3),
        )
        known, seen, missing = f[:gap] + f[gap + 1 :], x[:gap] + x[gap + 1 :], f[gap]
        top, squares = dot(known, seen), dot(known, known)
        fits = 2 * top % (squares + penalty) == 0
    bottom, listed = (
        squares + penalty,
        ", ".join("?" if i == gap else str(one) for i, one in enumerate(x)),
    )
    divisors = bottom, squares, bottom + missing**2, sum(known) + penalty
    (c, predicted), free, zero, linear = (
        [Fraction(top, one), Fraction(top * missing, one)] for one in divisors
    )
    return locals()


def least_k(rng: Any) -> Names:
    fits = False
    while not fits:  # k must not depend on how the logarithm is rounded
        n, eps, inverse = (
            10 * whole(rng, 1, 39),
            Fraction(1, whole(rng, 2, 10)),
            int(rng.choice([10, 20, 50, 100])),
        )
        n1, delta, square, cube = n - 1, Fraction(1, inverse), eps**2 / 2, eps**3 / 3
        inside, below = n * n1 * inverse, square - cube
        logarithm, bound = log(inside), 2 * log(inside) / below
        k, off = ceil(bound), 0.0051
        fits = ceil(bound - 2 * off / below) == k == ceil(bound + 2 * off / below)
    once, flat, half = (
        ceil(2 * log(inside / 2) / below),
        ceil(2 * logarithm / square),
        ceil(bound / 2),
    )
    early = k - 1
    return locals()


def factor_score(rng: Any) -> Names:
    s, h = (whole(rng, -3, 3, 3) for _ in "sh")
    left, right = ([whole(rng, -2, 2, 3) for _ in "ab"] for _ in "uv")
    x, y = [dot(row, s) for row in left], [dot(row, h) for row in right]
    score, first, direct, added, crossed = (
        dot(x, y),
        x[0] * y[0],
        dot(s, h),
        sum(x) + sum(y),
        sum(x) * sum(y),
    )
    negative = min(x[0] * y[0], x[1] * y[1]) < 0
    unsigned, crossed = (abs(first) + abs(x[1] * y[1]), None) if negative else (None, crossed)
    return locals()


def attention_three(rng: Any) -> Names:
    total, top, keys = 2, 1, [0, 0, 0]
    while top % total or len(set(keys)) == 1:
        base, keys, values = whole(rng, 2, 3), whole(rng, 0, 2, 3), whole(rng, -6, 9, 3)
        powers = [base**key for key in keys]
        total, top = sum(powers), dot(powers, values)
    output, mean, logits = (
        top // total,
        Fraction(sum(values), 3),
        Fraction(dot(keys, values), sum(keys)),
    )
    strongest = values[keys.index(max(keys))]
    return locals()


def masked_mixtures(rng: Any) -> Names:
    real, sums = whole(rng, 1, 3), [1, 1]
    while sums[0] % 4 or sums[1] % real or 4 * sum(sums) % (4 + real):
        full, part = whole(rng, 0, 12, 4), whole(rng, 1, 12, real)
        sums = [sum(full), sum(part)]
    mean, mine, share = sums[0] // 4, sums[1] // real, Fraction(real, 4)
    top, diluted = mean + share * mine, Fraction(sums[1], 4)
    output, unscaled = top / (1 + share), (mean + share * diluted) / (1 + share)
    equal, zeros = Fraction(mean + mine, 2), (mean + diluted) / 2
    verb, named = (
        ("is", f"value {part[0]}")
        if real == 1
        else ("are", f"values ({', '.join(map(str, part))})")
    )
    return locals()


def latent_score(rng: Any) -> Names:
    up, q, n = (
        [whole(rng, -2, 2, 3) for _ in "ab"],
        whole(rng, -3, 3, 3, zero=False),
        whole(rng, 2, 5),
    )
    c1, c2 = (whole(rng, -3, 3, 2, zero=False) for _ in "ab")
    short, count, free, made, each = [dot(row, q) for row in up], 6 + 2 * n, 2 * n, 9 * n, 8 * n
    scores, turned = [dot(c1, short), dot(c2, short)], [dot(c1, short[::-1]), dot(c2, short[::-1])]
    return locals()


def lora_update(rng: Any) -> Names:
    w, a, alpha = [whole(rng, -3, 3, 2) for _ in "ab"], whole(rng, -2, 3, 2), whole(rng, 2, 4)
    b, x = (whole(rng, -3, 3, 2, zero=False) for _ in "bx")
    row, column, inner, base = [a], [[one] for one in b], dot(a, x), [dot(one, x) for one in w]
    update = [alpha * inner * one for one in b]
    y, weak, turned = (
        add(base, change, t * inner) for change, t in ((b, alpha), (b, 1), (b[::-1], alpha))
    )
    return locals()


def cache_bytes(rng: Any) -> Names:
    layers, width, groups = (
        8 * whole(rng, 2, 10),
        int(rng.choice([64, 128])),
        int(rng.choice([2, 4, 8, 16])),
    )
    heads, tokens = groups * int(rng.choice([2, 4, 8])), int(rng.choice([4096, 8192, 16384, 32768]))
    layer = 2 * groups * width
    each, gib = layer * layers, Fraction(2 * layer * layers * tokens, 2**30)
    times, halves = heads // groups, [each // 2, gib / 2]
    all_heads, one_layer, billions = (
        [each * times, gib * times],
        [layer, gib / layers],
        gib * 2**30 / 10**9,
    )
    return locals()


def causal_state(rng: Any) -> Names:
    keys, values, q = (
        *([whole(rng, -2, 3, 2) for _ in "abc"] for _ in "kv"),
        whole(rng, -3, 3, 2, zero=False),
    )
    sheets = np.array([np.outer(key, value) for key, value in zip(keys, values, strict=True)])
    first, state = sheets[0].tolist(), (sheets[0] + sheets[1]).tolist()
    alone, out, future = ((sheets[:count].sum(axis=0).T @ q).tolist() for count in (1, 2, 3))
    columns, rows = np.transpose(state).tolist(), [dot(row, q) for row in state]
    return locals()


def delta_step(rng: Any) -> Names:
    fits = False
    while not fits:
        fifths, state, value = FIFTHS[whole(rng, 0, 3)], whole(rng, -6, 6, 2), whole(rng, -9, 9)
        held, rest = divmod(dot(state, fifths), 5)
        gap = value - held
        fits = rest == 0 and held * value * gap != 0 and gap % 5 == 0
    key = [Fraction(one, 5) for one in fifths]
    new, sum, turned = (add(state, key, times) for times in (gap, value, -gap))
    change = [gap * one for one in key]
    return locals()
