"""What attention, states, latents and adapters promise, swept over small sizes on both sides of
every border.

A row is a public function, a promise, and the axes on which it might break. Judges are plain NumPy
in float64.
"""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from attentions import linear_of, moved, said, tensors
from linformers import array, exact_attention
from linformers import by_loops as linformer_by_loops
from torch import nn
from torch.nn import functional
from torch.nn.utils import prune

from lowrank_tutor.adapters import (
    LoraLinear,
    compress,
    inject_lora,
    input_moments,
    load_lora,
    lora_state,
    merge_lora,
    newton_schulz,
    power_step,
    without_lora,
)
from lowrank_tutor.attention import (
    CHUNK,
    attention_weights,
    linear_attention,
    performer_attention,
    softmax_attention,
)
from lowrank_tutor.caches import latent_attention
from lowrank_tutor.layers import (
    LinformerCrossAttention,
    LinformerEncoderLayer,
    from_layer,
    from_mha,
    resized,
)
from lowrank_tutor.linformer import LinformerSelfAttention, linformer_attention, pooling_projection
from lowrank_tutor.states import (
    BLOCK,
    block_ranks,
    causal_decay,
    delta_attention,
    linear_state,
    recall_error,
    window_attention,
    wy,
)

ROWS = []
DTYPES = {
    torch.float64: 1e-11,
    torch.float32: 2e-5,
    torch.bfloat16: 0.03,
    torch.float16: 0.004,
}  # and bounds of errors
WIDE = [torch.float64, torch.float32]
MASKS = [None, "all real", "right padding", "left padding", "holes", "a hidden sequence"]
LENGTHS = [1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 1]


def promise(function, says, **axes):
    """Add a row: its check runs for every combination of the values on its axes."""

    def add(check):
        ROWS.append(pytest.param(check, axes, id=f"{function}: {says}"))
        return check

    return add


def near(found, expected, bound=1e-11, unit=None):
    """The largest error is below a share of the largest number, or of 1."""
    found, expected = (array(x) if torch.is_tensor(x) else np.asarray(x) for x in (found, expected))
    assert found.shape == expected.shape
    unit = max(1.0, np.abs(expected).max(initial=0)) if unit is None else unit
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound * unit)


