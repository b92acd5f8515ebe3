"""Linformer for the tests: equation 7 and both rules for padding in plain loops, and the layer in
the slow order.
"""

import math

import numpy as np
import torch
from attentions import tensors
from hypothesis import strategies as st
from torch import nn

from lowrank_tutor.linformer import LinformerSelfAttention

SHARINGS = ["key-value", "headwise"]
ENTRIES = st.sampled_from(
    [0.0, 0.0, 0.0, 1.0, -0.5, 2.0]
)  # so that rows meet no real token, or are zeros


def array(x):
    return x.detach().double().numpy()


def rule_by_loops(row, real, rule=None):
    """Return what row j is multiplied with, and its share: 0 where it meets no real token, 1 for a
    row of zeros.
    """
    power = {"sum": 1, "norm": 2}[rule or ("sum" if min(row) >= 0 else "norm")]
    whole, seen = sum(abs(x) ** power for x in row), sum(abs(row[t]) ** power for t in real)
    return (
        (1.0, 1.0)
        if whole == 0
        else ((whole / seen) ** (1 / power), seen / whole)
        if seen > 0
        else (0.0, 0.0)
    )


def by_loops(q, k, v, e, f=None, mask=None, rule=None):
    """Compute the paper's equation 7 with the rules for padding, number by number, in float64."""
    q, k, v, e, f = (array(x) for x in (q, k, v, e, e if f is None else f))
    out = np.zeros((*q.shape[:3], v.shape[3]))
    for b, h in np.ndindex(q.shape[:2]):
        real = [t for t in range(k.shape[2]) if mask is None or mask[b, t]]
        mixtures = []
        for row_e, row_f in zip(e, f, strict=True):
            (scale_e, share_e), (scale_f, share_f) = (
                rule_by_loops(row, real, rule) for row in (row_e, row_f)
            )
            if share_e > 0 and share_f > 0:
                key = sum((scale_e * row_e[t] * k[b, h, t] for t in real), np.zeros(k.shape[3]))
                value = sum((scale_f * row_f[t] * v[b, h, t] for t in real), np.zeros(v.shape[3]))
                mixtures.append((min(share_e, share_f), key, value))
        for i in range(q.shape[2] if mixtures else 0):
            scores = [sum(q[b, h, i] * key) / math.sqrt(k.shape[3]) for _, key, _ in mixtures]
            weights = [
                share * math.exp(score - max(scores))
                for score, (share, *_) in zip(scores, mixtures, strict=True)
            ]
            out[b, h, i] = sum(
                w * value for w, (*_, value) in zip(weights, mixtures, strict=True)
            ) / sum(weights)
    return out


def layer_by_loops(layer, x, mask=None):
    """The whole layer in the slow order: keys and values of all tokens first, then E K and F V.
    Short is padded.
    """
    batch, n, dim = x.shape
    real = torch.zeros(batch, layer.max_len, dtype=torch.bool)
    real[:, :n] = True if mask is None else mask
    padded = torch.zeros(batch, layer.max_len, dim, dtype=torch.float64)
    padded[:, :n] = x.detach().masked_fill(~real[:, :n, None], 0)
    made = (
        (padded @ part.weight.detach().double().T, part.bias)
        for part in (layer.to_q, layer.to_k, layer.to_v)
    )
    made = (part if bias is None else part + bias.detach().double() for part, bias in made)
    q, k, v = (part.view(batch, layer.max_len, layer.heads, -1).transpose(1, 2) for part in made)
    mixed = (
        by_loops(q, k, v, layer.e, layer.f, real, layer.rule)
        .transpose(0, 2, 1, 3)
        .reshape(batch, layer.max_len, dim)
    )
    out = mixed @ array(layer.to_out.weight).T + array(layer.to_out.bias)
    return np.where(real[:, :, None], out, 0)[:, :n]


def layer_of(dim=6, heads=2, max_len=8, k=3, **options):
    """A layer in float64; the bias that starts at zero is drawn, so that leaving it out is seen."""
    options = {"dtype": torch.float64, "generator": torch.Generator().manual_seed(0)} | options
    layer = LinformerSelfAttention(dim, heads, max_len, k, **options)
    if layer.to_out.bias.device.type == "cpu":
        with torch.no_grad():
            layer.to_out.bias.copy_(tensors((dim,), seed=9)[0])
    return layer


def exact_attention(bias=True, **options):
    """PyTorch's own, with biases that matter."""
    mha = nn.MultiheadAttention(6, 2, bias=bias, batch_first=True, dtype=torch.float64, **options)
    with torch.no_grad():
        for seed, part in enumerate(mha.parameters()):
            part.copy_(0.5 * tensors(tuple(part.shape), seed=seed)[0])
    return mha


def lengths(*numbers, n=None):
    """A mask of sequences that begin with so many real tokens."""
    return torch.arange(max(numbers) if n is None else n) < torch.tensor(numbers)[:, None]


def nearly_the_identity(eps, dtype=torch.float64):
    """I + eps G: where tokens are hidden, a share of eps^2 or so is left of their rows."""
    return torch.eye(6, dtype=dtype) + eps * tensors((6, 6), seed=5, dtype=dtype)[0]
