"""What a layer of Linformer must promise: ours does, each promise can be broken, and the records are true.

The lines of kernel attention are in ``test_kernel_contract.py``; the records of both families are judged here.
"""

import json
from pathlib import Path

import linformer
import pytest
import torch
from torch import nn

from benchmarks import _promises, contract
from benchmarks._adapters import Adapter, Lucidrains, NotOffered, Ours, OursHeadwise, Tatp22, copy, split
from benchmarks._promises import try_line
from benchmarks.contract import FAMILIES, LINES, SMALL
from lowrank_tutor.attention import softmax_attention
from lowrank_tutor.linformer import linformer_attention

DATA = Path(__file__).parents[1] / "lowrank_tutor" / "data"
LINE = {line.name: line for line in LINES}
WITHOUT_GRADIENTS = [line for line in LINES if line.name not in ("all hidden", "gradients")]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Many tiny operations: on a busy machine the threads of each would wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_our_layer_keeps_the_promise(line):
    row = try_line(line, Ours())
    assert row["outcome"] == "holds", row


@pytest.mark.parametrize("line", WITHOUT_GRADIENTS, ids=lambda line: line.name)
def test_it_keeps_the_promise_where_no_gradient_is_asked_for(line):
    with torch.no_grad():
        row = try_line(line, Ours())
    assert row["outcome"] == "holds", row


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_our_layer_with_two_matrices_keeps_what_it_offers(line):
    outcome = try_line(line, OursHeadwise())["outcome"]
    assert outcome == ("not offered" if line.name == "saved, fixed" else "holds")


# Each promise can be broken: a layer that breaks it on purpose is found out.


class Broken(Ours):
    """Our layer with one method replaced."""

    def __init__(self, **methods):
        for name, method in methods.items():
            setattr(self, name, method)


def call(layer, x, token_mask=None):
    return layer(x, token_mask=token_mask)


def plain(size, seed=0, **options):
    return Ours().plain(size, seed, **options)


class WrongGradient(torch.autograd.Function):
    """A product with one half whose gradient says one."""

    @staticmethod
    def forward(ctx, x):
        return x / 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Forgetful(nn.Module):
    """A layer that keeps a part of what it computes with out of its state."""

    def __init__(self, layer, seed):
        super().__init__()
        self.layer, self.scale = layer, 1.0 + seed

    def forward(self, x, token_mask=None, causal=False):
        return self.scale * self.layer(x, token_mask=token_mask, causal=causal)


class Lenient(Forgetful):
    """A layer that takes any keyword and any length."""

    def forward(self, x, **options):
        return self.layer(x[:, : self.layer.max_len], token_mask=options.get("other_mask"))


def forgetful(size, seed=0, **options):
    return Forgetful(plain(size, seed, **options), seed)


def lenient(size, seed=0):
    return Lenient(plain(size, seed), seed)


def drifting(size, seed=0):
    layer = plain(size, seed)
    copy(layer.e, layer.e * size.max_len**0.5)
    return layer


def without_values(layer, weights):
    Ours().put(layer, weights._replace(v=weights.k))


def cross_with_itself(layer, x, context):
    return Ours().cross(layer, x, x[:, torch.arange(context.shape[1]) % x.shape[1]])


BROKEN = {
    "exact": Broken(call=lambda layer, x, token_mask=None: call(layer, x, token_mask) * (1 + 1e-5)),
    "exact, masked": Broken(call=lambda layer, x, token_mask=None: call(layer, x)),
    "exact, shorter": Broken(call=lambda layer, x, token_mask=None: call(layer, x.flip(1), token_mask)),
    "padding content": Broken(call=lambda layer, x, token_mask=None: call(layer, x)),
    "padding appended": Broken(call=lambda layer, x, token_mask=None: call(layer, x)),
    "mask heeded": Broken(plain=lenient),
    "unknown keyword": Broken(plain=lenient),
    "all hidden": Broken(call=lambda layer, x, token_mask=None: call(layer, x, token_mask) / token_mask[:, :, None]),
    "batch": Broken(call=lambda layer, x, token_mask=None: call(layer, x + 1e-3 * x.mean(dim=0))),
    "heads": Broken(call=lambda layer, x, token_mask=None: call(layer, x).roll(1, dims=2)),
    "too long": Broken(plain=lenient, call=lambda layer, x, token_mask=None: layer(x)),
    "causal": Broken(causal=plain),
    "spread": Broken(plain=drifting),
    "spread, shorter": Broken(call=lambda layer, x, token_mask=None: call(layer, x * x.shape[1] ** 0.5)),
    "sharing saves": Broken(projection_size=lambda size: size.k * size.max_len + 1),
    "sharing keeps values": Broken(put=without_values),
    "cross-attention": Broken(cross=cross_with_itself),
    "saved": Broken(plain=forgetful),
    "saved, fixed": Broken(fixed=lambda size, seed=0: forgetful(size, seed)),
    "double": Broken(call=lambda layer, x, token_mask=None: call(layer, x).float().to(x.dtype)),
    "bfloat16": Broken(call=lambda layer, x, token_mask=None: (call(layer, x) * 16).round() / 16),
    "gradients": Broken(call=lambda layer, x, token_mask=None: WrongGradient.apply(call(layer, x, token_mask))),
}


