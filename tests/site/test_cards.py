"""The drawings of the chapters' cards: well formed, and in the colors of the page."""

import re
from xml.etree import ElementTree

import cards
import pytest

from lowrank_tutor.kit.palette import COLORS, SURFACES


@pytest.mark.parametrize("docname", cards.CARDS)
def test_card_is_well_formed(docname):
    drawn = ElementTree.fromstring(cards.card(docname))
    assert len(cards.card(docname)) < 15_000
    used = set(re.findall(r"var\(--(\w+)\)", cards.card(docname)))
    assert used <= COLORS.keys() | SURFACES.keys()
    for words in drawn.iter("{http://www.w3.org/2000/svg}text"):
        assert float(words.get("font-size")) >= 12, words.text
        assert 0 <= float(words.get("x")) <= cards.WIDE, words.text
