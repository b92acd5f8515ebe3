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
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

import lowrank_tutor
from lowrank_tutor import adapters, storyteller
from lowrank_tutor.linformer import LinformerSelfAttention

# The real model needs a package of its own: tests/test_smollm.py.
OTHER_ROOMS = {"byhand", "figures", "answers", "kit", "practice", "smollm"}
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


def array(value: np.ndarray, *, stacks: bool = False, nan: bool = True) -> Argument:
    """Real and finite; where stacks are allowed, more axes are not wrong, and where gaps are, NaN
    is not.
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
    left_out = {"an axis more": stacks, "NaN": not nan}
    return Argument(value, {fault: bad for fault, bad in wrong.items() if not left_out.get(fault)})


def tensor(value: torch.Tensor, *, finite: bool = False, leads: bool = False) -> Argument:
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


def whole(value: int, low: int = 1, high: int | None = None) -> Argument:
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


def real(value: float) -> Argument:
    return Argument(value, {"NaN": math.nan, "a bool": True, "words": "0.5", "complex": 0.5j})


def word(value: str) -> Argument:
    return Argument(value, {"another": "another", "a number": 3})


def some(value: Any, **wrong: Any) -> Argument:
    return Argument(value, wrong)


FLAG = some(False, number=1, words="yes", none=None)
# Arguments that mean the same in every function, and are None by default.
EVERYWHERE = {
    "rng": some(0, negative=-1, fraction=1.5, flag=True, words="3"),
    "generator": some(None, seed=3, words="3"),
    "device": some("cpu", unknown="nowhere", number=3),
    "dtype": some(torch.float32, integers=torch.int64, words="float"),
    "token_mask": some(
        torch.ones(1, 4, dtype=torch.bool),
        numbers=torch.ones(1, 4),
        axes=torch.ones(4, dtype=torch.bool),
        words="words",
    ),
    "feedforward": whole(8),
    "rule": word("sum"),
    "process_group": some(None, words="words", number=3),
}
SCORE = {"s": array(A[0], stacks=True), "h": array(A[1], stacks=True)}
MOMENTS = {"s_moment": array(np.eye(2)), "h_moment": array(np.eye(3))}
FACTORS = {"u": array(np.ones((1, 3))), "v": array(np.ones((1, 3)))}
BOUND = {"k": whole(24, high=2**53), "eps": real(0.5)}
ATTENTION = {"q": tensor(Q, leads=True), "k": tensor(K), "v": tensor(V)}
SIZES = {"dim": whole(8), "heads": whole(2), "max_len": whole(4), "k": whole(2, high=4)}
CARD = {"d": whole(64), "heads": whole(8), "gpu": word("T4"), "batch": whole(1)}
CACHE = {"layers": whole(2), "rotary": whole(0, 0), "index": whole(0, 0)}
LINEAR = some(nn.Linear(8, 4), other=nn.ReLU(), words="words", none=None)
MODEL = nn.Sequential(nn.Linear(8, 4))


def adapted(r: int = 2) -> nn.Module:
    return nn.Sequential(adapters.LoraLinear(nn.Linear(8, 4), r))


NAMES = some("0", unknown="1", number=3, numbers=[3])
MHA = some(
    nn.MultiheadAttention(8, 2, batch_first=True),
    late=nn.MultiheadAttention(8, 2),
    words="words",
    none=None,
)
ENCODER = some(
    nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), other=nn.ReLU(), words="words", none=None
)
KIND = LinformerSelfAttention
LAYER = {**SIZES, "sharing": word("headwise"), "dropout": real(0.0)}
PROJECTION = {**SIZES, "projection": tensor(E)}

SAID = some("Ada wears red", unknown="Ada wears plum", number=3, none=None)
IDS = some(
    [[1, 2]],
    axes=[1, 2],
    words="words",
    fractions=[[1.5]],
    large=[[99]],
    negative=[[-1]],
    empty=[[]],
    none=None,
)
WEIGHTS = some(storyteller.trained_weights(), words="words", empty={}, number=3)
ATTEND = some(
    storyteller.exact,
    words="words",
    number=3,
    three=[storyteller.exact] * 3,
    narrow=lambda q, k, v: v[..., :3],
)
DIRECTIONS = array(np.ones((3, 16)))

ROWS: dict[str, dict[str, Argument] | list[dict[str, Argument]]] = {
    "break_even_rank": {"m": whole(3), "n": whole(4)},
    "effective_rank": {"s": array(SPECTRUM, stacks=True)},
    "numerical_rank": {"a": array(A, stacks=True), "rtol": real(0.1)},
    "rank_factorization": {"a": array(A), "rtol": real(0.1)},
    "stable_rank": {"a": array(A, stacks=True)},
    "storage": {"m": whole(3), "n": whole(4), "k": whole(1, high=3)},
    "best_rank_k": {"a": array(A, stacks=True), "k": whole(1, high=2)},
    "choose_rank": [
        {"s": array(SPECTRUM), "energy": real(0.9), "total": real(14.0)},
        {"s": array(SPECTRUM), "error": real(0.3)},
        {"s": array(SPECTRUM), "gap": FLAG._replace(value=True)},
        {"s": array(SPECTRUM), "threshold": real(1.5)},
    ],
    "fix_signs": {"vectors": array(A, stacks=True)},
    "hard_threshold": {
        "s": array(SPECTRUM), "m": whole(3), "n": whole(3, high=2**53), "noise": real(0.5),
    },
    "noise_edge": {
        "s": array(SPECTRUM), "m": whole(3), "n": whole(3, high=2**53), "noise": real(0.5),
    },
    "randomized_svd": {
        "a": array(A), "k": whole(1, high=2), "oversample": whole(1, 0),
        "power_iterations": whole(1, 0),
    },
    "relative_error": {"approx": array(A), "exact": array(A, stacks=True), "norm": word("fro")},
    "tail_error": {"s": array(SPECTRUM), "k": whole(1, 0, 3), "norm": word("spectral")},
    "truncated_svd": {"a": array(A, stacks=True), "k": whole(1, high=2)},
    "PCA": {"n_components": some(1, zero=0, negative=-1, above=1.5, flag=True, words="3",
                                 nan=math.nan)},
    "PCA.get_feature_names_out": {"input_features": some(None)},
    "PCA.fit": {"x": array(POINTS)},
    "PCA.fit_transform": {"x": array(POINTS)},
    "PCA.transform": {"x": array(POINTS)},
    "PCA.inverse_transform": {"z": array(POINTS[:, :1])},
    "lda": {
        "x": array(POINTS),
        "labels": some(list("aaabbb"), one=["a"] * 6, short=["a", "b"], none=None),
        "k": whole(1, high=1),
    },
    "Discriminants.project": {"x": array(POINTS)},
    "Discriminants.classify": {"x": array(POINTS)},
    "Discriminants.transform": {"x": array(POINTS)},
    "Discriminants.predict": {"x": array(POINTS)},
    "nmf": {
        "x": array(A), "k": whole(1, high=2), "starts": whole(1), "tolerance": real(1e-4),
        "max_sweeps": whole(9),
    },
    "NMFResult.transform": {"x": array(A)},
    "factorize_ratings": {
        "ratings": array(A, nan=False),
        "observed": some(np.ones((2, 3), bool), words="words", numbers=A, axes=[True]),
        "k": whole(1, high=2), "regularization": real(1.0), "tolerance": real(0.1),
        "max_sweeps": whole(2),
    },
    "RatingFactors.transform": {
        "ratings": array(A, nan=False),
        "observed": some(np.ones((2, 3), bool), words="words", numbers=A, axes=[True]),
    },
    "Autoencoder": {"d": whole(8), "k": whole(2, high=8), "hidden": whole(3, 2)},
    "Autoencoder.encode": {"x": tensor(torch.ones(3, 8))},
    "Autoencoder.decode": {"z": tensor(torch.ones(3, 2))},
    "Autoencoder.forward": {"x": tensor(torch.ones(3, 8))},
    "Autoencoder.fit": {"x": tensor(torch.randn(3, 8), finite=True), "steps": whole(1, 0)},
    "distortion": {"x": array(POINTS), "projection": array(np.ones((1, 2)))},
    "gaussian_projection": {"k": whole(2), "d": whole(3)},
    "inner_product_failure_bound": BOUND,
    "inner_product_std": {"rho": real(0.5), "k": whole(2)},
    "min_dim": {
        "n_points": whole(9, 2), "eps": real(0.5), "delta": real(0.1), "bound": word("chernoff"),
    },
    "norm_failure_bound": BOUND,
    "norm_failure_chernoff": BOUND,
    "norm_failure_probability": BOUND,
    "projected_product_error": {"p": array(A), "v": array(A.T), "k": whole(2)},
    "sign_inner_product_std": {"rho": real(0.5), "k": whole(2)},
    "sign_inner_products": {
        "x": array(POINTS), "y": array(POINTS), "projection": array(np.ones((1, 2))),
    },
    "attention_bytes": {
        "n": whole(16), "d": whole(2), "heads": whole(2), "k": whole(4, high=16), "batch": whole(1),
    },
    "fused_backends": ATTENTION,
    "gpu_crossover": {"k": whole(256), **CARD},
    "gpu_floor": {"n": whole(16), "k": whole(4, high=16), **CARD},
    "gpu_named": {"name": some("T4", number=3, none=None), "memory": real(16e9)},
    "half_type": {"device": EVERYWHERE["device"]},
    "trials": {
        "lengths": some([64], number=3, fractions=[1.5], zero=[0], none=None), "d": whole(64),
        "heads": whole(8),
        "k": whole(4, high=64), "free": real(1e9),
    },
    "attention": {"x": array(np.array([[1.0, 0], [0, 1]]))},
    "score": {**SCORE, "w": array(np.ones((3, 3)))},
    "reduced_rank_score": {**SCORE, **FACTORS},
    "factorize": {"w": array(A), "k": whole(1, high=2), **MOMENTS},
    "score_error": {"w": array(A), "u": array(np.ones((1, 2))), "v": FACTORS["v"], **MOMENTS},
    "fit_factors": {"target": array(A), "k": whole(1, high=2), "steps": whole(2, 0)},
    "ReducedRankAttention": {"query_dim": whole(8), "key_dim": whole(8), "k": whole(2, high=8)},
    "ReducedRankAttention.scores": {"query": tensor(X), "keys": tensor(X)},
    "ReducedRankAttention.forward": {"query": tensor(X), "keys": tensor(X), "values": tensor(X)},
    "compress": {"linear": LINEAR, "k": whole(2, high=4), "moment": tensor(GAMMA, finite=True)},
    "inject_lora": {"model": some(MODEL, words="words"), "names": NAMES, "r": whole(2, high=4)},
    "input_moments": {"model": some(MODEL, words="words"), "names": NAMES},
    "kv_cache_numbers": [
        {**CACHE, "heads": whole(2), "width": whole(4)},
        {**CACHE, "groups": whole(2), "width": whole(4)},
        {**CACHE, "latent": whole(8)},
    ],
    "read_config": {
        "config": some(
            {"model_type": "by hand", "layers": 1, "groups": 2, "width": 4},
            words="words", number=3, none=None, empty={},
        ),
    },
    "serve": {
        "model": some("Llama-3-70B", unknown="Llama", number=3, none=None), "gpu": word("H100"),
        "cards": whole(8),
        "split": word("data"), "n": whole(64), "weight_bits": real(16), "cache_bits": whole(16),
        "share": real(0.9),
        "other": real(2.0), "billions": real(70.0),
    },
    "latent_attention": [
        {
            "x": tensor(X), "w_dkv": tensor(torch.ones(8, 3)), "w_uk": tensor(torch.ones(2, 3, 4)),
            "w_uv": tensor(torch.ones(2, 3, 4)), "w_q": tensor(torch.ones(2, 8, 4)),
            "q_rope": tensor(torch.ones(1, 2, 4, 2)), "k_rope": tensor(torch.ones(1, 4, 2)),
            "causal": FLAG._replace(value=True), "state": some(None, number=3, words="words"),
        },
    ],
    "latent_cost": {
        "n": whole(9), "heads": whole(2), "d_h": whole(4), "d_c": whole(3), "d_rope": whole(0, 0),
        "absorb": FLAG,
    },
    "latent_from_heads": {
        "w_k": tensor(torch.ones(2, 8, 4), finite=True),
        "w_v": tensor(torch.ones(2, 8, 4), finite=True),
        "k": whole(2, high=8), "moment": tensor(GAMMA, finite=True),
    },
    "LoraLinear": {
        "linear": LINEAR, "r": whole(2, high=4), "alpha": real(1.0), "scaling": word("alpha/r"),
        "init": word("zero"),
    },
    "LoraLinear.forward": {"x": some(X, axes=torch.tensor(1.0), width=X[..., :3], words="words",
                                     none=None)},
    "merge_lora": {"model": some(adapted(), plain=MODEL, words="words")},
    "load_lora": {
        "model": some(adapted(), plain=MODEL, words="words"),
        "state": some(adapters.lora_state(adapted()), words="words", empty={},
                      rank=adapters.lora_state(adapted(3))),
    },
    "lora_state": {"model": some(adapted(), plain=MODEL, words="words")},
    "without_lora": {"model": some(adapted(), plain=MODEL, words="words")},
    "newton_schulz": {
        "x": some(GAMMA, axes=GAMMA[0], words="words", none=None, integers=GAMMA.long()),
        "steps": whole(2, 0),
    },
    "power_step": {"m": tensor(torch.ones(3, 2)), "q": tensor(torch.ones(2, 1))},
    "rank_report": [
        {"model": some(MODEL, words="words", none=None, empty={}, tensor=GAMMA)},
        {"model": some(MODEL), "names": NAMES},
    ],
    "attention_weights": {"q": tensor(Q, leads=True), "k": tensor(K)},
    "linear_attention": {
        **ATTENTION, "causal": FLAG._replace(value=True),
        "state": some(None, number=3, words="words"),
    },
    "orthogonal_features": {"n_features": whole(4), "d": whole(4)},
    "performer_attention": [
        {**ATTENTION, "n_features": whole(4)},
        {**ATTENTION, "features": tensor(torch.ones(3, 4))},
    ],
    "softmax_attention": ATTENTION,
    "softmax_cost": {"n": whole(16), "dim": whole(8), "heads": whole(2)},
    "block_ranks": {"m": tensor(KEYS, finite=True), "rtol": real(0.1)},
    "causal_decay": {"a": tensor(RATES, leads=True)},
    "delta_attention": {
        **ATTENTION, "beta": tensor(torch.full((1, 2, 4), 1e-3)),
        "log_decay": tensor(torch.zeros(1, 2, 4)),
        "chunk": whole(2),
        "state": some(torch.zeros(1, 2, 4, 4), axes=torch.zeros(4, 4), words="words"),
    },
    "linear_state": {
        "k": tensor(KEYS, leads=True), "v": tensor(VALUES), "decay": real(0.5), "delta": real(0.5),
    },
    "recall_error": {
        "state": tensor(torch.ones(4, 3)), "k": tensor(KEYS, leads=True), "v": tensor(VALUES),
    },
    "window_attention": {
        **ATTENTION, "window": whole(2), "m": whole(2),
        "state": some(None, number=3, words="words"),
    },
    "wy": {"k": tensor(KEYS, leads=True), "beta": tensor(RATES)},
    "stories": {"n": whole(2), "facts": some(3, one=1, nine=9, fraction=2.5, words="3")},
    "encode": {"words": SAID},
    "answer": {"words": SAID},
    "grade": {
        "model": some(storyteller.forward, words="words", none=None),
        "told": some(storyteller.stories(1, rng=0), words="words", none=None, numbers=[1]),
        "attend": ATTEND,
    },
    "forward": {"ids": IDS, "attend": ATTEND, "weights": WEIGHTS},
    "tables": {"ids": IDS, "attend": ATTEND, "weights": WEIGHTS},
    "next_words": {"words": SAID, "attend": ATTEND, "weights": WEIGHTS},
    **{cut: {"count": whole(2)} for cut in ("sheets", "window", "means", "top", "unusual")},
    "bits": {"count": whole(3, high=16)},
    **{cut: {"directions": DIRECTIONS} for cut in ("features", "projected", "signs")},
    "index": {"count": whole(2), "directions": DIRECTIONS},
    "cut_scores": {"weights": WEIGHTS, "rank": whole(2, high=16)},
    "cut_latents": {
        "weights": WEIGHTS, "rank": whole(2, high=64),
        "moments": some(None, words="x", one={"layers.0": np.eye(64)}),
    },
    "load": {"weights": WEIGHTS},
    "train": {"steps": whole(1), "attend": some(None, words="words", number=3),
              "report": some(None, words="words")},
    "Storyteller.forward": {"ids": IDS, "attend": some(None, words="words", number=3)},
    "Storyteller.tables": {"ids": IDS},
    "Storyteller.encode": {"words": SAID},
    "linformer_attention": {**ATTENTION, "e": tensor(E), "f": tensor(E)},
    "linformer_cost": {"n": whole(4, high=4), **SIZES, "sharing": word("headwise")},
    "pooling_projection": {"k": whole(2, high=4), "max_len": whole(4)},
    "LinformerSelfAttention": [PROJECTION, LAYER],
    "LinformerSelfAttention.forward": {"x": tensor(X)},
    "LinformerCrossAttention": [PROJECTION, LAYER],
    "LinformerCrossAttention.forward": {"x": tensor(X), "memory": tensor(X)},
    "LinformerEncoderLayer": {
        **SIZES, "feedforward": whole(8), "dropout": real(0.0), "activation": word("gelu"),
    },
    "from_layer": {"layer": ENCODER, "max_len": whole(4), "k": whole(2, high=4)},
    "from_mha": {
        "mha": MHA, "max_len": whole(4), "k": whole(2, high=4),
        "kind": some(KIND, other=nn.Linear, words="words"),
    },
    "resized": {
        "model": some(KIND(8, 2, 4, 2), other=nn.ReLU(), none=None), "max_len": whole(8, 4),
    },
    "LinformerEncoderLayer.forward": {
        "src": tensor(X), "src_mask": some(None, weights=torch.zeros(4, 4)),
        "src_key_padding_mask": some(torch.zeros(1, 4), axes=torch.zeros(4),
                                     number=torch.ones(1, 4), words="words"),
    },
}  # fmt: skip


def public_modules() -> list[ModuleType]:
    names = [
        part.name
        for part in pkgutil.iter_modules(lowrank_tutor.__path__)
        if not part.name.startswith("_")
    ]
    rooms = sorted(set(names) - OTHER_ROOMS)
    return [importlib.import_module(f"lowrank_tutor.{name}") for name in rooms]


def public_calls() -> dict[str, Callable[..., Any]]:
    """Return all public functions, classes that are no plain tuples, and methods that take
    arguments, by name.
    """
    calls: dict[str, Callable[..., Any]] = {}
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


def parameters_of(call: Callable[..., Any]) -> dict[str, inspect.Parameter]:
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


def call_by_name(key: str, arguments: dict[str, Any]) -> Any:
    """Call a function, make an object, or call the method of a new one."""
    kind, _, method = key.partition(".")
    if not method:
        result = CALLS[key](**arguments)
        return result.__enter__() if hasattr(result, "__enter__") else result
    return getattr(
        OBJECTS[kind]() if kind in OBJECTS else CALLS[kind](**valid(rows_of(kind)[0])), method
    )(**arguments)


def rows_of(key: str) -> list[dict[str, Argument]]:
    row = ROWS[key]
    return row if isinstance(row, list) else [row]


def valid(row: dict[str, Argument]) -> dict[str, Any]:
    return {name: argument.value for name, argument in row.items()}


CALLS = public_calls()
OBJECTS: dict[str, Callable[[], Any]] = {
    "PCA": lambda: CALLS["PCA"](1).fit(POINTS),
    "Discriminants": lambda: CALLS["lda"](POINTS, list("aaabbb"), 1),
    "NMFResult": lambda: CALLS["nmf"](A, 1, starts=1),
    "RatingFactors": lambda: CALLS["factorize_ratings"](A, np.ones((2, 3), bool), 1),
    "Storyteller": storyteller.load,
}


def arguments_of(key: str, row: dict[str, Argument]) -> dict[str, Argument]:
    """Add to a row the arguments that mean the same everywhere, and flags."""
    more = dict(row)
    for name, parameter in parameters_of(CALLS[key]).items():
        if name not in row and isinstance(parameter.default, bool):
            more[name] = FLAG
        elif name not in row and name in EVERYWHERE:
            more[name] = EVERYWHERE[name]
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