def a_mask(name, batch, n):
    """Every row hides tokens of its own; of one token, none or the sequence."""
    t, row = torch.arange(n), torch.arange(batch)[:, None]
    some = (n // 3 + row).clamp(max=n - 1)
    return {
        None: None,
        "all real": torch.ones(batch, n, dtype=torch.bool),
        "right padding": t < n - some,
        "left padding": t >= some,
        "holes": (t + row) % 3 > 0,
        "a hidden sequence": (row < batch - 1).expand(batch, n),
    }[name]


# functions of queries, keys and values


DIRECTIONS = tensors((7, 3), seed=99)[0]
WEIGHTS = dict(
    zip(
        ("w_dkv", "w_uk", "w_uv", "w_q"),
        tensors((6, 5), (2, 5, 3), (2, 5, 2), (4, 6, 3)),
        strict=True,
    )
)
WEIGHTS = {name: weight / 3 for name, weight in WEIGHTS.items()}
ONE_GROUP = {name: WEIGHTS[name][:1] for name in ("w_uk", "w_uv")}


def performer(q, k, v, **options):
    features = DIRECTIONS.to(q.device, torch.promote_types(q.dtype, torch.float32))
    return performer_attention(q, k, v, features=features, **options)


@functools.cache
def mixing(n):
    return tensors((min(n, 3), n), seed=5)[0] / math.sqrt(n)


def linformer(q, k, v, **options):
    n = k.shape[2]
    e = mixing(n).to(q)
    return linformer_attention(q, k, v, e.abs(), e, **options)


CAUSAL = {"causal": True}
# What a function takes of each token, and its other arguments.
FUNCTIONS = {
    "softmax_attention": (softmax_attention, "q k v", {}),
    "softmax_attention, causal": (softmax_attention, "q k v", CAUSAL),
    "linear_attention": (linear_attention, "q k v", {}),
    "linear_attention, causal": (linear_attention, "q k v", CAUSAL),
    "performer_attention": (performer, "q k v", {}),
    "performer_attention, causal": (performer, "q k v", CAUSAL),
    "linformer_attention": (linformer, "q k v", {}),
    "delta_attention": (delta_attention, "q k v beta", {}),
    "delta_attention, a decay": (delta_attention, "q k v beta log_decay", {"chunk": 3}),
    "delta_attention, decays": (delta_attention, "q k v beta log_decays", {"chunk": 5}),
    "window_attention": (window_attention, "q k v", {"window": 3, "m": 2}),
    "window_attention, one vote": (
        window_attention,
        "q k v",
        {"window": 2, "m": 3, "votes": False},
    ),
    "latent_attention": (latent_attention, "x q_rope k_rope", WEIGHTS),
    "latent_attention, anew": (latent_attention, "x q_rope k_rope", WEIGHTS | {"absorb": False}),
    "latent_attention, both ways": (latent_attention, "x", WEIGHTS | ONE_GROUP | {"causal": False}),
}
WITH_STATE = ("linear_attention, causal", "delta", "window", "latent")
STREAMS = [name for name in FUNCTIONS if name.startswith(WITH_STATE) and "both ways" not in name]


class Tokens:
    """Numbers of each token of a batch, by the names of arguments, and a function of them."""

    def __init__(self, name, n, batch=2, groups=2, dtype=torch.float64, seed=0):
        self.function, names, options = FUNCTIONS[name]
        self.name, self.n, self.batch, self.groups = name, n, batch, groups
        heads = 2 * groups
        q, k, v, beta, decay, decays = tensors(
            (batch, heads, n, 3), (batch, groups, n, 3), (batch, groups, n, 2), (batch, groups, n),
            (batch, groups, n),
            (batch, groups, n, 3), seed=seed,
        )  # fmt: skip
        x, q_rope, k_rope = tensors((batch, n, 6), (batch, 4, n, 2), (batch, n, 2), seed=seed + 1)
        drawn = {"q": q, "k": k, "v": v, "beta": 2 * beta.sigmoid(), "log_decay": -decay.exp()}
        drawn |= {"log_decays": -decays.exp(), "x": x, "q_rope": q_rope, "k_rope": k_rope}
        if self.function is delta_attention:
            drawn["k"] = functional.normalize(k, dim=3)
        self.tokens = {name: drawn[name].to(dtype) for name in names.split()}
        self.options = {
            name: part.to(dtype) if torch.is_tensor(part) else part
            for name, part in options.items()
        }

    @staticmethod
    def axis(name):
        return 1 if name in ("x", "k_rope") else 2

    def call(self, tokens=None, **more):
        given = dict(self.tokens if tokens is None else tokens)
        if "log_decays" in given:
            given["log_decay"] = given.pop("log_decays")
        return self.function(**given, **self.options, **more)

    def part(self, start, end, rows=slice(None)):
        return {
            name: part[rows].narrow(self.axis(name), start, end - start)
            for name, part in self.tokens.items()
        }

    def filled(self, hidden, value):
        """The same with ``value`` in hidden tokens, but for queries, whose own outputs it would
        change.
        """
        return {
            name: part if name == "q"
            else part.masked_fill(hidden.view(hidden.shape[0], *[1] * (self.axis(name) - 1), self.n,
                                              *[1] * (part.ndim - self.axis(name) - 1)), value)
            for name, part in self.tokens.items()
        }  # fmt: skip


def averaged(logs, v, mask, causal):
    """The values (b, h, n, d_v), averaged by weights given as logarithms (b, h, n_queries, n)."""
    n_queries, n = logs.shape[2:]
    seen = (
        np.ones(logs.shape, dtype=bool)
        if mask is None
        else np.broadcast_to(mask[:, None, None], logs.shape)
    )
    if causal:
        seen = seen & np.tri(n_queries, n, n - n_queries, dtype=bool)
    logs = np.where(seen, logs, -np.inf)
    largest = logs.max(axis=3, keepdims=True)
    weights = np.exp(logs - np.where(np.isfinite(largest), largest, 0))
    total = weights.sum(axis=3, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ v


def log_features(name, x):
    if name == "linear":
        return np.where(x > 0, np.log1p(np.maximum(x, 0)), x)
    x = x / x.shape[3] ** 0.25
    return x @ DIRECTIONS.numpy().T - (x * x).sum(axis=3, keepdims=True) / 2


def log_weights(name, q, k):
    """Of softmax, or of the features of linear attention and Performer."""
    if name == "softmax":
        return q @ k.swapaxes(2, 3) / math.sqrt(q.shape[3])
    return np.logaddexp.reduce(
        log_features(name, q)[:, :, :, None] + log_features(name, k)[:, :, None], axis=4
    )


def delta_by_steps(q, k, v, beta, log_decay, mask=None, state=None):
    """The recurrence in float64; ``log_decay`` (b, h, n, 1 or d)."""
    q, k, v, beta, log_decay = (array(x) for x in (q, k, v, beta, log_decay))
    s = np.zeros((*k.shape[:2], k.shape[3], v.shape[3])) if state is None else array(state)
    out = []
    for t in range(k.shape[2]):
        new = np.exp(log_decay[:, :, t])[..., None] * s
        read = np.einsum("bhd,bhde->bhe", k[:, :, t], new)
        new = new + np.einsum("bhd,bhe->bhde", beta[:, :, t, None] * k[:, :, t], v[:, :, t] - read)
        s = new if mask is None else np.where(array(mask)[:, t, None, None, None] > 0, new, s)
        shared = s.repeat(q.shape[1] // s.shape[1], axis=1)
        out.append(np.einsum("bhd,bhde->bhe", q[:, :, t], shared))
    return np.stack(out, axis=2), s


def window_by_rows(q, k, v, window, m, votes, mask):
    """Each query by itself: means of groups that are over ``window`` tokens back, then the tokens
    after them.
    """
    q, k, v = (array(x) for x in (q, k, v))
    (batch, groups, n, _), n_queries = k.shape, q.shape[2]
    real = np.ones((batch, 1, n)) if mask is None else array(mask)[:, None]
    hidden = np.where(real == 0, -np.inf, 0)
    means = []
    for at in range(0, n - m + 1, m):
        here = real[:, :, at : at + m]
        some = here.sum(axis=2)
        share = (here / np.maximum(some, 1)[..., None])[..., None]
        vote = np.where(some == 0, -np.inf, np.log(np.maximum(some, 1)) if votes else 0.0)
        means.append([(share * part[:, :, at : at + m]).sum(axis=2) for part in (k, v)] + [vote])
    out = []
    for i in range(n - n_queries, n):
        cut = max(0, i + 1 - window) // m
        keys, values = (
            np.stack(
                [
                    *(mean[kind] for mean in means[:cut]),
                    *np.moveaxis(part[:, :, cut * m : i + 1], 2, 0),
                ],
                axis=2,
            )
            for kind, part in enumerate((k, v))
        )
        added = [*(mean[2] for mean in means[:cut]), *np.moveaxis(hidden, 2, 0)[cut * m : i + 1]]
        keys, values = (part.repeat(q.shape[1] // groups, axis=1) for part in (keys, values))
        at = i - n + n_queries
        logs = (
            log_weights("softmax", q[:, :, at : at + 1], keys) + np.stack(added, axis=2)[:, :, None]
        )
        out.append(averaged(logs, values, None, False))
    return np.concatenate(out, axis=2)


def judged(of, mask):
    """What a function promises for its tokens, by plain loops and tables."""
    tokens = {name: array(part) for name, part in of.tokens.items()}
    options = {name: array(x) if torch.is_tensor(x) else x for name, x in of.options.items()}
    hidden = None if mask is None else mask.numpy()
    if of.function is latent_attention:
        x, w = tokens["x"][:, None], options
        q, latents = x @ w["w_q"], x @ w["w_dkv"]
        k, v = ((latents @ w[name]).repeat(4 // len(w[name]), axis=1) for name in ONE_GROUP)
        if "q_rope" in tokens:
            q = np.concatenate([q, tokens["q_rope"]], axis=3)
            k = np.concatenate(
                [k, np.broadcast_to(tokens["k_rope"][:, None], (*k.shape[:3], 2))], axis=3
            )
        out = averaged(log_weights("softmax", q, k), v, hidden, options.get("causal", True))
        return out if mask is None else np.where(hidden[:, None, :, None], out, 0)
    heads = of.tokens["q"].shape[1] // of.groups
    if of.function is delta_attention:
        decays = of.tokens.get(
            "log_decays", of.tokens.get("log_decay", torch.zeros_like(of.tokens["beta"]))
        )
        decays = decays if decays.ndim == 4 else decays[..., None]
        return delta_by_steps(*(of.tokens[name] for name in ("q", "k", "v", "beta")), decays, mask)[
            0
        ]
    if of.function is window_attention:
        some = (of.options["window"], of.options["m"], of.options.get("votes", True))
        return window_by_rows(*(of.tokens[name] for name in "qkv"), *some, mask)
    q, k, v = tokens["q"], *(tokens[name].repeat(heads, axis=1) for name in "kv")
    if of.function is linformer:
        e = mixing(of.n).to(of.tokens["q"].dtype)
        return linformer_by_loops(*(torch.from_numpy(x) for x in (q, k, v)), e.abs(), e, mask)
    name = of.name.partition("_")[0]
    return averaged(log_weights(name, q, k), v, hidden, "causal" in of.name)


DENSE = [name for name in FUNCTIONS if not name.startswith(("window", "linformer"))]


def equals_its_judge(name, n, mask, dtype=torch.float64, batch=2, groups=2):
    of, mask = Tokens(name, n, batch, groups, dtype), a_mask(mask, batch, n)
    out = of.call(token_mask=mask)
    assert out.dtype == dtype
    near(out, judged(of, mask), DTYPES[dtype])


promise(
    "all", "equal plain loops at the borders of chunks", name=DENSE, n=LENGTHS, mask=[None, "holes"]
)(equals_its_judge)
promise(
    "all", "equal plain loops under every mask", name=list(FUNCTIONS), n=[1, 2, 7, 12], mask=MASKS
)(equals_its_judge)
promise("all", "equal plain loops in every type", name=list(FUNCTIONS), n=[1, 5, CHUNK + 2],
        mask=[None, "left padding"], dtype=list(DTYPES), batch=[1],
        groups=[2])(equals_its_judge)  # fmt: skip


@promise("all", "hidden tokens change nothing, whatever they hold", name=list(FUNCTIONS),
         n=[1, 6, CHUNK + 3], mask=MASKS[2:], poison=[math.nan, 1e30])  # fmt: skip
def hidden_change_nothing(name, n, mask, poison):
    of, real = Tokens(name, n), a_mask(mask, 2, n)
    results = []
    for tokens in (of.tokens, of.filled(~real, poison)):
        leaves = {key: part.clone().requires_grad_() for key, part in tokens.items()}
        out = of.call(leaves, token_mask=real)
        results.append([out, *torch.autograd.grad(out.square().sum(), [*leaves.values()])])
    for clean, dirty in zip(*results, strict=True):
        assert torch.equal(clean, dirty)
    gradients = dict(zip(of.tokens, results[0][1:], strict=True))
    for key in gradients.keys() - {"q"}:
        hidden = ~real.view(
            2, *[1] * (of.axis(key) - 1), n, *[1] * (gradients[key].ndim - of.axis(key) - 1)
        )
        assert not gradients[key].masked_select(hidden.expand_as(gradients[key])).any()


@promise("all", "padded equals alone", name=list(FUNCTIONS), n=[1, 5, CHUNK, BLOCK],
         more=[1, 6, CHUNK], left=[False, True])  # fmt: skip
def padded_equals_alone(name, n, more, left):
    if name.startswith("linformer") or (left and more % FUNCTIONS[name][2].get("m", 1)):
        return  # Linformer's columns belong to places, and groups of m begin where the padding does
    of = Tokens(name, n + more)
    start = more if left else 0
    real = (torch.arange(n + more) >= start) & (torch.arange(n + more) < start + n)
    out = of.call(of.filled(~real.expand(2, -1), 7.0), token_mask=real.expand(2, -1))
    near(out[:, :, start : start + n], of.call(of.part(start, start + n)))


@promise(
    "all", "sequences of a batch do not meet", name=list(FUNCTIONS), n=[1, 6, CHUNK + 1], mask=MASKS
)
def batches_split(name, n, mask):
    of, real = Tokens(name, n, batch=3), a_mask(mask, 3, n)
    rows = [
        of.call(
            of.part(0, n, slice(row, row + 1)),
            token_mask=None if real is None else real[row : row + 1],
        )
        for row in range(3)
    ]
    near(torch.cat(rows), of.call(token_mask=real))
    assert of.call(of.part(0, n, slice(0, 0))).shape[0] == 0
    pairs = {key: torch.stack([part, 0.5 * part]) for key, part in of.tokens.items()}
    mapped = torch.vmap(lambda tokens: of.call(tokens, token_mask=real))(pairs)
    for i in range(2):
        near(mapped[i], of.call({key: part[i] for key, part in pairs.items()}, token_mask=real))


@promise(
    "all",
    "forward mode agrees with backward",
    name=list(FUNCTIONS),
    n=[1, CHUNK + 1],
    mask=["holes"],
)
def forward_mode(name, n, mask):
    of, real = Tokens(name, n), a_mask(mask, 2, n)
    point, way = of.tokens, {key: part.cos() for key, part in of.tokens.items()}
    out, slope = torch.func.jvp(lambda tokens: of.call(tokens, token_mask=real), (point,), (way,))
    leaves = {key: part.clone().requires_grad_() for key, part in point.items()}
    gradients = torch.autograd.grad(
        (of.call(leaves, token_mask=real) * out).sum(), [*leaves.values()]
    )
    expected = sum((one * other).sum() for one, other in zip(gradients, way.values(), strict=True))
    near((slope * out).sum(), expected, 1e-9)


@promise(
    "all", "gradients are those of finite differences", name=list(FUNCTIONS), mask=[None, "holes"]
)
def finite_differences(name, mask):
    of, real = Tokens(name, 6), a_mask(mask, 2, 6)
    of.tokens |= {key: of.options.pop(key) for key in WEIGHTS.keys() & of.options.keys()}

    def total(tokens):
        out = of.call(tokens, token_mask=real)
        return (out * torch.arange(out.numel()).view(out.shape).cos()).sum()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lowrank_tutor.attention.CHUNK", 2)
        patch.setattr("lowrank_tutor.states.BLOCK", 4)
        leaves = {key: part.clone().requires_grad_() for key, part in of.tokens.items()}
        for key, gradient in zip(
            leaves, torch.autograd.grad(total(leaves), [*leaves.values()]), strict=True
        ):
            (way,) = tensors(gradient.shape, seed=7)
            ahead, back = (
                total(of.tokens | {key: of.tokens[key] + step * way}) for step in (1e-5, -1e-5)
            )
            near((ahead - back) / 2e-5, (gradient * way).sum(), 1e-7)


@promise(
    "all",
    "autocast changes no more than rounding, and nothing where sums are our own",
    name=list(FUNCTIONS),
)
def under_autocast(name):
    of, real = Tokens(name, CHUNK + 2, dtype=torch.float32), a_mask("holes", 2, CHUNK + 2)
    plain, (first, *others) = of.call(token_mask=real), of.tokens
    with torch.autocast("cpu", torch.bfloat16):
        out = of.call(token_mask=real)
        mixed = of.call(
            {first: of.tokens[first]} | {key: of.tokens[key].bfloat16() for key in others},
            token_mask=real,
        )
    if name.startswith(("linear", "performer", "delta")):
        assert torch.equal(out, plain)
    for found in (out, mixed):
        assert found.dtype == torch.float32
        near(found, plain, 0.05)


@promise("all", "arguments stay as they are, and a meta tensor gives the shape",
         name=list(FUNCTIONS), mask=[None, "holes"])  # fmt: skip
def arguments_and_shapes(name, mask):
    of, real = Tokens(name, CHUNK + 5), a_mask(mask, 2, CHUNK + 5)
    before = {key: part.clone() for key, part in of.tokens.items()}
    out = of.call(token_mask=real).fill_(7)
    assert all(torch.equal(part, before[key]) for key, part in of.tokens.items())
    of.tokens, of.options = (
        {key: part.to("meta") if torch.is_tensor(part) else part for key, part in given.items()}
        for given in (of.tokens, of.options)
    )
    there = of.call(token_mask=None if real is None else real.to("meta"))
    assert (there.is_meta, there.shape) == (True, out.shape)


FORWARD = [
    name for name in FUNCTIONS if "causal" in name or name.startswith(("delta", "window", "latent"))
]


@promise("causal forms", "no later token changes an earlier output", name=FORWARD[:-1],
         n=[2, CHUNK + 1], scale=[1.0, 1e3])  # fmt: skip
def future_is_unseen(name, n, scale):
    """Keys are so long that a shift by the largest of all would leave only zeros before them."""
    of, others = Tokens(name, n), Tokens(name, n, seed=50).tokens
    # Longer keys would make the state of the delta rule grow.
    long = "qvx" if name.startswith("delta") else "qkvx"
    out = of.call()
    for place in {n - 1, n // 2, min(CHUNK, n - 1)}:
        tokens = {
            key: torch.cat([part.narrow(of.axis(key), 0, place),
                            (scale if key in long else 1) * others[key].narrow(of.axis(key), place,
                                                                               n - place)],
                           dim=of.axis(key))
            for key, part in of.tokens.items()
        }  # fmt: skip
        changed = of.call(tokens)
        near(changed[:, :, :place], out[:, :, :place])
        if name.startswith(("linear", "performer")):  # not even the last bit
            assert torch.equal(changed[:, :, :place], out[:, :, :place])
            assert torch.isfinite(changed).all()
        assert not torch.allclose(changed[:, :, place:], out[:, :, place:])


ROUNDS = [
    name
    for name in FUNCTIONS
    if "causal" not in name and name.startswith(("softmax", "linear_", "performer", "linformer"))
]


@promise("without causal", "queries may be fewer or more than keys", name=ROUNDS,
         n=[1, 6, CHUNK + 1], n_queries=[0, 1, 3, CHUNK + 2], mask=MASKS)  # fmt: skip
def other_numbers_of_queries(name, n, n_queries, mask):
    of, real = Tokens(name, n), a_mask(mask, 2, n)
    of.tokens["q"] = tensors((2, 4, n_queries, 3), seed=3)[0]
    near(of.call(token_mask=real), judged(of, real))


@promise("attention_weights", "are a distribution over real keys, and those of softmax_attention",
         n=[1, 2, 7], n_queries=[1, 5], mask=MASKS, dtype=list(DTYPES), groups=[1, 2])  # fmt: skip
def weights_of_softmax(n, n_queries, mask, dtype, groups):
    q, k, v = (
        x.to(dtype) for x in tensors((2, 2, n_queries, 3), (2, groups, n, 3), (2, groups, n, 2))
    )
    real = a_mask(mask, 2, n)
    weights = attention_weights(q, k, token_mask=real)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(attention_weights(q, k, token_mask=real), weights)
    assert attention_weights(q.to("meta"), k.to("meta")).shape == weights.shape
    assert (weights >= 0).all()
    seen = np.ones((2, n)) if real is None else array(real)
    assert not (array(weights) * (1 - seen)[:, None, None]).any()
    near(
        weights.double().sum(dim=3),
        np.broadcast_to(seen.any(axis=1)[:, None, None], (2, 2, n_queries)),
        DTYPES[dtype],
    )
    mixed = array(weights) @ array(v).repeat(2 // groups, axis=1)
    near(softmax_attention(q, k, v, token_mask=real), mixed, DTYPES[dtype])
    if dtype == torch.float64:
        leaves, every = (
            [x.clone().requires_grad_() for x in (q, k)],
            v.repeat_interleave(2 // groups, dim=1),
        )
        outs = (
            softmax_attention(*leaves, v, token_mask=real),
            attention_weights(*leaves, token_mask=real) @ every,
        )
        for one, other in zip(
            *(torch.autograd.grad(out.square().sum(), leaves) for out in outs), strict=True
        ):
            near(one, other)


@promise("linear_attention",
         "nothing vanishes or overflows, however far below zero keys and queries lie",
         below=[0, 100, 700, 1e4, 1e30], causal=[False, True], mask=[None, "holes"],
         dtype=WIDE)  # fmt: skip
def far_below_zero(below, causal, mask, dtype):
    q, k, v = tensors((2, 1, 9, 3), (2, 1, 9, 3), (2, 1, 9, 2))
    real = a_mask(mask, 2, 9)
    deep = k.abs() * 0 - below if below == 1e30 else k - below
    out = linear_attention(
        *(x.to(dtype) for x in (q - below, deep, v)), causal=causal, token_mask=real
    )
    logs = log_weights("linear", *(x.to(dtype).double().numpy() for x in (q - below, deep)))
    near(
        out,
        averaged(
            logs, v.to(dtype).double().numpy(), None if real is None else real.numpy(), causal
        ),
        1e3 * DTYPES[dtype],
    )


@promise("linear_attention",
         "features that are large in queries are small in keys, up to the bound of the causal form",
         apart=[0, 20, 30, 300], causal=[False, True], mask=[None, "holes"],
         dtype=WIDE)  # fmt: skip
def features_apart(apart, causal, mask, dtype):
    if causal and dtype == torch.float32 and apart > 30:
        return  # beyond e^-39
    q, k, v = tensors((1, 2, CHUNK + 9, 4), (1, 2, CHUNK + 9, 4), (1, 2, CHUNK + 9, 2), dtype=dtype)
    q[..., :2] -= apart
    k[..., 2:] -= apart
    real = a_mask(mask, 1, CHUNK + 9)
    expected = averaged(log_weights("linear", array(q), array(k)), array(v),
                        None if real is None else array(real) > 0, causal)  # fmt: skip
    near(linear_attention(q, k, v, causal=causal, token_mask=real), expected, DTYPES[dtype])


@promise("performer_attention",
         "a query and its keys never share only zeros, however long they are",
         length=[1, 10, 30, 100, 1e4], causal=[False, True], mask=[None, "holes"],
         dtype=WIDE)  # fmt: skip
def long_keys(length, causal, mask, dtype):
    shape = (2, 1, CHUNK + 9, 3)
    q, k, v = (
        scale * x.to(dtype)
        for x, scale in zip(tensors(shape, shape, shape), (length, length, 1), strict=True)
    )
    near(performer(q, k, torch.ones_like(k), causal=causal), np.ones(k.shape), DTYPES[dtype])
    if length <= 30:  # beyond that, exponents have no digits left
        real = a_mask(mask, 2, CHUNK + 9)
        expected = averaged(log_weights("performer", array(q), array(k)), array(v),
                            None if real is None else real.numpy(), causal)  # fmt: skip
        near(performer(q, k, v, token_mask=real, causal=causal), expected, 1e3 * DTYPES[dtype])


# token by token


def in_pieces(of, mask, lengths):
    """The outputs of pieces side by side, each from the state that the last one left."""
    outputs, state, start = [], None, 0
    for length in lengths:
        more = {} if mask is None else {"token_mask": mask[:, start : start + length]}
        out, state = of.call(of.part(start, start + length), state=state, return_state=True, **more)
        outputs.append(out)
        start += length
    return torch.cat(outputs, dim=2), state


def compositions(n):
    """Every way to cut n tokens."""
    for cuts in itertools.product([False, True], repeat=n - 1):
        places = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), n]
        yield tuple(b - a for a, b in itertools.pairwise(places))


def parts_of(state):
    return [state] if torch.is_tensor(state) else [*state]


def states_carry_on(name, lengths, mask, dtype=torch.float64, groups=2):
    of = Tokens(name, sum(lengths), dtype=dtype, groups=groups)
    real = a_mask(mask, 2, of.n)
    out, state = in_pieces(of, real, lengths)
    near(out, of.call(token_mask=real), DTYPES[dtype])
    _, whole = of.call(token_mask=real, return_state=True)
    for part, expected in zip(parts_of(state), parts_of(whole), strict=True):
        near(part.double(), expected.double(), DTYPES[dtype])
        if of.function is delta_attention:
            assert part.dtype == torch.promote_types(dtype, torch.float32)


promise("functions with a state", "every cut gives the whole", name=STREAMS,
        lengths=[*compositions(5)],
        mask=[None, "holes", "a hidden sequence"])(states_carry_on)  # fmt: skip
promise("functions with a state", "cuts at chunks and blocks give the whole", name=STREAMS,
        lengths=[(CHUNK - 1, 2), (CHUNK, 1), (CHUNK + 1, CHUNK), (1, BLOCK), (BLOCK, 1),
                 (BLOCK + 1, 5, BLOCK)],
        mask=[None, "holes"])(states_carry_on)  # fmt: skip
promise("functions with a state", "every type carries on", name=STREAMS,
        lengths=[(3, 4), (1, 1, 5)], mask=[None],
        dtype=[torch.float32, torch.bfloat16])(states_carry_on)  # fmt: skip


@promise("functions with a state", "gradients go through it", name=STREAMS,
         lengths=[(1,) * 9, (7, 1, 1)], mask=[None, "holes"])  # fmt: skip
def gradients_through_states(name, lengths, mask):
    of, real = Tokens(name, 9), a_mask(mask, 2, 9)
    leaves = of.tokens = {key: part.requires_grad_() for key, part in of.tokens.items()}
    totals = (
        out.square().sum() for out in (in_pieces(of, real, lengths)[0], of.call(token_mask=real))
    )
    for cut, whole in zip(
        *(torch.autograd.grad(total, [*leaves.values()]) for total in totals), strict=True
    ):
        near(cut, whole, 1e-9)


KEPT = [
    (2, 2, 4, 3),
    (2, 2, 4, 2),
    (2, 1, 4, 4),
    (2, 2, 4, 3),
    (2, 2, 4, 2),
    (2, 1, 4, 1),
]  # 4 means, 4 tokens
SHAPES = {  # of the states of 20 tokens
    "linear_attention, causal": ({}, [(2, 2, 3, 3), (2, 2, 1, 1)]),
    "delta_attention": ({}, [(2, 2, 3, 2)]),
    "window_attention": ({"window": 3, "m": 4}, KEPT),
    "latent_attention": ({}, [(2, 20, 7), (2, 20)]),
}


@promise("functions with a state",
         "it is as small as promised, and holds no memory of the caller's", name=list(SHAPES),
         mask=[None, "all real"])  # fmt: skip
def shapes_of_states(name, mask):
    of, (options, shapes), real = Tokens(name, 20), SHAPES[name], a_mask(mask, 2, 20)
    of.options = of.options | options
    state = parts_of(of.call(token_mask=real, return_state=True)[1])
    assert [tuple(part.shape) for part in state] == shapes
    given = [real] * (mask is not None) + [part for part in of.tokens.values()]
    memory = {part.untyped_storage().data_ptr() for part in given}
    for part in state:
        assert part.untyped_storage().data_ptr() not in memory
        assert part.untyped_storage().nbytes() <= CHUNK * part.numel() * part.element_size()
    numbers = [part.clone() for part in state]
    for part in given:
        part.zero_()
    assert all(torch.equal(one, other) for one, other in zip(state, numbers, strict=True))


@promise(
    "functions with a state",
    "sequences may change places, and the state be of a wider type",
    name=STREAMS,
)
def reordered_and_wider(name):
    of, order, real = Tokens(name, 9), torch.tensor([1, 0]), a_mask("holes", 2, 9)
    _, state = of.call(of.part(0, 6), token_mask=real[:, :6], return_state=True)
    moved = state[order] if torch.is_tensor(state) else [part[order].double() for part in state]
    out, _ = of.call(of.part(6, 9), token_mask=real[:, 6:], state=state, return_state=True)
    other, _ = of.call(
        of.part(6, 9, order), token_mask=real[order, 6:], state=moved, return_state=True
    )
    near(other, out[order])
    narrow = Tokens(name, 9, dtype=torch.float32)
    near(
        narrow.call(narrow.part(6, 9), token_mask=real[:, 6:], state=state, return_state=True)[0],
        out,
        1e-5,
    )


STRENGTHS = [0.0, -0.1, -20.0, -87.5, -104.0, -745.0, -1e4, -1e5, -1e9, -1e30, -math.inf]


@promise("delta_attention", "every chunk is the recurrence, whatever the decay", strength=STRENGTHS,
         where=["at one token", "at every third", "everywhere"], chunk=[1, 5, 12, 13, 64],
         each=[False, True],
         dtype=WIDE)  # fmt: skip
def chunks_are_the_recurrence(strength, where, chunk, each, dtype):
    of = Tokens(
        "delta_attention, decays" if each else "delta_attention, a decay", 13, groups=1, dtype=dtype
    )
    (name,) = of.tokens.keys() & {"log_decay", "log_decays"}
    strong = {
        "at one token": torch.arange(13) == 6,
        "at every third": torch.arange(13) % 3 == 1,
    }.get(where, torch.ones(13, dtype=torch.bool))
    decays = of.tokens.pop(name).float()  # as Gated DeltaNet keeps it beside half precision
    if each:
        strong = strong[:, None] & (torch.arange(3) < 2)
    decays = torch.where(strong, strength, 0.1 * decays)
    decays = decays.to(dtype) if dtype == torch.float64 else decays
    of.options["chunk"] = chunk
    (state,) = tensors((2, 1, 3, 2), seed=4, dtype=torch.float32)
    out, last = of.call(log_decay=decays, state=state, return_state=True)
    width = decays if each else decays[..., None]
    for one, other in zip(
        (out, last), delta_by_steps(*of.tokens.values(), width, None, state), strict=True
    ):
        near(one, other, DTYPES[dtype])
    assert out.dtype == dtype


@promise("delta_attention", "gradients are finite and those of the recurrence, whatever the decay",
         strength=STRENGTHS, each=[False, True])  # fmt: skip
def gradients_of_chunks(strength, each):
    of = Tokens("delta_attention, decays" if each else "delta_attention, a decay", 7, groups=1)
    (name,) = of.tokens.keys() & {"log_decay", "log_decays"}
    of.tokens[name][:, :, 3] = strength
    gradients = []
    for chunk in (1, 4, 7):
        of.options["chunk"] = chunk
        leaves = {key: part.clone().requires_grad_() for key, part in of.tokens.items()}
        gradients.append(torch.autograd.grad(of.call(leaves).square().sum(), [*leaves.values()]))
    for one, *others in zip(*gradients, strict=True):
        assert one.isfinite().all()
        for other in others:
            near(other, one, 1e-10)


@promise("window_attention", "equals plain loops on both sides of the window and of each group",
         n=[1, 2, 3, 4, 9, 10], window=[1, 2, 3, 10, 11], m=[1, 2, 5, 10], votes=[False, True],
         mask=[None, "holes"])  # fmt: skip
def windows_by_rows(n, window, m, votes, mask):
    of, real = Tokens("window_attention", n, groups=1), a_mask(mask, 2, n)
    of.options = {"window": window, "m": m, "votes": votes}
    out = of.call(token_mask=real)
    near(out, judged(of, real))
    if m == 1 or window >= n:
        near(out, softmax_attention(*of.tokens.values(), token_mask=real, causal=True))
    for last in {1, n}:  # queries of the last tokens alone
        near(
            of.call(of.tokens | {"q": of.tokens["q"][:, :, n - last :]}, token_mask=real),
            out[:, :, n - last :],
        )


@promise("window_attention", "equals plain loops at the borders of blocks",
         n=[BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 1], n_queries=[1, BLOCK - 1, BLOCK],
         mask=[None, "holes"])  # fmt: skip
def blocks_join(n, n_queries, mask):
    of, real = Tokens("window_attention", n, batch=1, groups=1), a_mask(mask, 1, n)
    of.tokens["q"] = of.tokens["q"][:, :, -n_queries:]
    of.options = {"window": 10, "m": 4}
    near(of.call(token_mask=real), judged(of, real))


@promise("linear_state", "equals the products of its factors, and causal linear forms", n=[1, 2, 7],
         d=[1, 3], decay=[None, 1.0, 0.5, 1e-300, "each"],
         delta=[None, 0, 1.0, 2.0, "each"])  # fmt: skip
def states_by_products(n, d, decay, delta):
    k, v = tensors((n, d), (n, 2))
    each = torch.linspace(0.1, 1, n, dtype=torch.float64)
    decay, delta = (each if rate == "each" else rate for rate in (decay, delta))
    state = linear_state(k, v, decay=decay, delta=delta)
    expected = np.zeros((d, 2))
    for t in range(n):
        a, b = (
            1.0 if rate is None else float(rate[t]) if torch.is_tensor(rate) else rate
            for rate in (decay, delta)
        )
        keep = np.eye(d) - (0 if delta is None else b) * np.outer(k[t], k[t])
        expected = a * keep @ expected + b * np.outer(k[t], v[t])
    near(state, expected)
    assert np.linalg.matrix_rank(array(state), tol=1e-9) <= min(n, d)
    if delta is None:
        assert recall_error(state, k, v) == pytest.approx(
            np.linalg.norm(k @ state - v) / np.linalg.norm(v)
        )


@promise("wy", "writes the product of its factors", n=[0, 1, 2, 7], d=[1, 3, 9],
         dtype=[*WIDE, torch.bfloat16])  # fmt: skip
def reflections(n, d, dtype):
    k, beta = tensors((n, d), (n,), dtype=dtype)
    y, t = wy(k, beta)
    product = np.eye(d)
    for row, share in zip(array(k), array(beta), strict=True):
        product = (np.eye(d) - share * np.outer(row, row)) @ product
    near(np.eye(d) - array(k).T @ array(y), product, 20 * DTYPES[dtype])
    assert y.dtype == dtype
    assert torch.equal(t, t.tril())
    assert torch.equal(t.diagonal(), beta)
    near(y, t @ k, 20 * DTYPES[dtype])


@promise("causal_decay", "is the recurrence, with blocks of rank 1 at most",
         a=[*itertools.product([0, 1, -2, Fraction(1, 2)], repeat=4)])  # fmt: skip
def decay_table(a):
    found = causal_decay(torch.tensor([float(x) for x in a], dtype=torch.float64))
    expected = [
        [float(math.prod(a[j + 1 : i + 1])) if j <= i else 0.0 for j in range(4)] for i in range(4)
    ]
    near(found, expected)
    assert max(block_ranks(found)) <= 1
    near(
        causal_decay(torch.tensor([math.nan, *map(float, a[1:])]).double()), expected
    )  # the first is never used
    for n in (0, 1, 2):
        near(
            causal_decay(torch.tensor([float(x) for x in a[:n]], dtype=torch.float64)),
            np.reshape([row[:n] for row in expected[:n]], (n, n)),
        )


@promise(
    "block_ranks", "are those of recurrences", n=[2, 3, 5, 9], size=[1, 2, 4], dtype=list(DTYPES)
)
def ranks_of_recurrences(n, size, dtype):
    c, b, a = tensors((n, size), (n, size), (n,))
    table = causal_decay(a.sigmoid()) * (c @ b.mT)
    assert block_ranks(table) == [min(i, n - i, size) for i in range(1, n)]
    narrow = causal_decay((a > 0).to(dtype))  # decays of 0 and 1
    expected = [int(narrow[i:, :i].any()) for i in range(1, n)]
    assert block_ranks(narrow) == expected


# Linformer


@promise("linformer_attention", "equals plain loops for every k, matrix and rule", n=[1, 2, 5],
         k=[1, 2, 5], mask=MASKS, start=["averages", "signed", "zeros", "sparse", "two"],
         rule=[None, "sum", "norm"])  # fmt: skip
def linformer_by_rules(n, k, mask, start, rule):
    k = min(k, n)
    q, keys, v, e = tensors((2, 2, 3, 3), (2, 2, n, 3), (2, 2, n, 2), (k, n))
    own = (
        torch.arange(n) % k == torch.arange(k)[:, None]
    )  # rows that share no token: a mask may empty some
    e = {"averages": e.abs(), "zeros": e * (torch.arange(k) > 0)[:, None], "sparse": e * own}.get(
        start, e
    )
    f = e.flip(0).abs() if start == "two" else None
    real = a_mask(mask, 2, n)
    out = linformer_attention(q, keys, v, e, f, token_mask=real, rule=rule)
    near(out, linformer_by_loops(q, keys, v, e, f, real, rule), 1e-10)


@promise("from_mha", "k = n equals exact attention, and queries may differ in number", n=[1, 4],
         longer=[0, 2], mask=MASKS, bias=[False, True])  # fmt: skip
def takeover(n, longer, mask, bias):
    mha, (x, queries), real = (
        exact_attention(bias),
        tensors((2, n, 6), (2, 3, 6)),
        a_mask(mask, 2, n),
    )
    options = {
        "max_len": n + longer,
        "k": n + longer,
        "projection": torch.eye(n + longer, dtype=torch.float64),
    }
    layer = from_mha(mha, **options)
    cross = from_mha(mha, kind=LinformerCrossAttention, **options)
    padding = None if real is None else ~real
    rows = torch.ones(2, dtype=torch.bool) if real is None else real.any(dim=1)
    seen = torch.ones(2, n, dtype=torch.bool) if real is None else real
    near(layer(x, token_mask=real)[seen], mha(x, x, x, key_padding_mask=padding)[0][seen])
    near(
        cross(queries, x.masked_fill(~seen[:, :, None], math.nan), token_mask=real)[rows],
        mha(queries, x, x, key_padding_mask=padding)[0][rows],
    )
    assert not layer(x, token_mask=real)[~seen].any()


@promise("Linformer's layers", "longer, padded and grown layers give the same", n=[1, 4, 7],
         k=[1, 3], mask=MASKS, sharing=["key-value", "headwise"], bias=[False, True])  # fmt: skip
def layers_keep_results(n, k, mask, sharing, bias):
    layer = LinformerSelfAttention(
        6,
        2,
        7,
        k,
        sharing=sharing,
        bias=bias,
        dtype=torch.float64,
        generator=torch.Generator().manual_seed(1),
    )
    (x,), real = tensors((2, n, 6)), a_mask(mask, 2, n)
    out = layer(x, token_mask=real)
    grown = resized(layer, 9)
    near(grown(x, token_mask=real), out)
    assert layer(x[:0]).shape == (0, n, 6)
    assert not {part.data_ptr() for part in grown.parameters()} & {
        part.data_ptr() for part in layer.parameters()
    }
    more = 7 - n
    seen = torch.ones(2, n, dtype=torch.bool) if real is None else real
    padded = torch.cat(
        [x.masked_fill(~seen[:, :, None], math.nan), x.new_full((2, more, 6), math.nan)], dim=1
    )
    near(
        layer(padded, token_mask=functional.pad(seen, (0, more)))[:, :n],
        out if real is not None else layer(x),
    )


LAYER = {"batch_first": True, "dtype": torch.float64, "dropout": 0.0}


@promise("from_layer", "a trained encoder converted in place stays itself where k = n",
         norm_first=[False, True], nested=[False, True], training=[False, True],
         gradient=[False, True],
         mask=["right padding", "left padding", None])  # fmt: skip
def converted_in_place(norm_first, nested, training, gradient, mask):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(6, 2, 12, norm_first=norm_first, activation="gelu", **LAYER)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested and not norm_first).train(
        training
    )
    (x,), real = tensors((2, 5, 6)), a_mask(mask, 2, 5)
    padding = None if real is None else ~real
    with torch.set_grad_enabled(gradient):
        expected = encoder(x, src_key_padding_mask=padding)
        for i, old in enumerate(encoder.layers):
            encoder.layers[i] = from_layer(old, 5, 5, projection=torch.eye(5, dtype=torch.float64))
        out = encoder(x, src_key_padding_mask=padding)
        seen = torch.ones(2, 5, dtype=torch.bool) if real is None else real
        near(out[seen], expected[seen])
        for kept in encoder.layers:
            kept.self_attn = resized(kept.self_attn, 8)
        near(encoder(x, src_key_padding_mask=padding)[seen], expected[seen])


@promise("LinformerEncoderLayer",
         "padding changes neither results nor gradients, whatever it holds",
         norm_first=[False, True], poison=[math.nan, math.inf, 1e30], mask=MASKS[2:])  # fmt: skip
def encoder_padding(norm_first, poison, mask):
    layer = LinformerEncoderLayer(
        6,
        2,
        5,
        3,
        12,
        0.0,
        norm_first=norm_first,
        dtype=torch.float64,
        generator=torch.Generator().manual_seed(1),
    )
    (x,), real = tensors((2, 5, 6)), a_mask(mask, 2, 5)
    results = []
    for src in (x, x.masked_fill(~real[:, :, None], poison)):
        layer.zero_grad()
        src = src.clone().requires_grad_()
        out = layer(src, src_key_padding_mask=~real)
        out[real].square().sum().backward()
        results.append([out[real], src.grad, *(part.grad for part in layer.parameters())])
    for clean, dirty in zip(*results, strict=True):
        assert torch.equal(clean, dirty)


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Halved(nn.TransformerEncoderLayer):
    def _sa_block(self, *args, **options):
        return super()._sa_block(*args, **options) / 2


class Shifted(nn.MultiheadAttention):
    def forward(self, query, *args, **options):
        return super().forward(query + 1, *args, **options)


OTHERWISE = {  # what would be copied, and the refusal
    "LoraLinear": (lambda: LoraLinear(Doubled(4, 4), 2),
                   "linear must compute as a torch.nn.Linear"),
    "compress": (lambda: compress(Doubled(4, 4), 2), "linear must compute as a torch.nn.Linear"),
    "from_mha": (lambda: from_mha(Shifted(6, 2, batch_first=True), 5, 2),
                 "mha must compute as a torch.nn.MultiheadAttention"),
    "from_layer": (lambda: from_layer(Halved(6, 2, 12, batch_first=True), 5, 2),
                   "layer must compute as a torch.nn.TransformerEncoderLayer does, "
                   "got Halved with _sa_block of its"),
}  # fmt: skip


@promise(
    "whatever takes a layer over",
    "a subclass that computes otherwise is refused",
    row=list(OTHERWISE),
)
def computes_otherwise(row):
    call, message = OTHERWISE[row]
    assert message in said(call)


@promise("from_mha", "an output layer with an adapter or a parametrization gives its weight",
         kind=["LoRA", "DoRA", "weight_norm"], bias=[False, True])  # fmt: skip
def takeover_of_adapted(kind, bias):
    mha, (x,) = exact_attention(bias), tensors((2, 4, 6))
    if kind == "weight_norm":
        nn.utils.parametrizations.weight_norm(mha.out_proj)
    else:
        moved(inject_lora(mha, "out_proj", 2, magnitude=kind == "DoRA"))
    layer = from_mha(mha, 4, 4, projection=torch.eye(4, dtype=torch.float64))
    near(layer(x), mha(x, x, x)[0])


@promise("linformer_attention", "a row's size changes no share, however small or large",
         size=[1e-30, 1e-20, 1e18, 1e30], start=["averages", "signed"], dtype=WIDE,
         rule=[None, "sum", "norm"])  # fmt: skip
def sizes_of_rows(size, start, dtype, rule):
    q, k, v, e = tensors((2, 2, 3, 3), (2, 2, 5, 3), (2, 2, 5, 2), (2, 5), dtype=dtype)
    e, real = e.abs() if start == "averages" else e, a_mask("right padding", 2, 5)
    results = []
    for factor in (1, size):
        e_used = (factor * e).clone().requires_grad_()
        out = linformer_attention(q, k / factor, v / factor, e_used, token_mask=real, rule=rule)
        results.append((out, torch.autograd.grad(out.square().sum(), e_used)[0] * factor))
    for one, other in zip(*results, strict=True):
        near(other, one, DTYPES[dtype])


@promise(
    "pooling_projection", "averages equal windows, or refuses", k=[1, 2, 3, 4, 6], max_len=[1, 2, 6]
)
def averages(k, max_len):
    if k > max_len or max_len % k:
        assert said(lambda: pooling_projection(k, max_len)).startswith("ValueError: k must")
    else:
        e = pooling_projection(k, max_len)
        near(e, np.kron(np.eye(k), np.full((1, max_len // k), k / max_len)), 1e-7)
        for mask in MASKS:  # equal tokens stay as they are
            real, ones = a_mask(mask, 2, max_len), torch.ones(2, 1, max_len, 1)
            seen = np.ones(2) if real is None else array(real).max(axis=1)
            near(linformer_attention(ones, ones, ones, e, token_mask=real)[:, 0, 0, 0], seen, 1e-6)


# adapters and steps


OPTIONS = [
    {}, {"alpha": 3, "scaling": "alpha/sqrt(r)"}, {"init": "principal"}, {"magnitude": True},
    {"init": "principal", "magnitude": True, "alpha": 5},
]  # fmt: skip


@promise("LoraLinear", "starts as the layer; merged equals unmerged; factors have 32 bits at least",
         options=OPTIONS, shape=[(1, 1), (1, 4), (4, 1), (3, 5), (5, 3)], bias=[False, True],
         dtype=[*DTYPES, "autocast"])  # fmt: skip
def merged_equals_unmerged(options, shape, bias, dtype):
    autocast, dtype = dtype == "autocast", torch.float32 if dtype == "autocast" else dtype
    x = tensors((4, shape[1]), seed=9)[0].to(dtype)
    for r in {1, min(shape)}:
        linear = linear_of(*shape, bias, dtype)
        if bias:
            linear.bias.requires_grad_(False)
        before = linear(x).detach()
        layer = LoraLinear(linear, r, **options)
        learned = [part for part in layer.parameters() if part.requires_grad]
        assert {part.dtype for part in learned} == {torch.promote_types(dtype, torch.float32)}
        near(layer(x), before, 2 * DTYPES[dtype])
        out = moved(layer)(x)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            merged = layer.merged()
        assert (out.dtype, merged.weight.dtype, layer.weight.dtype) == (dtype, dtype, dtype)
        near(merged(x), out.detach(), 4 * DTYPES[dtype])
        near(layer.update(), array(layer.weight) - array(linear.weight), 4 * DTYPES[dtype])
        assert layer.reset_base() is linear
        assert torch.equal(linear(x), before)
        assert [part.requires_grad for part in linear.parameters()] == [True, False][: 1 + bias]


@promise("LoraLinear", "hooks of the layer act", options=OPTIONS[:3], hook=["forward", "prune"])
def hooks_act(options, hook):
    linear, (x,) = linear_of(5, 4), tensors((3, 4))
    if hook == "forward":
        linear.register_forward_hook(lambda layer, given, out: 2 * out)
    else:
        prune.l1_unstructured(linear, "weight", amount=0.5)
    before = linear(x).detach()
    layer = LoraLinear(linear, 2, **options)
    for _ in range(2):
        near(layer(x), before)
        layer(x).sum().backward()


class Tied(nn.Module):
    """A language model's ends, tied, with a layer between them."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
        self.head.weight, self.middle = self.embed.weight, nn.Linear(4, 4)

    def forward(self, x):
        return self.head(self.middle(self.embed(x)))


class Packed(torch.Tensor):
    """Stands for an int8 weight with its scales."""


def packed():
    model = Tied()
    model.middle.weight = nn.Parameter(model.middle.weight.detach().as_subclass(Packed))
    return model


def low_rank():
    model = Tied()
    with torch.no_grad():
        model.middle.weight[1:] = 0
    return model


class Conv1D(nn.Module):
    """Stands for the linear layer of GPT-2 in transformers."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(4, 4)), nn.Parameter(torch.zeros(4))


def like_gpt2():
    model = Tied()
    model.middle = Conv1D()
    return model


def inject(names, r=2, **options):
    return lambda model: inject_lora(model, names, r, **options)


BOTH = ["head", "middle"]
REFUSED = {  # a model, what is done to it, and the refusal
    "an unknown name": (Tied, inject(["middle", "no"]), "names must be ends of names"),
    "a rank too high": (Tied, inject(BOTH, 5), "r must be between 1 and min(m, n) = 4"),
    "a rank below r": (
        low_rank,
        inject(BOTH, init="principal"),
        "r must be at most the rank of the weight, 1, to start",
    ),
    "packed": (packed, inject(BOTH), "linear.weight must be a plain tensor, got Packed"),
    "a row of zeros": (
        low_rank,
        inject("middle", magnitude=True),
        "linear.weight must have no row of length 0",
    ),
    "a tied head alone": (Tied, inject("h*"), "(head, middle), tied ones without *, got 'h*'"),
    "GPT-2": (like_gpt2, inject("*"), "linear must be a torch.nn.Linear, as of weight.T"),
    "GPT-2, moments": (
        like_gpt2,
        lambda model: input_moments(model).__enter__(),
        "of a Conv1D, got Conv1D",
    ),
    "no layer, moments": (
        nn.ReLU,
        lambda model: input_moments(model).__enter__(),
        "names must be ends of names of linear layers (none)",
    ),
    "an adapter already": (
        lambda: inject_lora(Tied(), "middle", 2),
        inject("middle"),
        "names must be ends of names of linear layers (head)",
    ),
    "nothing to merge": (Tied, merge_lora, "model must hold a LoraLinear"),
}


@promise(
    "inject_lora, merge_lora", "a refusal changes nothing", row=list(REFUSED), frozen=[False, True]
)
def refusals_change_nothing(row, frozen):
    make, call, message = REFUSED[row]
    model = make()
    for part in [*model.parameters()][-1:]:
        part.requires_grad_(not frozen)
    kinds = {name: (type(part), part.training) for name, part in model.named_modules()}
    learning = {name: part.requires_grad for name, part in model.named_parameters()}
    numbers = {name: part.detach().clone() for name, part in model.state_dict().items()}
    assert message in said(lambda: call(model))
    assert {name: (type(part), part.training) for name, part in model.named_modules()} == kinds
    assert {name: part.requires_grad for name, part in model.named_parameters()} == learning
    for name, part in model.state_dict().items():
        assert torch.equal(
            part.as_subclass(torch.Tensor).nan_to_num(),
            numbers[name].as_subclass(torch.Tensor).nan_to_num(),
        )


@promise("merge_lora", "a tied weight is refused until it is untied, and then nothing is lost",
         names=["head", ["head",
         "middle"]], parameter=["the same", "of the same memory"])  # fmt: skip
def tied_weights(names, parameter):
    model, x = Tied(), torch.arange(6)
    if parameter != "the same":
        model.head.weight = nn.Parameter(model.head.weight.detach())
    model = moved(inject_lora(model, names, 2))
    out, embedded = model(x).detach(), model.embed.weight.detach().clone()
    assert "got 'head' tied to one" in said(lambda: merge_lora(model))
    assert torch.equal(model(x), out)
    model.head.linear.weight = nn.Parameter(model.head.linear.weight.detach().clone())
    near(merge_lora(model)(x), out, 1e-5)
    assert torch.equal(model.embed.weight, embedded)
    again = Tied()
    again.head.weight = nn.Parameter(again.head.weight.detach().clone())
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(x), model(x))
    for others in ("middle", "*"):
        assert merge_lora(moved(inject_lora(Tied(), others, 2))).head.weight.shape == (6, 4)
    with input_moments(Tied()) as moments:
        Tied()(x)
    assert not moments


@promise("inject_lora", "a layer that is the whole model is adapted", options=OPTIONS, r=[1, 3])
def root_layer(options, r):
    linear, (x,) = linear_of(3, 5), tensors((2, 5))
    model = inject_lora(linear, "", r, **options)
    assert type(model) is LoraLinear
    assert any(part.requires_grad for part in model.parameters())
    assert not any(part.requires_grad for part in model.linear.parameters())
    out = moved(model)(x)
    again = load_lora(inject_lora(linear_of(3, 5), "", r, **options), lora_state(model))
    assert torch.equal(again(x), out)
    with without_lora(model) as off:
        assert off is linear
    near(merge_lora(model)(x), out)


@promise("LoraLinear", "a merge that overflows is refused",
         dtype=[torch.float16, torch.bfloat16, torch.float32], magnitude=[False, True])  # fmt: skip
def merge_overflows(dtype, magnitude):
    layer = LoraLinear(linear_of(3, 5, dtype=dtype), 2, magnitude=magnitude)
    with torch.no_grad():
        layer.b.fill_(torch.finfo(dtype).max)
        layer.a.fill_(1)
        if magnitude:
            layer.lengths.fill_(math.inf)
    assert f"the merged weight must be finite in {dtype}, got" in said(layer.merged)


@promise(
    "LoraLinear",
    "alpha scales the update, called or merged",
    options=OPTIONS[:3],
    factor=[0.5, 3.0],
)
def alpha_is_set(options, factor):
    layer, (x,) = moved(LoraLinear(linear_of(5, 4), 2, **options)), tensors((3, 4))
    expected = array(layer.linear(x)) + factor * (array(layer(x)) - array(layer.linear(x)))
    layer.alpha *= factor
    near(layer(x), expected)
    near(layer.merged()(x), expected)
    assert f"alpha={layer.alpha:g}," in layer.extra_repr()


@promise("compress", "acts where a model reads weights",
         where=["self_attn.out_proj", "linear1", "linear2"], training=[False, True])  # fmt: skip
def cut_inside(where, training):
    layer, (x,) = (
        nn.TransformerEncoderLayer(6, 2, 8, 0, batch_first=True).double(),
        tensors((2, 5, 6)),
    )
    plain = nn.Linear(*reversed(layer.get_submodule(where).weight.shape)).double()
    pair = compress(layer.get_submodule(where), 3)
    plain.load_state_dict({"weight": pair[1].weight @ pair[0].weight, "bias": pair[1].bias})
    outputs = []
    for part in (plain, pair):
        layer.set_submodule(where, part)
        with torch.no_grad():
            outputs.append(layer.train(training)(x))
    near(*outputs)


@promise("power_step", "projects onto orthonormal columns, whatever the size of the numbers",
         shape=[(1, 1), (1, 4), (4, 1), (5, 3), (3, 5)], scale=[0.0, 1e-30, 1.0, 1e30], dtype=WIDE,
         rank=[1, None])  # fmt: skip
def power_steps(shape, scale, dtype, rank):
    for r in {1, min(shape)}:
        m, q = tensors(shape, (shape[1], r), dtype=dtype)
        m = scale * (m if rank is None else m[:, :1] @ m[:1])
        p, new = power_step(m, q)
        p, new = power_step(m, new)  # as large as m
        near(p.mT @ p, np.eye(r), DTYPES[dtype])
        near(new, array(m).T @ array(p), DTYPES[dtype], unit=scale or 1)
        if rank == 1 or r == min(shape):
            near(p @ new.mT, m, DTYPES[dtype], unit=10 * scale or 1)


@promise("newton_schulz",
         "maps singular values and keeps vectors, whatever the size of the numbers",
         shape=[(1, 1), (1, 4), (4, 1), (5, 3), (3, 5), (4, 4)], steps=[0, 1, 5],
         scale=[0.0, 1e-30, 1.0, 1e30],
         dtype=WIDE, rank=[1, None])  # fmt: skip
def equal_steps(shape, steps, scale, dtype, rank):
    (x,) = tensors(shape, dtype=dtype)
    x = x if rank is None else x[:, :1] @ x[:1]
    u, s, vt = np.linalg.svd(array(x), full_matrices=False)
    s = s / np.linalg.norm(s)
    for _ in range(steps):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    expected = 0 if scale == 0 else 1
    near(newton_schulz(scale * x, steps), expected * (u * s) @ vt, 20 * DTYPES[dtype])
    near(newton_schulz(scale * x[None], steps)[0], expected * (u * s) @ vt, 20 * DTYPES[dtype])


# Not with many chunks, which are many times the same; Linformer's layer has tests of its own.
@pytest.mark.parametrize(
    "name", [name for name in FUNCTIONS if not name.startswith(("linformer", "delta_attention,"))]
)
def test_compiles_to_one_graph(compiler, name):
    of, real = Tokens(name, BLOCK + 3, dtype=torch.float32), a_mask("holes", 2, BLOCK + 3)
    compiled = compiler(of.call, backend="eager")
    near(compiled(of.tokens, token_mask=real), of.call(token_mask=real), 1e-5)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype")
@pytest.mark.parametrize(("check", "axes"), ROWS)
def test_promise(check, axes):
    for values in itertools.product(*axes.values()):
        case = dict(zip(axes, values, strict=True))
        try:
            check(**case)
        except Exception as error:
            error.add_note(f"in the case {case}")
            raise
