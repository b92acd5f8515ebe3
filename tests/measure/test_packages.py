"""The record behind the page *Packages*: a rerun gives it, ours keep every promise, and each promise can fail."""

import json

import pytest
import torch
from linformer import LinformerSelfAttention as LucidrainsLayer
from torch import nn

from measure.harness import DATA
from measure.packages import linformer as contract
from measure.packages.layers import ADAPTERS, Lucidrains, Ours, Tatp22
from measure.packages.linformer import LINES, OUTCOMES, distance, ours_hold, try_line

META, ROWS = json.loads((DATA / "linformer_contract.json").read_text(encoding="utf-8")).values()
LINE = {line.name: line for line in LINES}


def test_record_is_complete():
    assert [(row["line"], row["package"]) for row in ROWS] == [
        (line.name, each.name) for line in LINES for each in ADAPTERS
    ]
    assert META["lines"] == {line.name: {"title": line.title, "bar": line.bar} for line in LINES}
    for row in ROWS:
        assert row["outcome"] in OUTCOMES
        assert (row["measured"] is None) == (row["outcome"] in ("not offered", "error"))
        if row["measured"] is not None:
            assert (row["outcome"] == "holds") == (row["measured"] <= row["bar"])
        assert row["outcome"] in ("holds", "error") or row["remark"], row


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_rerun_gives_record(adapter):
    recorded = {row["line"]: row["outcome"] for row in ROWS if row["package"] == adapter.name}
    assert {line.name: try_line(line, adapter)["outcome"] for line in LINES} == recorded


def test_ours_keep_promises():
    assert ours_hold(ROWS)
    row = next(row for row in ROWS if row["package"] == Ours.name and row["outcome"] == "holds")
    assert not ours_hold([{**row, "outcome": "fails"}])


# --------------------------- one defect for each promise that no peer breaks;
# test_rerun_gives_record sees the others


class WrongGradient(torch.autograd.Function):
    """A product with one half whose gradient says one."""

    @staticmethod
    def forward(ctx, x):
        return x / 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Scaled(nn.Module):
    """A layer that takes any length, and times a number that its state leaves out."""

    def __init__(self, size, seed=0):
        super().__init__()
        self.layer, self.scale = Ours().plain(size, seed), 1.0 + seed

    def forward(self, x, token_mask=None):
        return self.scale * self.layer(x[:, : self.layer.max_len], token_mask=token_mask)


def cross_with_itself(layer, x, context):
    return Ours().cross(layer, x, x[:, torch.arange(context.shape[1]) % x.shape[1]])


def broken(before=lambda x: x, after=lambda x, _mask: x, masked=True, **methods):
    """Our layer with its tokens, its mask, its result, or other methods of its adapter changed."""

    def call(layer, x, token_mask=None):
        return after(layer(before(x), token_mask=token_mask if masked else None), token_mask)

    adapter = Ours()
    vars(adapter).update(call=call, **methods)
    return adapter


BROKEN = {
    "exact": broken(after=lambda x, _: x * (1 + 1e-5)),
    "padding content": broken(masked=False),
    "padding appended": broken(masked=False),
    "all hidden": broken(after=lambda x, mask: x / mask[:, :, None]),
    "batch": broken(lambda x: x + 1e-3 * x.mean(dim=0)),
    "heads": broken(after=lambda x, _: x.roll(1, dims=2)),
    "too long": broken(plain=Scaled),
    "sharing saves": broken(projection_size=lambda size: size.k * size.max_len + 1),
    "sharing keeps values": broken(
        put=lambda layer, weights: Ours().put(layer, weights._replace(v=weights.k))
    ),
    "cross-attention": broken(cross=cross_with_itself),
    "saved": broken(plain=Scaled),
    "double": broken(after=lambda x, _: x.float().to(x.dtype)),
    "bfloat16": broken(after=lambda x, _: (x * 16).round() / 16),
    "gradients": broken(after=lambda x, _: WrongGradient.apply(x)),
}
PEERS_BREAK = {row["line"] for row in ROWS if row["outcome"] == "fails"}


@pytest.mark.parametrize("name", LINE)
def test_promises_can_fail(name):
    if name in BROKEN:
        assert try_line(LINE[name], BROKEN[name])["outcome"] == "fails"
    else:
        assert name in PEERS_BREAK


def test_bad_results_never_hold():
    assert try_line(LINE["exact"], broken(after=lambda x, _: x * torch.nan))["outcome"] == "fails"
    row = try_line(LINE["double"], broken(after=lambda x, _: x.float()))
    assert (row["outcome"], row["remark"]) == (
        "error",
        "TypeError: gave torch.float32 for torch.float64",
    )


def test_peers_as_told():
    size, weights, x = (
        contract.SMALL,
        contract.draw_weights(contract.SMALL),
        contract.tokens(contract.SMALL),
    )
    peer = Lucidrains()
    layer = LucidrainsLayer(size.dim, size.max_len, k=size.k, heads=size.heads, share_kv=True)
    peer.put(layer, weights)
    peer.put_projections(layer, weights.e, weights.f)
    expected = contract.judge(
        x, weights._replace(v=weights.k, f=weights.e), size.heads, compress=True
    )
    assert distance(layer(x), expected) < 1e-6, "share_kv makes values of keys"
    other, causal = x.clone(), Tatp22().causal(size)
    other[:, -1] += 1
    assert not torch.allclose(causal(x)[:, 0], causal(other)[:, 0]), "masked columns mix all tokens"
