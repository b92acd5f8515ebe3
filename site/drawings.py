"""The site's drawings: a strip that opens each chapter, and the logo.

A strip shows the same stack of sheets, in a state that says what the chapter does to it. The stack is the attention
table of the six words of chapter 6, and every sheet, bar and arc has its real size. A strip is
two drawings side by side: a phone shows the first, and so does the chapter's card on the landing page. They take the
colors of the page, in light and dark; a notebook, where nothing can be known of the page, gets them as pictures in
colors that fit both.
"""

import base64
import html
import re
from functools import cache
from pathlib import Path

import numpy as np
from docutils import nodes

from lowrank_tutor.kit.palette import COLORS, SURFACES
from lowrank_tutor.nmf import nmf
from lowrank_tutor.sentence import W_K, W_Q, W_V, WORDS, X, attention
from lowrank_tutor.svd import best_rank_k

WIDE, HIGH = 344, 120  # of one drawing: the width of a phone
SLANT, FLAT = 0.55, 0.5  # a sheet lies on the floor
EITHER = {name: color.either for name, color in {**COLORS, **SURFACES}.items()}

TABLE, _ = attention()
U, S, VT = np.linalg.svd(TABLE)
SHEETS = [S[i] * np.outer(U[:, i], VT[i]) for i in range(6)]


# Signs


def shape(points, fill, **look):
    at = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polygon points="{at}" fill="{paint(fill)}"{attributes(look)}/>'


def rect(x, y, wide, high, fill, **look):
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="{paint(fill)}"{attributes(look)}/>'
    )


def line(d, stroke, width=1.5, **look):
    return f'<path d="{d}" fill="none" stroke="{paint(stroke)}" stroke-width="{width:.2f}"{attributes(look)}/>'


def words(x, y, said, *, size=13, fill="ink", **look):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{paint(fill)}"{attributes(look)}>{said}</text>'


def paint(name):
    return name if name == "none" else f"var(--{name})"


def attributes(look):
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in look.items())


def group(parts, *, late=None, **look):
    """Group what settles together; `late` says as which of the strip's parts."""
    settles = "" if late is None else f' class="settle" style="--late:{late}"'
    return f"<g{settles}{attributes(look)}>{''.join(parts)}</g>"


def cells(table, corner, *, top=None):
    """Draw the entries of a table, each in its cell between four corners: teal above zero, orange below."""
    shares = table / (top or abs(table).max() or 1)
    drawn = {"teal": "", "orange": ""}
    for (i, j), share in np.ndenumerate(shares):
        if abs(share) > 0.04:
            corners = corner(i, j), corner(i, j + 1), corner(i + 1, j + 1), corner(i + 1, j)
            d = "M" + "L".join(f"{x:.4g} {y:.4g}" for x, y in np.round(corners, 1)) + "z"
            drawn["teal" if share > 0 else "orange"] += f'<path d="{d}" fill-opacity="{min(1, abs(share)):.2g}"/>'
    return [f'<g fill="{paint(color)}">{paths}</g>' for color, paths in drawn.items() if paths]


def sheet(x, y, c, table, *, kept=True, top=None, late=None, bend=0.0, edge="teal"):
    """Draw a sheet that lies on the floor, with its left front corner at x, y."""
    m, n = table.shape

    def corner(i, j):
        lift = bend * c * np.sin(np.pi * j / n)
        return x + (j + SLANT * (m - i)) * c, y - FLAT * c * (m - i) - lift

    outline = [corner(0, j) for j in range(n + 1)] + [corner(m, j) for j in range(n, -1, -1)]
    look = {"stroke": f"var(--{edge})"} if kept else {"stroke": "var(--gray)", "stroke-dasharray": "4 3"}
    paper = shape(outline, "paper", fill_opacity=0.85, **look)
    return group([paper, *cells(table, corner, top=top)], late=late, opacity=1 if kept else 0.4)


def stack(x, y, c, *, keep=6, rise=11.0, lift=16.0, sheets=None):
    """Draw a stack of sheets, the first at the foot; those beyond `keep` are lifted off."""
    sheets = SHEETS if sheets is None else sheets
    top = max(abs(one).max() for one in sheets)
    lifted = [i >= keep for i in range(len(sheets))]
    return "".join(
        sheet(x + 9 * off, y - rise * i - lift * off, c, one, kept=not off, top=top, late=i)
        for i, (one, off) in enumerate(zip(sheets, lifted, strict=True))
    )


