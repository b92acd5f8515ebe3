"""Each call of the cheat sheet works as it stands."""

import re
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from chapters import ROOT
from matplotlib.figure import Figure
from torch import nn

import lowrank_tutor as lr
from lowrank_tutor import smollm

CALLS = re.findall(
    r"^\| .* \| `(.*)` \|$", (ROOT / "book" / "cheat-sheet.md").read_text(encoding="utf-8"), re.M
)


def draw(k):
    return Figure()


def real_model():
    if find_spec(smollm.PACKAGE) is None:
        pytest.skip("the real model is not installed: make model")
    return smollm.load()


@pytest.fixture(scope="module")
def names():
    """What the page's tables call by one letter or word."""
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    normal = rng.standard_normal
    q, k, v, keys = (torch.randn(2, 4, 40, 8, generator=generator) for _ in range(4))
    start = torch.linalg.qr(torch.randn(6, 2, generator=generator)).Q
    ratings = normal((6, 5))
    ratings[ratings < -1] = np.nan
    return {
        "lr": lr, "np": np, "torch": torch, "image": rng.random((8, 6, 3)),
        "fit": lr.factorization.factorize_ratings(ratings, None, 2, rng=0),
        "band": torch.ones(40, 40, dtype=bool).tril().triu(-15),
        "moments": {"0": torch.eye(6)},
        "a": normal((8, 6)), "m": 8, "n": 6, "s": np.arange(6.0, 0, -1), "approx": normal((8, 6)),
        "x": normal((20, 5)), "d": 5, "labels": ["one", "other"] * 10, "projection": normal((3, 5)),
        "ratings": ratings, "means": np.nanmean(ratings, 0),
        "query": normal(6), "key": normal(5), "w": normal((6, 5)),
        "inputs": normal((9, 5)), "table": normal((6, 5)), "q": q, "k": k, "v": v,
        "mask": torch.ones(2, 40, dtype=torch.bool), "keys": nn.functional.normalize(keys, dim=3),
        "beta": torch.full((2, 4, 40), 0.5),
        "mha": nn.MultiheadAttention(64, 4, bias=False, batch_first=True),
        "w_k": torch.randn(4, 16, 8, generator=generator),
        "w_v": torch.randn(4, 16, 8, generator=generator),
        "linear": nn.Linear(6, 8), "gradient": torch.randn(8, 6, generator=generator),
        "start": start,
        "momentum": torch.randn(8, 6, generator=generator), "draw": draw,
        "model": nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 4)), "names": "0",
        "words": "<s> Ada wears red . Ada wears", "attend": lr.storyteller.exact,
    }  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_call_works(call, names):
    if "smol," in call:
        names = names | {"smol": real_model(), "text": "one two three four " * 20}
    if not re.search(r"attention|states", call):
        names = names | {"k": 2}  # the rank
    assert eval(call, dict(names)) is not None


def test_every_module_has_a_row():
    called = set(re.findall(r"lr\.(\w+)", " ".join(CALLS)))
    assert set(lr.__all__) - called == {"sentence"}
    assert 40 <= len(CALLS) <= 60
