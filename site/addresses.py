"""Name the right address of each page, and say what to do at a wrong one."""

import html
from pathlib import Path
from urllib.parse import urlsplit

from theme import book_address
from theme.head import POLICY

LOST = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>No such page: {title}</title>
<noscript><meta http-equiv="refresh" content="30; url={root}book/index.html"></noscript>
<style>body {{ font: 1.2rem/1.5 serif; margin: 4rem auto; max-width: 34rem; padding: 0 1rem }}
:root {{ color-scheme: light dark }}</style></head>
<body><main><h1>There is no page at this address</h1><p>It may have moved.
<a href="{root}book/index.html">Begin at the front</a>, or
<a href="{root}search.html">search the book</a>.</p></main></body></html>
"""


def set_base(app, config):
    # Each page then names its canonical address.
    config.html_baseurl = book_address(config)


def write_pages(app, problem):
    if problem is not None or app.builder.name != "html":
        return
    out, names = Path(app.outdir), {"policy": POLICY, "title": html.escape(app.config.html_title)}
    # A server shows it at any depth, so its links begin at the root of the host.
    lost = LOST.format(**names, root=urlsplit(app.config.html_baseurl).path)
    (out / "404.html").write_text(lost, encoding="utf-8")


def setup(app):
    app.connect("config-inited", set_base)
    app.connect("build-finished", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