def square(x, y, side, table, *, top=None, late=None, edge="teal"):
    """Draw a table that stands upright."""
    c = side / max(table.shape)

    def corner(i, j):
        return x + j * c, y + i * c

    m, n = table.shape
    frame = rect(x, y, n * c, m * c, "paper", fill_opacity=0.85, stroke=f"var(--{edge})")
    return group([frame, *cells(table, corner, top=top)], late=late)


def factors(x, y, side, column, row, *, late=0):
    """Draw a sheet upright, its column at the left and its row above."""
    gap, thick = 6, 0.8 * side / 6
    table = np.outer(column, row)
    left = square(x - gap - thick, y, side, column[:, None] / abs(column).max(), top=1)
    above = square(x, y - gap - thick, side, row[None] / abs(row).max(), top=1)
    return group([left, above, square(x, y, side, table)], late=late)


def skyline(x, y, wide, high, *, keep, s=S):
    """Draw bars with the cut ring between those that are kept and those that are dropped."""
    step = wide / len(s)
    bars = [
        group([rect(x + step * (i + 0.12), y - high * one / s[0], 0.76 * step, high * one / s[0], color)], late=i)
        for i, one in enumerate(s)
        for color in ["teal" if i < keep else "gray"]
    ]
    at = x + step * keep
    ring = f'<circle cx="{at:.1f}" cy="{y - 0.62 * high:.1f}" r="8" fill="{paint("paper")}" stroke="{paint("orange")}"'
    return "".join(bars) + line(f"M{at:.1f} {y}V{y - high}", "orange", 2) + f'{ring} stroke-width="3"/>'


def sentence(x, y, wide, row, *, kept=None, high=62, size=13):
    """Write the words, with arcs from one to those that it listens to: pale behind is exact, teal what is kept."""
    at = [x + wide * (i + 0.5) / 6 for i in range(6)]
    arcs = []
    for weights, color, more, share in (
        (TABLE[row], "gray", 3, 0.4),
        (TABLE[row] if kept is None else kept[row], "teal", 0, 1),
    ):
        for j, weight in enumerate(weights):
            if weight < 0.02:
                continue
            foot, reach = y - size - 3, abs(j - row)
            from_, to = (at[row] - 4, at[row] + 4) if j == row else (at[row], at[j])
            out = 16 if j == row else 0
            top = foot - high * (0.45 if j == row else 0.3 + 0.7 * reach / 4)
            d = f"M{from_:.1f} {foot}C{from_ - out:.1f} {top:.1f} {to + out:.1f} {top:.1f} {to:.1f} {foot}"
            arcs.append(line(d, color, 8 * weight + more, stroke_opacity=share, stroke_linecap="round"))
    said = [
        words(at[i], y, word, size=size, fill="teal" if i == row else "ink", text_anchor="middle",
              font_weight=700 if i == row else 400)
        for i, word in enumerate(WORDS)
    ]  # fmt: skip
    return "".join(arcs + said)


# Strips: what is shown, and its two drawings. A phone shows the first alone.

AT = [4 + 336 * (i + 0.5) / 6 for i in range(6)]  # the middle of each word, where six stand in a row
NOTE = 150  # where words begin that stand beside a stack
ROWS = np.array(X, dtype=float)


def note(x, y, *said, **look):
    return "".join(words(x, y + 18 * i, one, **look) for i, one in enumerate(said))


def in_a_row():
    return "".join(words(x, 24, word, size=15, text_anchor="middle") for x, word in zip(AT, WORDS, strict=True))


def rank():
    said = "A sheet with its column at the left and its row above; and a stack of six such sheets."
    left = factors(52, 30, 78, -U[:, 0], -VT[0]) + note(NOTE, 62, "one sheet:", "a column times a row")
    return said, left, stack(8, 112, 11.5, rise=9) + note(NOTE, 62, "six sheets:", "any table with six rows")


def svd():
    off = f"{np.linalg.norm(S[2:]) / np.linalg.norm(S):.0%}"
    said = f"The weights of six sheets as bars, with a cut after 2: off by {off}; and the stack, cut as well."
    left = skyline(8, 112, 190, 100, keep=2) + note(212, 62, "keep 2 of 6:", f"off by {off}")
    return said, left, cut_stack() + note(NOTE, 62, "the same cut,", "seen on the stack")


def cut_stack():
    return stack(8, 112, 11.5, rise=6, lift=18, keep=2)


