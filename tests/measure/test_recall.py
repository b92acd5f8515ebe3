"""The study of recall: its texts, and what each design sees and keeps."""

import pytest
import torch

from lowrank_tutor.states import delta_attention, window_attention
from measure.training import recall as study


def test_texts():
    """Each text pairs every key once, and asks for all of them."""
    ids, answers = study.texts(5, 16, torch.Generator().manual_seed(0))
    for text, wanted in zip(ids.tolist(), answers.tolist(), strict=True):
        told = dict(
            zip(text[:32:2], [value - study.SYMBOLS for value in text[1:32:2]], strict=True)
        )
        assert len(told) == 16
        assert sorted(text[32:]) == sorted(told)
        assert wanted == [told[key] for key in text[32:]]


@pytest.mark.parametrize("design", study.DESIGNS)
def test_designs_are_causal(design):
    """No later question changes an answer; an earlier one may."""
    torch.manual_seed(0)
    model, (ids, _) = (
        study.Model(design).eval(),
        study.texts(2, 32, torch.Generator().manual_seed(0)),
    )
    other = ids.clone()
    other[:, 80:] = other[:, 80:].flip(1)
    with torch.no_grad():
        before, after = (model(each, 32)[:, : 80 - 64] for each in (ids, other))
    torch.testing.assert_close(before, after)


def test_kept():
    """By the sizes of what the functions return as their states, for 2 heads of 16 after 100
    tokens.
    """
    x = torch.nn.functional.normalize(torch.randn(1, 2, 100, 16), dim=3)
    _, state = delta_attention(x, x, x, torch.ones(1, 2, 100) / 2, return_state=True)
    _, parts = window_attention(x, x, x, window=16, m=8, return_state=True)
    counts = {
        "delta": state.numel(),
        "means": sum(parts[i].numel() for i in (0, 1, 3, 4)),
        "linear": 2 * (256 + 16),
    }
    counts |= {"attention": 6400, "window": 1024, "latents": 1600}
    assert {kind: study.kept(kind, 100) for kind in study.KINDS} == counts
