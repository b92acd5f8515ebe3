"""Every public function of the mathematics refuses bad arguments by name, and leaves good ones as
they are.

A row holds one valid call, and for each argument what makes it wrong. A function or an argument
without a row fails. `byhand` takes exact numbers alone, and has a walk of its own in
``tests/byhand/test_exact.py``.
"""

import copy
import importlib
import inspect
import math
import pkgutil
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import nn

import lowrank_tutor as lr
from lowrank_tutor import adapters, storyteller
from lowrank_tutor.linformer import LinformerSelfAttention

# The real model needs a package of its own: tests/test_smollm.py.
OTHER_ROOMS = {"byhand", "course", "figures", "kit", "smollm"}
# Methods that only libraries call, or only a function that has checked their arguments.
SETTINGS = {"get_params", "set_params", "set_extra_state", "with_feedforward"}

A = np.array([[3.0, 0, 1], [4, 5, 2]])
POINTS = np.array([[-1.0, 0], [1, 0], [0, -2], [0, 2], [9, 0], [11, 0]])
SPECTRUM = np.array([3.0, 2, 1])
torch.manual_seed(0)
Q, K, V = torch.randn(3, 1, 2, 4, 4)  # (batch, heads, n, d)
E = torch.full((2, 4), 0.25)
X = torch.randn(1, 4, 8)  # (batch, n, dim)
KEYS, VALUES = torch.eye(4), torch.ones(4, 3)
RATES = torch.full((4,), 0.5)
GAMMA = torch.eye(8)


class Argument(NamedTuple):
    """A right value of an argument, and wrong ones by what is wrong about them."""

    value: Any
    wrong: dict[str, Any]


def array(value, *, stacks=False, nan=True):
    """Real and finite; where stacks are allowed, more axes are not wrong, and where gaps are, NaN
    is not (and the mask does not fit an empty one).
    """
    first = np.arange(value.size).reshape(value.shape) == 0
    wrong = {
        "NaN": np.where(first, np.nan, value),
        "infinite": np.where(first, np.inf, value),
        "empty": value[:0],
        "an axis less": value[0],
        "an axis more": value[np.newaxis],
        "words": "words",
        "None": None,
        "complex": value + 1j,
    }
    left_out = {"an axis more": stacks, "NaN": not nan, "empty": not nan}
    return Argument(value, {fault: bad for fault, bad in wrong.items() if not left_out.get(fault)})


def tensor(value, *, finite=False, leads=False):
    """Of the right shape and type. Functions that may run on a GPU look at no number.

    The tensor that ``leads`` sets the type of the others, so where it is complex the message names
    the next of them.
    """
    wrong = {
        "an axis less": value[0],
        "an axis more": value[None],
        "words": "words",
        "None": None,
        "an array": value.detach().numpy(),
    }
    if not leads:
        wrong["complex"] = value + 1j
    if finite:
        wrong |= {
            "NaN": torch.full_like(value, math.nan),
            "infinite": torch.full_like(value, math.inf),
        }
    return Argument(value, wrong)


def whole(value, low=1, high=None):
    """An integer from ``low`` to ``high``."""
    wrong = {
        "too small": low - 1,
        "negative": -1,
        "a fraction": 1.5,
        "a bool": True,
        "words": "3",
        "None": None,
    }
    return Argument(value, wrong if high is None else wrong | {"too large": high + 1})


def real(value):
    wrong = {"NaN": math.nan, "a bool": True, "words": "0.5", "complex": 0.5j, "vast": 10**400}
    return Argument(value, wrong)


def word(value):
    return Argument(value, {"another": "another", "a number": 3})


def flag(value):
    return Argument(value, {"a number": 1, "words": "yes", "None": None})


def some(value, **wrong):
    return Argument(value, {"words": "words", "None": None, **wrong})


KINDS = {bool: flag, int: whole, float: real, str: word, np.ndarray: array, torch.Tensor: tensor}


def argument(value):
    """Say what is wrong for an argument by the type of its right value, if its row does not."""
    return value if isinstance(value, Argument) else KINDS[type(value)](value)