def family():
    said = (
        "Four stacks made of one table: sheets of both signs, one between classes, sheets that only add, bent sheets."
    )
    parts = nmf(TABLE, 2, starts=1)
    happens = np.array([word not in ("cat", "it") for word in WORDS])
    means = np.array([TABLE[happens == one].mean(axis=0) for one in happens]) - TABLE.mean(axis=0)

    def small(x, sheets, name, **how):
        top = max(abs(one).max() for one in sheets)
        drawn = [sheet(x, 90 - 18 * i, 10.5, one, top=top, late=i, **how) for i, one in enumerate(sheets)]
        return "".join(drawn) + words(x + 44, 112, name, text_anchor="middle")

    left = small(30, SHEETS[:2], "of both signs") + small(196, [means], "between classes")
    adding = [np.outer(parts.c[:, i], parts.f[i]) for i in range(2)]
    bent = [np.tanh(2 * one) for one in SHEETS[:2]]
    return said, left, small(30, adding, "that only add") + small(196, bent, "that bend", bend=1.6)


def distances():
    rng = np.random.default_rng(3)
    r = rng.standard_normal((4, 6)) / 2
    apart = TABLE[1] - TABLE[2]
    far, near = np.linalg.norm(apart), np.linalg.norm(r @ apart)
    said = f"Sheets with random stripes; and two words, {far:.2f} apart before four random sums replace six numbers, "
    stripes = [one * np.ones((6, 1)) for one in r]

    def pair(y, length, told):
        x, end = 30, 30 + 150 * length / far
        dots = "".join(f'<circle cx="{at:.1f}" cy="{y}" r="6" fill="var(--teal)"/>' for at in (x, end))
        names = words(x, y - 13, "cat", text_anchor="middle") + words(end, y - 13, "slept", text_anchor="middle")
        return line(f"M{x} {y}H{end:.1f}", "ink") + dots + names + words(x + 198, y + 4, told)

    left = stack(8, 112, 11.5, rise=13, sheets=stripes) + note(NOTE, 62, "random stripes:", "four numbers replace six")
    return said + f"{near:.2f} after.", left, pair(42, far, f"{far:.2f} apart") + pair(98, near, f"{near:.2f} after")


def scores():
    said = "A sheet between two words: its column asks, its row answers; and the two sheets that make all scores."
    table = (ROWS @ W_Q) @ (ROWS @ W_K).T
    u, s, vt = np.linalg.svd(table)
    sign = np.sign(u[WORDS.index("slept"), 0])
    left = factors(136, 26, 84, sign * u[:, 0], sign * vt[0])
    left += words(110, 72, "slept asks", text_anchor="end", fill="teal") + words(232, 72, "cat answers", fill="teal")
    two = [s[i] * np.outer(u[:, i], vt[i]) for i in range(2)]
    right = stack(8, 100, 11.5, rise=26, sheets=two) + note(NOTE, 62, "all their scores:", "two sheets are enough")
    return said, left, right


def lifted():
    said = "Six words, with arcs from “slept” to those it listens to; and the stack with four sheets lifted off."
    left = sentence(4, 104, 336, WORDS.index("slept"), kept=best_rank_k(TABLE, 2), high=112, size=15)
    return said, left, cut_stack() + note(NOTE, 55, "lift sheets off:", "who still listens", "to whom?")


def windows():
    said = "Six words fuse into three windows of two; and the table of weights, six columns wide, becomes three wide."
    powers = np.exp((ROWS @ W_Q) @ (np.kron(np.eye(3), [0.5, 0.5]) @ ROWS @ W_K).T / np.sqrt(2))
    left = in_a_row()
    for i in range(3):
        a, b = AT[2 * i : 2 * i + 2]
        x = (a + b) / 2
        funnel = shape([(a - 24, 34), (b + 24, 34), (x + 30, 78), (x - 30, 78)], "teal", fill_opacity=0.18)
        window = rect(x - 50, 78, 100, 30, "teal", fill_opacity=0.3, stroke="var(--teal)", rx=4)
        name = words(x, 98, " + ".join(WORDS[2 * i : 2 * i + 2]), text_anchor="middle")
        left += group([funnel, window, name], late=i)
    right = square(8, 12, 96, TABLE, top=TABLE.max(), edge="ink") + words(114, 66, "→", size=18)
    right += square(140, 12, 96, powers / powers.sum(axis=1, keepdims=True), top=TABLE.max())
    return said, left, right + note(208, 56, "six columns", "become three")


