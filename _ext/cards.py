"""Describe each page by a sentence and a picture, for search engines, links and the landing page.

The pictures are drawn while the site is built, from scratch or from the book's own numbers: line art in colors that can
be seen on a light page and on a dark one, and the same beside the page's title for those who share a link.
"""

import hashlib
import html
import json
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
from docutils import nodes
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from lowrank_tutor.kit.palette import COLORS, SURFACES

HOME = "book/index"
FOLDER = "_static/cards"
TEAL, ORANGE, VIOLET, GRAY = (COLORS[name].either for name in ("teal", "orange", "violet", "gray"))
INK = SURFACES["ink"].either
ART = (3.2, 2.0)  # inches: the landing page shows them at 100 pixels an inch
LINK = (12.0, 6.3)  # what most places want of a picture for a link: 1200 by 630 pixels


class Card(NamedTuple):
    """A page in one sentence, and what its picture shows."""

    sentence: str
    picture: str = "tile"


CARDS = {
    HOME: Card(
        "An interactive book on low rank: lift sheets off a table of attention and see what is lost, from the rank "
        "of a matrix to the caches of language models."
    ),
    "book/01-rank": Card(
        "What the rank of a matrix is, how to find it by hand, and when two thin factors take less room than the table."
    ),
    "book/02-svd-pca": Card(
        "Which directions of a table to keep, what leaving out the others costs, and why to subtract the mean first.",
        "spectrum",
    ),
    "book/03-family": Card(
        "A few numbers for each image, for other purposes: tell classes apart, add up parts, fill gaps, bend the map.",
        "classes",
    ),
    "book/04-johnson-lindenstrauss": Card(
        "Random directions keep distances. How many do your points need, and when is the bound useless?",
        "bell",
    ),
    "book/05-bilinear-scoring": Card(
        "Compare two vectors by way of a few numbers: what it saves, which factors are the best, how they are learned.",
        "factors",
    ),
    "book/06-attention": Card(
        "What attention does to a sentence, which of its ranks is low, and what linear attention and Performer change.",
        "weights",
    ),
    "book/07-linformer": Card(
        "Read a sequence of n tokens as k mixtures of them: what Linformer saves, what it loses, and when to use it.",
        "mixtures",
    ),
    "book/08-caches": Card(
        "How today's models keep less of each token, learn less of each weight, and send less of each gradient.",
        "latents",
    ),
    "book/09-states": Card(
        "What a table of fixed size can remember in place of a cache, and which theorem is about which rank.",
        "recent",
    ),
    "book/choose": Card(
        "From a problem to a technique: what it saves, what it costs in quality, who uses it, which library to install."
    ),
    "book/use-linformer": Card(
        "Put Linformer into a PyTorch model of your own, and check what it costs you before you keep it.", "mixtures"
    ),
    "book/use-sliders": Card(
        "Put sliders that need no Python behind them on the pages of your own book, and fields that check an answer."
    ),
    "book/gpu": Card(
        "The least time that attention and Linformer can take on nine graphics cards, and cells that time your own."
    ),
    "book/packages": Card("The same questions, asked of published packages: what each promises, and what it does."),
    "book/corrections": Card(
        "Claims about low rank that are often repeated and do not hold, each beside a cell that shows it."
    ),
    "book/guesses": Card("How well you guessed on the pages of this book, kept in your own browser and nowhere else."),
    "book/cheat-sheet": Card("What to call for what you want to do: the functions of the package, a line each."),
    "book/notation": Card("The letters of the book, with their shapes and meanings."),
    "book/glossary": Card("The words of the book, each in a sentence or two, and where it is explained in full."),
    "book/api": Card(
        "The package lowrank_tutor: small, tested helpers for rank, SVD, PCA, random projection, bilinear scores, "
        "attention and Linformer."
    ),
    "book/times": Card("How long the cells of each page took when this site was built."),
    "book/bibliography": Card("The works that the book cites, and the places outside the site that it links to."),
    "genindex": Card("Every function and every term of the book, in alphabetical order."),
}

SHOWN = {}  # what each picture shows, in words
DRAW = {}  # what draws it


def card_of(docname):
    """Return a page's card; those that Sphinx makes by itself are described by the book's."""
    return CARDS.get(docname, CARDS[HOME])


