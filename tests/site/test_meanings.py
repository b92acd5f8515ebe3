"""Terms and functions say what they mean where they are named: to a mouse, to keys, and to a
finger.
"""

import json
import re

import pytest
from chapters import each_chapter
from visits import FINGER, address_of

RANK = "book/01-rank.html"
TERM = "a:has(> .std-term)"
FUNCTION = "a:has(> code.py)"


@pytest.fixture(scope="module")
def meanings(site):
    text = (site / "_static/meanings-data.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("window.meanings = ").removesuffix(";\n"))


@each_chapter
def test_each_name_has_a_meaning(site, meanings, path):
    text = (site / address_of(path)).read_text(encoding="utf-8")
    names = re.findall(
        r'<a [^>]*href="(?:glossary|cheat-sheet)\.html#([^"]+)"[^>]*><(?:span|code)', text
    )
    assert len(names) > 3
    assert not [name for name in names if len(meanings.get(name, "")) < 15]
    assert not [name for name in names if re.search(r" [.,;)]+( |$)", meanings[name])]


@pytest.mark.parametrize("kind", [TERM, FUNCTION], ids=["term", "function"])
def test_mouse_and_keys(visit, kind):
    page = visit(RANK, maths=True)
    link, box = page.locator(f".bd-article {kind}").first, page.get_by_role("tooltip")
    link.hover()
    box.wait_for()
    assert link.get_attribute("aria-describedby") == "meaning"
    assert box.bounding_box()["width"] > 100
    box.hover()  # it stays under the mouse
    assert box.is_visible()
    page.keyboard.press("Escape")
    assert not box.is_visible()
    page.keyboard.press("Tab")  # keys are in use now
    link.focus()
    box.wait_for()
    link.blur()
    assert not box.is_visible()
    assert page.url.endswith(RANK)


def test_finger(visit):
    page = visit(RANK, maths=True, **FINGER)
    link, box = page.locator(f".bd-article {TERM}").first, page.get_by_role("tooltip")
    link.tap()
    box.wait_for()
    where = box.bounding_box()
    assert where["x"] >= 0
    assert where["x"] + where["width"] <= 360
    page.locator(".bd-article h1").tap()
    assert not box.is_visible()
    link.tap()
    box.wait_for()
    link.tap()
    page.wait_for_url("**/book/glossary.html#term-*")
