"""Softmax attention against plain loops, PyTorch's own layer, finite differences and a count of operations."""

import math
import re

import numpy as np
import pytest
import torch
from attentions import by_loops, real_tokens, tensors, triple, weights_by_loops
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import multi_head_attention_forward
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.memory import LiveBytes
from lowrank_tutor.attention import Cost, attention_weights, softmax_attention, softmax_cost

FUNCTIONS = {
    "softmax_attention": softmax_attention,
    "attention_weights": lambda q, k, v, **options: attention_weights(q, k, **options),
}


# the limit and the judges


@pytest.mark.parametrize("mask", [None, real_tokens()], ids=["whole", "masked"])
@pytest.mark.parametrize("d_v", [1, 3, 5])
def test_attention_and_its_weights_are_those_of_the_loops(mask, d_v):
    q, k, v = triple(d_v=d_v)
    out, weights = softmax_attention(q, k, v, token_mask=mask), attention_weights(q, k, token_mask=mask)
    assert out.shape == (3, 2, 4, d_v)
    assert weights.shape == (3, 2, 4, 6)
    np.testing.assert_allclose(out, by_loops(q, k, v, mask), rtol=0, atol=1e-14)
    np.testing.assert_allclose(weights, weights_by_loops(q, k, mask), rtol=0, atol=1e-15)
    np.testing.assert_allclose(weights @ v, out, rtol=0, atol=1e-14)


