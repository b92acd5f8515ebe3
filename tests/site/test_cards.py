"""The drawings of the chapters' cards: well formed, in the colors of the page, with the numbers of
the table.
"""

import re
from xml.etree import ElementTree

import cards
import numpy as np
import pytest

from lowrank_tutor.kit.palette import COLORS, SURFACES
from lowrank_tutor.sentence import W_K, W_Q, X


@pytest.mark.parametrize("docname", cards.CARDS)
def test_card_is_well_formed(docname):
    drawn = ElementTree.fromstring(cards.card(docname))
    assert len(cards.card(docname)) < 15_000
    used = set(re.findall(r"var\(--(\w+)\)", cards.card(docname)))
    assert used <= COLORS.keys() | SURFACES.keys()
    for words in drawn.iter("{http://www.w3.org/2000/svg}text"):
        assert float(words.get("font-size")) >= 12, words.text
        assert 0 <= float(words.get("x")) <= cards.WIDE, words.text


def test_numbers_are_those_of_the_table():
    x, q, k = (np.array(table, dtype=float) for table in (X, W_Q, W_K))
    logits = x @ q @ k.T @ x.T / np.sqrt(2)
    table = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    values = np.linalg.eigvalsh(table.T @ table)
    drawn = cards.card("book/02-svd-pca")
    assert f"off by {np.sqrt(values[:4].sum() / values.sum()):.0%}" in drawn
    highs = [
        float(high)
        for high in re.findall(r'height="([\d.]+)" fill="var\(--(?:teal|gray)\)"', drawn)
    ]
    assert np.allclose(np.array(highs) / 100, np.sqrt(values[::-1] / values[-1]), atol=0.001)
