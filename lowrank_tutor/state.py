r"""What can a model remember in a state of fixed size, and what does it pay? Recurrences, their blocks, power steps.

Chapters ``book/09-states.md`` and, for `power_step` and `newton_schulz`, which work on gradients ``m``,
``book/08-caches.md``. Letters: keys ``k`` (n, d) and values ``v`` (n, d_v) are written into a **state** S (d, d_v),
which a query reads as $S^\top q$. Adding $k v^\top$ keeps all pairs, mixed; the **delta rule** first takes out what the
state holds under the key, a share $\beta$ of it. ``a`` are decays between 0 and 1, ``t`` the triangle that turns a
product of reflections into one matrix.
"""

import math
import sys
from collections.abc import Sequence

from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch

from lowrank_tutor._checks import as_matrix, check_real, check_size
from lowrank_tutor._tensors import (
    check_attention_inputs,
    check_not_meta,
    check_plain,
    check_same_device_and_dtype,
    check_tensor,
    check_token_mask,
    shape_of,
    without_autocast,
    zero_hidden,
)
from lowrank_tutor.rank import numerical_rank

DECAY, SHARE = "above 0 and at most 1", "between 0 and 2"


def linear_state(
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    decay: float | torch.Tensor | None = None,
    delta: float | torch.Tensor | None = None,
) -> torch.Tensor:
    r"""Write keys and values into a state, one after the other.

    $S_t = a_t S_{t-1} + k_t v_t^\top$, or by the delta rule
    $S_t = (I - \beta_t k_t k_t^\top)\, a_t S_{t-1} + \beta_t k_t v_t^\top$.

    Parameters
    ----------
    k : Tensor, shape (n, d)
        Keys, one a row.
    v : Tensor, shape (n, d_v)
        Values.
    decay : float or Tensor of n numbers, optional
        $a_t$, above 0 and at most 1: what is left of the state. By default all of it.
    delta : float or Tensor of n numbers, optional
        $\beta_t$, between 0 and 2: the share that the delta rule replaces. By default there is only the sum.

    Returns
    -------
    Tensor, shape (d, d_v)
        The state after the last token, of rank at most min(n, d), of the type of ``k``; half precision is added up in
        float32.

    Examples
    --------
    >>> import torch
    >>> k, v = torch.tensor([[1.0, 0.0], [0.6, 0.8]]), torch.tensor([[5.0], [0.0]])
    >>> (k @ linear_state(k, v)).flatten().tolist()  # the second key reads 3 where it wrote 0
    [5.0, 3.0]

    References
    ----------
    Schlag, Irie and Schmidhuber (2021), arXiv:2102.11174, for the delta rule in attention.
    """
    k, v = _as_pairs(k, v)
    n, dtype = k.shape[0], k.dtype
    kept = _as_rates(1.0 if decay is None else decay, "decay", k, DECAY)
    share = None if delta is None else _as_rates(delta, "delta", k, SHARE)

    k, v = (part.to(torch.promote_types(dtype, torch.float32)) for part in (k, v))
    state = k.new_zeros(k.shape[1], v.shape[1])
    for i in range(n):
        state = kept[i] * state
        new = v[i] if share is None else share[i] * (v[i] - k[i] @ state)  # what the state holds is taken out
        state = state + torch.outer(k[i], new)
    return state.to(dtype)