# Arguments that mean the same in every function, and are None by default.
EVERYWHERE = {
    "rng": Argument(0, {}),  # NumPy says what a seed may be
    "generator": some(None, seed=3, words="3"),
    "device": Argument("cpu", {"unknown": "nowhere", "a number": 3}),
    "dtype": some(torch.float32, integers=torch.int64, words="float"),
    "token_mask": some(
        torch.ones(1, 4, dtype=torch.bool),
        numbers=torch.ones(1, 4),
        axes=torch.ones(4, dtype=torch.bool),
    ),
    "feedforward": 8,
    "rule": "sum",
    "process_group": some(None, number=3),
}
SCORE = {"s": array(A[0], stacks=True), "h": array(A[1], stacks=True)}
MOMENTS = {"s_moment": np.eye(2), "h_moment": np.eye(3)}
FACTORS = {"u": np.ones((1, 3)), "v": np.ones((1, 3))}
BOUND = {"k": whole(24, high=2**53), "eps": 0.5}
ATTENTION = {"q": tensor(Q, leads=True), "k": K, "v": V}
SIZES = {"dim": 8, "heads": 2, "max_len": 4, "k": whole(2, high=4)}
CARD = {"d": 64, "heads": 8, "gpu": "T4", "batch": 1}
CACHE = {"layers": 2, "rotary": whole(0, 0), "index": whole(0, 0)}
LINEAR = some(nn.Linear(8, 4), other=nn.ReLU())
MODEL = nn.Sequential(nn.Linear(8, 4))


def adapted(r=2):
    return nn.Sequential(adapters.LoraLinear(nn.Linear(8, 4), r))


NAMES = some("0", unknown="1", number=3, numbers=[3])
MHA = some(
    nn.MultiheadAttention(8, 2, batch_first=True),
    late=nn.MultiheadAttention(8, 2),
)
ENCODER = some(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), other=nn.ReLU())
KIND = LinformerSelfAttention
LAYER = {**SIZES, "sharing": "headwise", "dropout": 0.0}
PROJECTION = {**SIZES, "projection": E}

SAID = some("Ada wears red", unknown="Ada wears plum", number=3)
IDS = some(
    [[1, 2]],
    axes=[1, 2],
    fractions=[[1.5]],
    large=torch.tensor([[99]]),
    negative=[[-1]],
    empty=[[]],
)
WEIGHTS = storyteller.trained_weights()
PART = {name: weight for name, weight in WEIGHTS.items() if name != "layers.1.down.weight"}
WEIGHTS = some(WEIGHTS, part=PART, number=3)
ATTEND = some(
    storyteller.exact,
    number=3,
    three=[storyteller.exact] * 3,
    narrow=lambda q, k, v: v[..., :3],
)
DIRECTIONS = np.ones((3, 16))

