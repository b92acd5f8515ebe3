"""Without a gradient: less memory, in blocks, and only where the linear layers are exactly as they were made."""

import itertools

import numpy as np
import pytest
import torch
from attentions import real_tokens, tensors
from linformers import MASKS, SHARINGS, layer_of, lengths
from torch import nn
from torch.autograd import forward_ad
from torch.nn import functional

from benchmarks.memory import LiveBytes
from lowrank_tutor.linformer import LinformerSelfAttention, frugal


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("rows", "sizes"), [
    (4, [(1, 4), (1, 4), (1, 2)] * 3),
    (7, [(1, 5), (1, 5)] * 3),
    (10, [(1, 10)] * 3),
    (26, [(1, 10)] * 3),
    (40, [(2, 10), (1, 10)]),
    (60, [(3, 10)]),
    (6000, [(3, 10)]),
])  # fmt: skip
def test_blocks_of_rows_change_nothing(monkeypatch, calls, rows, sizes, masked):
    monkeypatch.setattr(frugal, "BLOCK_ROWS", {"cpu": rows})
    layer, (x,) = layer_of(sharing=SHARINGS[masked], max_len=10 + 2 * masked), tensors((3, 10, 6))
    mask = real_tokens(n=10) if masked else None
    out = layer(x, token_mask=mask).detach()
    calls.clear()
    with torch.no_grad():
        blocked = layer(x, token_mask=mask)
    np.testing.assert_allclose(blocked, out, rtol=0, atol=1e-14)
    assert [(q.shape[0], q.shape[2]) for q, *_ in calls] == sizes
    with torch.inference_mode():
        np.testing.assert_array_equal(layer(x, token_mask=mask), blocked)


def test_another_device_has_blocks_of_its_own(monkeypatch, calls):
    monkeypatch.setattr(frugal, "BLOCK_ROWS", {"gpu": 10})
    monkeypatch.setattr(frugal, "OTHER_BLOCK_ROWS", 7)
    with torch.no_grad():
        layer_of(max_len=10)(tensors((1, 10, 6))[0])
    assert [q.shape[2] for q, *_ in calls] == [5, 5]


@pytest.mark.parametrize(
    ("batch", "n", "expected"),
    [(1, 3, 3), (1, 4, 4), (1, 5, 3), (1, 8, 4), (1, 9, 5), (1, 15, 8), (1, 17, 6), (1, 24, 8), (1, 400, 8),
     (2, 3, 3), (4, 4, 8), (4, 8, 8), (100, 2, 8)],
)  # fmt: skip
def test_blocks_hold_half_of_the_rows_within_bounds_and_are_equal(monkeypatch, calls, batch, n, expected):
    """At least half of BLOCK_ROWS, so that a block is worth its calls, and at most all of it."""
    monkeypatch.setattr(frugal, "BLOCK_ROWS", {"cpu": 8})
    with torch.no_grad():
        layer_of(max_len=400)(tensors((batch, n, 6))[0])
    sizes = [q.shape[0] * q.shape[2] for q, *_ in calls]
    assert sizes[0] == max(sizes) == expected
    assert n > 8 or len(set(sizes)) == 1 or sum(sizes) == batch * n
    assert all(size > expected / 2 for size in sizes)


def test_the_blocks_are_those_that_were_measured():
    assert frugal.BLOCK_ROWS == {"cpu": 2048}
    assert frugal.OTHER_BLOCK_ROWS == 16384


class Adapted(nn.Linear):
    """A linear layer with an adapter of rank 1 beside it, as LoRA has it."""

    def forward(self, x):
        return super().forward(x) + x.mean(dim=-1, keepdim=True)


class HalvedWeight(nn.Module):
    def forward(self, weight):
        return weight / 2


def by_subclass(linear):
    linear.__class__ = Adapted


def by_hook(linear):
    linear.register_forward_hook(lambda _module, _args, out: 2 * out + 1)


def by_pre_hook(linear):
    linear.register_forward_pre_hook(lambda _module, args: (args[0] + 1,))


def by_parametrization(linear):
    nn.utils.parametrize.register_parametrization(linear, "weight", HalvedWeight())


