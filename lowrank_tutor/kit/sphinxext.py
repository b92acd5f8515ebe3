"""A Sphinx extension that says whether a cell runs for a page or for a person.

It tells :mod:`lowrank_tutor.kit.sliders`. Any MyST-NB or Jupyter Book 1 project can load it:
``extensions = ["myst_nb", "lowrank_tutor.kit.sphinxext"]``. While a page is being built, explorers
then come out as self-contained HTML: kernels inherit the variable ``LOWRANK_TUTOR_PAGE``, which is
1 while a page is built and otherwise 0, empty or unset. (Set it to 1 yourself where a tool runs the
notebook as a person would.) Outputs of cells then hold words and data alone. The extension writes
styles and scripts into ``_static/lowrank-kit`` of the site, and each page links those that its
blocks need: a change of style runs no cell again. Other elements, and names that the package does
not have, are passed by.

Worked examples (:mod:`lowrank_tutor.byhand`) come out with their formulas: unless you have chosen a
``nb_render_markdown_format`` yourself, it becomes ``"myst"``. They need ``"dollarmath"`` among your
``myst_enable_extensions``, which Jupyter Book has.

With ``nb_execution_mode = "cache"`` the execution cache depends on the package's Python files and
data, too: MyST-NB alone would keep figures when a helper has changed. Results lie in
``.lowrank-cache`` beside the output folder, in one folder for each state of the package. A build
removes those that no build has used for two days, and nothing else. A cache path that you set
yourself (``nb_execution_cache_path``, or ``cache:`` in Jupyter Book's ``_config.yml``) is used
exactly as you set it and never emptied.
"""

import contextlib
import hashlib
import html
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import lowrank_tutor.kit.palette as palette
from lowrank_tutor import __version__
from lowrank_tutor.kit.block import BLOCKS, SHARED_STYLE, scripts_named, sheet
from lowrank_tutor.kit.environment import LINKED_VARIABLE, PAGE_VARIABLE

__all__ = ["package_fingerprint", "setup"]

VARIABLES = (PAGE_VARIABLE, LINKED_VARIABLE)
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
PAGES = ("html", "dirhtml", "singlehtml", "epub")  # builders that can show text/html
CACHES = ".lowrank-cache"
MARK = "made-by-lowrank-tutor"  # a folder without it is not ours to remove
UNUSED = 2 * 24 * 3600  # seconds after which a cache is removed; no build takes so long
PACKAGE = Path(__file__).parents[1]
BLOCK = re.compile(r'<\w+ [^>]*class="(?:explorer|instrument|check)"[^>]*>')  # Block.kind
FOLDER = "lowrank-kit"  # of the static files that blocks need
SOURCES = {
    ".py",
    ".json",
    ".mplstyle",
}  # on which outputs of cells depend; styles and scripts are files of the site


def package_fingerprint(*more: Path) -> str:
    """Hash the package's sources and data, and ``more`` files, into twelve hexadecimal digits.

    Files that do not exist are left out.
    """
    sources = sorted(p for p in PACKAGE.rglob("*") if p.suffix in SOURCES)
    digest = hashlib.sha256()
    for path in [*sources, *(p for p in more if p.is_file())]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _choose_what_is_shown(config: Any) -> None:
    """Prefer HTML over widget output, and allow cell Markdown the same syntax as page Markdown."""
    # MyST-NB's number for text/html is 30. Choices of the author come later, and count.
    ours = [(builder, WIDGET_VIEW, 35) for builder in PAGES]
    config.nb_mime_priority_overrides = [*ours, *config.nb_mime_priority_overrides]
    if "nb_render_markdown_format" not in {*config._raw_config, *config.overrides}:
        config.nb_render_markdown_format = "myst"


def _tell_kernels(app: Any, config: Any) -> None:
    before = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    app.connect("build-finished", lambda *_: _put_back(before))
    os.environ[PAGE_VARIABLE] = os.environ[LINKED_VARIABLE] = "1"
    _choose_what_is_shown(config)
    config.exclude_patterns = [
        *config.exclude_patterns,
        f"**{CACHES}",
    ]  # `sphinx-build . public` puts it among sources
    if config.nb_execution_mode == "cache" and not config.nb_execution_cache_path:
        pins = Path(app.confdir) / "requirements.txt"
        state = package_fingerprint(pins)  # what cells show depends on both
        config.nb_execution_cache_path = str(_cache(Path(app.outdir).parent / CACHES, state))


def _cache(home: Path, fingerprint: str) -> Path:
    """Make the cache of this state of the package, and remove our old ones.

    An old cache is one that no build has used for long.
    """
    fresh = home / fingerprint
    fresh.mkdir(parents=True, exist_ok=True)
    (fresh / ".gitignore").write_text("*\n", encoding="utf-8")
    (fresh / MARK).write_text("A later build may remove this folder.\n", encoding="utf-8")
    for mark in home.glob(f"*/{MARK}"):
        with contextlib.suppress(OSError):  # another build may remove it at this moment
            if (
                mark.stat().st_mtime < time.time() - UNUSED
            ):  # a mark is as old as the last use of its cache
                shutil.rmtree(mark.parent, ignore_errors=True)
    return fresh


def _link(app: Any, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Write the files that the blocks of a page need, and link them."""
    body = context.get("body", "")
    for name, content in {**_sheets(body), **_scripts(body)}.items():
        file = Path(app.outdir, "_static", FOLDER, name)
        if not file.exists() or file.read_text("utf-8") != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        if file.suffix == ".css":
            app.add_css_file(f"{FOLDER}/{name}")
        else:
            app.add_js_file(f"{FOLDER}/{name}", loading_method="defer")


def _named(body: str, attribute: str) -> dict[str, None]:
    """Return what the blocks of a page name in an attribute, each once."""
    named = re.compile(f' {attribute}="([^"]*)"')
    return dict.fromkeys(
        html.unescape(value) for tag in BLOCK.findall(body) for value in named.findall(tag)
    )


def _files(pattern: str) -> list[str]:
    """List files of the package as blocks name them."""
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob(pattern))


def _sheets(body: str) -> dict[str, str]:
    """Return the style sheets of a page: what the kit has in one file, others by name."""
    known = _files("*.css")
    paths = [
        path for paths in _named(body, "data-styles") for path in paths.split() if path in known
    ]
    if not paths:
        return {}
    kit = [path for path in known if re.fullmatch("kit/.*/.*", path)]
    others = {Path(path).name: sheet(path) for path in paths if path not in kit}
    return {"kit.css": palette.css(BLOCKS) + "".join(map(sheet, (SHARED_STYLE, *kit))), **others}


def _scripts(body: str) -> dict[str, str]:
    """Return the scripts of a page, the engine before what needs it.

    Each starts the blocks of its kind.
    """
    known = {*_files("*.js"), *_files("*.json")}
    named = dict.fromkeys(
        script
        for chain in map(scripts_named, _named(body, "data-scripts"))
        if all(known.issuperset(script.files) and script.start.isidentifier() for script in chain)
        for script in chain
    )
    start = "document.querySelectorAll('[data-scripts=\"{}\"]').forEach((block) => {{ {} }});\n"
    return {
        f"{script.file_name}.js": script.definition
        + start.format(script.reference(), script.starting("block"))
        for script in named
    }


def _put_back(before: dict[str, str]) -> None:
    for variable in VARIABLES:
        os.environ.pop(variable, None)
    os.environ.update(before)


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("config-inited", _tell_kernels, priority=100)  # before MyST-NB reads its settings
    app.connect("html-page-context", _link)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