ROWS = {
    "break_even_rank": {"m": 3, "n": 4},
    "effective_rank": {"s": array(SPECTRUM, stacks=True)},
    "numerical_rank": {"a": array(A, stacks=True), "rtol": 0.1},
    "rank_factorization": {"a": A, "rtol": 0.1},
    "stable_rank": {"a": array(A, stacks=True)},
    "storage": {"m": 3, "n": 4, "k": whole(1, high=3)},
    "best_rank_k": {"a": array(A, stacks=True), "k": whole(1, high=2)},
    "choose_rank": [
        {"s": SPECTRUM, "energy": 0.9, "total": 14.0},
        {"s": SPECTRUM, "error": 0.3},
        {"s": SPECTRUM, "gap": True},
        {"s": SPECTRUM, "threshold": 1.5},
    ],
    "fix_signs": {"vectors": array(A, stacks=True)},
    "hard_threshold": {
        "s": SPECTRUM, "m": 3, "n": whole(3, high=2**53), "noise": 0.5,
    },
    "noise_edge": {
        "s": SPECTRUM, "m": 3, "n": whole(3, high=2**53), "noise": 0.5,
    },
    "randomized_svd": {
        "a": A, "k": whole(1, high=2), "oversample": whole(1, 0),
        "power_iterations": whole(1, 0),
    },
    "relative_error": {"approx": A, "exact": array(A, stacks=True), "norm": "fro"},
    "tail_error": {"s": SPECTRUM, "k": whole(1, 0, 3), "norm": "spectral"},
    "truncated_svd": {"a": array(A, stacks=True), "k": whole(1, high=2)},
    "PCA": {"n_components": Argument(1, {}), "whiten": Argument(False, {})},
    "PCA.fit": {"x": POINTS},
    "PCA.fit_transform": {"x": POINTS},
    "PCA.transform": {"x": POINTS},
    "PCA.inverse_transform": {"z": POINTS[:, :1]},
    "lda": {
        "x": POINTS,
        "labels": some(list("aaabbb"), one=["a"] * 6, short=["a", "b"]),
        "k": whole(1, high=1),
    },
    "Discriminants.project": {"x": POINTS},
    "Discriminants.classify": {"x": POINTS},
    "Discriminants.transform": {"x": POINTS},
    "Discriminants.predict": {"x": POINTS},
    "nmf": {
        "x": A, "k": whole(1, high=2), "starts": 1, "tolerance": 1e-4,
        "max_sweeps": 9,
    },
    "NMFResult.transform": {"x": A},
    "factorize_ratings": {
        "ratings": array(A, nan=False),
        "observed": some(np.ones((2, 3), bool), numbers=A, axes=[True]),
        "k": whole(1, high=2), "regularization": 1.0, "tolerance": 0.1,
        "max_sweeps": 2,
    },
    "RatingFactors.transform": {
        "ratings": array(A, nan=False),
        "observed": some(np.ones((2, 3), bool), numbers=A, axes=[True]),
    },
    "Autoencoder": {"d": 8, "k": whole(2, high=8), "hidden": whole(3, 2)},
    "Autoencoder.encode": {"x": torch.ones(3, 8)},
    "Autoencoder.decode": {"z": torch.ones(3, 2)},
    "Autoencoder.forward": {"x": torch.ones(3, 8)},
    "Autoencoder.fit": {"x": tensor(torch.randn(3, 8), finite=True), "steps": whole(1, 0)},
    "distortion": {"x": POINTS, "projection": np.ones((1, 2))},
    "gaussian_projection": {"k": 2, "d": 3},
    "inner_product_failure_bound": BOUND,
    "inner_product_std": {"rho": 0.5, "k": 2},
    "min_dim": {
        "n_points": whole(9, 2), "eps": 0.5, "delta": 0.1, "bound": "chernoff",
    },
    "norm_failure_bound": BOUND,
    "norm_failure_chernoff": BOUND,
    "norm_failure_probability": BOUND,
    "projected_product_error": {"p": A, "v": A.T, "k": 2},
    "sign_inner_product_std": {"rho": 0.5, "k": 2},
    "sign_inner_products": {
        "x": POINTS, "y": POINTS, "projection": np.ones((1, 2)),
    },
    "attention_bytes": {
        "n": 16, "d": 2, "heads": 2, "k": whole(4, high=16), "batch": 1,
    },
    "fused_backends": ATTENTION,
    "gpu_crossover": {"k": 256, **CARD},
    "gpu_floor": {"n": 16, "k": whole(4, high=16), **CARD},
    "gpu_named": {"name": Argument("T4", {}), "memory": 16e9},
    "half_type": {"device": EVERYWHERE["device"]},
    "trials": {
        "lengths": Argument([64], {"fractions": [1.5], "zero": [0]}), "d": 64,
        "heads": 8,
        "k": whole(4, high=64), "free": 1e9,
    },
    "attention": {"x": np.array([[1.0, 0], [0, 1]])},
    "score": {**SCORE, "w": np.ones((3, 3))},
    "reduced_rank_score": {**SCORE, **FACTORS},
    "factorize": {"w": A, "k": whole(1, high=2), **MOMENTS},
    "score_error": {"w": A, "u": np.ones((1, 2)), "v": FACTORS["v"], **MOMENTS},
    "fit_factors": {"target": A, "k": whole(1, high=2), "steps": whole(2, 0)},
    "ReducedRankAttention": {"query_dim": 8, "key_dim": 8, "k": whole(2, high=8)},
    "ReducedRankAttention.scores": {"query": X, "keys": X},
    "ReducedRankAttention.forward": {"query": X, "keys": X, "values": X},
    "compress": {"linear": LINEAR, "k": whole(2, high=4), "moment": tensor(GAMMA, finite=True)},
    "inject_lora": {"model": some(MODEL), "names": NAMES, "r": whole(2, high=4)},
    "input_moments": {"model": some(MODEL), "names": NAMES},
    "kv_cache_numbers": [
        {**CACHE, "heads": 2, "width": 4},
        {**CACHE, "groups": 2, "width": 4},
        {**CACHE, "latent": 8},
    ],
    "read_config": {
        "config": some(
            {"model_type": "by hand", "layers": 1, "groups": 2, "width": 4}, number=3, empty={},
        ),
    },
    "serve": {
        "model": some("Llama-3-70B", unknown="Llama", number=3), "gpu": "H100",
        "cards": 8,
        "split": "data", "n": 64, "weight_bits": 16, "cache_bits": 16,
        "share": 0.9,
        "other": 2.0, "billions": 70.0,
    },
    "latent_attention": [
        {
            "x": X, "w_dkv": torch.ones(8, 3), "w_uk": torch.ones(2, 3, 4),
            "w_uv": torch.ones(2, 3, 4), "w_q": torch.ones(2, 8, 4),
            "q_rope": torch.ones(1, 2, 4, 2), "k_rope": torch.ones(1, 4, 2),
            "causal": True, "state": some(None, number=3),
        },
    ],
    "latent_cost": {
        "n": 9, "heads": 2, "d_h": 4, "d_c": 3, "d_rope": whole(0, 0),
        "absorb": False,
    },
    "latent_from_heads": {
        "w_k": tensor(torch.ones(2, 8, 4), finite=True),
        "w_v": tensor(torch.ones(2, 8, 4), finite=True),
        "k": whole(2, high=8), "moment": tensor(GAMMA, finite=True),
    },
    "LoraLinear": {
        "linear": LINEAR, "r": whole(2, high=4), "alpha": 1.0, "scaling": "alpha/r",
        "init": "zero",
    },
    "LoraLinear.forward": {"x": some(X, axes=torch.tensor(1.0), width=X[..., :3])},
    "merge_lora": {"model": some(adapted(), plain=MODEL)},
    "load_lora": {
        "model": some(adapted(), plain=MODEL),
        "state": some(adapters.lora_state(adapted()), empty={},
                      rank=adapters.lora_state(adapted(3))),
    },
    "lora_state": {"model": some(adapted(), plain=MODEL)},
    "without_lora": {"model": some(adapted(), plain=MODEL)},
    "newton_schulz": {
        "x": some(GAMMA, axes=GAMMA[0], integers=GAMMA.long()),
        "steps": whole(2, 0),
    },
    "power_step": {"m": torch.ones(3, 2), "q": torch.ones(2, 1)},
    "rank_report": [
        {"model": some(MODEL, empty={}, tensor=GAMMA)},
        {"model": some(MODEL), "names": NAMES},
    ],
    "attention_weights": {"q": tensor(Q, leads=True), "k": K},
    "linear_attention": {
        **ATTENTION, "causal": True,
        "state": some(None, number=3),
    },
    "orthogonal_features": {"n_features": 4, "d": 4},
    "performer_attention": [
        {**ATTENTION, "n_features": 4},
        {**ATTENTION, "features": torch.ones(3, 4)},
    ],
    "softmax_attention": ATTENTION,
    "softmax_cost": {"n": 16, "dim": 8, "heads": 2},
    "block_ranks": {"m": tensor(KEYS, finite=True), "rtol": 0.1},
    "causal_decay": {"a": tensor(RATES, leads=True)},
    "delta_attention": {
        **ATTENTION, "beta": torch.full((1, 2, 4), 1e-3),
        "log_decay": torch.zeros(1, 2, 4),
        "chunk": 2,
        "state": some(torch.zeros(1, 2, 4, 4), axes=torch.zeros(4, 4)),
    },
    "linear_state": {
        "k": tensor(KEYS, leads=True), "v": VALUES, "decay": 0.5, "delta": 0.5,
    },
    "recall_error": {
        "state": torch.ones(4, 3), "k": tensor(KEYS, leads=True), "v": VALUES,
    },
    "window_attention": {
        **ATTENTION, "window": 2, "m": 2,
        "state": some(None, number=3),
    },
    "wy": {"k": tensor(KEYS, leads=True), "beta": RATES},
    "stories": {"n": 2, "facts": some(3, one=1, nine=9, fraction=2.5, words="3")},
    "encode": {"words": SAID},
    "answer": {"words": SAID},
    "grade": {
        "model": Argument(storyteller.forward, {}),
        "told": Argument(storyteller.stories(1, rng=0), {}),
        "attend": ATTEND,
    },
    "forward": {"ids": IDS, "attend": ATTEND, "weights": WEIGHTS},
    "tables": {"ids": IDS, "attend": ATTEND, "weights": WEIGHTS},
    "next_words": {"words": SAID, "attend": ATTEND, "weights": WEIGHTS},
    **{cut: {"count": 2} for cut in ("sheets", "window", "means", "top", "unusual")},
    "bits": {"count": whole(3, high=16)},
    **{cut: {"directions": DIRECTIONS} for cut in ("features", "projected", "signs")},
    "index": {"count": 2, "directions": DIRECTIONS},
    "faded_sheets": {"amount": 1.5},
    "mixed": {
        **{name: some(storyteller.window(2), number=3) for name in ("one", "other")}, "share": 0.5,
    },
    "between": {"cut": "window", "amount": 2.5},
    "matched": {"words": SAID, "cut": "window", "errors": np.array([0.3, 0.2])},
    "cut_scores": {"weights": WEIGHTS, "rank": whole(2, high=16)},
    "cut_latents": {
        "weights": WEIGHTS, "rank": whole(2, high=64),
        "moments": some(None, one={"layers.0": np.eye(64)}),
    },
    "load": {"weights": WEIGHTS},
    "train": {"steps": 1, "attend": some(None, number=3),
              "report": some(None)},
    "Storyteller.forward": {"ids": IDS, "attend": some(None, number=3)},
    "Storyteller.tables": {"ids": IDS},
    "Storyteller.encode": {"words": SAID},
    "linformer_attention": {**ATTENTION, "e": E, "f": E},
    "linformer_cost": {"n": whole(4, high=4), **SIZES, "sharing": "headwise"},
    "pooling_projection": {"k": whole(2, high=4), "max_len": 4},
    "LinformerSelfAttention": [PROJECTION, LAYER],
    "LinformerSelfAttention.forward": {"x": X},
    "LinformerCrossAttention": [PROJECTION, LAYER],
    "LinformerCrossAttention.forward": {"x": X, "memory": X},
    "LinformerEncoderLayer": {
        **SIZES, "feedforward": 8, "dropout": 0.0, "activation": "gelu",
    },
    "from_layer": {"layer": ENCODER, "max_len": 4, "k": whole(2, high=4)},
    "from_mha": {
        "mha": MHA, "max_len": 4, "k": whole(2, high=4),
        "kind": Argument(KIND, {"other": nn.Linear}),
    },
    "resized": {
        "model": some(KIND(8, 2, 4, 2), other=nn.ReLU()), "max_len": whole(8, 4),
    },
    "LinformerEncoderLayer.forward": {
        "src": X, "src_mask": some(None, weights=torch.zeros(4, 4)),
        "src_key_padding_mask": some(torch.zeros(1, 4), axes=torch.zeros(4),
                                     number=torch.ones(1, 4)),
    },
}  # fmt: skip