def recall_error(state: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> float:
    r"""Say how far off the values are that keys read from a state: $\|K S - V\|_F / \|V\|_F$.

    Parameters
    ----------
    state : Tensor, shape (d, d_v)
        As `linear_state` returns it.
    k : Tensor, shape (n, d)
        Keys.
    v : Tensor, shape (n, d_v)
        The values that they ought to read; not all zero.

    Returns
    -------
    float

    Examples
    --------
    >>> import torch
    >>> k, v = torch.eye(2), torch.tensor([[3.0], [4.0]])
    >>> recall_error(linear_state(k, v), k, v), recall_error(torch.zeros(2, 1), k, v)
    (0.0, 1.0)
    """
    k, v = _as_pairs(k, v)
    check_tensor("state", state, (k.shape[1], v.shape[1]))
    check_same_device_and_dtype("state", state, "k", k)
    check_not_meta("k", k)
    k, v, state = (part.detach().to(torch.promote_types(k.dtype, torch.float32)) for part in (k, v, state))
    unit = v.abs().amax() if v.numel() else v.new_zeros(())  # so that no square overflows or vanishes
    if unit == 0:
        raise ValueError("v must be non-zero, got zeros: no error is relative to them")
    v, state = v / unit, state / unit
    return float(torch.linalg.vector_norm(k @ state - v) / torch.linalg.vector_norm(v))


def delta_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    beta: torch.Tensor,
    *,
    log_decay: torch.Tensor | None = None,
    chunk: int = 64,
    state: torch.Tensor | None = None,
    token_mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    r"""Read a state that the delta rule writes, token by token or a chunk at a time; with a decay, Gated DeltaNet.

    $S_t = (I - \beta_t k_t k_t^\top)\, a_t S_{t-1} + \beta_t k_t v_t^\top$ and $o_t = S_t^\top q_t$. Queries are not
    scaled and keys not normalized: for the rule to erase, keys should have length 1. Where $\beta_t \|k_t\|^2$ is above
    2, a step makes the part of the state along $k_t$ larger. If that goes on, the state grows exponentially until it is
    infinite, and then NaN; keys are not checked. Within a chunk, what each token adds, $k_t u_t^\top$, is found by
    solving one triangular system, so that the rest is products of matrices. Sums are kept in float32 at least.

    Parameters
    ----------
    q : Tensor, shape (batch, heads, n, d)
        Queries.
    k : Tensor, shape (batch, heads, n, d)
        Keys.
    v : Tensor, shape (batch, heads, n, d_v)
        Values.
    beta : Tensor, shape (batch, heads, n)
        Shares, between 0 and 2. On a CPU others are refused; elsewhere to look would make the device wait.
    log_decay : Tensor, shape (batch, heads, n), optional
        $\ln a_t$, at most 0, looked at likewise. By default 0: nothing decays.
    chunk : int
        Tokens in a chunk, at least 1. With 1 it is the recurrence itself.
    state : Tensor, shape (batch, heads, d, d_v), optional
        What earlier tokens left, as returned. By default zeros.
    token_mask : bool Tensor, shape (batch, n), optional
        **True marks a real token**; PyTorch's ``key_padding_mask`` means the opposite. A hidden token, whatever it
        holds, leaves the state as it is; its query reads it like any other.

    Returns
    -------
    out : Tensor, shape (batch, heads, n, d_v)
        What the queries read.
    state : Tensor, shape (batch, heads, d, d_v)
        After the last token, of float32 at least.

    Examples
    --------
    >>> import torch
    >>> q, k, v = torch.nn.functional.normalize(torch.randn(3, 1, 2, 100, 8, dtype=torch.float64), dim=4)
    >>> beta = torch.full((1, 2, 100), 0.5, dtype=torch.float64)
    >>> chunks, steps = (delta_attention(q, k, v, beta, chunk=size)[0] for size in (64, 1))
    >>> torch.allclose(chunks, steps)
    True

    References
    ----------
    Yang et al. (2024), arXiv:2406.06484, the chunks; Yang, Kautz and Hatamizadeh (2024), arXiv:2412.06464, the decay.
    """
    _check_delta(q, k, v, beta, log_decay, state, token_mask)
    chunk = check_size(chunk, "chunk")
    wide = torch.promote_types(q.dtype, torch.float32)
    if token_mask is not None:
        k, v = zero_hidden(k, token_mask), zero_hidden(v, token_mask)
        beta = beta.masked_fill(~token_mask[:, None], 0)
        log_decay = None if log_decay is None else log_decay.masked_fill(~token_mask[:, None], 0)

    dtype = q.dtype
    with without_autocast(q.device):
        q, k, v, beta = (part.to(wide) for part in (q, k, v, beta))
        log_decay = torch.zeros_like(beta) if log_decay is None else log_decay.to(wide)
        if state is None:
            state = q.new_zeros(*k.shape[:2], k.shape[3], v.shape[3])
        state, outputs = state.to(wide), []
        for start in range(0, k.shape[2], chunk):
            part = slice(start, start + chunk)
            sums = log_decay[:, :, part].cumsum(dim=2)[..., None]  # ln of what is left of the state, (b, h, c, 1)
            out, state = _chunk(q[:, :, part], k[:, :, part], v[:, :, part], beta[:, :, part, None], sums, state)
            outputs.append(out)
    return torch.cat(outputs, dim=2).to(dtype), state


def _chunk(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, beta: torch.Tensor, sums: torch.Tensor, state: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    r"""Read and write c tokens at once: $(I + T) U = \beta (V - \gamma K S)$, T strictly below the diagonal."""
    ratios = (sums - sums.mT).tril().exp().tril()  # what is left in row i of what column j wrote, (b, h, c, c)
    left = sums.exp()
    system = beta * (ratios * (k @ k.mT)).tril(-1)
    written = torch.linalg.solve_triangular(system, beta * (v - left * (k @ state)), upper=False, unitriangular=True)
    out = left * (q @ state) + (ratios * (q @ k.mT)) @ written
    last = sums[:, :, -1:]
    return out, last.exp() * state + k.mT @ ((last - sums).exp() * written)


def wy(k: torch.Tensor, beta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    r"""Write a product of n factors $I - \beta_t k_t k_t^\top$ as one matrix less than the identity: $I - K^\top W$.

    The last factor stands on the left, $(I - \beta_n k_n k_n^\top) \cdots (I - \beta_1 k_1 k_1^\top)$. With
    $B = \operatorname{diag} \beta$ and the part of $B K K^\top$ strictly below its diagonal, $L$: $T = (I + L)^{-1} B$
    and $W = T K$.

    Parameters
    ----------
    k : Tensor, shape (n, d)
        Vectors, one a row.
    beta : Tensor, shape (n,)
        Factors; any numbers.

    Returns
    -------
    w : Tensor, shape (n, d)
        The product is ``I - k.T @ w``.
    t : Tensor, shape (n, n)
        Lower triangular.

    Examples
    --------
    >>> import torch
    >>> w, t = wy(torch.eye(2), torch.tensor([1.0, 0.5]))
    >>> torch.eye(2) - torch.eye(2).T @ w
    tensor([[0.0000, 0.0000],
            [0.0000, 0.5000]])

    References
    ----------
    Bischof and Van Loan (1987), doi:10.1137/0908009; Yang et al. (2024), arXiv:2406.06484, in attention.
    """
    check_tensor("k", k, ("n", "d"))
    check_tensor("beta", beta, (k.shape[0],))
    check_same_device_and_dtype("beta", beta, "k", k)
    if not k.dtype.is_floating_point:
        raise TypeError(f"k must be of a floating-point type, got {k.dtype}")
    wide = torch.promote_types(k.dtype, torch.float32)
    rows, shares = k.to(wide), beta.to(wide)
    system = shares[:, None] * (rows @ rows.mT).tril(-1)
    t = torch.linalg.solve_triangular(system, torch.diag(shares), upper=False, unitriangular=True)
    return (t @ rows).to(k.dtype), t.to(k.dtype)


def causal_decay(a: torch.Tensor) -> torch.Tensor:
    r"""Write out what is left at time i of what was written at time j: $L_{ij} = a_{j+1} \cdots a_i$ for i at least j.

    $y = L x$ is the recurrence $y_i = a_i y_{i-1} + x_i$. Each block below the diagonal has rank at most 1.

    Parameters
    ----------
    a : Tensor, shape (n,)
        Decays; the first is never used. Any numbers.

    Returns
    -------
    Tensor, shape (n, n)
        Zero above the diagonal, one on it.

    Examples
    --------
    >>> import torch
    >>> causal_decay(torch.tensor([1, 2, 1, 3])).tolist()
    [[1, 0, 0, 0], [2, 1, 0, 0], [2, 1, 1, 0], [6, 3, 3, 1]]

    References
    ----------
    Dao and Gu (2024), arXiv:2405.21060.
    """
    check_tensor("a", a, ("n",))
    n = len(a)
    below = torch.ones(n, n, dtype=torch.bool, device=a.device).tril(-1)
    factors = torch.where(below, a[:, None], torch.ones_like(a)[:, None])
    return factors.cumprod(dim=0).tril()


def block_ranks(m: torch.Tensor, *, rtol: float | None = None) -> list[int]:
    """Return the rank of each block below the diagonal: rows from i on, columns before i, for i from 1 to n - 1.

    A mask that decays has ranks of at most 1 there; a recurrence with a state of N numbers, at most N.

    Parameters
    ----------
    m : Tensor, shape (n, n)
        Real and finite, of at least two rows.
    rtol : float, optional
        As in ``rank.numerical_rank``: singular values below this share of the block's largest are zero.

    Returns
    -------
    list of int

    Examples
    --------
    >>> import torch
    >>> block_ranks(causal_decay(torch.tensor([1.0, 2.0, 1.0, 3.0])))
    [1, 1, 1]
    """
    check_tensor("m", m, ("n", "n"))
    n = m.shape[0]
    if n < 2 or m.shape[1] != n:
        raise ValueError(f"m must be square, of at least two rows, got shape {shape_of(m)}")
    if m.is_complex():
        raise TypeError(f"m must hold real numbers, got {m.dtype}")
    check_not_meta("m", m)
    table = as_matrix(m.detach().cpu().double().numpy(), "m")
    # NumPy has no bfloat16: the tolerance of the type in which m came is reckoned here.
    eps = torch.finfo(m.dtype if m.is_floating_point() else torch.float64).eps
    return [
        numerical_rank(table[i:, :i], rtol=min(max(i, n - i) * eps, 0.5) if rtol is None else rtol) for i in range(1, n)
    ]


def power_step(m: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    r"""Approximate a matrix by rank r from a guess: $P = \operatorname{orth}(M Q)$, then $Q = M^\top P$.

    $P Q^\top$ is $M$ projected onto the columns of $P$. Repeated with the new Q this is subspace iteration, and for one
    and the same M it tends to the best approximation, unless the guess has no part in one of its directions.

    Parameters
    ----------
    m : Tensor, shape (m, n)
        Such as a gradient.
    q : Tensor, shape (n, r)
        The guess, or what the last step returned; r is at most min(m, n).

    Returns
    -------
    p : Tensor, shape (m, r)
        Orthonormal columns.
    q : Tensor, shape (n, r)
        The approximation is ``p @ q.T``.

    Examples
    --------
    >>> import torch
    >>> p, q = power_step(torch.diag(torch.tensor([2.0, 1.0])), torch.tensor([[1.0], [0.0]]))
    >>> (p @ q.T).abs()
    tensor([[2., 0.],
            [0., 0.]])

    References
    ----------
    Vogels, Karimireddy and Jaggi (2019), arXiv:1905.13727, Algorithm 1.
    """
    check_tensor("m", m, ("m", "n"))
    check_tensor("q", q, (m.shape[1], "r"))
    check_same_device_and_dtype("q", q, "m", m)
    if not m.dtype.is_floating_point:
        raise TypeError(f"m must be of a floating-point type, got {m.dtype}")
    r = q.shape[1]
    if not 1 <= r <= min(m.shape):
        raise ValueError(f"q must have between 1 and min(m, n) = {min(m.shape)} columns, got shape {shape_of(q)}")
    wide = torch.promote_types(m.dtype, torch.float32)
    matrix = m.to(wide)
    p = torch.linalg.qr(matrix @ q.to(wide)).Q
    return p.to(m.dtype), (matrix.mT @ p).to(m.dtype)


def newton_schulz(
    x: torch.Tensor, steps: int = 5, coefficients: Sequence[float] = (3.4445, -4.7750, 2.0315)
) -> torch.Tensor:
    r"""Push all singular values of a matrix toward 1, by products alone: Muon's step.

    $X \leftarrow a X + (b X X^\top + c (X X^\top)^2) X$, from $X / \|X\|_F$ on. Each singular value goes its own way,
    $\sigma \leftarrow a \sigma + b \sigma^3 + c \sigma^5$; the singular vectors, and the rank, stay.

    Parameters
    ----------
    x : Tensor, shape (..., m, n)
        One matrix or many; zeros stay zeros.
    steps : int
        At least 0.
    coefficients : sequence of three floats
        a, b and c; by default Muon's, which do not converge to 1 but come near it fast.

    Returns
    -------
    Tensor, shape (..., m, n)

    Examples
    --------
    >>> import torch
    >>> newton_schulz(torch.tensor([[3.0, 0.0], [0.0, 0.1]])).diagonal()
    tensor([0.6970, 1.1288])

    References
    ----------
    Jordan et al. (2024), https://kellerjordan.github.io/posts/muon/.
    """
    if check_plain("x", x).ndim < 2:
        raise ValueError(f"x must have shape (..., m, n), got shape {shape_of(x)}")
    if not x.dtype.is_floating_point:
        raise TypeError(f"x must be of a floating-point type, got {x.dtype}")
    steps = check_size(steps, "steps", 0)
    try:
        numbers = tuple(coefficients)
    except (TypeError, RuntimeError):
        raise TypeError(f"coefficients must be three numbers, got {type(coefficients).__name__}") from None
    if len(numbers) != 3:
        raise ValueError(f"coefficients must be three numbers, got {len(numbers)}")
    a, b, c = (check_real(number, "coefficients", "finite", -sys.float_info.max) for number in numbers)

    tall = x.shape[-2] > x.shape[-1]
    y = x.mT if tall else x  # the smaller Gram matrix of the two
    if y.numel():
        y = y.to(torch.promote_types(x.dtype, torch.float32))
        largest = y.detach().abs().amax(dim=(-2, -1), keepdim=True)
        y = y / torch.where(largest == 0, 1, largest)  # so that no square overflows or vanishes
        size = torch.linalg.matrix_norm(y, keepdim=True)
        y = (y / torch.where(size == 0, 1, size)).to(x.dtype)
    for _ in range(steps):
        gram = y @ y.mT
        y = a * y + (b * gram + c * gram @ gram) @ y
    return y.mT if tall else y


def _as_pairs(k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return keys and values, a row each."""
    check_tensor("k", k, ("n", "d"))
    check_tensor("v", v, (k.shape[0], "d_v"))
    check_same_device_and_dtype("v", v, "k", k)
    if not k.dtype.is_floating_point:
        raise TypeError(f"k must be of a floating-point type, got {k.dtype}")
    if k.numel() == 0:
        raise ValueError(f"k must hold at least one key of at least one number, got shape {shape_of(k)}")
    return k, v


def _as_rates(value: float | torch.Tensor, name: str, k: torch.Tensor, rule: str) -> torch.Tensor:
    """Return a number for each token: one for all, or one each."""
    if not isinstance(value, torch.Tensor):
        number = check_real(value, name, rule, -math.inf)
        _check_values(name, torch.tensor(number, dtype=torch.float64, device="cpu"), rule)  # before it is rounded
        return torch.full((k.shape[0],), number, dtype=torch.promote_types(k.dtype, torch.float32), device=k.device)
    check_tensor(name, value, (k.shape[0],))
    check_same_device_and_dtype(name, value, "k", k)
    _check_values(name, value, rule)
    return value


def _check_values(name: str, value: torch.Tensor, rule: str) -> None:
    """Refuse shares and decays that no rule allows, where looking at them costs nothing: on a CPU, not compiling."""
    if value.device.type != "cpu" or torch.compiler.is_compiling():
        return
    found = value.detach()
    allowed = {DECAY: (found > 0) & (found <= 1), SHARE: (found >= 0) & (found <= 2), "at most 0": found <= 0}[rule]
    if not bool(allowed.all()):  # written so that NaN fails
        raise ValueError(f"{name} must be {rule}, got {float(found[~allowed][0]):g}")


def _check_delta(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    beta: torch.Tensor,
    log_decay: torch.Tensor | None,
    state: torch.Tensor | None,
    token_mask: torch.Tensor | None,
) -> None:
    check_attention_inputs(q, k, v)
    if q.shape[2] != k.shape[2]:
        raise ValueError(f"q must hold as many tokens as k, got shapes {shape_of(q)} and {shape_of(k)}")
    if token_mask is not None:
        check_token_mask(token_mask, k, (k.shape[0], k.shape[2]))
    for name, value, rule in (("beta", beta, SHARE), ("log_decay", log_decay, "at most 0")):
        if value is not None or name == "beta":
            value = check_tensor(name, value, tuple(k.shape[:3]))
            check_same_device_and_dtype(name, value, "q", q)
            seen = value if token_mask is None else value[token_mask[:, None].expand_as(value)]
            _check_values(name, seen, rule)
    if state is not None:
        check_tensor("state", state, (*k.shape[:2], k.shape[3], v.shape[3]))
        if state.device != q.device or not state.dtype.is_floating_point:
            raise ValueError(
                f"state must be real numbers on the device of q, {q.device}, got {state.dtype} on {state.device}"
            )