@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.integers(1, 4),
    st.integers(0, 10**6), st.data(),
)  # fmt: skip
def test_attention_of_any_sizes_and_any_mask_is_that_of_the_loops(batch, heads, n_queries, n_keys, d, d_v, seed, data):
    q, k, v = triple(batch, heads, n_queries, n_keys, d, d_v, seed=seed)
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=batch * n_keys, max_size=batch * n_keys)))
    mask = mask.view(batch, n_keys)
    expected = by_loops(q, k, v, mask)
    np.testing.assert_allclose(softmax_attention(q, k, v, token_mask=mask), expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(attention_weights(q, k, token_mask=mask) @ v, expected, rtol=0, atol=1e-13)


def test_a_query_that_scores_log_3_higher_with_one_of_two_keys_weighs_it_3_to_1():
    q = torch.tensor([[[[2 * math.log(3), 0, 0, 0]]]], dtype=torch.float64)  # divided by the root of d = 4: log 3
    k = torch.tensor([[[[1, 0, 0, 0], [0, 1, 0, 0]]]], dtype=torch.float64)
    v = torch.tensor([[[[4.0], [8.0]]]], dtype=torch.float64)
    np.testing.assert_allclose(attention_weights(q, k), [[[[0.75, 0.25]]]], rtol=1e-15)
    assert softmax_attention(q, k, v).item() == pytest.approx(5, rel=1e-15)
    only_second = torch.tensor([[False, True]])
    assert attention_weights(q, k, token_mask=only_second).tolist() == [[[[0, 1]]]]
    assert softmax_attention(q, k, v, token_mask=only_second).item() == 8


def test_attention_is_pytorchs_own_whose_mask_means_the_opposite():
    n, heads, d = 6, 2, 3
    (x,) = tensors((1, n, heads * d))
    mask = torch.tensor([[True, False, True, True, False, True]])
    split = x.view(1, n, heads, d).transpose(1, 2)
    out = softmax_attention(split, split, split, token_mask=mask).transpose(1, 2).flatten(2)
    one = torch.eye(heads * d, dtype=torch.float64)

    def judge(key_padding_mask):
        rows = x.transpose(0, 1)
        return multi_head_attention_forward(
            rows, rows, rows, heads * d, heads, None, None, None, None, False, 0.0, one, None,
            key_padding_mask=key_padding_mask, use_separate_proj_weight=True, q_proj_weight=one, k_proj_weight=one,
            v_proj_weight=one, need_weights=True, average_attn_weights=False,
        )  # fmt: skip

    theirs, weights = judge(~mask)
    np.testing.assert_allclose(out, theirs.transpose(0, 1), atol=1e-14)
    np.testing.assert_allclose(attention_weights(split, split, token_mask=mask), weights, atol=1e-15)
    assert (judge(mask)[0].transpose(0, 1) - out).abs().max() > 0.1


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
def test_weights_are_positive_and_add_up_to_1_so_equal_values_come_out_as_they_are(n_queries, n_keys, seed):
    q, k, v = triple(n_queries=n_queries, n_keys=n_keys, seed=seed)
    weights = attention_weights(q, k)
    assert (weights > 0).all()
    np.testing.assert_allclose(weights.sum(dim=3), 1, rtol=1e-14)
    np.testing.assert_allclose(softmax_attention(q, k, torch.ones_like(v)), 1, rtol=1e-14)
    mask = torch.arange(n_keys) <= torch.tensor([[0], [n_keys], [n_keys // 2]])
    np.testing.assert_allclose(softmax_attention(q, k, torch.ones_like(v), token_mask=mask), 1, rtol=1e-14)
    np.testing.assert_allclose(attention_weights(q, k, token_mask=mask).sum(dim=3), 1, rtol=1e-14)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_batches_heads_and_queries_do_not_meet_and_keys_have_no_order(function):
    function, (q, k, v), mask = FUNCTIONS[function], triple(), real_tokens()
    out = function(q, k, v, token_mask=mask)
    for b, h, i in np.ndindex(3, 2, 4):
        alone = function(
            q[b : b + 1, h : h + 1, i : i + 1], k[b : b + 1, h : h + 1], v[b : b + 1, h : h + 1],
            token_mask=mask[b : b + 1],
        )  # fmt: skip
        np.testing.assert_allclose(out[b, h, i], alone[0, 0, 0], atol=1e-15)
    order = torch.tensor([2, 0, 1])
    np.testing.assert_allclose(function(q[order], k[order], v[order], token_mask=mask[order]), out[order], atol=1e-15)
    order = torch.tensor([3, 5, 0, 1, 4, 2])
    moved = function(q, k[:, :, order], v[:, :, order], token_mask=mask[:, order])
    np.testing.assert_allclose(moved, out if function is softmax_attention else out[..., order], atol=1e-15)


# masks


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("poison", [1e300, math.nan, math.inf])
def test_what_a_mask_hides_moves_neither_output_nor_gradient(function, poison):
    function, mask = FUNCTIONS[function], real_tokens()
    hidden = ~mask[:, None, :, None]

    def run(replace):
        q, k, v = (x.requires_grad_() for x in triple())
        out = function(q, replace(k), replace(v), token_mask=mask)
        (out * torch.arange(out.numel()).view(out.shape)).sum().backward()
        return [out, q.grad, k.grad, torch.zeros(0) if v.grad is None else v.grad]

    clean, dirty = run(lambda x: x), run(lambda x: x.masked_fill(hidden, poison))
    for one, other in zip(clean, dirty, strict=True):
        assert torch.equal(one, other)
        assert torch.isfinite(one).all()
    assert all(x.abs().sum() > 0 for x in clean[:3])
    q, k, v = triple()
    assert (function(q, k, v) - clean[0]).abs().max() > 0.1  # the mask did hide something


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_sequence_that_is_hidden_altogether_gives_zeros_and_no_gradient(dtype):
    mask = real_tokens()
    for function in FUNCTIONS.values():
        q, k, v = (x.requires_grad_() for x in triple(dtype=dtype))
        out = function(q, k, v, token_mask=mask)
        assert torch.equal(out[2], torch.zeros_like(out[2]))
        assert (out[:2].abs().sum(dim=(1, 2, 3)) > 0).all()
        out.square().sum().backward()
        for x in (q, k, v):
            if x.grad is not None:
                assert torch.isfinite(x.grad).all()
                assert torch.equal(x.grad[2], torch.zeros_like(x.grad[2]))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_padding_moves_nothing_and_a_mask_of_all_true_is_no_mask(function):
    function, (q, k, v) = FUNCTIONS[function], triple()
    out = function(q, k, v)
    all_real = torch.ones(3, 6, dtype=torch.bool)
    np.testing.assert_allclose(function(q, k, v, token_mask=all_real), out, atol=1e-15)
    more_k, more_v = tensors((3, 2, 2, 5), (3, 2, 2, 3), seed=1)
    padded = function(
        q, torch.cat([k, more_k], dim=2), torch.cat([v, more_v], dim=2), token_mask=torch.arange(8).expand(3, 8) < 6
    )
    np.testing.assert_allclose(padded[..., : out.shape[3]], out, atol=1e-15)
    assert torch.equal(padded[..., 6:], torch.zeros_like(padded[..., 6:]))


def test_hidden_keys_have_weight_0_and_no_others():
    q, k, _ = triple()
    mask = real_tokens()
    weights = attention_weights(q, k, token_mask=mask)
    assert torch.equal(weights > 0, mask[:, None, None, :].expand_as(weights))


# gradients, types, compilation


@pytest.mark.parametrize("mask", [None, real_tokens()], ids=["whole", "masked"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_are_right(function, mask):
    inputs = tuple(x.requires_grad_() for x in triple(n_queries=2, n_keys=6, d=2, d_v=2))
    assert torch.autograd.gradcheck(lambda *x: FUNCTIONS[function](*x, token_mask=mask), inputs, fast_mode=True)


@pytest.mark.parametrize("mask", [None, real_tokens()], ids=["whole", "masked"])
@pytest.mark.parametrize(("dtype", "half_step"), [(torch.float32, 2**-24), (torch.bfloat16, 2**-9)])
def test_in_other_types_the_error_is_a_few_roundings(dtype, half_step, mask):
    q, k, v = triple(dtype=dtype)
    weights, judge = attention_weights(q, k, token_mask=mask), weights_by_loops(q, k, mask)
    out = softmax_attention(q, k, v, token_mask=mask)
    assert out.dtype == weights.dtype == dtype
    # A score s is rounded as a product and again as a quotient, at most 2 |s| half steps off; so are the highest and
    # all others, which moves a weight by a factor of exp(4 |s| half steps); the weight itself is rounded once more.
    scores = (q.double() @ k.double().transpose(2, 3) / math.sqrt(5)).abs().max().item()
    bound = np.expm1((4 * scores + 2) * half_step)
    np.testing.assert_allclose(weights.double(), judge, rtol=bound, atol=0)
    # The average of values follows its weights, and is rounded once more.
    largest = v.double().abs().max().item()
    np.testing.assert_allclose(out.double(), by_loops(q, k, v, mask), rtol=0, atol=(bound + half_step) * largest)


@pytest.mark.parametrize("mask", [None, torch.ones(1, 2, dtype=torch.bool)])
def test_half_precision_weights_do_not_overflow(mask):
    q = torch.full((1, 1, 2, 64), 200.0, dtype=torch.float16)
    weights = attention_weights(q, q, token_mask=mask)
    assert weights.dtype == torch.float16
    assert weights.flatten().tolist() == [0.5] * 4


def test_under_autocast_the_types_may_differ_as_long_as_they_are_floats():
    q, k, v = triple(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = softmax_attention(q, k.bfloat16(), v, token_mask=real_tokens())
        weights = attention_weights(q, k.bfloat16(), token_mask=real_tokens())
        with pytest.raises(TypeError, match=r"^k must be of the type of q, torch\.float32, got torch\.int64$"):
            softmax_attention(q, k.long(), v)
    np.testing.assert_allclose(mixed.float(), by_loops(q, k, v, real_tokens()), atol=0.05)
    np.testing.assert_allclose(weights.float(), weights_by_loops(q, k, real_tokens()), atol=0.02)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_call_compiles_to_one_graph_and_gives_the_same(compiler, function):
    compiled = compiler(FUNCTIONS[function], backend="eager")
    for mask in (None, real_tokens()):
        np.testing.assert_allclose(
            compiled(*triple(), token_mask=mask), FUNCTIONS[function](*triple(), token_mask=mask), atol=1e-15
        )


def test_meta_tensors_have_the_right_shapes_also_under_a_mask():
    q, k, v = (x.to("meta") for x in triple())
    mask = torch.empty(3, 6, dtype=torch.bool, device="meta")
    assert softmax_attention(q, k, v).shape == softmax_attention(q, k, v, token_mask=mask).shape == (3, 2, 4, 3)
    assert attention_weights(q, k).shape == attention_weights(q, k, token_mask=mask).shape == (3, 2, 4, 6)


def test_no_batch_no_head_and_no_query_give_no_output():
    for batch, heads, n_queries in ((0, 2, 4), (3, 0, 4), (3, 2, 0)):
        q, k, v = triple(batch, heads, n_queries)
        for mask in (None, torch.ones(batch, 6, dtype=torch.bool)):
            assert softmax_attention(q, k, v, token_mask=mask).shape == (batch, heads, n_queries, 3)
            assert attention_weights(q, k, token_mask=mask).shape == (batch, heads, n_queries, 6)


def test_the_callers_tensors_are_never_changed():
    inputs, mask = [*triple(), real_tokens()], real_tokens()
    before = [x.clone() for x in inputs]
    for function in FUNCTIONS.values():
        out = function(*inputs[:3], token_mask=inputs[3])
        out.fill_(7)
        function(*inputs[:3]).fill_(7)
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True))
    assert torch.equal(inputs[3], mask)


def test_the_fused_kernel_keeps_the_matrix_of_weights_out_of_memory():
    n, d = 2048, 16
    q, k, v = tensors((1, 1, n, d), (1, 1, n, d), (1, 1, n, d), dtype=torch.float32)
    mask = torch.arange(n)[None] < n // 2
    result = q.numel() * 4
    with torch.no_grad(), LiveBytes() as plain:
        softmax_attention(q, k, v)
    with torch.no_grad(), LiveBytes() as masked:
        softmax_attention(q, k, v, token_mask=mask)
    assert plain.peak < 1.5 * result
    assert masked.peak < 3.5 * result  # keys and values with zeros, and the result
    for write_out in (lambda: attention_weights(q, k), lambda: softmax_attention(q, k, v[..., :-1])):
        with torch.no_grad(), LiveBytes() as written_out:
            write_out()
        assert written_out.peak >= n * n * 4 > 100 * result


# bad input

Q, K, V = triple()


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_what_does_not_fit_is_refused(function):
    with pytest.raises(ValueError, match=r"^k must have shape \(3, 2, n_keys, 5\), got shape \(2, 6, 5\)$"):
        function(Q, K[0], V)
    with pytest.raises(
        ValueError, match=r"^token_mask must have shape \(batch, n_keys\) = \(3, 6\), got shape \(3, 5\)$"
    ):
        function(Q, K, V, token_mask=real_tokens(n=5))
    with pytest.raises(ValueError, match=r"^v must have shape \(3, 2, 6, d_v\), got shape \(2, 6, 3\)$"):
        softmax_attention(Q, K, V[0])


def test_unknown_keywords_are_refused_and_a_mask_has_a_name():
    for keyword in ({"mask": None}, {"key_padding_mask": None}, {"causal": True}):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            softmax_attention(Q, K, V, **keyword)
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            attention_weights(Q, K, **keyword)
    with pytest.raises(TypeError, match="positional argument"):
        softmax_attention(Q, K, V, real_tokens())
    with pytest.raises(TypeError, match="positional argument"):
        attention_weights(Q, K, real_tokens())


# cost


class SoftmaxLayer(nn.Module):
    """Self-attention of the textbook, with a bias at the end only."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.to_qkv(x).chunk(3, dim=2))
        return self.to_out(softmax_attention(q, k, v).transpose(1, 2).flatten(2))


@pytest.mark.parametrize(("n", "dim", "heads"), [(7, 6, 1), (7, 6, 3), (1, 6, 6), (16, 8, 2), (1, 1, 1)])
def test_the_cost_is_that_of_a_real_layer(n, dim, heads):
    layer, (x,) = SoftmaxLayer(dim, heads), tensors((1, n, dim), dtype=torch.float32)
    # The counter knows the products, not the fused kernel of a CPU.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        layer(x)
    split = x.unflatten(2, (heads, -1)).transpose(1, 2)
    cost = softmax_cost(n, dim, heads)
    assert cost.parameters == sum(p.numel() for p in layer.parameters())
    assert cost.flops == counter.get_total_flops()
    assert cost.scores == attention_weights(split, split).numel()


def test_the_cost_worked_by_hand():
    # D = 2, n = 3, one head. Four products (3, 2) x (2, 2) of 12 multiplications, scores (3, 2) x (2, 3) of 18, and
    # averages (3, 3) x (3, 2) of 18: 84 multiplications, each with an addition.
    assert softmax_cost(n=3, dim=2, heads=1) == Cost(parameters=4 * 4 + 2, flops=168, scores=9)
    assert softmax_cost(n=3, dim=2, heads=2) == (18, 168, 18)
    assert Cost._fields == ("parameters", "flops", "scores")


@given(st.integers(1, 10**12), st.integers(1, 10**6), st.integers(1, 64))
def test_the_cost_is_exact_at_any_size(n, width, heads):
    dim = width * heads
    assert softmax_cost(n, dim, heads) == (4 * dim * dim + dim, 8 * n * dim * dim + 4 * n * n * dim, heads * n * n)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, 4, 2), ValueError, "n must be at least 1, got 0"),
        ((8, 0, 1), ValueError, "dim must be at least 1, got 0"),
        ((8, 4, 3), ValueError, "heads must divide dim = 4, got 3"),
    ],
)
def test_a_cost_of_bad_sizes_is_refused(arguments, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        softmax_cost(*arguments)