def public_modules():
    names = [
        part.name for part in pkgutil.iter_modules(lr.__path__) if not part.name.startswith("_")
    ]
    rooms = sorted(set(names) - OTHER_ROOMS)
    return [importlib.import_module(f"lowrank_tutor.{name}") for name in rooms]


def public_calls():
    """Return all public functions, classes that are no plain tuples, and methods that take
    arguments, by name.
    """
    calls = {}
    for module in public_modules():
        for name in module.__all__:
            member = getattr(module, name)
            if inspect.isfunction(member):
                calls[name] = member
            elif inspect.isclass(member):
                calls |= {} if hasattr(member, "_fields") else {name: member}
                methods = {
                    f"{name}.{method}": getattr(member, method)
                    for method in vars(member)
                    if method[0] != "_"
                }
                calls |= {
                    key: method for key, method in methods.items() if inspect.isroutine(method)
                }
    return {
        name: call
        for name, call in calls.items()
        if parameters_of(call) and name.rpartition(".")[2] not in SETTINGS
    }


def parameters_of(call):
    """Return the arguments to check: not `PCA`'s ``y``, which scikit-learn passes and nothing
    reads.
    """
    stars = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    parameters = inspect.signature(call).parameters.items()
    unread = {"self"} | {
        name for name, parameter in parameters if name == "y" and parameter.default is None
    }
    return {
        name: parameter
        for name, parameter in parameters
        if name not in unread and parameter.kind not in stars
    }