def caches():
    said = "Six words, each with a thin sheet of two numbers that is kept of it; and a block with one sheet laid on it."
    left = in_a_row() + "".join(sheet(AT[i] - 16, 88, 18, ROWS[i][:, None], top=2, late=i) for i in range(6))
    left += words(172, 112, "keep two numbers of each token", text_anchor="middle", fill="muted")
    right = "".join(sheet(8, 112 - 3 * i, 11.5, np.zeros((6, 6)), edge="ink") for i in range(8))
    right += sheet(8, 56, 11.5, SHEETS[1], late=5)
    return (
        said,
        left,
        right + words(NOTE, 52, "learn one sheet", fill="teal") + words(NOTE, 96, "leave the block as it is"),
    )


def states():
    said = "Six words, each with the sheet that it writes, the older the paler; and the tray that holds their sum."
    left, state = in_a_row(), np.zeros((2, 2))
    for i, (key, value) in enumerate(zip(ROWS @ W_K, ROWS @ W_V, strict=True)):
        share = 0.7 ** (5 - i)
        state = 0.7 * state + np.outer(key, value)
        paler = f"{0.35 + 0.65 * share:.2f}"
        left += group([sheet(AT[i] - 30, 74, 17, share * np.outer(key, value), top=3, late=i)], opacity=paler)
        left += line(f"M{AT[i]:.1f} 82V95", "gray", 1)
    left += line("M20 96H324V115H20Z", "ink", 2) + words(172, 110, "one tray for all", text_anchor="middle", size=12)
    right = sheet(20, 96, 34, state, late=6) + line("M12 84V108H96L138 72V56", "ink", 2)
    return said, left, right + note(NOTE + 10, 62, "it never grows:", "what is old fades")


STRIPS = {
    "book/01-rank": rank,
    "book/02-svd-pca": svd,
    "book/03-family": family,
    "book/04-johnson-lindenstrauss": distances,
    "book/05-bilinear-scoring": scores,
    "book/06-attention": lifted,
    "book/07-linformer": windows,
    "book/08-caches": caches,
    "book/09-states": states,
}


@cache
def drawings(docname):
    """Return what a chapter's strip shows, in words, and its two drawings as SVG."""
    said, *halves = STRIPS[docname]()
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}"'
    return said, [f'{head} aria-hidden="true" font-family="inherit">{half}</svg>' for half in halves]


def strip(docname):
    said, halves = drawings(docname)
    return f'<div class="strip" role="img" aria-label="{html.escape(said)}">{"".join(halves)}</div>'


def for_notebook(docname):
    """Return the strip as one picture in HTML that a Markdown cell shows."""
    said, halves = drawings(docname)
    inner = [re.sub(r"</?svg[^>]*>", "", half) for half in halves]
    drawn = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDE} {HIGH}" font-family="sans-serif">'
    drawn += f'{inner[0]}<g transform="translate({WIDE})">{inner[1]}</g></svg>'
    drawn = re.sub(r"var\(--(\w+)\)", lambda m: EITHER[m[1]], drawn).replace('fill-opacity="0.85"', 'fill-opacity="0"')
    data = base64.b64encode(drawn.encode()).decode()
    return f'<img alt="{html.escape(said)}" width="{2 * WIDE}" src="data:image/svg+xml;base64,{data}">'


def logo():
    """Draw the logo: a table that is the product of a column and a row."""
    column, row = (1, 0.55, 0.8, 0.35), (0.9, 0.5, 1, 0.4)

    def square(x, y, color, share):
        at = f'x="{x}" y="{y}" width="9" height="9" rx="1.5"'
        return f'<rect {at} fill="{COLORS[color].either}" fill-opacity="{share:.2g}"/>'

    table = [square(16 + 10 * j, 16 + 10 * i, "teal", a * b) for i, a in enumerate(column) for j, b in enumerate(row)]
    left = [square(3, 16 + 10 * i, "teal", share) for i, share in enumerate(column)]
    above = [square(16 + 10 * j, 3, "teal", share) for j, share in enumerate(row)]
    alt = "A matrix as the product of one column and one row"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 58 58" role="img" aria-label="{alt}">'
    return head + "".join([*table, *left, *above]) + "</svg>\n"


def write_logo(app, config):
    """Write the logo anew if a color has changed: Sphinx takes it from the sources."""
    path = Path(app.srcdir, config.html_logo)
    if not path.exists() or path.read_text() != logo():
        path.write_text(logo())


def put_strip(app, doctree, docname):
    """Put the strip below the title."""
    if app.builder.format == "html" and docname in STRIPS:
        section = next(iter(doctree.findall(nodes.section)))
        section.insert(1, nodes.raw("", strip(docname), format="html"))


def setup(app):
    app.connect("config-inited", write_logo)
    app.connect("doctree-resolved", put_strip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