# Pictures


def shows(words):
    """Register a function that draws a picture, under its name."""

    def keep(draw):
        SHOWN[draw.__name__], DRAW[draw.__name__] = words, draw
        return draw

    return keep


@shows("A column of bars and a row of bars, and the table of their products")
def tile(ax):
    column, row = np.array([0.3, 0.9, 0.6, 1.0, 0.45]), np.array([0.5, 1.0, 0.35, 0.75, 0.9, 0.25, 0.6])
    for i, high in enumerate(column):
        ax.add_patch(Rectangle((-0.4 - high, -i), high, -0.86, color=TEAL))
        for j, wide in enumerate(row):
            ax.add_patch(Rectangle((j, -i), 0.92, -0.86, color=TEAL, alpha=0.08 + 0.92 * high * wide, lw=0))
    for j, wide in enumerate(row):
        ax.add_patch(Rectangle((j, 0.3), 0.92, wide, color=TEAL))


@shows("Falling bars, the first four of them in color, and a line that cuts off the others")
def spectrum(ax):
    bars = 5 * 0.8 ** np.arange(16)
    for i, height in enumerate(bars):
        ax.add_patch(Rectangle((0.5 * i, 0), 0.38, height, color=TEAL if i < 4 else GRAY, alpha=1 if i < 4 else 0.55))
    ax.plot([1.94, 1.94], [-0.2, 5], color=ORANGE, lw=2, ls=(0, (4, 2)))


@shows("Two slanted clouds of points, and a line between them")
def classes(ax):
    rng = np.random.default_rng(3)
    slanted = rng.standard_normal((2, 40, 2)) @ np.array([[1.5, 1.0], [0.1, 0.45]])
    for points, shift, color in zip(slanted, (1.0, -1.0), (TEAL, VIOLET), strict=True):
        ax.plot(*(points + np.array([-0.55, 0.8]) * shift).T, "o", ms=4.2, color=color, alpha=0.85, mew=0)
    ax.plot([-4, 4], [-2.67, 2.67], color=INK, lw=2)


@shows("Bars in the shape of a bell between two dashed lines, and a few outside")
def bell(ax):
    at = np.linspace(-2.9, 2.9, 21)
    for x, height in zip(at, 4 * np.exp(-(at**2) / 2), strict=True):
        ax.add_patch(Rectangle((x - 0.12, 0), 0.24, height, color=TEAL if abs(x) < 1.75 else ORANGE))
    for x in (-1.75, 1.75):
        ax.plot([x, x], [0, 4], color=GRAY, lw=2, ls=(0, (4, 2)))


@shows("A row, a tall table, a wide table and a column, drawn to scale")
def factors(ax):
    for x, width, height, color in ((0, 6, 1, INK), (7, 1.4, 6, TEAL), (9.4, 6, 1.4, TEAL), (16.4, 1, 6, INK)):
        ax.add_patch(Rectangle((x, -height / 2), width, height, color=color, alpha=0.85))


@shows("The attention weights of six words as a table of six rows, darker where they are larger")
def weights(ax):
    from lowrank_tutor import sentence

    x, q, k = (np.array(table, dtype=float) for table in (sentence.X, sentence.W_Q, sentence.W_K))
    powers = np.exp(x @ q @ (x @ k).T / np.sqrt(2))
    for (i, j), weight in np.ndenumerate(powers / powers.sum(axis=1, keepdims=True)):
        ax.add_patch(Rectangle((1.5 * j, -i), 1.4, -0.9, color=TEAL, alpha=0.06 + 0.94 * weight**0.6, lw=0))


@shows("Twelve small squares in four groups, and each group joined to one larger square")
def mixtures(ax):
    for group in range(4):
        left = 3.4 * group
        corners = [(left, 2), (left + 2.8, 2), (left + 1.9, 0), (left + 0.9, 0)]
        ax.add_patch(Polygon(corners, color=GRAY, alpha=0.25, lw=0))
        ax.add_patch(Rectangle((left + 0.6, -1.6), 1.6, 1.6, color=TEAL))
        for i in range(3):
            ax.add_patch(Rectangle((left + 0.98 * i, 2), 0.86, 0.86, color=INK))


