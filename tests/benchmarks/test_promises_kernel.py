"""What kernel attention must promise: each promise can be broken, and what the record says of peers is shown.

That ours keeps every line and that a rerun gives the record is judged in ``test_contract.py``.
"""

from functools import partial

import performer_pytorch
import pytest
import torch
from linear_attention_transformer.linear_attention_transformer import SelfAttention as LinearSelfAttention
from linear_attention_transformer.linear_attention_transformer import linear_attn

from benchmarks.adapters_kernel import (
    ADAPTERS,
    LinearAttentionTransformer,
    OursLinear,
    OursPerformer,
    PerformerPytorch,
)
from benchmarks.promises import distance, try_line
from benchmarks.promises_kernel import LINES, D, M, inputs, quadratic, run, some_mask

LINE = {line.name: line for line in LINES}
PEER = performer_pytorch.performer_pytorch


# Each promise can be broken: a package that breaks it on purpose is found out


class Broken(OursPerformer):
    """Our Performer with one method replaced."""

    def __init__(self, **methods):
        for name, method in methods.items():
            setattr(self, name, method)


def attend(layer, q, k, v, mask=None, *, causal=False):
    return OursPerformer().attend(layer, q, k, v, mask, causal=causal)


def mask_on_values_only(layer, q, k, v, mask, *, causal):
    return attend(layer, q, k, v if mask is None else v * mask[:, None, :, None], causal=causal)


def plain_order(layer, q, k, v, mask, *, causal):
    return attend(layer, q, k, v, mask)


def strictly_earlier(layer, q, k, v, mask, *, causal):
    k, v = (part.roll(1, dims=2) if causal else part for part in (k, v))
    return attend(layer, q, k, v, mask, causal=causal)


def longer_if_causal(layer, q, k, v, mask, *, causal):
    return attend(layer, q, k, v, mask, causal=causal) * (1 + causal)


def as_many_queries_as_keys(layer, q, k, v, mask, *, causal):
    return attend(layer, q, k[:, :, : q.shape[2]], v[:, :, : q.shape[2]], mask, causal=causal)


def in_place(layer, q, k, v, mask, *, causal):
    if mask is not None:
        v.masked_fill_(~mask[:, None, :, None], 0)
    return attend(layer, q, k, v, mask, causal=causal)


def divided_by_the_mask(layer, q, k, v, mask, *, causal):
    return attend(layer, q, k, v, mask, causal=causal) / mask[:, None, :, None]


def without_shifts(layer, q, k, v, mask, *, causal):
    """What the formula says, to the letter: exponentials out of range and all."""
    rows, columns = ((part / part.shape[3] ** 0.25 @ layer.w.T).exp() for part in (q, k))
    weights = rows @ columns.mT
    return (weights / weights.sum(dim=3, keepdim=True)) @ v


