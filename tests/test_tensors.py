"""The checks that every attention shares, each with what it takes and what it refuses."""

import re

import pytest
import torch
from attentions import real_tokens, triple

from lowrank_tutor._tensors import (
    check_attention_inputs,
    check_device,
    check_dtype,
    check_heads,
    check_not_meta,
    check_same_device_and_dtype,
    check_tensor,
    check_token_mask,
    softmax_mask,
    without_autocast,
    zero_hidden,
)

Q, K, V = triple()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: check_tensor("e", Q.numpy(), ("k",)), TypeError, "e must be a tensor, got ndarray"),
        (lambda: check_tensor("e", None, ("k",)), TypeError, "e must be a tensor, got NoneType"),
        (lambda: check_tensor("e", Q[0, 0], ("k", 6)), ValueError, "e must have shape (k, 6), got shape (4, 5)"),
        (lambda: check_tensor("e", Q[0], ("k", 5)), ValueError, "e must have shape (k, 5), got shape (2, 4, 5)"),
        (lambda: check_tensor("e", Q[0, 0, 0], ("k", 5)), ValueError, "e must have shape (k, 5), got shape (5,)"),
        (
            lambda: check_same_device_and_dtype("e", K.float(), "q", Q),
            TypeError,
            "e must be of the type of q, torch.float64, got torch.float32",
        ),
        (
            lambda: check_same_device_and_dtype("e", K.to("meta"), "q", Q),
            ValueError,
            "e must be on the device of q, cpu, got meta",
        ),
        (
            lambda: check_same_device_and_dtype("e", K, "q", Q.to("meta")),
            ValueError,
            "e must be on the device of q, meta, got cpu",
        ),
        (
            lambda: check_tensor("e", torch.nested.nested_tensor([Q[0], Q[0, :1]], layout=torch.jagged), ("k",)),
            TypeError,
            "e must be a plain tensor, got a nested one: pad it, and mark what is real by a mask",
        ),
        (
            lambda: check_tensor("e", Q.to_sparse(), ("k",)),
            TypeError,
            "e must be a dense tensor, got layout torch.sparse_coo: .to_dense() makes one",
        ),
        (
            lambda: check_token_mask(real_tokens().to_sparse(), K, (3, 6)),
            TypeError,
            "token_mask must be a dense tensor, got layout torch.sparse_coo: .to_dense() makes one",
        ),
        (lambda: check_not_meta("e", Q.to("meta")), TypeError, "e must hold numbers, got a meta tensor"),
        (
            lambda: check_device("cpu:x"),
            ValueError,
            "device must be a torch.device, a name such as \"cpu\" or None, got 'cpu:x'",
        ),
        (
            lambda: check_device(0),
            TypeError,
            'device must be a torch.device, a name such as "cpu" or None, got int',
        ),
        (lambda: check_dtype(torch.int64), TypeError, "dtype must be a floating-point type, got torch.int64"),
        (lambda: check_dtype(torch.complex64), TypeError, "dtype must be a floating-point type, got torch.complex64"),
        (
            lambda: check_dtype(torch.float8_e4m3fn),
            TypeError,
            "dtype must have at least 16 bits, in which PyTorch can draw and multiply, got torch.float8_e4m3fn",
        ),
        (lambda: check_dtype("float32"), TypeError, "dtype must be a floating-point type, got float32"),
        (
            lambda: check_token_mask(real_tokens().long(), K, (3, 6)),
            TypeError,
            "token_mask must be a bool tensor (True marks a real token), got torch.int64",
        ),
        (
            lambda: check_token_mask([[True]], K, (3, 6)),
            TypeError,
            "token_mask must be a bool tensor (True marks a real token), got list",
        ),
        (
            lambda: check_token_mask(real_tokens(n=5), K, (3, 6)),
            ValueError,
            "token_mask must have shape (batch, n_keys) = (3, 6), got shape (3, 5)",
        ),
        (
            lambda: check_token_mask(real_tokens(2), K, (3, 6)),
            ValueError,
            "token_mask must have shape (batch, n_keys) = (3, 6), got shape (2, 6)",
        ),
        (
            lambda: check_token_mask(real_tokens()[0], K, (3, 6)),
            ValueError,
            "token_mask must have shape (batch, n_keys) = (3, 6), got shape (6,)",
        ),
        (
            lambda: check_token_mask(real_tokens().to("meta"), K, (3, 6)),
            ValueError,
            "token_mask must be on the device of the keys, cpu, got meta",
        ),
        (lambda: check_heads(0, 6), ValueError, "heads must be at least 1, got 0"),
        (lambda: check_heads(4, 6), ValueError, "heads must divide dim = 6, got 4"),
        (lambda: check_heads(12, 6), ValueError, "heads must divide dim = 6, got 12"),
        (lambda: check_heads(True, 6), TypeError, "heads must be an integer, got True"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call()


@pytest.mark.parametrize(
    ("q", "k", "v", "error", "message"),
    [
        (Q[0], K, V, ValueError, "q must have shape (batch, heads, n_queries, d), got shape (2, 4, 5)"),
        (Q, K[0], V, ValueError, "k must have shape (3, 2, n_keys, 5), got shape (2, 6, 5)"),
        (Q, K[:2], V, ValueError, "k must have shape (3, 2, n_keys, 5), got shape (2, 2, 6, 5)"),
        (
            Q,
            K[:, :1],
            V,
            ValueError,
            "k must have a head for each of the 2 of q, got 1: k.repeat_interleave(2, dim=1), and v likewise, gives"
            " each its own",
        ),
        (Q, K[..., :4], V, ValueError, "k must have shape (3, 2, n_keys, 5), got shape (3, 2, 6, 4)"),
        (Q, K, V[0], ValueError, "v must have shape (3, 2, 6, d_v), got shape (2, 6, 3)"),
        (Q, K, V[:1], ValueError, "v must have shape (3, 2, 6, d_v), got shape (1, 2, 6, 3)"),
        (Q, K, V[:, :1], ValueError, "v must have shape (3, 2, 6, d_v), got shape (3, 1, 6, 3)"),
        (Q, K, V[:, :, :5], ValueError, "v must have shape (3, 2, 6, d_v), got shape (3, 2, 5, 3)"),
        (
            Q,
            K[:, :, :0],
            V[:, :, :0],
            ValueError,
            "k must hold at least one token of at least one number, got shape (3, 2, 0, 5)",
        ),
        (
            Q[..., :0],
            K[..., :0],
            V,
            ValueError,
            "k must hold at least one token of at least one number, got shape (3, 2, 6, 0)",
        ),
        (Q, K.float(), V, TypeError, "k must be of the type of q, torch.float64, got torch.float32"),
        (Q, K, V.float(), TypeError, "v must be of the type of q, torch.float64, got torch.float32"),
        (Q.long(), K.long(), V.long(), TypeError, "q must be of a floating-point type, got torch.int64"),
    ],
)
def test_queries_keys_and_values_that_do_not_fit_are_refused(q, k, v, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        check_attention_inputs(q, k, v)


def test_what_fits_is_taken():
    assert check_tensor("q", Q, ("batch", 2, "n", 5)) is Q
    check_same_device_and_dtype("k", K, "q", Q)
    check_attention_inputs(Q, K, V)
    check_attention_inputs(*triple(n_keys=1, d=1, d_v=0))
    mask = real_tokens()
    assert check_token_mask(mask, K, (3, 6)) is mask
    assert [check_heads(heads, 6) for heads in (1, 2, 3, 6)] == [1, 2, 3, 6]
    assert check_dtype(torch.bfloat16) == torch.bfloat16
    assert check_dtype(None) == torch.float32
    cpu = torch.device("cpu")
    assert [check_device(device) for device in ("cpu", cpu, None)] == [cpu, cpu, None]


def test_autocast_takes_any_floating_point_type_and_can_be_left():
    a, b = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        check_same_device_and_dtype("a", a, "b", b)
        with pytest.raises(TypeError, match=r"^a must be of the type of b, torch\.bfloat16, got torch\.int64$"):
            check_same_device_and_dtype("a", a.long(), "b", b)
        assert (a @ a).dtype == torch.bfloat16
        with without_autocast(a.device):
            assert (a @ a).dtype == torch.float32
    with without_autocast(torch.device("meta")):  # which has no autocast to leave
        assert (a @ a).dtype == torch.float32


@pytest.mark.parametrize("x", [K, K[:, 0]], ids=["heads", "no heads"])
def test_hidden_tokens_become_zeros(x):
    mask = real_tokens()
    zeroed = zero_hidden(x.masked_fill(~mask[:, None, :, None] if x.ndim == 4 else ~mask[:, :, None], torch.nan), mask)
    by_token, expected = zeroed.movedim(-2, 1), x.movedim(-2, 1)
    assert torch.equal(by_token[mask], expected[mask])
    assert not by_token[~mask].any()
    assert zero_hidden(x, None) is x


def test_the_mask_of_the_softmax_has_no_empty_row():
    """Not every kernel of every version gives zeros for one; some give NaN."""
    weighed = softmax_mask(torch.tensor([[True, False], [False, False], [True, True]]))
    assert weighed.shape == (3, 1, 1, 2)
    assert weighed[:, 0, 0].tolist() == [[True, False], [True, True], [True, True]]
