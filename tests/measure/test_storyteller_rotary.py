"""Rotated keys that share their rotation: the theorem, cuts of what stands still, and a short run."""

import sys

import torch
from attentions import tensors

from lowrank_tutor import storyteller
from measure.training import storyteller_rotary as study


def test_mixing_commutes():
    """Whatever is mixed, attention is the same if all turns; and heads with the same keys need the turns of one."""
    x, one, weight, q, v = (
        t.float() for t in tensors((50, 64), (16, 64), (64, 64), (1, 4, 50, 16), (1, 4, 50, 16))
    )
    few = torch.zeros(4, 8, dtype=torch.bool)
    few[0] = True
    for made, turning in ((weight, few | True), (one.repeat(4, 1), few)):
        k, moment = (x @ made.T).view(1, 50, 4, 16).transpose(1, 2), x.T @ x / 50
        mix = study.principal(made, moment)
        assert torch.equal(study.choose(made, moment, mix, int(turning.sum())), turning)
        exact = study.rotary(q, k, v)
        torch.testing.assert_close(
            study.attend(q, k, v, mix=mix, turning=turning), exact, atol=1e-3, rtol=1e-3
        )
        assert (study.attend(q, k, v, mix=mix, turning=turning & False) - exact).abs().max() > 0.1


@torch.no_grad()
def test_latents():
    """Whole latents change nothing; narrow ones leave what turns alone, and join the rest and the values."""
    layer, moment, turning = (
        storyteller.load().layers[0],
        torch.eye(64),
        torch.zeros(4, 8, dtype=torch.bool),
    )
    turning[0, :5] = True
    mix = study.principal(layer.k.weight, moment)
    for rank in (64, 20):
        weights = study.with_latent(layer, moment, mix, turning, rank)
        assert (
            max((weights[part] - getattr(layer, part).weight).abs().max() for part in "kv") < 1e-4
        ) == (rank == 64)
    new, old = (study.mixed(weight, mix) for weight in (weights["k"], layer.k.weight))
    torch.testing.assert_close(new[turning], old[turning], atol=1e-5, rtol=1e-5)
    assert (
        torch.linalg.matrix_rank(torch.cat([new[~turning].flatten(0, 1), weights["v"]]), rtol=1e-5)
        == 20
    )


def test_short_run(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["storyteller_rotary", "--short"])
    monkeypatch.setattr(study, "TURNING", (0, 4))
    assert study.main() == 0
    assert capsys.readouterr().out.count("'turning'") == 4 + len(study.LATENTS)