def call_by_name(key, arguments):
    """Call a function, make an object, or call the method of a new one."""
    kind, _, method = key.partition(".")
    if not method:
        result = CALLS[key](**arguments)
        return result.__enter__() if hasattr(result, "__enter__") else result
    return getattr(
        OBJECTS[kind]() if kind in OBJECTS else CALLS[kind](**valid(rows_of(kind)[0])), method
    )(**arguments)


def rows_of(key):
    rows = ROWS[key] if isinstance(ROWS[key], list) else [ROWS[key]]
    return [{name: argument(value) for name, value in row.items()} for row in rows]


def valid(row):
    return {name: argument.value for name, argument in row.items()}


CALLS = public_calls()
OBJECTS = {
    "PCA": lambda: CALLS["PCA"](1).fit(POINTS),
    "Discriminants": lambda: CALLS["lda"](POINTS, list("aaabbb"), 1),
    "NMFResult": lambda: CALLS["nmf"](A, 1, starts=1),
    "RatingFactors": lambda: CALLS["factorize_ratings"](A, np.ones((2, 3), bool), 1),
    "Storyteller": storyteller.load,
}


def arguments_of(key, row):
    """Add to a row the arguments that mean the same everywhere, and flags."""
    more = dict(row)
    for name, parameter in parameters_of(CALLS[key]).items():
        if name not in row and isinstance(parameter.default, bool):
            more[name] = flag(False)
        elif name not in row and name in EVERYWHERE:
            more[name] = argument(EVERYWHERE[name])
    return more


