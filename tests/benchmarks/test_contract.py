"""The records behind the page *Packages*: a rerun gives them, ours keep every promise, and each promise can fail.

Peers of chapters 8 and 9 are tried only where ``requirements-peers.txt`` is installed: it is too heavy for every run.
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

from benchmarks import adapters_kernel, adapters_linformer, adapters_today, promises
from benchmarks import promises_kernel as pk
from benchmarks import promises_linformer as pl
from benchmarks.contract import COMMAND, FAMILIES
from benchmarks.promises import distance, try_line
from benchmarks.promises_today import TODAY, N, moved, normal
from lowrank_tutor.states import delta_attention
from lowrank_tutor.svd import best_rank_k

DATA = Path(__file__).parents[2] / "lowrank_tutor" / "data"
ALL = (*FAMILIES, TODAY)
LINE = {(family.record, line.name): line for family in ALL for line in family.lines}
each_family = pytest.mark.parametrize("family", ALL, ids=lambda family: family.record)
peers_warn = pytest.mark.filterwarnings("ignore")


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
    assert meta["command"] == (COMMAND + "_today" if family is TODAY else COMMAND)
    assert "machine" not in meta
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


# ---------------------------------------------------------------------- one defect for each promise: ours, done wrong


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


def draws(change):
    """Our Performer with its drawn features changed."""

    def draw(d, m, seed=0):
        layer = adapters_kernel.OursPerformer().draw(d, m, seed)
        change(layer, d, m, seed)
        return layer

    return replaced(adapters_kernel.OursPerformer, draw=draw)


def without_signs(layer, d, m, seed):
    """Rows of Q without the signs of R, as long as Gaussian ones."""
    blocks = torch.randn(-(-m // d), d, d, generator=torch.Generator().manual_seed(seed))
    basis = torch.linalg.qr(blocks)[0].mT.flatten(0, 1)[:m]
    layer.w.copy_(basis * layer.w.norm(dim=1, keepdim=True))


VALUES_ONLY = performer(lambda q, k, v, m, c: (q, k, v if m is None else v * m[:, None, :, None], None, c))
KERNEL = {
    "own form": performer(after=lambda x: x * (1 + 1e-5)),
    "own form, masked": VALUES_ONLY,
    "cross-attention": performer(lambda q, k, v, m, c: (q, k[:, :, : q.shape[2]], v[:, :, : q.shape[2]], m, c)),
    "limit": draws(without_signs),
    "unbiased": draws(without_signs),
    "ones": performer(after=lambda x: x / 2),
    "padding content": VALUES_ONLY,
    "padding appended": VALUES_ONLY,
    "all hidden": performer(lambda q, k, v, m, c: (q, k, v / m[:, None, :, None], m, c)),
    "tensors kept": performer(lambda q, k, v, m, c: (q, k, v.mul_(2), m, c)),
    "causal": performer(lambda q, k, v, m, _: (q, k, v, m, False)),
    "causal, own form": performer(lambda q, k, v, m, c: (q, k.roll(int(c), 2), v.roll(int(c), 2), m, c)),
    "causal, last": performer(lambda q, k, v, m, c: (q, k, v * (1 + c), m, c)),
    "independent": performer(lambda q, k, v, m, c: (q, k + 1e-3 * k.mean(dim=(0, 1)), v, m, c)),
    "unknown keyword": replaced(adapters_kernel.OursPerformer, with_keyword=lambda **_unknown: None),
    "double": performer(after=lambda x: x.float().to(x.dtype)),
    "bfloat16": performer(after=lambda x: (x * 16).round() / 16),
    "gradients": performer(after=WrongGradient.apply),
    "large norms": performer(lambda q, k, v, m, c: (q, k.square().exp().log(), v, m, c)),
    "repeatable": draws(lambda layer, *_: layer.register_buffer("w", layer.w, persistent=False)),
}

OURS = adapters_linformer.Ours


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


def forgetful(size, seed=0):
    return Forgetful(OURS().plain(size, seed), seed)


def lenient(size, seed=0):
    return Lenient(OURS().plain(size, seed), seed)


def drifting(size, seed=0):
    layer = OURS().plain(size, seed)
    adapters_linformer.copy(layer.e, layer.e * size.max_len**0.5)
    return layer


def cross_with_itself(layer, x, context):
    return OURS().cross(layer, x, x[:, torch.arange(context.shape[1]) % x.shape[1]])


def layer(before=lambda x: x, after=lambda x, _mask: x, masked=True, **methods):
    """Our layer with its tokens, its mask or its result changed."""

    def call(layer, x, token_mask=None):
        return after(layer(before(x), token_mask=token_mask if masked else None), token_mask)

    return replaced(OURS, call=call, **methods)


LINFORMER = {
    "exact": layer(after=lambda x, _: x * (1 + 1e-5)),
    "exact, masked": layer(masked=False),
    "exact, shorter": layer(lambda x: x.flip(1)),
    "padding content": layer(masked=False),
    "padding appended": layer(masked=False),
    "mask heeded": layer(plain=lenient),
    "unknown keyword": layer(plain=lenient),
    "all hidden": layer(after=lambda x, mask: x / mask[:, :, None]),
    "batch": layer(lambda x: x + 1e-3 * x.mean(dim=0)),
    "heads": layer(after=lambda x, _: x.roll(1, dims=2)),
    "too long": replaced(OURS, plain=lenient, call=lambda layer, x, token_mask=None: layer(x)),
    "causal": layer(causal=OURS().plain),
    "spread": layer(plain=drifting),
    "spread, shorter": layer(lambda x: x * x.shape[1] ** 0.5),
    "sharing saves": layer(projection_size=lambda size: size.k * size.max_len + 1),
    "sharing keeps values": layer(put=lambda layer, weights: OURS().put(layer, weights._replace(v=weights.k))),
    "cross-attention": layer(cross=cross_with_itself),
    "saved": layer(plain=forgetful),
    "saved, fixed": layer(fixed=forgetful),
    "double": layer(after=lambda x, _: x.float().to(x.dtype)),
    "bfloat16": layer(after=lambda x, _: (x * 16).round() / 16),
    "gradients": layer(after=lambda x, _: WrongGradient.apply(x)),
}

OURS_TODAY = adapters_today.Ours
ADAPTED = OURS_TODAY().adapted
today = partial(replaced, OURS_TODAY)
CHAPTERS_8_AND_9 = {
    "lora": today(adapted=lambda linear, r, alpha, kind: ADAPTED(linear, r, 2 * alpha, kind)),
    "rslora": today(adapted=lambda linear, r, alpha, _kind: ADAPTED(linear, r, alpha, "lora")),
    "dora": today(adapted=lambda linear, r, alpha, _kind: ADAPTED(linear, r, alpha, "lora")),
    "average": today(averaged=lambda _, pairs: sum(b for b, _ in pairs) @ sum(a for _, a in pairs) / len(pairs)),
    "base": today(without=lambda model: model.merged()),
    "work": today(per_stored_token=lambda: 16_818_176),
    "delta": today(delta=lambda q, k, v, beta, log_decay: delta_attention(q, k, v, beta / 2, log_decay=log_decay)[0]),
    "samples": today(cut=lambda w, _x, k: torch.from_numpy(best_rank_k(w.numpy(), k))),
    "sent": today(share_sent=lambda: 1.0),
}
BROKEN = dict(zip((family.record for family in ALL), (LINFORMER, KERNEL, CHAPTERS_8_AND_9), strict=True))


@pytest.mark.parametrize(("family", "name"), LINE)
def test_promises_can_fail(family, name):
    assert try_line(LINE[family, name], BROKEN[family][name])["outcome"] == "fails"


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
    peer, x = installed(next(one for one in TODAY.packages if one.name == name)), normal(32, N, seed=3)
    theirs, ours = moved(peer, kind), moved(OURS_TODAY(), kind)
    assert distance(ours(x), theirs(x)) < 1e-6
    assert distance(ours.merged()(x), peer.merged(theirs)(x)) < 1e-6


@peers_warn
def test_chunks_match_transformers():
    peer = installed(next(one for one in TODAY.packages if one.name == "transformers"))
    q, k, v = (normal(2, 3, 200, 16, seed=i) for i in range(3))
    shares, decays = torch.sigmoid(normal(2, 3, 200, seed=3)), -torch.sigmoid(normal(2, 3, 200, seed=4)) / 10
    given = (q, normalize(k, dim=3), v, shares, decays)
    assert distance(OURS_TODAY().delta(*given), peer.delta(*given)) < 1e-6


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
    peer, real, (q, k, v) = adapters_kernel.PerformerPytorch(), pk.some_mask(), pk.inputs()
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
