"""The checks and masks that every module with PyTorch shares."""

from functools import partial

import pytest
import torch
from attentions import real_tokens, said, triple

from lowrank_tutor._tensors import (
    check_attention_inputs,
    check_device,
    check_dtype,
    check_heads,
    check_like,
    check_same_device_and_dtype,
    check_tensor,
    check_token_mask,
    softmax_mask,
    without_autocast,
    zero_hidden,
)

Q, K, V = triple()
MASK = real_tokens()
mask_of_keys = partial(check_token_mask, keys=K, shape=(3, 6))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_tensor("e", Q[0, 0], ("k", 6)), "e must have shape (k, 6), got"),
        (lambda: check_tensor("e", Q[0], ("k", 5)), "e must have shape (k, 5), got"),
        (lambda: check_tensor("e", Q.to_sparse(), ("k",)), "e must be a dense tensor, got"),
        (lambda: check_tensor("e", torch.nested.nested_tensor([Q[0]], layout=torch.jagged), ("k",)),
         "e must be a dense tensor, got"),
        (lambda: check_same_device_and_dtype("e", K.to("meta"), "q", Q),
         "e must be on the device of q, cpu, got meta"),
        (lambda: check_dtype(torch.float8_e4m3fn), "dtype must be a floating-point type of at le"),
        (lambda: mask_of_keys(MASK[:, :5]), "token_mask must have shape (3, 6), got shape (3, 5)"),
        (lambda: mask_of_keys(MASK.to("meta")), "token_mask must be on the device of the keys"),
        (lambda: check_heads(4, 6), "heads must divide dim = 6, got 4"),
        (lambda: check_attention_inputs(Q, K[:2], V), "k must have shape (3, 2, n_keys, 5), got"),
        (lambda: check_attention_inputs(Q, K[:, :1], V), "v must have shape (3, 1, 6, d_v), got"),
        (lambda: check_attention_inputs(Q, K[:, :, :0], V[:, :, :0]), "k must hold at least one"),
        (lambda: check_attention_inputs(Q[..., :0], K[..., :0], V), "k must hold at least one"),
        (lambda: check_attention_inputs(Q, K, V, causal=True), "q must hold as many tokens as k"),
        (lambda: check_attention_inputs(*(part.to(torch.float8_e4m3fn) for part in (Q, K, V))),
         "q must be of a floating-point type of at least 16 bits, got"),
    ],
)  # fmt: skip
def test_bad_tensors(call, message):
    assert said(call).partition(": ")[2].startswith(message)


def test_good_tensors():
    assert check_like("q", Q, ("batch", 2, "n", 5), "k", K) is Q
    check_attention_inputs(Q, K, V)
    check_attention_inputs(*triple(n_keys=1, d=1, d_v=0))
    mask_of_keys(MASK)
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
        for other in (a.long(), a.double()):
            with pytest.raises(TypeError, match=f"^a must be of the type of b, .*{other.dtype}$"):
                check_same_device_and_dtype("a", other, "b", b)
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
