"""The study of recall: its texts, what each design sees and keeps, its record, and that it runs."""

import json
import sys

import pytest
import torch

from lowrank_tutor.states import delta_attention, window_attention
from measure.harness import DATA
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


def test_index_chooses():
    """The last token reads 16 of 40, those of highest score, and as in softmax over the sums of
    both scores.
    """
    g = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 40, 16, generator=g)
    asks, tells = torch.randn(2, 1, 1, 40, 8, generator=g)
    scores = tells[0, 0] @ asks[0, 0, -1] / 8**0.5
    best = scores.sort(descending=True).indices[:16]
    for head in range(2):
        weights = torch.softmax((k[0, head] @ q[0, head, -1] / 4 + scores)[best], dim=0)
        torch.testing.assert_close(
            study.index(q, k, v, asks, tells)[0, head, -1], weights @ v[0, head, best]
        )


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
    counts |= {"attention": 6400, "window": 1024, "latents": 1600, "index": 7200}
    assert {kind: study.kept(kind, 100) for kind in study.KINDS} == counts


def test_record_is_complete():
    meta, rows = json.loads((DATA / f"{study.NAME}.json").read_text(encoding="utf-8")).values()
    assert {"command", "date", "machine", "versions", "tokens_of_a_batch"} <= set(meta)
    found = {}
    for row in rows:
        assert [point[0] for point in row["curve"]] == [*range(100, meta["steps"] + 1, 100)], row[
            "design"
        ]
        if row["seed"] == 0:
            found.setdefault(row["design"], {})[row["rate"]] = row["validation"]
    assert list(found) == list(study.DESIGNS)
    for design, shares in found.items():
        best = max(shares, key=lambda rate, of=shares: (sum(of[rate]), rate))
        seeds = [row["seed"] for row in rows if row["design"] == design]
        assert meta["rates"][design] == best, design
        assert seeds == [0, 0, 1, 2][: 3 if min(shares[best]) > 0.99 else 4], design
    assert all(row["rate"] == meta["rates"][row["design"]] for row in rows if row["seed"])
    assert meta["kept"]["attention, then delta"] == [2 * load * 64 + 512 for load in meta["loads"]]


def test_short_run(monkeypatch, tmp_path, capsys):
    path = tmp_path / "runs.jsonl"
    monkeypatch.setattr(study, "write", lambda *_: pytest.fail("a short run writes nothing"))
    monkeypatch.setattr(sys, "argv", ["recall", "--short", "--resume", str(path)])
    for _ in range(2):  # nothing is repeated
        assert study.main() == 0
        assert [json.loads(line)["design"] for line in path.read_text().splitlines()] == list(
            study.DESIGNS
        )
    assert len(capsys.readouterr().out.splitlines()) == len(study.DESIGNS)