@shows("Five tall columns, each narrowed to a short column below it, and one row across the short ones")
def latents(ax):
    for i in range(5):
        left = 2.2 * i
        ax.add_patch(Rectangle((left, 2.2), 1.6, 3.2, color=GRAY, alpha=0.4))
        ax.add_patch(
            Polygon([(left, 2.0), (left + 1.6, 2.0), (left + 1.3, 1.1), (left + 0.3, 1.1)], color=GRAY, alpha=0.2, lw=0)
        )
        ax.add_patch(Rectangle((left + 0.3, -0.1), 1.0, 1.0, color=TEAL))
    ax.add_patch(Rectangle((-0.3, -0.9), 11.0, 0.4, color=INK))


@shows("Old tokens merged into faint squares, and the last four in full color")
def recent(ax):
    for i in range(3):
        ax.add_patch(Rectangle((3.3 * i, 0), 3.0, 0.95, color=GRAY, alpha=0.35 + 0.2 * i))
    for i in range(4):
        ax.add_patch(Rectangle((9.9 + 1.1 * i, 0), 0.95, 0.95, color=TEAL))
    ax.plot([13.7, 1.5], [2.6, 1.1], [13.7, 4.8], [2.6, 1.1], [13.7, 8.1], [2.6, 1.1], color=GRAY, lw=1)
    for i in range(4):
        ax.plot([13.7, 10.4 + 1.1 * i], [2.6, 1.1], color=TEAL, lw=2)
    ax.plot([13.7], [2.6], "o", ms=9, color=INK)


def draw(ax, picture):
    """Draw one of the pictures, as large as its place allows."""
    DRAW[picture](ax)
    ax.set_aspect("auto" if picture in ("spectrum", "bell") else "equal")
    ax.autoscale_view()
    ax.axis("off")


def thumbnail(picture, path):
    figure = Figure(ART)
    draw(figure.add_axes((0.06, 0.08, 0.88, 0.84)), picture)
    with rc_context({"svg.hashsalt": picture}):  # else its names within are drawn at random
        figure.savefig(path, transparent=True, metadata={"Date": None})


def picture_for_links(title, picture, path):
    figure = Figure(LINK, facecolor="white")
    draw(figure.add_axes((0.56, 0.2, 0.4, 0.6)), picture)
    topic, _, verb = title.partition(": ")
    lines = textwrap.wrap(topic, 19, break_long_words=False)
    figure.text(0.06, 0.8, "\n".join(lines), size=42, weight="bold", va="top", color="#16181d", linespacing=1.15)
    place, teal = 0.72 - 0.125 * len(lines), COLORS["teal"].light
    figure.text(0.06, place, textwrap.fill(verb, 28, break_long_words=False), size=27, va="top", color=teal)
    figure.text(0.06, 0.12, "Low-Rank Attention, an interactive book", size=19, color="#5a5f68")
    figure.savefig(path, dpi=100)


def logo():
    """Draw the logo: a table that is the product of a column and a row."""
    column, row = (1, 0.55, 0.8, 0.35), (0.9, 0.5, 1, 0.4)

    def square(x, y, color, share):
        at = f'x="{x}" y="{y}" width="9" height="9" rx="1.5"'
        return f'<rect {at} fill="{COLORS[color].either}" fill-opacity="{share:.2g}"/>'

    table = [square(16 + 10 * j, 16 + 10 * i, "teal", a * b) for i, a in enumerate(column) for j, b in enumerate(row)]
    left = [square(3, 16 + 10 * i, "teal", share) for i, share in enumerate(column)]
    above = [square(16 + 10 * j, 3, "teal", share) for j, share in enumerate(row)]
    said = "A matrix as the product of one column and one row"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 58 58" role="img" aria-label="{said}">'
    return head + "".join([*table, *left, *above]) + "</svg>\n"


def write_logo(app, config):
    """Write the logo anew if a color has changed: Sphinx takes it from the sources."""
    path = Path(app.srcdir, config.html_logo)
    if not path.exists() or path.read_text() != logo():
        path.write_text(logo())


