"""The timing of whole layers and of decoding, on a CPU with tiny sizes, and its deadline."""

import math

import pytest
import torch
from torch.nn import functional

from measure.harness import wall_clock
from measure.speed import whole_layers as script

CPU = torch.device("cpu")
SIZES = script.SHORT


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_times_every_cell():
    """Every cell has its row; what a CPU cannot do, gradients of FlexAttention and graphs, says so there."""
    rows, left_out = script.carry_out(SIZES, CPU, wall_clock, math.inf)
    assert [tuple(row[name] for name in script.Cell._fields) for row in rows] == script.cells(SIZES)
    assert not left_out
    for row in rows:
        refused = "graph" in row["method"] or (
            "window" in row["method"] and row["mode"] == "forward+backward"
        )
        assert ("error" in row) == refused, row
        assert refused or 0 < min(row["seconds"])
        assert ("tokens_a_second" in row) == (row["series"] == "decoding")


def test_deadline_names_rest(capsys):
    rows, left_out = script.carry_out(SIZES, CPU, wall_clock, -1)
    assert (rows, left_out) == ([], script.cells(SIZES))
    assert f"{len(left_out)} cells are left out" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_window_is_a_mask():
    n, place = SIZES.lengths[0], torch.arange(SIZES.lengths[0])
    q, k, v = torch.randn(3, 1, 2, n, 16)
    mask = (place[:, None] - place).abs() <= SIZES.near
    expected = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    torch.testing.assert_close(script.window(n, SIZES.near, CPU)(q, k, v), expected)


@pytest.mark.parametrize("name", ["groups", "latents", "window", "state"])
def test_decodes_by_formula(name, monkeypatch):
    """One token, computed again in double precision from the same cache, head by head."""
    caches = []
    draw = torch.randn
    monkeypatch.setattr(
        torch, "randn", lambda *shape, **kind: caches.append(draw(*shape, **kind)) or caches[-1]
    )
    work = script.decoding(
        script.Cell("decoding", name, "forward", 2, 24), SIZES, CPU, torch.float32
    )
    parts = [part[1].double() for part in caches]
    out = work(0)[1].double()
    for head in (0, 31):
        if name == "state":
            s, q, k, v = (part[head] for part in parts)
            k, s = k / math.sqrt(128), 0.99 * s
            expected = q[:, 0] @ (s + 0.5 * k * (v - k.T @ s))
        elif name == "latents":
            q, c = parts[0][head], parts[1]
            expected = (c @ q / math.sqrt(192)).softmax(0) @ c[:, :512]
        else:
            q, k, v = parts[0][head, 0], parts[1][head // 4], parts[2][head // 4]
            expected = (k @ q / math.sqrt(128)).softmax(0) @ v
        torch.testing.assert_close(out[head].reshape(-1), expected, rtol=1e-3, atol=1e-3)
