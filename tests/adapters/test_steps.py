"""Power steps and Muon's map, against the singular value decomposition of NumPy."""

import numpy as np
import pytest
import torch
from attentions import tensors

from lowrank_tutor.adapters import newton_schulz, power_step
from lowrank_tutor.svd import best_rank_k


def test_power_steps_converge():
    m, q = tensors((9, 7), (7, 3))
    for _ in range(300):
        p, q = power_step(m, q)
    np.testing.assert_allclose(p @ q.mT, best_rank_k(m.numpy(), 3), atol=1e-10)
    torch.testing.assert_close(p.mT @ p, torch.eye(3, dtype=torch.float64), rtol=0, atol=1e-14)


@pytest.mark.parametrize("columns", [0, 8])
def test_bad_steps(columns):
    with pytest.raises(ValueError, match=r"^q must have between 1 and 7 columns, got"):
        power_step(torch.ones(9, 7), torch.ones(7, columns))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_steps_keep_types(dtype):
    m, q = tensors((9, 7), (7, 3))
    p, new = power_step(m.to(dtype), q.to(dtype))
    assert (p.dtype, new.dtype, newton_schulz(m.to(dtype)).dtype) == (dtype,) * 3
    assert (
        p.double() @ new.double().mT - (lambda a, b: a @ b.mT)(*power_step(m, q))
    ).norm() < 0.1 * m.norm()


def test_newton_schulz_bounds():
    x = torch.linspace(0.01, 1, 2000, dtype=torch.float64)
    for _ in range(5):
        x = 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5
    assert 0.67 < x.min() < x.max() < 1.14
    batch = tensors((5, 6, 4))[0]
    batch[3] *= 1e-200  # each matrix has a unit of its own
    torch.testing.assert_close(newton_schulz(batch)[3], newton_schulz(batch[3]))
