"""Describe each page in a sentence, for search engines and links, and fill in the landing page."""

import html

from cards import card
from docutils import nodes

HOME = "book/index"
# What a link from elsewhere shows: `make picture` photographs the landing page.
PREVIEW = "_static/preview.png"
SENTENCES = {
    HOME: (
        "An interactive book on low rank: cut the attention of a small language model and see what "
        "it forgets, from the rank of a matrix to the caches of models."
    ),
    "book/01-rank": (
        "What the rank of a matrix is, how to find it by hand, "
        "and when two thin factors take less room than the table."
    ),
    "book/02-svd-pca": (
        "Which directions of a table to keep, what leaving out the others costs, "
        "and why to subtract the mean first."
    ),
    "book/03-family": (
        "A few numbers for each image, for other purposes: tell classes apart, add up parts, "
        "fill gaps, bend the map."
    ),
    "book/04-johnson-lindenstrauss": (
        "Random directions keep distances. How many do your points need, "
        "and when is the bound useless?"
    ),
    "book/05-bilinear-scoring": (
        "Compare two vectors through a few numbers: what it saves, which factors are best, "
        "how they are learned."
    ),
    "book/06-attention": (
        "What attention does to a sentence, which of its ranks is low, "
        "and what linear attention and Performer change."
    ),
    "book/07-linformer": (
        "Read a sequence of n tokens as k mixtures of them: what Linformer saves, what it loses, "
        "and when to use it."
    ),
    "book/08-caches": (
        "How today's models keep less of each token, what each way costs, "
        "and how to give a trained model latents."
    ),
    "book/09-adapters": (
        "How to change a weight by a few sheets, how to average and merge such changes, "
        "and send less of a gradient."
    ),
    "book/10-states": (
        "What a table of fixed size can remember in place of a cache, "
        "and which theorem is about which rank."
    ),
    "book/microscope": (
        "Drop your own weights or adapter on this page and see their low rank, in your browser: "
        "nothing is uploaded."
    ),
    "book/budget": "The least memory with which a small model still answers: "
    "cut everything at once, and look.",
    "book/real-model": "What each cut of attention costs SmolLM2-135M, a language model that "
    "others trained, in nats and in answers.",
    "book/choose": (
        "From a problem to a technique: what it saves, what it costs in quality, who uses it, "
        "which library to install."
    ),
    "book/use-linformer": (
        "Put a window or Linformer into a model of your own, layer by layer, "
        "and check the loss before you keep it."
    ),
    "book/use-sliders": (
        "Put sliders that need no Python behind them on the pages of your own book, "
        "and fields that check an answer."
    ),
    "book/measured": (
        "Linformer and exact attention on graphics cards, yours too, "
        "and this book's functions beside other packages."
    ),
    "book/corrections": (
        "Claims about low rank that are often repeated and do not hold, "
        "each beside a cell that shows it."
    ),
    "book/asked": "Questions from issue trackers about low rank, PCA, attention, caches, and LoRA, "
    "and answers.",
    "book/guesses": "How well you guessed on the pages of this book, "
    "kept in your own browser and nowhere else.",
    "book/cheat-sheet": "What to call for what you want to do: the functions of the package, "
    "a line each, and all that they take and return.",
    "book/glossary": "The words and letters of the book, and where each word is explained in full.",
    "book/bibliography": "The works that the book cites, "
    "and the places outside the site that it links to.",
    "genindex": "Every function and every term of the book, in alphabetical order.",
}


def meta(app, pagename, address):
    """Return the tags by which search engines and links describe a page.

    Sphinx's own pages have the book's words.
    """
    described = pagename if pagename in app.env.titles else HOME
    title = html.escape(app.env.titles[described].astext())
    sentence = html.escape(SENTENCES.get(described, SENTENCES[HOME]))
    return f"""
<meta name="description" content="{sentence}">
<meta property="og:title" content="{title}">
<meta property="og:description" content="{sentence}">
<meta property="og:type" content="{"website" if described == HOME else "article"}">
<meta property="og:site_name" content="{html.escape(app.config.html_title)}">
<meta property="og:url" content="{address}{pagename}.html">
<meta property="og:image" content="{address}{PREVIEW}">
<meta property="og:image:alt" content="The opening page of the book, with its figure">
<meta name="twitter:card" content="summary_large_image">"""