def make_pictures(app, exception):
    """Draw what is missing or would look different now."""
    if exception is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    rules = Path(__file__).read_bytes() + repr(COLORS).encode()
    wanted = {f"{picture}.svg": (thumbnail, picture) for picture in SHOWN}
    for docname in app.env.titles:
        wanted[link_name(docname)] = (picture_for_links, title_of(app, docname), card_of(docname).picture)
    stamp = folder / "made.json"
    made = json.loads(stamp.read_text()) if stamp.exists() else {}
    for name, (make, *words) in wanted.items():
        digest = hashlib.sha256(rules + repr(words).encode()).hexdigest()[:12]
        if made.get(name) != digest or not (folder / name).exists():
            make(*words, folder / name)
            made[name] = digest
    stamp.write_text(json.dumps(made))


def link_name(docname):
    """Name the picture of a page: pages that Sphinx makes by itself share the book's."""
    return f"{docname.replace('/', '-')}.png"


def title_of(app, docname):
    return app.env.titles[docname].astext()


# What other sites read


def meta(app, pagename, address):
    """Return the tags by which search engines and links describe a page."""
    known = pagename in app.env.titles
    described = pagename if known else HOME
    title = html.escape(title_of(app, described))
    said = html.escape(card_of(described).sentence)
    return f"""
<meta name="description" content="{said}">
<meta property="og:title" content="{title}">
<meta property="og:description" content="{said}">
<meta property="og:type" content="{"website" if described == HOME else "article"}">
<meta property="og:site_name" content="{html.escape(app.config.html_title)}">
<meta property="og:url" content="{address}{pagename}.html">
<meta property="og:image" content="{address}{FOLDER}/{link_name(described)}">
<meta property="og:image:alt" content="{html.escape(SHOWN[card_of(described).picture])}">
<meta name="twitter:card" content="summary_large_image">"""


# What the landing page shows


def landing(app, doctree, docname):
    """Put the figure that opens the book and a card for each chapter where the landing page asks for them."""
    if app.builder.name != "html":  # on paper there is nothing to drag, and a list of contents of its own
        return
    for place in doctree.findall(nodes.comment):
        made = {"the figure": figure, "the chapters": chapters}.get(place.astext().strip())
        if docname == HOME and made:
            place.replace_self(nodes.raw("", made(app), format="html"))


def figure(app):
    from lowrank_tutor.figures import sheets

    return sheets(demo=True).to_html()


def chapters(app):
    numbers = app.env.toc_secnumbers
    numbered = [doc for doc in app.env.titles if numbers.get(doc, {}).get("")]
    items = "".join(chapter(app, doc) for doc in sorted(numbered, key=lambda doc: numbers[doc][""]))
    return f'<ol class="chapters" id="chapters">{items}</ol>'


def chapter(app, docname):
    card, address = card_of(docname), app.builder.get_relative_uri(HOME, docname)
    topic, _, verb = html.escape(title_of(app, docname)).partition(": ")
    width, height = (round(100 * inches) for inches in ART)
    (number,) = app.env.toc_secnumbers[docname][""]
    return (
        f'<li><img src="../{FOLDER}/{card.picture}.svg" width="{width}" height="{height}" alt="{SHOWN[card.picture]}">'
        f'<p><a href="{address}"><strong>{number}. {topic}</strong> {verb}</a></p><p>{card.sentence}</p></li>'
    )


def open_up(app, pagename, templatename, context, doctree):
    """Leave the landing page without sidebars, and with links in place of the buttons of a chapter."""
    if pagename == HOME:
        context["metatags"] += '<meta name="landing" content="yes">'
        context["secondary_sidebar_items"] = []
        context["theme_article_header_start"] = ["toggle-primary-sidebar.html", "landing-name.html"]
        context["theme_article_header_end"] = ["landing-links.html", "theme-switcher.html", "search-button.html"]


def read_the_landing_page_again(app, env, added, changed, removed):
    """Read the landing page again after any other page: it shows and lists them."""
    return [HOME] if (added | changed | removed) - {HOME} and HOME in env.found_docs else []


def setup(app):
    app.connect("config-inited", write_logo)
    app.connect("env-get-outdated", read_the_landing_page_again)
    app.connect("doctree-resolved", landing)
    app.connect("html-page-context", open_up, priority=950)  # after the theme has listed what it shows
    app.connect("build-finished", make_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
