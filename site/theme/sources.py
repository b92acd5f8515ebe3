"""Runs first: when the settings are read, and when a page or a docstring is about to be parsed."""

import datetime
import re

from docutils import nodes

from lowrank_tutor import __version__


def default_to_auto_theme(app, config):
    # The theme's script complains of an invalid mode when no default is set.
    config.html_context = {"default_mode": "auto", **config.html_context}


def name_the_edition(app, config):
    # Below every page: which edition this is, and what has been mended since.
    options, day = config.html_theme_options, datetime.datetime.now(datetime.UTC)
    changes = f"{options['repository_url']}/blob/{options['repository_branch']}/CHANGELOG.md"
    options["extra_footer"] += (
        f' Version {__version__}, {day:%B} {day.day}, {day.year}; <a href="{changes}">changes</a>.'
    )


def one_page_for_print(app):
    # sphinx-exercise registers visitors for the one-page builder, which hides every other
    # extension's.
    handlers = app.registry.translation_handlers
    for name, visitors in handlers.get("html", {}).items():
        handlers.setdefault("singlehtml", {}).setdefault(name, visitors)


def formulas_in_docstrings(app, what, name, obj, options, lines):
    # Docstrings write $...$ and $$...$$, which people and notebooks read; Sphinx wants a role and a
    # directive.
    text = "\n".join(lines)
    text = re.sub(r"\$\$([^$]+?)\$\$", lambda m: f"\n.. math:: {' '.join(m[1].split())}\n", text)
    text = re.sub(r"\$([^$]+?)\$", lambda m: f":math:`{' '.join(m[1].split())}`", text)
    lines[:] = text.split("\n")


def skip_tuple_fields(app, what, name, obj, skip, options):
    # A NamedTuple's docstring describes its fields; "Alias for field number 0" adds nothing.
    return True if type(obj).__name__ == "_tuplegetter" else None


COLAB = "https://colab.research.google.com/github"


def fill_in_repository(app, docname, source):
    # The address stands once, in _config.yml; pages write |repository|, |branch| and |colab|.
    options = app.config.html_theme_options
    address, branch = options["repository_url"], options["repository_branch"]
    in_colab = f"{address.replace('https://github.com', COLAB)}/blob/{branch}/book"
    for word, written in (("repository", address), ("branch", branch), ("colab", in_colab)):
        source[0] = source[0].replace(f"|{word}|", written)


def set_figure(name, rawtext, text, lineno, inliner, options=None, content=None):
    # {set}`38 degrees <tilt=tilt:38>` is a link that sets the figure "tilt" of its page, and does
    # not leave it.
    words, state = re.fullmatch(r"(.+) <([\w-]+=.+)>", text, re.S).groups()
    return [nodes.reference(rawtext, words, refuri=f"#{state}", classes=["sets"])], []


def setup(app):
    app.add_role("set", set_figure)
    app.connect("config-inited", default_to_auto_theme)
    app.connect("config-inited", name_the_edition)
    app.connect("builder-inited", one_page_for_print)
    app.connect("autodoc-process-docstring", formulas_in_docstrings)
    app.connect("autodoc-skip-member", skip_tuple_fields)
    app.connect("source-read", fill_in_repository)
