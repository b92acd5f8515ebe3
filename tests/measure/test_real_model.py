"""The study of the real model: its cuts beside the storyteller's, and its record."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from lowrank_tutor import smollm, storyteller
from measure.harness import DATA
from measure.real_model import cuts, moments, study
from measure.real_model.texts import SETS

G = torch.Generator().manual_seed(0)
Q, K, V = (1.5 * torch.randn(2, heads, 40, 64, generator=G) for heads in (9, 3, 3))
ALIKE = {
    "sheets": (cuts.sheets(5), storyteller.sheets(5)),
    "window": (cuts.window(7), storyteller.window(7)),
    "averages": (cuts.means(6), storyteller.means(6)),
    "bits": (cuts.round_cache(3), storyteller.bits(3)),
}
WHOLE = {
    "window": cuts.window(1, 40),
    "sheets": cuts.sheets(40),
    "keys": cuts.project_keys(torch.eye(192)),
    "rotated keys": cuts.project_keys(torch.eye(192), after=True),
    "both": cuts.project_both(torch.eye(384)),
    "shift": cuts.shift(torch.randn(3, 64, generator=G)),
    "spread": cuts.round_spread(20),
    "centered": cuts.round_centered(20, torch.randn(3, 64, generator=G)),
    "heard": cuts.keep_heard(40),
    "unlike": cuts.keep_unlike(80),
}


@pytest.fixture(scope="module")
def record():
    return json.loads((DATA / "real_model.json").read_text(encoding="utf-8"))


@pytest.fixture
def installed():
    if find_spec(smollm.PACKAGE) is None:
        pytest.skip("the real model is not installed: make model")


@pytest.mark.parametrize("cut", ALIKE)
def test_cuts_are_the_storytellers(cut):
    """In float64 and NumPy, with keys given to each head."""
    own, other = ALIKE[cut]
    table, values = own(Q, K, V)
    q, k = (x.double().numpy() for x in (Q, cuts.each_head(K)))
    np.testing.assert_allclose(table, other.table(q, k), atol=1e-5)
    np.testing.assert_allclose(values, other.values(V.double().numpy()), atol=1e-5)


@pytest.mark.parametrize("cut", WHOLE)
def test_cuts_that_keep_all(cut):
    table, values = WHOLE[cut](Q, K, V)
    torch.testing.assert_close(table, smollm.table(Q, K), atol=2e-5, rtol=0)
    torch.testing.assert_close(values, V, atol=2e-5, rtol=0)


@pytest.mark.parametrize("cut", [cuts.keep_heard(10), cuts.keep_unlike(10), cuts.window(6, 4)])
def test_kept_tokens_are_counted(cut):
    seen = (cut(Q, K, V)[0] > 0).sum(dim=-1)
    assert (seen <= torch.arange(1, 41).clamp(max=10)).all()
    assert (seen[..., 10:] == 10).all()


def test_projections_are_best():
    """Judged by the SVD of what is used: for its rank, nothing leaves less."""
    x, use = torch.randn(300, 12, generator=G), torch.randn(12, 12, generator=G)
    p = moments.projection(x.T @ x, 5, use)
    best = torch.linalg.svdvals(x @ use.T)[5:].norm()
    torch.testing.assert_close(((x - x @ p.T) @ use.T).norm(), best, rtol=1e-4, atol=0)
    for shape in ((20, 12), (8, 12)):
        a = torch.randn(*shape, generator=G)
        u = moments.directions(a, x.T @ x)[:, :5]
        best = torch.linalg.svdvals(a @ x.T)[5:].norm()
        torch.testing.assert_close(((a - u @ (u.T @ a)) @ x.T).norm(), best, rtol=1e-3, atol=0)


FIELDS = ("cut", "setting", "text", "length", "seed", "pieces", "error", "drift", "loss", "uncut")


def test_record(record):
    assert {"command", "date", "machine", "versions", "sha256", "licenses"} <= set(record["meta"])
    assert list(record["meta"]["pieces"]) == list(SETS)
    assert all(tuple(row) == FIELDS for row in record["rows"])
    told = {(row["cut"], row["setting"]) for row in record["continuations"]}
    for case in study.figure_cuts():
        own = [row for row in record["rows"] if (row["cut"], row["setting"]) == case[:2]]
        assert sum(row["length"] == 256 for row in own) == 9, case
        assert case[:2] in told
    free = [row for row in record["rows"] if row["cut"] in ("none", "one vector off all keys")]
    assert max(abs(row["loss"] - row["uncut"]) for row in free) <= 2e-4
    assert min(record["jobs"][0]["right"].values()) >= 0.9
    assert (DATA / "real_model.json").stat().st_size < 300_000


@pytest.mark.usefixtures("installed")
def test_rows_come_again(record):
    case = next(case for case in study.figure_cuts() if case[:2] == ("window and first 4", 32))
    again = next(study.Study().rows(case._replace(texts=("prose",))))
    (row,) = (row for row in record["rows"] if all(row[name] == again[name] for name in FIELDS[:6]))
    for name in FIELDS[6:9]:
        assert again[name] == pytest.approx(row[name], abs=2e-3), name