def biased(d, m, seed=0):
    """Rows of Q without the signs of R, as long as Gaussian ones."""
    layer, generator = OursPerformer().draw(d, m, seed), torch.Generator().manual_seed(seed)
    basis = torch.linalg.qr(torch.randn(-(-m // d), d, d, generator=generator))[0].mT.flatten(0, 1)[:m]
    layer.w.copy_(basis * layer.w.norm(dim=1, keepdim=True))
    return layer


def forgetful(d, m, seed=0):
    """A part of what is drawn is not in the state."""
    layer = OursPerformer().draw(d, m, seed)
    layer.register_buffer("w", layer.w, persistent=False)
    return layer


class WrongGradient(torch.autograd.Function):
    """A product with one half whose gradient says one."""

    @staticmethod
    def forward(ctx, x):
        return x / 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def after(change):
    """Change the result of our Performer."""
    return lambda layer, q, k, v, mask, causal: change(attend(layer, q, k, v, mask, causal=causal))


def before(change):
    """Change the keys that our Performer is given."""
    return lambda layer, q, k, v, mask, causal: attend(layer, q, change(k), v, mask, causal=causal)


BROKEN = {
    "own form": Broken(attend=after(lambda x: x * (1 + 1e-5))),
    "own form, masked": Broken(attend=mask_on_values_only),
    "cross-attention": Broken(attend=as_many_queries_as_keys),
    "limit": Broken(draw=biased),
    "unbiased": Broken(draw=biased),
    "ones": Broken(attend=after(lambda x: x / 2)),
    "padding content": Broken(attend=mask_on_values_only),
    "padding appended": Broken(attend=mask_on_values_only),
    "all hidden": Broken(attend=divided_by_the_mask),
    "tensors kept": Broken(attend=in_place),
    "causal": Broken(attend=plain_order),
    "causal, own form": Broken(attend=strictly_earlier),
    "causal, last": Broken(attend=longer_if_causal),
    "independent": Broken(attend=before(lambda k: k + 1e-3 * k.mean(dim=(0, 1)))),
    "unknown keyword": Broken(with_keyword=lambda **unknown: None),
    "double": Broken(attend=after(lambda x: x.float().to(x.dtype))),
    "bfloat16": Broken(attend=after(lambda x: (x * 16).round() / 16)),
    "gradients": Broken(attend=after(WrongGradient.apply)),
    "large norms": Broken(attend=without_shifts),
    "repeatable": Broken(draw=forgetful),
}


def test_a_package_that_breaks_a_promise_is_found_out():
    assert {name: try_line(line, BROKEN[name])["outcome"] for name, line in LINE.items()} == dict.fromkeys(
        LINE, "fails"
    )


@pytest.mark.parametrize("name", ["own form, masked", "ones", "padding content", "independent", "large norms"])
def test_nan_in_one_form_never_holds(name):
    one = Broken(attend=lambda *given, causal: attend(*given, causal=causal) * (torch.nan if causal else 1))
    assert try_line(LINE[name], one)["outcome"] == "fails"


def test_another_type_is_an_error():
    row = try_line(LINE["double"], Broken(attend=after(torch.Tensor.float)))
    assert (row["outcome"], row["remark"]) == ("error", "TypeError: gave torch.float32 for torch.float64")


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_it_runs_without_the_unknown_keyword(adapter):
    adapter.with_keyword()


# What the record says of peers in words, shown


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
@pytest.mark.parametrize("causal", [False, True])
def test_a_mask_that_hides_nothing_changes_nothing(adapter, causal):
    layer, everything = adapter.draw(D, M), torch.ones_like(some_mask())
    found = run(adapter, layer, inputs(), everything, causal=causal)
    torch.testing.assert_close(found, run(adapter, layer, inputs(), causal=causal))


def test_the_mask_of_performer_pytorch_zeroes_values_and_nothing_else():
    adapter, real, (q, k, v) = PerformerPytorch(), some_mask(), inputs()
    layer = adapter.draw(D, M)
    found = run(adapter, layer, (q, k, v), real)
    assert distance(found, quadratic(adapter, layer, (q, k, v * real[:, None, :, None]))) < 1e-6


@pytest.mark.parametrize("name", ["limit", "unbiased"])
def test_with_the_signs_of_r_performer_pytorch_is_unbiased(name, monkeypatch):
    def with_signs(cols, device=None):
        basis, triangle = torch.linalg.qr(torch.randn(cols, cols, device=device))
        return (basis * triangle.diagonal().sign()).T

    monkeypatch.setattr(PEER, "orthogonal_matrix_chunk", with_signs)
    assert try_line(LINE[name], PerformerPytorch())["outcome"] == "holds"


@pytest.mark.parametrize("name", ["ones", "causal", "causal, last", "gradients"])
def test_without_its_constants_performer_pytorch_keeps_the_promise(name, monkeypatch):
    monkeypatch.setattr(PEER, "softmax_kernel", partial(PEER.softmax_kernel, eps=0.0))
    exact = partial(PEER.causal_linear_attention_noncuda, eps=0.0)
    monkeypatch.setattr(PEER, "causal_linear_attention_noncuda", exact)
    assert try_line(LINE[name], PerformerPytorch())["outcome"] == "holds"


@pytest.mark.parametrize("name", ["ones", "causal, own form", "causal, last"])
def test_without_the_constant_in_its_sums_alone_it_keeps_these(name, monkeypatch):
    exact = partial(PEER.causal_linear_attention_noncuda, eps=0.0)
    monkeypatch.setattr(PEER, "causal_linear_attention_noncuda", exact)
    assert try_line(LINE[name], PerformerPytorch())["outcome"] == "holds"


def test_a_gradient_of_performer_pytorch_is_off_by_several_percent():
    adapter, (q, k, v) = PerformerPytorch(), (part.double() for part in inputs())
    layer, along = adapter.draw(D, M).double(), inputs(seed=3)[0].double()

    def loss(step):
        return run(adapter, layer, (q + step * along, k, v)).square().sum()

    step = torch.zeros((), dtype=torch.float64, requires_grad=True)
    loss(step).backward()
    differences = (loss(1e-5) - loss(-1e-5)).item() / 2e-5
    assert abs(step.grad.item() / differences - 1) > 0.05


def test_large_norms_make_performer_pytorch_the_plain_mean():
    adapter, (q, k, v) = PerformerPytorch(), inputs(scale=10)
    found = run(adapter, adapter.draw(D, M), (q, k, v))
    torch.testing.assert_close(found, v.mean(dim=2, keepdim=True).expand_as(v), rtol=0, atol=1e-5)


def test_fast_attention_of_performer_pytorch_refuses_an_unknown_keyword():
    with pytest.raises(TypeError, match="no_such_keyword"):
        PerformerPytorch().draw(D, M)(*inputs(), no_such_keyword=True)


def test_linear_attn_overwrites_what_its_layer_hands_over_of_its_own():
    (q, k, v), real = inputs(), some_mask()
    linear_attn(q, k, v, real)
    assert [torch.equal(*pair) for pair in zip((q, k, v), inputs(), strict=True)] == [True, False, False]
    layer, x = LinearSelfAttention(dim=D, heads=2), inputs()[0][:, 0]
    layer(x, input_mask=real)
    assert torch.equal(x, inputs()[0][:, 0])


def test_the_plain_form_of_linear_attention_transformer_is_an_average_over_the_root_of_d():
    adapter, (q, k, v) = LinearAttentionTransformer(), inputs()
    found = run(adapter, adapter.draw(D, M), (q, k, torch.ones_like(v)))
    torch.testing.assert_close(found, torch.full_like(v, D**-0.5))
    assert adapter.factor(D, causal=False) == pytest.approx(D**-0.5)


def test_its_two_forms_are_two_formulas_beyond_that_factor():
    adapter = LinearAttentionTransformer()
    plain, causal = (run(adapter, None, inputs(), causal=causal)[:, :, -1] for causal in (False, True))
    assert distance(causal, plain * D**0.5) > 0.01


def test_linear_attention_is_not_held_to_the_limit_of_softmax():
    for name in OursLinear.may_lack:
        assert try_line(LINE[name], OursLinear())["outcome"] == "not offered"