@pytest.mark.parametrize("name", LINE)
def test_a_layer_that_breaks_the_promise_is_found_out(name):
    row = try_line(LINE[name], BROKEN[name])
    assert row["outcome"] == "fails", row


def test_a_layer_that_gives_another_type_or_raises_is_an_error():
    double = Broken(call=lambda layer, x, token_mask=None: call(layer, x).float())
    row = try_line(LINE["double"], double)
    assert (row["outcome"], row["measured"]) == ("error", None)
    assert row["remark"] == "TypeError: gave torch.float32 for torch.float64"


def test_nan_never_holds():
    row = try_line(LINE["exact"], Broken(call=lambda layer, x, token_mask=None: call(layer, x) * torch.nan))
    assert row["outcome"] == "fails"


def test_a_package_without_compression_is_not_held_to_the_limit():
    class Other(Adapter):
        name, distribution, layer = "other", "torch", "Linear"

        def plain(self, size, seed=0):
            return nn.Linear(size.dim, size.dim)

        def put(self, layer, weights):
            copy(layer.weight, weights.out)

    outcomes = {line.name: try_line(line, Other())["outcome"] for line in LINES}
    for name in ("exact", "causal", "spread", "sharing saves", "saved, fixed", "padding content", "cross-attention"):
        assert outcomes[name] == "not offered"
    assert outcomes["saved"] == outcomes["batch"] == outcomes["unknown keyword"] == "holds"
    assert outcomes["too long"] == "fails"


# The judge of the contract is judged itself, by the functions of the package.


@pytest.mark.parametrize("compress", [False, True])
def test_the_judge_agrees_with_the_functions_of_the_package(compress):
    w, x, context = contract.draw_weights(SMALL), contract.tokens(SMALL), contract.tokens(SMALL, seed=5)
    q, k, v = (split(a @ b.T, SMALL.heads) for a, b in ((x, w.q), (context, w.k), (context, w.v)))
    result = linformer_attention(q, k, v, w.e, w.f) if compress else softmax_attention(q, k, v)
    wanted = result.transpose(1, 2).flatten(2) @ w.out.T + w.bias
    found = contract.judge(x, w, SMALL.heads, context=context, compress=compress)
    torch.testing.assert_close(found.float(), wanted, rtol=1e-5, atol=1e-5)


def test_the_weights_make_scores_of_spread_one():
    w, x = contract.draw_weights(SMALL), contract.tokens(SMALL)
    q, k = (split(x @ part.T, SMALL.heads) for part in (w.q, w.k))
    assert (q @ k.mT / q.shape[3] ** 0.5).std().item() == pytest.approx(1, rel=0.3)


# The records.

PACKAGES = [(family, package) for family in FAMILIES for package in family.packages]
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.record)


def record(family):
    return json.loads((DATA / f"{family.record}.json").read_text(encoding="utf-8"))


@each_family
def test_the_record_has_every_line_for_every_package(family):
    meta, rows = record(family).values()
    wanted = [(line.name, package.name) for line in family.lines for package in family.packages]
    assert [(row["line"], row["package"]) for row in rows] == wanted
    assert meta["lines"] == {line.name: {"title": line.title, "bar": line.bar} for line in family.lines}
    assert list(meta["packages"]) == [package.name for package in family.packages]
    assert meta["command"] == contract.COMMAND
    assert "machine" not in meta


