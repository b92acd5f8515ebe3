"""The records behind the page *Packages*: a rerun gives them, ours keep every promise, and each promise can fail.

Peers of chapters 8 and 9 are asked only where ``requirements-peers.txt`` is installed: it is too heavy for every run.
"""

import json
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import torch
from linear_attention_transformer.linear_attention_transformer import linear_attn
from linformer import LinformerSelfAttention as LucidrainsLayer
from torch import nn
from torch.nn.functional import normalize

from benchmarks import adapters_caches, adapters_kernel, adapters_linformer, promises
from benchmarks import promises_kernel as pk
from benchmarks import promises_linformer as pl
from benchmarks.contract import FAMILIES
from benchmarks.promises import distance, normal, some_mask, try_line
from benchmarks.promises_caches import CACHES, N, moved
from lowrank_tutor.states import delta_attention
from lowrank_tutor.svd import best_rank_k

DATA = Path(__file__).parents[2] / "lowrank_tutor" / "data"
ALL = FAMILIES.values()
LINE = {(family.record, line.name): line for family in ALL for line in family.lines}
each_family = pytest.mark.parametrize("family", ALL, ids=lambda family: family.record)
peers_warn = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True, scope="module")
def fewer_draws():
    """A quarter of the draws, which is enough for every outcome."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pk, "SAMPLES", 2**15)
        patch.setattr(pk, "DRAWS", 4)
        yield


def record(family):
    return json.loads((DATA / f"{family.record}.json").read_text(encoding="utf-8"))


def installed(package):
    try:
        version(package.distribution)
    except PackageNotFoundError:
        pytest.skip(f"{package.name} is not installed: pip install -r requirements-peers.txt (200 MB)")
    return package


# ------------------------------------------------------------------------------------------------------- the records


@each_family
def test_record_is_complete(family):
    meta, rows = record(family).values()
    wanted = [(line.name, package.name) for line in family.lines for package in family.packages]
    assert [(row["line"], row["package"]) for row in rows] == wanted
    assert meta["lines"] == {line.name: {"title": line.title, "bar": line.bar} for line in family.lines}
    for row in rows:
        assert row["outcome"] in promises.OUTCOMES
        assert (row["measured"] is None) == (row["outcome"] in ("not offered", "error"))
        if row["measured"] is not None:
            assert (row["outcome"] == "holds") == (row["measured"] <= row["bar"])
        assert row["outcome"] in ("holds", "error") or row["remark"], row


PACKAGES = [(family, package) for family in ALL for package in family.packages]


@peers_warn
@pytest.mark.parametrize(("family", "package"), PACKAGES, ids=[f"{f.record}-{p.name}" for f, p in PACKAGES])
def test_rerun_gives_record(family, package):
    installed(package)
    recorded = {row["line"]: row["outcome"] for row in record(family)["rows"] if row["package"] == package.name}
    assert {line.name: try_line(line, package)["outcome"] for line in family.lines} == recorded


@each_family
def test_ours_keep_promises(family):
    rows = record(family)["rows"]
    assert promises.ours_hold(family, rows)
    ours = {package.name for package in family.packages if package.ours}
    row = next(row for row in rows if row["package"] in ours and row["outcome"] == "holds")
    assert not promises.ours_hold(family, [{**row, "outcome": "fails"}])


# --------------------------- one defect for each promise that no peer breaks; test_rerun_gives_record sees the others


class WrongGradient(torch.autograd.Function):
    """A product with one half whose gradient says one."""

    @staticmethod
    def forward(ctx, x):
        return x / 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def replaced(cls, **methods):
    """Our package with some of its methods replaced."""
    package = cls()
    vars(package).update(methods)
    return package


def performer(before=None, after=None):
    """Our Performer with its arguments, or its result, changed."""

    def attend(layer, q, k, v, mask=None, *, causal=False):
        q, k, v, mask, causal = before(q, k, v, mask, causal) if before else (q, k, v, mask, causal)
        found = adapters_kernel.OursPerformer().attend(layer, q, k, v, mask, causal=causal)
        return after(found) if after else found

    return replaced(adapters_kernel.OursPerformer, attend=attend)


def draw_forgotten(d, m, seed=0):
    layer = adapters_kernel.OursPerformer().draw(d, m, seed)
    layer.register_buffer("w", layer.w, persistent=False)
    return layer


KERNEL_BROKEN = {
    "own form": performer(after=lambda x: x * (1 + 1e-5)),
    "cross-attention": performer(lambda q, k, v, m, c: (q, k[:, :, : q.shape[2]], v[:, :, : q.shape[2]], m, c)),
    "all hidden": performer(lambda q, k, v, m, c: (q, k, v / m[:, None, :, None], m, c)),
    "independent": performer(lambda q, k, v, m, c: (q, k + 1e-3 * k.mean(dim=(0, 1)), v, m, c)),
    "double": performer(after=lambda x: x.float().to(x.dtype)),
    "bfloat16": performer(after=lambda x: (x * 16).round() / 16),
    "large norms": performer(lambda q, k, v, m, c: (q, k.square().exp().log(), v, m, c)),
    "repeatable": replaced(adapters_kernel.OursPerformer, draw=draw_forgotten),
}

OURS = adapters_linformer.Ours


class Scaled(nn.Module):
    """A layer that takes any length, and times a number that its state leaves out."""

    def __init__(self, size, seed=0):
        super().__init__()
        self.layer, self.scale = OURS().plain(size, seed), 1.0 + seed

    def forward(self, x, token_mask=None):
        return self.scale * self.layer(x[:, : self.layer.max_len], token_mask=token_mask)


def cross_with_itself(layer, x, context):
    return OURS().cross(layer, x, x[:, torch.arange(context.shape[1]) % x.shape[1]])


def layer(before=lambda x: x, after=lambda x, _mask: x, masked=True, **methods):
    """Our layer with its tokens, its mask or its result changed."""

    def call(layer, x, token_mask=None):
        return after(layer(before(x), token_mask=token_mask if masked else None), token_mask)

    return replaced(OURS, call=call, **methods)


LINFORMER_BROKEN = {
    "exact": layer(after=lambda x, _: x * (1 + 1e-5)),
    "padding content": layer(masked=False),
    "padding appended": layer(masked=False),
    "all hidden": layer(after=lambda x, mask: x / mask[:, :, None]),
    "batch": layer(lambda x: x + 1e-3 * x.mean(dim=0)),
    "heads": layer(after=lambda x, _: x.roll(1, dims=2)),
    "too long": layer(plain=Scaled),
    "sharing saves": layer(projection_size=lambda size: size.k * size.max_len + 1),
    "sharing keeps values": layer(put=lambda layer, weights: OURS().put(layer, weights._replace(v=weights.k))),
    "cross-attention": layer(cross=cross_with_itself),
    "saved": layer(plain=Scaled),
    "double": layer(after=lambda x, _: x.float().to(x.dtype)),
    "bfloat16": layer(after=lambda x, _: (x * 16).round() / 16),
    "gradients": layer(after=lambda x, _: WrongGradient.apply(x)),
}

ADAPTED = adapters_caches.Ours().adapted
ours = partial(replaced, adapters_caches.Ours)
CACHES_BROKEN = {
    "lora": ours(adapted=lambda linear, r, alpha, kind: ADAPTED(linear, r, 2 * alpha, kind)),
    "rslora": ours(adapted=lambda linear, r, alpha, _kind: ADAPTED(linear, r, alpha, "lora")),
    "dora": ours(adapted=lambda linear, r, alpha, _kind: ADAPTED(linear, r, alpha, "lora")),
    "average": ours(averaged=lambda _, pairs: sum(b for b, _ in pairs) @ sum(a for _, a in pairs) / len(pairs)),
    "base": ours(without=lambda model: model.merged()),
    "work": ours(per_stored_token=lambda: 16_818_176),
    "delta": ours(delta=lambda q, k, v, beta, log_decay: delta_attention(q, k, v, beta / 2, log_decay=log_decay)),
    "samples": ours(cut=lambda w, _x, k: torch.from_numpy(best_rank_k(w.numpy(), k))),
    "sent": ours(share_sent=lambda: 1.0),
}
BROKEN = {
    **{("linformer_contract", name): package for name, package in LINFORMER_BROKEN.items()},
    **{("kernel_contract", name): package for name, package in KERNEL_BROKEN.items()},
    **{("caches_contract", name): package for name, package in CACHES_BROKEN.items()},
}
PEERS_BREAK = {
    (family.record, row["line"]) for family in ALL for row in record(family)["rows"] if row["outcome"] == "fails"
}


@pytest.mark.parametrize("line", LINE, ids=" ".join)
def test_promises_can_fail(line):
    if line in BROKEN:
        assert try_line(LINE[line], BROKEN[line])["outcome"] == "fails"
    else:
        assert line in PEERS_BREAK


def test_bad_results_never_hold():
    for name in ("own form, masked", "ones", "padding content", "independent", "large norms"):
        broken = performer(lambda q, k, v, m, c: (q, k, v * (torch.nan if c else 1), m, c))  # in one form alone
        assert try_line(LINE["kernel_contract", name], broken)["outcome"] == "fails", name
    assert try_line(LINE["linformer_contract", "exact"], layer(after=lambda x, _: x * torch.nan))["outcome"] == "fails"
    row = try_line(LINE["kernel_contract", "double"], performer(after=torch.Tensor.float))
    assert (row["outcome"], row["remark"]) == ("error", "TypeError: gave torch.float32 for torch.float64")


# ------------------------------------------------------------------------- ours beside others, and what ails a peer


@peers_warn
@pytest.mark.parametrize("kind", ["lora", "rslora", "dora"])
@pytest.mark.parametrize("name", ["peft", "lycoris"])
def test_adapters_match_peers(name, kind):
    peer, x = installed(next(one for one in CACHES.packages if one.name == name)), normal(32, N, seed=3)
    theirs, ours = moved(peer, kind), moved(adapters_caches.Ours(), kind)
    assert distance(ours(x), theirs(x)) < 1e-6
    assert distance(ours.merged()(x), peer.merged(theirs)(x)) < 1e-6


@peers_warn
def test_chunks_match_transformers():
    peer = installed(next(one for one in CACHES.packages if one.name == "transformers"))
    q, k, v = (normal(2, 3, 200, 16, seed=i) for i in range(3))
    shares, decays = torch.sigmoid(normal(2, 3, 200, seed=3)), -torch.sigmoid(normal(2, 3, 200, seed=4)) / 10
    given = (q, normalize(k, dim=3), v, shares, decays)
    assert distance(adapters_caches.Ours().delta(*given), peer.delta(*given)) < 1e-6


PEER = adapters_kernel.performer_pytorch.performer_pytorch


def with_signs(cols, device=None):
    basis, triangle = torch.linalg.qr(torch.randn(cols, cols, device=device))
    return (basis * triangle.diagonal().sign()).T


SIGNS = {"orthogonal_matrix_chunk": with_signs}
SUMS = {"causal_linear_attention_noncuda": partial(PEER.causal_linear_attention_noncuda, eps=0.0)}
FEATURES = {"softmax_kernel": partial(PEER.softmax_kernel, eps=0.0)}


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("limit", SIGNS),
        ("unbiased", SIGNS),
        ("ones", SUMS),
        ("causal, own form", SUMS),
        ("causal, last", SUMS),
        ("causal", SUMS | FEATURES),
        ("gradients", SUMS | FEATURES),
    ],
)
def test_performer_remedies(name, remedy, monkeypatch):
    """Signs of R, or no constant in the sums and in the features, and performer-pytorch keeps the promise."""
    for function, better in remedy.items():
        monkeypatch.setattr(PEER, function, better)
    assert try_line(LINE["kernel_contract", name], adapters_kernel.PerformerPytorch())["outcome"] == "holds"


def test_kernel_peers_as_told():
    peer, real, (q, k, v) = adapters_kernel.PerformerPytorch(), some_mask(pk.N), pk.inputs()
    drawn = peer.draw(pk.D, pk.M)
    zeroed = pk.quadratic(peer, drawn, (q, k, v * real[:, None, :, None]))
    assert distance(pk.run(peer, drawn, (q, k, v), real), zeroed) < 1e-6, "its mask zeroes values, and nothing else"
    large = pk.run(peer, drawn, pk.inputs(scale=10))
    torch.testing.assert_close(large, v.mean(dim=2, keepdim=True).expand_as(v), rtol=0, atol=1e-5)
    other = adapters_kernel.LinearAttentionTransformer()
    ones = pk.run(other, other.draw(pk.D, pk.M), (q, k, torch.ones_like(v)))
    torch.testing.assert_close(ones, torch.full_like(v, pk.D**-0.5))
    linear_attn(q, k, v, real)
    assert [torch.equal(*pair) for pair in zip((q, k, v), pk.inputs(), strict=True)] == [True, False, False]


def test_linformer_peers_as_told():
    size, weights, x = pl.SMALL, pl.draw_weights(pl.SMALL), pl.tokens(pl.SMALL)
    peer = adapters_linformer.Lucidrains()
    layer = LucidrainsLayer(size.dim, size.max_len, k=size.k, heads=size.heads, share_kv=True)
    peer.put(layer, weights)
    peer.put_projections(layer, weights.e, weights.f)
    wanted = pl.judge(x, weights._replace(v=weights.k, f=weights.e), size.heads, compress=True)
    assert distance(layer(x), wanted) < 1e-6, "share_kv makes values of keys"
    other, causal = x.clone(), adapters_linformer.Tatp22().causal(size)
    other[:, -1] += 1
    assert not torch.allclose(causal(x)[:, 0], causal(other)[:, 0]), "masked columns mix all tokens"
