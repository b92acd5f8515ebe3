"""The checks and masks that every module with PyTorch shares."""

from functools import partial

import pytest
import torch
from attentions import real_tokens, said, triple

from lowrank_tutor._tensors import (
    check_attention_inputs,
    check_device,
    check_dtype,
    check_generator,
    check_heads,
    check_like,
    check_not_meta,
    check_same_device_and_dtype,
    check_tensor,
    check_token_mask,
    softmax_mask,
    without_autocast,
    zero_hidden,
)

Q, K, V = triple()
MASK, BOOL = real_tokens(), "token_mask must be a bool tensor (True marks a real token), got"
NESTED = torch.nested.nested_tensor([Q[0], Q[0, :1]], layout=torch.jagged)
DEVICE, DENSE = (
    'device must be a torch.device, a name such as "cpu" or None, got',
    "must be a dense tensor, got layout",
)
SPARSE = f"{DENSE} torch.sparse_coo: .to_dense() makes one"
mask_of_keys = partial(check_token_mask, keys=K, shape=(3, 6))

MAKE = ": torch.as_tensor(np.array(e)).float() makes one"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_tensor("e", Q.numpy(), ("k",)), "TypeError: e must be a tensor, got ndarray" + MAKE),
        (lambda: check_tensor("e", Q[0, 0], ("k", 6)), "ValueError: e must have shape (k, 6), got shape (4, 5)"),
        (lambda: check_tensor("e", Q[0], ("k", 5)), "ValueError: e must have shape (k, 5), got shape (2, 4, 5)"),
        (lambda: check_tensor("e", NESTED, ("k",)),
         "TypeError: e must be a plain tensor, got a nested one: pad it, and mark what is real by a mask"),
        (lambda: check_tensor("e", Q.to_sparse(), ("k",)), f"TypeError: e {SPARSE}"),
        (lambda: check_same_device_and_dtype("e", K.float(), "q", Q),
         "TypeError: e must be of the type of q, torch.float64, got torch.float32"),
        (lambda: check_same_device_and_dtype("e", K.to("meta"), "q", Q),
         "ValueError: e must be on the device of q, cpu, got meta"),
        (lambda: check_not_meta("e", Q.to("meta")), "TypeError: e must hold numbers, got a meta tensor"),
        (lambda: check_device("cpu:x"), f"ValueError: {DEVICE} 'cpu:x'"),
        (lambda: check_device(0), f"TypeError: {DEVICE} int"),
        (lambda: check_dtype(torch.int64), "TypeError: dtype must be a floating-point type, got torch.int64"),
        (lambda: check_dtype(torch.float8_e4m3fn), "TypeError: dtype must have at least 16 bits, in which PyTorch can"
         " draw and multiply, got torch.float8_e4m3fn"),
        (lambda: check_generator(5), "TypeError: generator must be a torch.Generator or None, got int:"
         " torch.Generator().manual_seed(5) makes one"),
        (lambda: mask_of_keys(MASK.long()), f"TypeError: {BOOL} torch.int64: .bool() reads ones as real"),
        (lambda: mask_of_keys(MASK[:, :5]),
         "ValueError: token_mask must have shape (batch, n_keys) = (3, 6), got shape (3, 5)"),
        (lambda: mask_of_keys(MASK.to("meta")),
         "ValueError: token_mask must be on the device of the keys, cpu, got meta"),
        (lambda: check_heads(0, 6), "ValueError: heads must be at least 1, got 0"),
        (lambda: check_heads(4, 6), "ValueError: heads must divide dim = 6, got 4"),
    ],
)  # fmt: skip
def test_bad_tensors(call, message):
    assert said(call) == message


FLOATING = "of a floating-point type of at least 16 bits"


@pytest.mark.parametrize(
    ("q", "k", "v", "message"),
    [
        (Q[0], K, V, "ValueError: q must have shape (batch, heads, n_queries, d), got shape (2, 4, 5)"),
        (Q, K[:2], V, "ValueError: k must have shape (3, 2, n_keys, 5), got shape (2, 2, 6, 5)"),
        (Q, K[:, :1], V, "ValueError: v must have shape (3, 1, 6, d_v), got shape (3, 2, 6, 3)"),
        (Q, K[..., :4], V, "ValueError: k must have shape (3, 2, n_keys, 5), got shape (3, 2, 6, 4)"),
        (Q, K, V[:, :, :5], "ValueError: v must have shape (3, 2, 6, d_v), got shape (3, 2, 5, 3)"),
        (Q, K[:, :, :0], V[:, :, :0],
         "ValueError: k must hold at least one token of at least one number, got shape (3, 2, 0, 5)"),
        (Q[..., :0], K[..., :0], V,
         "ValueError: k must hold at least one token of at least one number, got shape (3, 2, 6, 0)"),
        *((*(part.to(kind) for part in (Q, K, V)), f"TypeError: q must be {FLOATING}, got {kind}")
          for kind in (torch.int64, torch.float8_e4m3fn)),
    ],
)  # fmt: skip
def test_bad_attention_inputs(q, k, v, message):
    assert said(lambda: check_attention_inputs(q, k, v)) == message


def test_good_tensors():
    assert check_like("q", Q, ("batch", 2, "n", 5), "k", K) is Q
    check_attention_inputs(Q, K, V)
    check_attention_inputs(*triple(n_keys=1, d=1, d_v=0))
    assert mask_of_keys(MASK) is MASK
    assert [check_heads(heads, 6) for heads in (1, 2, 3, 6)] == [1, 2, 3, 6]
    assert [check_dtype(dtype) for dtype in (torch.bfloat16, None)] == [
        torch.bfloat16,
        torch.float32,
    ]
    cpu = torch.device("cpu")
    assert [check_device(device) for device in ("cpu", cpu, None)] == [cpu, cpu, None]


def test_types_under_autocast():
    """Autocast takes any floating-point type but float64, and can be left."""
    a, b = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        check_same_device_and_dtype("a", a, "b", b)
        for other, end in (
            (a.long(), "torch.int64"),
            (a.double(), "torch.float64: autocast leaves torch.float64 alone"),
        ):
            message = f"TypeError: a must be of the type of b, torch.bfloat16, got {end}"
            assert (
                said(lambda other=other: check_same_device_and_dtype("a", other, "b", b)) == message
            )
        assert (a @ a).dtype == torch.bfloat16
        with without_autocast(a.device):
            assert (a @ a).dtype == torch.float32
    with without_autocast(torch.device("meta")):  # which has no autocast to leave
        assert (a @ a).dtype == torch.float32


@pytest.mark.parametrize("x", [K, K[:, 0]], ids=["heads", "no heads"])
def test_zero_hidden(x):
    zeroed = zero_hidden(
        x.masked_fill(~MASK[:, None, :, None] if x.ndim == 4 else ~MASK[:, :, None], torch.nan),
        MASK,
    )
    by_token, expected = zeroed.movedim(-2, 1), x.movedim(-2, 1)
    assert torch.equal(by_token[MASK], expected[MASK])
    assert not by_token[~MASK].any()
    assert zero_hidden(x, None) is x


def test_softmax_mask():
    """No row is empty: not every kernel of every version gives zeros for one; some give NaN."""
    weighed = softmax_mask(torch.tensor([[True, False], [False, False], [True, True]]))
    assert weighed.shape == (3, 1, 1, 2)
    assert weighed[:, 0, 0].tolist() == [[True, False], [True, True], [True, True]]
