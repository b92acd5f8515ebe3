"""A browser understands every declaration of the stylesheets; it silently drops the others."""

import pytest
import tinycss2
from chapters import ROOT

SHEETS = sorted(path for room in ("site", "lowrank_tutor") for path in (ROOT / room).rglob("*.css"))


def declarations(content):
    """Yield the line, property and value of each declaration, and parse errors as a property of
    their own.
    """
    for node in tinycss2.parse_blocks_contents(content, skip_comments=True, skip_whitespace=True):
        if node.type == "declaration":
            yield node.source_line, node.name, tinycss2.serialize(node.value).strip()
        elif node.type == "error":
            yield node.source_line, "error", node.message
        elif (
            node.content is not None and getattr(node, "at_keyword", "") != "font-face"
        ):  # which has no properties
            yield from declarations(node.content)


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page()
    yield page
    page.close()


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.name)
def test_declarations(page, path):
    found = list(declarations(path.read_text(encoding="utf-8")))
    assert found
    assert (
        page.evaluate(
            "(found) => found.filter(([, name, value]) => !CSS.supports(name, value))", found
        )
        == []
    )