@pytest.mark.parametrize("key", sorted(CALLS.keys() | ROWS.keys()))
def test_every_argument_has_a_row(key):
    assert key in CALLS, "this row is of no public function"
    assert key in ROWS, "a public function needs a row, with a valid call"
    assert parameters_of(CALLS[key]).keys() == set().union(
        *(arguments_of(key, row) for row in rows_of(key))
    )
    for row in rows_of(key):
        arguments = copy.deepcopy(valid(row))  # some change a model
        call_by_name(key, arguments)
        for name, value in arguments.items():
            if isinstance(value, np.ndarray | torch.Tensor):
                np.testing.assert_array_equal(value, row[name].value, err_msg=f"{name} has changed")


CASES = {
    f"{key}: {name}, {fault}": (key, valid(row) | {name: bad}, name)
    for key in sorted(ROWS.keys() & CALLS.keys())
    for row in rows_of(key)
    for name, argument in arguments_of(key, row).items()
    for fault, bad in argument.wrong.items()
    if bad is not None or parameters_of(CALLS[key])[name].default is not None
}


@pytest.mark.parametrize(("key", "arguments", "name"), CASES.values(), ids=CASES)
def test_bad_arguments_are_refused(key, arguments, name):
    with pytest.raises((ValueError, TypeError), match=rf"^{name}\b.* must "):
        call_by_name(key, copy.deepcopy(arguments))


