"""The record of adapters, latents and states is true; each promise can be broken, and our own are kept.

Peers are tried again only where `requirements-peers.txt` is installed: it is too heavy for every run.
"""

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import torch

from benchmarks import contract_today, promises
from benchmarks.adapters_today import ADAPTERS, Ours
from benchmarks.promises import distance, try_line
from benchmarks.promises_today import LINES, TODAY, N, moved, normal
from lowrank_tutor.state import delta_attention
from lowrank_tutor.svd import best_rank_k

DATA = Path(__file__).parents[2] / "lowrank_tutor" / "data" / "today_contract.json"
LINE = {line.name: line for line in LINES}


@pytest.fixture(scope="module")
def record():
    return json.loads(DATA.read_text(encoding="utf-8"))


def test_the_record_has_every_line_for_every_package_and_says_why(record):
    meta, rows = record["meta"], record["rows"]
    assert [(row["line"], row["package"]) for row in rows] == [(li.name, it.name) for li in LINES for it in ADAPTERS]
    assert meta["lines"] == {line.name: {"title": line.title, "bar": line.bar} for line in LINES}
    assert meta["command"] == contract_today.COMMAND
    assert "machine" not in meta
    for row in rows:
        assert row["outcome"] in ("holds", "fails", "not offered")
        assert (row["measured"] is None) == (row["outcome"] == "not offered")
        assert row["outcome"] == "holds" or row["remark"]
    assert promises.ours_hold(TODAY, rows)


@pytest.mark.filterwarnings("ignore")  # what peers warn of is not ours
@pytest.mark.parametrize("package", ADAPTERS, ids=lambda package: package.name)
def test_the_record_is_what_a_rerun_gives(package, record):
    installed(package.name)
    recorded = {row["line"]: row["outcome"] for row in record["rows"] if row["package"] == package.name}
    assert {line.name: try_line(line, package)["outcome"] for line in LINES} == recorded


def installed(name):
    (package,) = [package for package in ADAPTERS if package.name == name]
    try:
        version(package.distribution)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed: pip install -r requirements-peers.txt (200 MB)")
    return package


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["lora", "rslora", "dora"])
@pytest.mark.parametrize("name", ["peft", "lycoris"])
def test_our_update_is_that_of_others_merged_or_not(name, kind):
    peer, x = installed(name), normal(32, N, seed=3)
    theirs, ours = moved(peer, kind), moved(Ours(), kind)
    assert distance(ours(x), theirs(x)) < 1e-6
    assert distance(ours.merged()(x), peer.merged(theirs)(x)) < 1e-6


@pytest.mark.filterwarnings("ignore")
def test_our_chunks_are_those_of_transformers():
    peer = installed("transformers")
    q, k, v = (normal(2, 3, 200, 16, seed=i) for i in range(3))
    shares, decays = torch.sigmoid(normal(2, 3, 200, seed=3)), -torch.sigmoid(normal(2, 3, 200, seed=4)) / 10
    given = (q, torch.nn.functional.normalize(k, dim=3), v, shares, decays)
    assert distance(Ours().delta(*given), peer.delta(*given)) < 1e-6


class Broken(Ours):
    """Ours with something done wrong."""

    def __init__(self, **methods):
        for name, method in methods.items():
            setattr(self, name, method)


def plain(linear, r, alpha, kind):
    return Ours().adapted(linear, r, alpha, "lora")


def twice(linear, r, alpha, kind):
    return Ours().adapted(linear, r, 2 * alpha, kind)


def mixed(linear, pairs):
    return sum(b for b, _ in pairs) @ sum(a for _, a in pairs) / len(pairs)


def not_erased(q, k, v, beta, log_decay):
    return delta_attention(q, k, v * beta[..., None], beta / beta.max() * 1e-9, log_decay=log_decay)[0]


BROKEN = {
    "lora": Broken(adapted=twice),
    "rslora": Broken(adapted=plain),
    "dora": Broken(adapted=plain),
    "average": Broken(averaged=mixed),
    "base": Broken(without=lambda model: model.merged()),
    "work": Broken(per_stored_token=lambda: 16_818_176),
    "delta": Broken(delta=not_erased),
    "samples": Broken(cut=lambda w, x, k: torch.from_numpy(best_rank_k(w.numpy(), k))),
    "sent": Broken(share_sent=lambda: 1.0),
}


@pytest.mark.parametrize("name", LINE)
def test_a_package_that_breaks_a_promise_is_found_out(name):
    assert try_line(LINE[name], BROKEN[name])["outcome"] == "fails"


def test_the_average_can_be_had():
    right = Broken(averaged=lambda _, pairs: torch.cat([b for b, _ in pairs], 1) @ torch.cat([a for _, a in pairs]) / 2)
    assert try_line(LINE["average"], right)["outcome"] == "holds"


def test_the_exit_status_is_that_of_our_own(monkeypatch):
    for kept in (True, False):
        monkeypatch.setattr(contract_today, "keep_record", lambda family, command, kept=kept: kept)
        assert contract_today.main() == (0 if kept else 1)
