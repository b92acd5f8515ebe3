"""What a layer of Linformer must promise: each promise can be broken, and what the record says of peers is shown.

That ours keeps every line and that a rerun gives the record is judged in ``test_contract.py``.
"""

import pytest
import torch
from linformer import LinformerSelfAttention as LucidrainsLayer
from torch import nn

from benchmarks.adapters_linformer import Adapter, Lucidrains, NotOffered, Ours, Tatp22, copy, split
from benchmarks.promises import distance, try_line
from benchmarks.promises_linformer import LINES, SMALL, draw_weights, judge, no_look_ahead, parameters, tokens
from lowrank_tutor.attention import softmax_attention
from lowrank_tutor.linformer import linformer_attention

LINE = {line.name: line for line in LINES}


def test_our_layer_keeps_its_promises_where_no_gradient_is_asked_for():
    lines = [line for line in LINES if line.name not in ("all hidden", "gradients")]
    with torch.no_grad():
        rows = [try_line(line, Ours()) for line in lines]
    assert [row for row in rows if row["outcome"] != "holds"] == []


# Each promise can be broken: a layer that breaks it on purpose is found out


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


def test_a_layer_that_breaks_a_promise_is_found_out():
    assert {name: try_line(line, BROKEN[name])["outcome"] for name, line in LINE.items()} == dict.fromkeys(
        LINE, "fails"
    )


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


# The judge of the contract is judged itself, by the functions of the package


@pytest.mark.parametrize("compress", [False, True])
def test_the_judge_agrees_with_the_functions_of_the_package(compress):
    w, x, context = (
        draw_weights(SMALL),
        tokens(SMALL),
        tokens(SMALL, seed=5),
    )
    q, k, v = (split(a @ b.T, SMALL.heads) for a, b in ((x, w.q), (context, w.k), (context, w.v)))
    result = linformer_attention(q, k, v, w.e, w.f) if compress else softmax_attention(q, k, v)
    wanted = result.transpose(1, 2).flatten(2) @ w.out.T + w.bias
    found = judge(x, w, SMALL.heads, context=context, compress=compress)
    torch.testing.assert_close(found.float(), wanted, rtol=1e-5, atol=1e-5)


def test_the_weights_make_scores_of_spread_one():
    w, x = draw_weights(SMALL), tokens(SMALL)
    q, k = (split(x @ part.T, SMALL.heads) for part in (w.q, w.k))
    assert (q @ k.mT / q.shape[3] ** 0.5).std().item() == pytest.approx(1, rel=0.3)


# What the record says of a peer in words, shown


def test_share_kv_of_linformer_makes_values_of_keys():
    size, weights = SMALL, draw_weights(SMALL)
    layer = LucidrainsLayer(size.dim, size.max_len, k=size.k, heads=size.heads, share_kv=True)
    Lucidrains().put(layer, weights)
    Lucidrains().put_projections(layer, weights.e, weights.f)
    x = tokens(size)
    wanted = judge(x, weights._replace(v=weights.k, f=weights.e), size.heads, compress=True)
    assert distance(layer(x), wanted) < 1e-6
    saved = parameters(Lucidrains().plain(size)) - parameters(layer)
    assert saved == size.k * size.max_len + size.dim**2


def test_the_padder_of_linformer_pytorch_fails_in_double_precision():
    layer = Tatp22().shorter(SMALL).double()
    with pytest.raises(RuntimeError, match="dtype"):
        layer(tokens(SMALL).double())


def test_the_decoder_of_linformer_pytorch_wants_as_many_embeddings_as_tokens():
    layer = Tatp22().plain(SMALL, decoder_mode=True)
    with pytest.raises(AssertionError, match="Embeddings size"):
        layer(tokens(SMALL, 10), embeddings=tokens(SMALL))
    with pytest.raises(NotOffered):
        Tatp22().cross(layer, tokens(SMALL, 10), tokens(SMALL))


def test_the_columns_that_linformer_pytorch_masks_mix_all_tokens():
    x, other = tokens(SMALL), tokens(SMALL)
    other[:, -1] += 1
    layer = Tatp22().causal(SMALL)
    assert not torch.allclose(layer(x)[:, 0], layer(other)[:, 0])


def test_only_what_speaks_of_causal_use_is_a_refusal_to_look_ahead():
    class Failing(Ours):
        def causal(self, size):
            def layer(_x):
                raise ValueError(self.message)

            return layer

    adapter = Failing()
    adapter.message = "causal must be False, got True"
    assert no_look_ahead(adapter).number == 0
    adapter.message = "x must have 3 axes, got 2"
    with pytest.raises(ValueError, match="3 axes"):
        no_look_ahead(adapter)