@each_family
def test_the_record_says_why_where_a_promise_is_not_kept(family):
    for row in record(family)["rows"]:
        assert row["outcome"] in _promises.OUTCOMES
        assert (row["measured"] is None) == (row["outcome"] in ("not offered", "error"))
        if row["measured"] is not None:
            assert (row["outcome"] == "holds") == (row["measured"] <= row["bar"])
        if row["outcome"] in ("fails", "not offered"):
            assert row["remark"], row


@pytest.mark.parametrize(("family", "package"), PACKAGES, ids=[package.name for _, package in PACKAGES])
def test_the_record_is_what_a_rerun_gives(family, package):
    recorded = {row["line"]: row["outcome"] for row in record(family)["rows"] if row["package"] == package.name}
    assert {line.name: try_line(line, package)["outcome"] for line in family.lines} == recorded


@each_family
def test_the_exit_status_follows_our_own(family):
    rows = record(family)["rows"]
    assert _promises.ours_hold(family, rows)
    for package in family.packages:
        for i, row in enumerate(rows):
            for outcome in ("fails", "not offered", "error"):
                fine = not package.ours or (outcome == "not offered" and row["line"] in package.may_lack)
                if row["package"] == package.name:
                    changed = [*rows[:i], {**row, "outcome": outcome}, *rows[i + 1 :]]
                    assert _promises.ours_hold(family, changed) == fine


def test_our_own_may_lack_only_what_cannot_be_meant():
    assert {package.name: list(package.may_lack) for _, package in PACKAGES if package.may_lack} == {
        "lowrank_tutor E != F": ["saved, fixed"],
        "lowrank_tutor linear": ["limit", "unbiased"],
    }


def test_the_exit_status_says_whether_both_families_hold(monkeypatch, capsys):
    kept = {"linformer_contract": True, "kernel_contract": True}
    monkeypatch.setattr(contract, "keep_record", lambda family, command: kept[family.record])
    assert contract.main() == 0
    for name in kept:
        kept[name] = False
        assert contract.main() == 1
        kept[name] = True


@each_family
def test_the_table_shows_every_row(family):
    rows = record(family)["rows"]
    text = "\n".join(_promises.show(family, rows))
    assert all(line.title in text for line in family.lines)
    assert all(package.name in text for package in family.packages)
    assert text.count("\n") + 1 == 1 + len(family.lines) + sum(bool(row["remark"]) for row in rows)
    assert len({len(line.split("   bar ")[0]) for line in text.splitlines()[: 1 + len(family.lines)]}) == 1


# What the record says of a peer in words, shown.


def test_share_kv_of_linformer_makes_values_of_keys():
    size, weights = SMALL, contract.draw_weights(SMALL)
    layer = linformer.LinformerSelfAttention(size.dim, size.max_len, k=size.k, heads=size.heads, share_kv=True)
    Lucidrains().put(layer, weights)
    Lucidrains().put_projections(layer, weights.e, weights.f)
    x = contract.tokens(size)
    wanted = contract.judge(x, weights._replace(v=weights.k, f=weights.e), size.heads, compress=True)
    assert _promises.distance(layer(x), wanted) < 1e-6
    saved = contract.parameters(Lucidrains().plain(size)) - contract.parameters(layer)
    assert saved == size.k * size.max_len + size.dim**2


def test_the_padder_of_linformer_pytorch_fails_in_double_precision():
    layer = Tatp22().shorter(SMALL).double()
    with pytest.raises(RuntimeError, match="dtype"):
        layer(contract.tokens(SMALL).double())


def test_the_decoder_of_linformer_pytorch_wants_as_many_embeddings_as_tokens():
    layer = Tatp22().plain(SMALL, decoder_mode=True)
    with pytest.raises(AssertionError, match="Embeddings size"):
        layer(contract.tokens(SMALL, 10), embeddings=contract.tokens(SMALL))
    with pytest.raises(NotOffered):
        Tatp22().cross(layer, contract.tokens(SMALL, 10), contract.tokens(SMALL))


def test_the_columns_that_linformer_pytorch_masks_mix_all_tokens():
    x, other = contract.tokens(SMALL), contract.tokens(SMALL)
    other[:, -1] += 1
    layer = Tatp22().causal(SMALL)
    assert not torch.allclose(layer(x)[:, 0], layer(other)[:, 0])