def stored(values, *places):
    return scipy.sparse.csr_array((np.array(values), *places), shape=(3, 3))


def fitted(x, **options):
    return lr.PCA(**options).fit(x)


def spoiled(value):
    model = lr.Autoencoder(3, 1)
    nn.init.constant_(model.decoder.weight, value)
    return model


HIDDEN = np.ma.masked_all((2, 3), bool)
EVERY = np.ones((2, 3), bool)
TWICE = stored([5.0, 4, 3, 0], [1, 1, 0, 2], [0, 2, 3, 4])
NOT_A_NUMBER = scipy.sparse.csr_array([[1.0, 0.0], [0.0, math.nan]])
# What is wrong at a border, or only with the other arguments.
TOGETHER = [
    ("rtol", lambda: lr.numerical_rank(A, rtol=1.0)),
    ("rtol", lambda: lr.rank_factorization(A, rtol=-1e-300)),
    ("s", lambda: lr.effective_rank(np.eye(2))),
    ("one of energy", lambda: lr.choose_rank(SPECTRUM)),
    ("one of energy", lambda: lr.choose_rank(SPECTRUM, gap=True, error=0)),
    ("total", lambda: lr.choose_rank(SPECTRUM, gap=True, total=20)),
    ("total", lambda: lr.choose_rank(SPECTRUM, energy=0.5, total=13)),
    ("s", lambda: lr.choose_rank(SPECTRUM, error=0.5, total=50)),
    ("energy", lambda: lr.choose_rank(SPECTRUM, energy=0)),
    ("energy", lambda: lr.choose_rank(SPECTRUM, energy=1)),
    ("error", lambda: lr.choose_rank(SPECTRUM, error=1)),
    ("threshold", lambda: lr.choose_rank(SPECTRUM, threshold=-1)),
    ("s", lambda: lr.choose_rank(SPECTRUM, threshold=(4, 4))),
    ("s", lambda: lr.choose_rank([1, math.nextafter(1, 0)], gap=True)),
    ("m", lambda: lr.hard_threshold([1], 2**53 + 1, 1)),
    ("s", lambda: lr.hard_threshold(SPECTRUM, 2, 4)),
    ("noise", lambda: lr.hard_threshold(SPECTRUM, 3, 3, 1e75)),
    ("approx", lambda: lr.relative_error(A[:1], A)),
    ("exact", lambda: lr.relative_error(np.ones((2, 1, 1)), [[[1]], [[0]]])),
    ("a", lambda: lr.best_rank_k([[[1]], [[1e-80]]], 1)),
    ("a", lambda: lr.truncated_svd(NOT_A_NUMBER, 1)),
    ("a", lambda: lr.randomized_svd(NOT_A_NUMBER, 1)),
    ("a", lambda: lr.randomized_svd(NOT_A_NUMBER * 1j, 1)),
    *(
        ("n_components", lambda bad=bad: fitted(POINTS, n_components=bad))
        for bad in (0, -1, 0.0, 1.5, True, "3", math.nan)
    ),
    ("whiten", lambda: fitted(POINTS, whiten="yes")),
    ("n_components", lambda: fitted(A, whiten=True)),
    ("n_components", lambda: fitted(A, n_components=3)),
    ("x", lambda: fitted(A[:1])),
    ("PCA", lambda: lr.PCA().transform(A)),
    ("x", lambda: fitted(A).transform(A[:, :2])),
    ("z", lambda: fitted(A, n_components=1).inverse_transform(A)),
    ("labels", lambda: lr.lda.lda(POINTS, np.zeros((6, 1), int))),
    ("labels", lambda: lr.lda.lda(POINTS, [0.0] * 5 + [math.nan])),
    ("labels", lambda: lr.lda.lda(POINTS, np.array([1, "1"] * 3, object))),
    ("labels", lambda: lr.lda.lda(POINTS, np.array([2**63 + 1, -1] * 3, object))),
    ("k", lambda: lr.lda.lda(POINTS, range(6), 1)),  # a point a class
    ("k", lambda: lr.lda.lda(POINTS[:, [0, 0]], [0, 1, 2] * 2, 2)),
    ("x", lambda: lr.nmf.nmf([[0.0, -1e-12]], 1)),
    ("observed", lambda: lr.factorize_ratings(A, HIDDEN, 1)),
    ("observed", lambda: lr.factorize_ratings(A, EVERY[:1], 1)),
    ("observed", lambda: lr.factorize_ratings(NOT_A_NUMBER, np.ones((2, 2), bool), 1)),
    ("ratings", lambda: lr.factorize_ratings(A, ~EVERY, 1)),
    ("ratings", lambda: lr.factorize_ratings(A[:0], EVERY[:0], 1)),
    ("ratings", lambda: lr.factorize_ratings(A * math.nan, EVERY, 1)),
    ("ratings", lambda: lr.factorize_ratings(A * 1e80, EVERY, 1)),
    ("ratings", lambda: lr.factorize_ratings(EVERY, EVERY, 1)),
    ("ratings", lambda: lr.factorize_ratings(stored([5.0] * 2, [0, 1], [0, 1, 2, 2]), None, 1)),
    ("ratings", lambda: lr.factorize_ratings(stored([], [], [0] * 4), None, 1)),
    ("regularization", lambda: lr.factorize_ratings(A, EVERY, 1, regularization=math.inf)),
    ("tolerance", lambda: lr.factorize_ratings(A, EVERY, 1, tolerance=1)),
    ("ratings", lambda: lr.factorize_ratings(A, EVERY, 1).transform(A.T)),
    ("ratings", lambda: lr.factorize_ratings(TWICE, None, 1)),
    ("ratings", lambda: lr.factorize_ratings(TWICE.T, None, 1)),
    ("ratings", lambda: lr.factorize_ratings(TWICE.tocoo(), None, 1)),
    ("x", lambda: lr.Autoencoder(3, 1)(torch.ones(2, 3).double())),
    ("x", lambda: lr.Autoencoder(3, 1).fit(torch.ones(0, 3))),
    ("x", lambda: lr.Autoencoder(3, 1).fit(torch.eye(3) * 1e38)),
    ("x", lambda: lr.Autoencoder(3, 1).fit(torch.ones(2, 3, device="meta"))),
    ("parameters", lambda: spoiled(math.nan).fit(torch.eye(3))),
    ("k", lambda: lr.norm_failure_bound(2**53 + 1, 0.5)),
    ("eps", lambda: lr.norm_failure_bound(3, 0)),
    ("eps", lambda: lr.norm_failure_probability(3, 1)),
    ("delta", lambda: lr.min_dim(10, 0.5, delta=1)),
    ("rho", lambda: lr.inner_product_std(1 + 2**-52, 3)),
    ("x", lambda: lr.distortion([[5], [1], [2], [2], [1]], [[1]])),
    ("x", lambda: lr.distortion([[0], [-0.0]], [[1]])),
    ("p @ v", lambda: lr.projected_product_error([[1, 1]], [[1], [-1]], 3)),
    ("y", lambda: lr.sign_inner_products(POINTS, A, A)),
    ("projection", lambda: lr.sign_inner_products(POINTS, POINTS, A)),
    ("projection", lambda: lr.distortion(POINTS, A)),
    ("v", lambda: lr.projected_product_error(A, A, 1)),
]


@pytest.mark.parametrize(("name", "call"), TOGETHER)
def test_arguments_must_fit(name, call):
    with pytest.raises((ValueError, TypeError), match=rf"^{name}\b.* must "):
        call()