def fill_landing_page(app, doctree, docname):
    """Put the figure that opens the book and a card for each chapter on the landing page."""
    if (
        app.builder.name != "html"
    ):  # on paper there is nothing to drag, and a list of contents of its own
        return
    for place in doctree.findall(nodes.comment):
        part = {
            "the figure": figure,
            "the ring": ring,
            "the chapters": chapters,
            "the files": files,
        }.get(place.astext().strip())
        if docname == HOME and part:
            place.replace_self(nodes.raw("", part(app), format="html"))


def figure(app):
    from lowrank_tutor.figures import two_cuts

    return two_cuts(demo=True).block.to_html(linked=True)


def ring(app):
    from lowrank_tutor.figures import storyteller

    return storyteller(k=6, cuts=("sheets",), demo=True).block.to_html(linked=True)


def files(app):
    return "<!-- the files -->"  # `make publish` puts them here (site/print/publish.py)


def chapters(app):
    numbers = app.env.toc_secnumbers
    numbered = [doc for doc in app.env.titles if numbers.get(doc, {}).get("")]
    items = "".join(chapter(app, doc) for doc in sorted(numbered, key=lambda doc: numbers[doc][""]))
    return f'<ol class="chapters" id="chapters">{items}</ol>'


def minutes(doctree):
    """Say how long a page takes: open text at 130 words a minute, with time to move figures.

    A guess takes 2 minutes more, a theorem 5, and an exercise 4.
    """
    count = 0
    for paragraph in doctree.findall(nodes.paragraph):
        above, inside = paragraph.parent, []
        while above is not doctree:
            inside += above.get("classes", []) + above.get("ids", [])
            above = above.parent
        if not {"dropdown", "exercises", "exercise", "sources"} & set(inside):
            count += len(paragraph.astext().split())
    code = "".join(block.astext() for block in doctree.findall(nodes.literal_block))
    boxes = [set(box["classes"]) for box in doctree.findall(nodes.Element) if "classes" in box]
    theorems, exercises = (sum(kind in box for box in boxes) for kind in ("theorem", "exercise"))
    whole = count / 130 + 2 * code.count("draw_first(") + 5 * theorems + 4 * exercises
    return max(5, 5 * round(whole / 5))


def chapter(app, docname):
    """Return a chapter's card: its drawing, its title, and its sentence."""
    address = app.builder.get_relative_uri(HOME, docname)
    topic, _, verb = html.escape(app.env.titles[docname].astext()).partition(": ")
    (number,) = app.env.toc_secnumbers[docname][""]
    return (
        f"<li>{card(docname)}"
        f'<p><a href="{address}"><strong>{number}. {topic}</strong> {verb}</a></p>'
        f"<p>{SENTENCES[docname]} "
        f"<small>{minutes(app.env.get_doctree(docname))} minutes</small></p></li>"
    )


def open_up(app, pagename, templatename, context, doctree):
    """Leave the landing page without sidebars, and with links in place of buttons."""
    if pagename == HOME:
        context["metatags"] += '<meta name="landing" content="yes">'
        context["secondary_sidebar_items"] = []
        context["theme_article_header_start"] = ["toggle-primary-sidebar.html", "landing-name.html"]
        context["theme_article_header_end"] = [
            "guesses-link.html",
            "landing-links.html",
            "theme-switcher.html",
            "search-button.html",
        ]


def read_the_landing_page_again(app, env, added, changed, removed):
    """Read the landing page again after any other page: it shows and lists them."""
    return [HOME] if (added | changed | removed) - {HOME} and HOME in env.found_docs else []


def setup(app):
    app.connect("env-get-outdated", read_the_landing_page_again)
    app.connect("doctree-resolved", fill_landing_page)
    app.connect(
        "html-page-context", open_up, priority=950
    )  # after the theme has listed what it shows
    return {"parallel_read_safe": True, "parallel_write_safe": True}