def by_forward_of_its_own(linear):
    plain_forward = linear.forward
    linear.forward = lambda x: 2 * plain_forward(x) + 1


def by_bias(linear):
    """As from pretrained weights: nothing but numbers, so that memory may be used twice."""
    bias = nn.Parameter(torch.linspace(1, 2, linear.out_features, dtype=linear.weight.dtype))
    linear.register_parameter("bias", bias)


class Quarters(torch.Tensor):
    """Stands in for quantized weights: a tensor of a type of its own, with a rule of its own for a linear layer."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is not functional.linear:
            return super().__torch_function__(function, types, args, kwargs)
        x, weight, *bias = (None if it is None else it.as_subclass(torch.Tensor) for it in args)
        return functional.linear(x, torch.round(4 * weight) / 4, *bias)


def by_weights_of_their_own_type(linear):
    linear.weight = nn.Parameter(linear.weight.detach().as_subclass(Quarters), requires_grad=False)


CHANGES = [by_weights_of_their_own_type, by_subclass, by_hook, by_pre_hook, by_parametrization, by_forward_of_its_own]


@pytest.fixture
def in_place(monkeypatch):
    """Whether layers attend in place, call by call."""
    ask, seen = frugal.can_overwrite, []

    def spy(*args):
        seen.append(ask(*args))
        return seen[-1]

    monkeypatch.setattr("lowrank_tutor.linformer.layer.can_overwrite", spy)
    return seen


@pytest.mark.parametrize(
    ("part", "change"), [("to_q", by_bias), *((part, change) for part in ("to_q", "to_out") for change in CHANGES)]
)
@MASKS
def test_what_is_added_to_a_linear_layer_acts_with_and_without_a_gradient(change, part, mask, in_place):
    layer, (x,) = layer_of(), tensors((3, 6, 6))
    before = layer(x, token_mask=mask).detach()
    change(getattr(layer, part))
    out = layer(x, token_mask=mask).detach()
    assert (out - before).abs().max() > 0.01
    in_place.clear()
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            np.testing.assert_allclose(layer(x, token_mask=mask), out, rtol=0, atol=1e-14)
    assert in_place == [change is by_bias] * 2


@MASKS
def test_a_replaced_output_layer_acts_with_and_without_a_gradient(mask):
    layer, (x,) = layer_of(), tensors((3, 6, 6))
    for replacement in (nn.Linear(6, 6, bias=False), nn.Linear(6, 4), nn.Sequential(nn.Linear(6, 6), nn.ReLU())):
        layer.to_out = replacement.double()
        out = layer(x, token_mask=mask).detach()
        for context in (torch.no_grad, torch.inference_mode):
            with context():
                np.testing.assert_allclose(layer(x, token_mask=mask), out, rtol=0, atol=1e-14)


def test_a_layer_without_floating_point_weights_acts_without_a_gradient():
    """As dynamic quantization leaves it: the part is another module, whose ``weight`` is a method."""

    class Packed(nn.Module):
        def __init__(self, linear):
            super().__init__()
            self.packed = linear.weight.detach(), linear.bias

        def weight(self):
            return self.packed[0]

        def forward(self, x):
            return functional.linear(x, *self.packed)

    layer, (x,) = layer_of(), tensors((3, 6, 6))
    out = layer(x).detach()
    layer.to_q, layer.to_out = Packed(layer.to_q), Packed(layer.to_out)
    with torch.no_grad():
        np.testing.assert_allclose(layer(x), out.detach(), rtol=0, atol=1e-14)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # PyTorch maps its fused kernel by a loop
def test_a_layer_can_be_mapped_without_a_gradient():
    layer, (x,) = layer_of(), tensors((4, 3, 8, 6))
    masks = torch.stack([lengths(8, 3, n, n=8) for n in (0, 2, 5, 8)])
    with torch.no_grad():
        out = torch.stack([layer(some, token_mask=mask) for some, mask in zip(x, masks, strict=True)])
        mapped = torch.vmap(lambda some, mask: layer(some, token_mask=mask))(x, masks)
        np.testing.assert_allclose(mapped, out, rtol=0, atol=1e-14)
        whole = torch.stack([layer(x[0], token_mask=mask) for mask in masks])
        by_mask = torch.vmap(lambda mask: layer(x[0], token_mask=mask))(masks)
        np.testing.assert_allclose(by_mask, whole, rtol=0, atol=1e-14)


# torch itself calls jit.script for this, once, where nothing has called it before.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_forward_mode_goes_through_a_layer_where_no_gradient_is_asked_for():
    layer, (x, step) = layer_of(), tensors((3, 8, 6), (3, 8, 6))
    with torch.no_grad():
        out, tangent = torch.func.jvp(layer, (x,), (step,))
        np.testing.assert_allclose(out, layer(x), rtol=0, atol=1e-14)
        with forward_ad.dual_level():
            dual = layer(forward_ad.make_dual(x, step))
            np.testing.assert_allclose(forward_ad.unpack_dual(dual).tangent, tangent, rtol=0, atol=1e-14)
    assert tangent.abs().max() > 0.1


@MASKS
def test_a_plain_layer_saves_memory_where_no_gradient_is_asked_for(mask, in_place):
    layer, (x,) = layer_of(), tensors((3, 6, 6))
    for context in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with context():
            layer(x, token_mask=mask)
    handle = layer.to_q.register_forward_hook(lambda *_: None)
    with torch.no_grad():
        layer(x, token_mask=mask)
        handle.remove()
        layer(x, token_mask=mask)
        with torch.autocast("cpu", torch.bfloat16):
            layer(x, token_mask=mask)
    assert in_place == [False, True, True, False, True, False]


def test_tokens_that_lie_scattered_in_memory_are_read_right():
    layer, (x,) = layer_of(), tensors((8, 6, 3))
    scattered = x.permute(2, 0, 1)
    assert not scattered.is_contiguous()
    out = layer(scattered.contiguous())
    np.testing.assert_allclose(layer(scattered).detach(), out.detach(), atol=1e-14)
    with torch.no_grad():
        masked = layer(scattered, token_mask=lengths(8, 3, 0))
        assert masked.is_contiguous()
        np.testing.assert_allclose(masked, layer(scattered.contiguous(), token_mask=lengths(8, 3, 0)), atol=1e-14)
        np.testing.assert_allclose(layer(scattered), out, atol=1e-14)


@pytest.mark.parametrize(
    ("n", "dim", "k", "batch", "fraction"),
    [
        (2048, 64, 64, 1, 1), (2048, 128, 64, 1, 2), (2048, 256, 128, 1, 1), (4096, 64, 256, 1, 2),
        (4096, 128, 256, 1, 1), (4096, 256, 64, 1, 2), (16384, 64, 256, 1, 1), (16384, 64, 64, 1, 2),
        (16384, 128, 64, 1, 1), (512, 64, 64, 12, 1), (512, 128, 64, 8, 2),
    ],
)  # fmt: skip
def test_without_a_gradient_a_layer_takes_little_more_than_what_goes_in_and_out(n, dim, k, batch, fraction):
    x, mask = torch.zeros(batch, n, dim), lengths(*[n // 2] * batch, n=n)
    for (sharing, compressed), token_mask in itertools.product({"key-value": 3, "headwise": 4}.items(), (None, mask)):
        layer = LinformerSelfAttention(dim, 4, fraction * n, k, sharing=sharing)
        with torch.no_grad(), LiveBytes() as made:
            layer(x, token_mask=token_mask)
        numbers = x.numel() + sum(p.numel() for p in layer.parameters())
        between = compressed * batch * k * dim  # EX (and FX), keys and values
        assert 4 * numbers + made.peak <= 1.2 * 4 * (numbers + x.numel() + between), (sharing, token_mask is None)


def test_with_a_gradient_a_layer_takes_much_more():
    layer, x = LinformerSelfAttention(64, 4, 8192, 64), torch.zeros(1, 8192, 64)
    largest = []
    for gradient in (False, True):
        with torch.set_grad_enabled(gradient), LiveBytes() as made:
            layer(x)
        largest.append(made.peak)
    assert largest[1] > 2 * largest[0]
