"""Draw each chapter's card on the landing page.

They show the attention table of the six words of chapter 6 in a state that says what the chapter
does to it, with every sheet, bar and arc of its real size. They take the colors of the page, in
light and dark.
"""

from functools import cache

import numpy as np

from lowrank_tutor.sentence import W_K, W_Q, W_V, WORDS, X, attention
from lowrank_tutor.svd import best_rank_k

WIDE, HIGH = 344, 120  # the width of a phone
SLANT, FLAT = 0.55, 0.5  # a sheet lies on the floor
TEAL = "var(--teal)"

TABLE, _ = attention()
U, S, VT = np.linalg.svd(TABLE)
SHEETS = [S[i] * np.outer(U[:, i], VT[i]) for i in range(6)]


# Signs


def shape(points, fill, **look):
    at = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polygon points="{at}" fill="{paint(fill)}"{attributes(look)}/>'


def rect(x, y, wide, high, fill, **look):
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" '
        f'fill="{paint(fill)}"{attributes(look)}/>'
    )


def line(d, stroke, width=1.5, **look):
    return (
        f'<path d="{d}" fill="none" stroke="{paint(stroke)}" '
        f'stroke-width="{width:.2f}"{attributes(look)}/>'
    )


def words(x, y, said, *, size=13, fill="ink", **look):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
        f'fill="{paint(fill)}"{attributes(look)}>{said}</text>'
    )


def paint(name):
    return name if name == "none" else f"var(--{name})"


def attributes(look):
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in look.items())


def group(parts, **look):
    return f"<g{attributes(look)}>{''.join(parts)}</g>"


def cells(table, corner, *, top=None):
    """Draw the entries of a table, each in its cell: teal above zero, violet below."""
    shares = table / (top or abs(table).max() or 1)
    drawn = {"teal": "", "violet": ""}
    for (i, j), share in np.ndenumerate(shares):
        if abs(share) > 0.04:
            corners = corner(i, j), corner(i, j + 1), corner(i + 1, j + 1), corner(i + 1, j)
            d = "M" + "L".join(f"{x:.4g} {y:.4g}" for x, y in np.round(corners, 1)) + "z"
            drawn["teal" if share > 0 else "violet"] += (
                f'<path d="{d}" fill-opacity="{min(1, abs(share)):.2g}"/>'
            )
    return [f'<g fill="{paint(color)}">{paths}</g>' for color, paths in drawn.items() if paths]


def sheet(x, y, c, table, *, top=None):
    """Draw a sheet that lies on the floor, with its left front corner at x, y."""
    m, n = table.shape

    def corner(i, j):
        return x + (j + SLANT * (m - i)) * c, y - FLAT * c * (m - i)

    paper = shape(
        [corner(0, 0), corner(0, n), corner(m, n), corner(m, 0)],
        "paper",
        fill_opacity=0.85,
        stroke=TEAL,
    )
    return group([paper, *cells(table, corner, top=top)])


def stack(x, y, c, sheets, *, rise):
    """Draw a stack of sheets, the first at the foot."""
    top = max(abs(one).max() for one in sheets)
    return "".join(sheet(x, y - rise * i, c, one, top=top) for i, one in enumerate(sheets))


def square(x, y, side, table, *, top=None):
    """Draw a table that stands upright."""
    c = side / max(table.shape)

    def corner(i, j):
        return x + j * c, y + i * c

    m, n = table.shape
    frame = rect(x, y, n * c, m * c, "paper", fill_opacity=0.85, stroke=TEAL)
    return group([frame, *cells(table, corner, top=top)])


def factors(x, y, side, column, row):
    """Draw a sheet upright, its column at the left and its row above."""
    gap, thick = 6, 0.8 * side / 6
    table = np.outer(column, row)
    left = square(x - gap - thick, y, side, column[:, None] / abs(column).max(), top=1)
    above = square(x, y - gap - thick, side, row[None] / abs(row).max(), top=1)
    return group([left, above, square(x, y, side, table)])


def skyline(x, y, wide, high, *, keep):
    """Draw bars with the cut ring between those that are kept and those that are dropped."""
    step = wide / len(S)
    highs = high * S / S[0]
    bars = [
        rect(x + step * (i + 0.12), y - tall, 0.76 * step, tall, "teal" if i < keep else "gray")
        for i, tall in enumerate(highs)
    ]
    at = x + step * keep
    ring = (
        f'<circle cx="{at:.1f}" cy="{y - 0.62 * high:.1f}" r="8" fill="{paint("paper")}" '
        f'stroke="{paint("ink")}"'
    )
    return (
        "".join(bars) + line(f"M{at:.1f} {y}V{y - high}", "ink", 2) + f'{ring} stroke-width="3"/>'
    )


def sentence(x, y, wide, row, *, kept, high, size):
    """Write the words, with arcs from one to those that it listens to.

    Pale behind is exact, and teal is what is kept.
    """
    at = [x + wide * (i + 0.5) / 6 for i in range(6)]
    arcs = []
    for weights, color, more, share in (
        (TABLE[row], "gray", 3, 0.4),
        (kept[row], "teal", 0, 1),
    ):
        for j, weight in enumerate(weights):
            if weight < 0.02:
                continue
            foot, reach = y - size - 3, abs(j - row)
            from_, to = (at[row] - 4, at[row] + 4) if j == row else (at[row], at[j])
            out = 16 if j == row else 0
            top = foot - high * (0.45 if j == row else 0.3 + 0.7 * reach / 4)
            d = (
                f"M{from_:.1f} {foot}C{from_ - out:.1f} {top:.1f} {to + out:.1f} {top:.1f} "
                f"{to:.1f} {foot}"
            )
            arcs.append(
                line(d, color, 8 * weight + more, stroke_opacity=share, stroke_linecap="round")
            )
    said = [
        words(at[i], y, word, size=size, fill="teal" if i == row else "ink", text_anchor="middle",
              font_weight=700 if i == row else 400)
        for i, word in enumerate(WORDS)
    ]  # fmt: skip
    return "".join(arcs + said)


