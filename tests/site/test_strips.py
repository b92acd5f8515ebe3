"""The strips at the heads of the chapters: well formed, in the colors of the page, with the numbers of the table."""

import base64
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import strips

from lowrank_tutor.kit.palette import COLORS, SURFACES
from lowrank_tutor.sentence import W_K, W_Q, X


@pytest.mark.parametrize("docname", strips.STRIPS)
def test_strip_is_well_formed(docname):
    drawn = ElementTree.fromstring(strips.strip(docname))
    assert drawn.get("aria-label")
    assert len(drawn) == 2
    assert len(strips.strip(docname)) < 22_000
    used = set(re.findall(r"var\(--(\w+)\)", strips.strip(docname)))
    assert used <= COLORS.keys() | SURFACES.keys()
    for words in drawn.iter("{http://www.w3.org/2000/svg}text"):
        assert float(words.get("font-size")) >= 12, words.text
        assert 0 <= float(words.get("x")) <= strips.WIDE, words.text


@pytest.mark.parametrize("docname", strips.STRIPS)
def test_notebook_needs_no_variables(docname):
    picture = ElementTree.fromstring(strips.for_notebook(docname).replace('">', '"/>'))
    kind, data = picture.get("src").split(",")
    drawn = base64.b64decode(data).decode()
    assert kind == "data:image/svg+xml;base64"
    assert picture.get("alt")
    assert len(ElementTree.fromstring(drawn))
    assert "var(" not in drawn


def test_numbers_are_those_of_the_table():
    x, q, k = (np.array(table, dtype=float) for table in (X, W_Q, W_K))
    logits = x @ q @ k.T @ x.T / np.sqrt(2)
    table = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    values = np.linalg.eigvalsh(table.T @ table)
    said, (left, _) = strips.drawings("book/02-svd-pca")
    assert f"{np.sqrt(values[:4].sum() / values.sum()):.0%}" in said
    highs = [float(high) for high in re.findall(r'height="([\d.]+)" fill="var\(--(?:teal|gray)\)"', left)]
    assert np.allclose(np.array(highs) / 100, np.sqrt(values[::-1] / values[-1]), atol=0.001)
