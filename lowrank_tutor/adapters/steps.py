"""Step on a gradient by matrix products.

They lead toward its best approximation, or toward equal singular values.
"""

import torch
from torch import Tensor

from lowrank_tutor._checks import check_integer
from lowrank_tutor._tensors import check_floating, check_like, check_tensor

MUON = (3.4445, -4.7750, 2.0315)  # Muon's a, b and c


def power_step(m: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    r"""Approximate a gradient by rank r from a guess.

    First $C = \operatorname{orth}(G F^\top)$, then $F = C^\top G$. The product $C F$ is $G$
    projected onto the columns of $C$, which are orthonormal; r is at most min(m, n). Repeated with
    the new F this is subspace iteration. For a fixed G it tends to the best approximation, unless
    the guess has no part in one of its directions. It is Algorithm 1 of Vogels, Karimireddy and
    Jaggi (2019), arXiv:1905.13727, which writes M, P and Q for $G$, $C$ and $F^\top$, as the code
    does.

    From a gradient ``m`` (m, n) and ``q`` (n, r), a guess of r directions or what the last step
    returned, come ``p`` (m, r) and the next ``q`` (n, r). The approximation is ``p @ q.T``.

    >>> import torch
    >>> p, q = power_step(torch.diag(torch.tensor([2.0, 1.0])), torch.tensor([[1.0], [0.0]]))
    >>> (p @ q.T).abs()
    tensor([[2., 0.],
            [0., 0.]])
    """
    check_floating("m", check_tensor("m", m, ("m", "n")))
    r = check_like("q", q, (m.shape[1], "r"), "m", m).shape[1]
    if not 1 <= r <= min(m.shape):
        raise ValueError(f"q must have between 1 and {min(m.shape)} columns, got {r}")
    wide = torch.promote_types(m.dtype, torch.float32)
    matrix = m.to(wide)
    p = torch.linalg.qr(_unit(matrix) @ _unit(q.to(wide))).Q
    return p.to(m.dtype), (matrix.mT @ p).to(m.dtype)


def newton_schulz(x: Tensor, steps: int = 5) -> Tensor:
    r"""Push all singular values of matrices ``x`` (..., m, n) toward 1: Muon's step.

    From $X / \|X\|_F$ on, each step is $X \leftarrow a X + (b X X^\top + c (X X^\top)^2) X$. It
    maps each singular value by $\sigma \leftarrow a \sigma + b \sigma^3 + c \sigma^5$ and keeps the
    singular vectors and the rank. Muon's coefficients a, b and c do not converge to 1 but come near
    it fast (Jordan et al., 2024, https://kellerjordan.github.io/posts/muon/). Zeros stay zeros.
    Optimizers also scale the step, by $\sqrt{\max(1, m / n)}$ in PyTorch.

    >>> import torch
    >>> newton_schulz(torch.tensor([[3.0, 0.0], [0.0, 0.1]])).diagonal()
    tensor([0.6970, 1.1288])
    """
    check_floating("x", check_tensor("x", x, ("...", "m", "n")))
    steps = check_integer(steps, "steps", 0)
    a, b, c = MUON
    tall = x.shape[-2] > x.shape[-1]
    y = x.mT if tall else x  # the smaller Gram matrix of the two
    if y.numel():
        y = _unit(y.to(torch.promote_types(x.dtype, torch.float32)))
        size = torch.linalg.matrix_norm(y, keepdim=True)
        y = (y / torch.where(size == 0, 1, size)).to(x.dtype)
    for _ in range(steps):
        gram = y @ y.mT
        y = a * y + (b * gram + c * gram @ gram) @ y
    return y.mT if tall else y


def _unit(x: Tensor) -> Tensor:
    """Divide each matrix by its largest entry, so that no product overflows or vanishes."""
    largest = x.detach().abs().amax(dim=(-2, -1), keepdim=True)
    return x / torch.where(largest == 0, 1, largest)