# What each card shows

AT = [
    4 + 336 * (i + 0.5) / 6 for i in range(6)
]  # the middle of each word, where six stand in a row
NOTE = 150  # where words begin that stand beside a stack
ROWS = np.array(X, dtype=float)


def note(x, y, *said, **look):
    return "".join(words(x, y + 18 * i, one, **look) for i, one in enumerate(said))


def in_a_row():
    return "".join(
        words(x, 24, word, size=15, text_anchor="middle") for x, word in zip(AT, WORDS, strict=True)
    )


def rank():
    return factors(52, 30, 78, -U[:, 0], -VT[0]) + note(
        NOTE, 62, "one sheet:", "a column times a row"
    )


def svd():
    off = f"{np.linalg.norm(S[2:]) / np.linalg.norm(S):.0%}"
    return skyline(8, 112, 190, 100, keep=2) + note(212, 62, "keep 2 of 6:", f"off by {off}")


def family():
    happens = np.array([word not in ("cat", "it") for word in WORDS])
    means = np.array([TABLE[happens == one].mean(axis=0) for one in happens]) - TABLE.mean(axis=0)

    def small(x, sheets, name):
        return stack(x, 90, 10.5, sheets, rise=18) + words(x + 44, 112, name, text_anchor="middle")

    return small(30, SHEETS[:2], "of both signs") + small(196, [means], "between classes")


def distances():
    stripes = [
        one * np.ones((6, 1)) for one in np.random.default_rng(3).standard_normal((4, 6)) / 2
    ]
    return stack(8, 112, 11.5, stripes, rise=13) + note(
        NOTE, 62, "random stripes:", "four numbers replace six"
    )


def scores():
    table = (ROWS @ W_Q) @ (ROWS @ W_K).T
    u, _, vt = np.linalg.svd(table)
    sign = np.sign(u[WORDS.index("slept"), 0])
    drawn = factors(136, 26, 84, sign * u[:, 0], sign * vt[0])
    return (
        drawn
        + words(110, 72, "slept asks", text_anchor="end", fill="teal")
        + words(232, 72, "cat answers", fill="teal")
    )


def lifted():
    return sentence(
        4, 104, 336, WORDS.index("slept"), kept=best_rank_k(TABLE, 2), high=112, size=15
    )


def windows():
    drawn = in_a_row()
    for i in range(3):
        a, b = AT[2 * i : 2 * i + 2]
        x = (a + b) / 2
        funnel = shape(
            [(a - 24, 34), (b + 24, 34), (x + 30, 78), (x - 30, 78)], "teal", fill_opacity=0.18
        )
        window = rect(x - 50, 78, 100, 30, "teal", fill_opacity=0.3, stroke=TEAL, rx=4)
        drawn += (
            funnel
            + window
            + words(x, 98, " + ".join(WORDS[2 * i : 2 * i + 2]), text_anchor="middle")
        )
    return drawn


def caches():
    kept = "".join(sheet(AT[i] - 16, 88, 18, ROWS[i][:, None], top=2) for i in range(6))
    return (
        in_a_row()
        + kept
        + words(172, 112, "keep two numbers of each token", text_anchor="middle", fill="muted")
    )


def adapters():
    sheet = factors(134, 30, 78, U[:, 1], VT[1])
    plus = words(101, 75, "+", size=20, text_anchor="middle")
    return (
        square(8, 30, 78, TABLE)
        + plus
        + sheet
        + note(226, 62, "leave the table,", "learn one sheet")
    )


def states():
    drawn = in_a_row()
    for i, (key, value) in enumerate(zip(ROWS @ W_K, ROWS @ W_V, strict=True)):
        share = 0.7 ** (5 - i)
        paler = f"{0.35 + 0.65 * share:.2f}"
        drawn += group(
            [sheet(AT[i] - 30, 74, 17, share * np.outer(key, value), top=3)], opacity=paler
        )
        drawn += line(f"M{AT[i]:.1f} 82V95", "gray", 1)
    return (
        drawn
        + line("M20 96H324V115H20Z", "ink", 2)
        + words(172, 110, "one tray for all", text_anchor="middle")
    )


CARDS = {
    "book/01-rank": rank,
    "book/02-svd-pca": svd,
    "book/03-family": family,
    "book/04-johnson-lindenstrauss": distances,
    "book/05-bilinear-scoring": scores,
    "book/06-attention": lifted,
    "book/07-linformer": windows,
    "book/08-caches": caches,
    "book/09-adapters": adapters,
    "book/10-states": states,
}


@cache
def card(docname):
    """Return the drawing of a chapter's card, as SVG."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" '
        f'height="{HIGH}"'
    )
    return f'{head} aria-hidden="true" font-family="inherit">{CARDS[docname]()}</svg>'
