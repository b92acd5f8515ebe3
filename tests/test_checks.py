"""Shared checks: what they accept, what they refuse, in which words, and each bound from both sides."""

import copy
import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch

from lowrank_tutor._checks import (
    as_matrix,
    as_spectrum,
    as_vector,
    as_vectors,
    check_bool,
    check_choice,
    check_integer,
    check_rank,
    check_real,
    check_rng,
    check_size,
)
from lowrank_tutor.attention import (
    linear_attention,
    performer_attention,
    softmax_attention,
    softmax_cost,
)
from lowrank_tutor.autoencoder import Autoencoder
from lowrank_tutor.caches import (
    compress,
    inject_lora,
    kv_cache_numbers,
    latent_attention,
    latent_from_heads,
    load_lora,
    newton_schulz,
    power_step,
    read_config,
    serve,
)
from lowrank_tutor.factorization import factorize_ratings
from lowrank_tutor.kit.charts import curves
from lowrank_tutor.layers import LinformerEncoderLayer, from_mha
from lowrank_tutor.lda import lda
from lowrank_tutor.linformer import LinformerSelfAttention
from lowrank_tutor.nmf import nmf
from lowrank_tutor.pca import PCA
from lowrank_tutor.rank import numerical_rank, rank_factorization
from lowrank_tutor.roofline import attention_bytes
from lowrank_tutor.states import delta_attention, linear_state, window_attention
from lowrank_tutor.storyteller import next_words
from lowrank_tutor.svd import choose_rank, noise_edge, randomized_svd, truncated_svd


class NoArray:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not today")

    def __repr__(self):
        return "NoArray()"


def integer(value):
    return check_integer(value, "x", 2, 5, "the end")


def real(value):
    return check_real(value, "x", "at least 0 and below 1", 0, 1)


def choice(value):
    return check_choice(value, "x", ("up", "down"))


a, vector, vectors, spectrum = (
    lambda value, check=it: check(value, "x")
    for it in (as_matrix, as_vector, as_vectors, as_spectrum)
)


def refuse(error, call, value, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call(value)


REAL = "x must be an array of real numbers, got "
RECTANGLE = "x must be a rectangular array of real numbers, got "
MATRIX = "x must be a matrix (two axes), got shape "
VECTOR = "x must be a vector (one axis), got shape "
EMPTY = "x must be non-empty, got shape "
UNREADABLE = "x must be an array, got a tensor that NumPy cannot read: "
INTEGER = "x must be an integer, got "
NUMBER = "x must be a real number, got "
INSIDE = "x must be at least 0 and below 1, got "
WORD = 'x must be "up" or "down", got '
RNG = "rng must be a numpy.random.Generator, a seed (an integer) or None, got "

SPECTRUM = ": np.linalg.svd(a, compute_uv=False) gives those of a matrix"
CENTERED = "m = np.nanmean(x, axis=0), then lr.factorize_ratings(x - m, None, k).estimates + m"

WRONG_VALUES = [
    (a, [[1.0, np.nan]], f"x must be finite, got nan at [0, 1]: to fill gaps, {CENTERED}"),
    (a, [[1.0, np.inf]], "x must be finite, got inf at [0, 1]"),
    (a, np.zeros((0, 3)), EMPTY + "(0, 3)"),
    (a, NoArray(), RECTANGLE + "NoArray()"),
    (a, np.ones((2, 2, 2)), MATRIX + "(2, 2, 2)"),
    (vector, 1.0, VECTOR + "()"),
    (vectors, 1.0, "x must be a vector or an array of vectors (at least one axis), got shape ()"),
    (spectrum, [1.0, 0.0, -2.0], "x must be non-negative, got -2.0" + SPECTRUM),
    (spectrum, np.eye(2), VECTOR + "(2, 2)" + SPECTRUM),
    (spectrum, [3.0, 1.0, 2.0, 4.0], "x must be non-increasing, got 1.0 before 2.0" + SPECTRUM),
    (integer, 1, "x must be between 2 and the end = 5, got 1"),
    (integer, 6, "x must be between 2 and the end = 5, got 6"),
    (lambda v: check_integer(v, "x", 2), 1, "x must be at least 2, got 1"),
    pytest.param(
        integer,
        10**5000,
        "x must be below 2**4096 in size, got an integer of 16610 bits",
        id="huge",
    ),
    (lambda v: check_rank(v, (2, 3)), 0, "k must be between 1 and min(m, n) = 2, got 0"),
    (lambda v: check_rank(v, (2, 3)), 3, "k must be between 1 and min(m, n) = 2, got 3"),
    (lambda v: check_size(v, "x", bits=3), 0, "x must be at least 1, got 0"),
    (lambda v: check_size(v, "x", bits=3), 8, "x must be below 2**3, got 8"),
    (real, 1, INSIDE + "1.0"),
    (real, -5e-324, INSIDE + "-5e-324"),
    (real, 10**400, INSIDE + "inf"),
    (lambda v: check_real(v, "x", "finite", 0), math.inf, "x must be finite, got inf"),
    (check_rng, -1, "rng must be at least 0, got -1"),
]


class Frame:
    """A table that prints itself over several lines, as pandas' do."""

    def __init__(self, rows):
        self.rows = rows

    def __array__(self, *_args, **_kwargs):
        return np.array(self.rows, dtype=object)

    def __repr__(self):
        return "\n".join(map(str, self.rows * 9))

    def astype(self, _dtype):
        return self


class Mixed(Frame):
    """A table of columns with types of their own, as pandas' are."""

    dtypes = (np.dtype(bool), np.dtype(float))

    def select_dtypes(self, _include):
        raise NotImplementedError

    def isna(self):
        return self

    def to_numpy(self):
        return np.array([row[1] != row[1] for row in self.rows])

    def astype(self, dtype):
        return np.array(self.rows, dtype)


def test_tables_of_bools_and_numbers():
    assert numerical_rank(Mixed([[True, 0.5], [False, 2.0]])) == 2
    with pytest.raises(
        TypeError, match=r"got dtype object: \.astype\(float\) reads NA and numbers"
    ):
        numerical_rank(Mixed([[True, np.nan]]))


WRONG_TYPES = [
    (a, np.array([["a"]]), REAL + "dtype <U1"),
    (a, np.array([[1j]]), REAL + "dtype complex128: np.linalg.svd takes complex ones"),
    (a, Frame([[1, "x"]]), REAL + "dtype object: try .astype(float)"),
    (integer, torch.ones(1, requires_grad=True), INTEGER + "an unprintable Tensor"),
    (
        a,
        np.ma.masked_equal([[1.0, 2.0]], 2.0),
        "x must be an array without a mask, got a masked array",
    ),
    (
        a,
        torch.ones(1, 1, device="meta"),
        "x must be an array, got a meta tensor, which holds no numbers",
    ),
    (
        a,
        torch.ones(1, 1, requires_grad=True),
        UNREADABLE + ".detach().cpu().float() makes one that it can",
    ),
    (a, torch.eye(2).to_sparse(), UNREADABLE + ".to_dense() makes one that it can"),
    (integer, True, INTEGER + "True"),
    (integer, np.array([3]), INTEGER + "dtype int64"),
    (integer, np.timedelta64(3), INTEGER + repr(np.timedelta64(3))),
    (real, True, NUMBER + "True"),
    (choice, None, WORD + "None"),
    (lambda v: check_bool(v, "x"), 1, "x must be True or False, got 1"),
    (check_rng, "0", RNG + "'0'"),
]


@pytest.mark.parametrize(("call", "value", "message"), WRONG_VALUES)
def test_wrong_values_are_refused(call, value, message):
    refuse(ValueError, call, value, message)


@pytest.mark.parametrize(("call", "value", "message"), WRONG_TYPES)
def test_wrong_types_are_refused(call, value, message):
    refuse(TypeError, call, value, message)


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [(np.float64, 1e-75, 1e75), (np.float32, 1e-12, 1e12)]
)
@pytest.mark.parametrize(
    ("check", "shape"), [(as_matrix, (2, 1)), (as_vector, (2,)), (as_vectors, (2, 1, 1))]
)
def test_bounds_of_largest_entry(check, shape, dtype, low, high):
    rule = f"x must have a largest absolute entry between {low:g} and {high:g}, got"
    for sign in (1, -1):
        for edge in (dtype(low), dtype(high)):
            array = np.array([0, sign * edge], dtype=dtype).reshape(shape)
            np.testing.assert_array_equal(check(array, "x"), array)
        for size in (np.nextafter(dtype(low), dtype(0)), np.nextafter(dtype(high), dtype(np.inf))):
            array = np.array([0, sign * size], dtype=dtype).reshape(shape)
            refuse(ValueError, lambda v: check(v, "x"), array, f"{rule} {size!s}: change the unit")


def test_small_entries_pass():
    for value in (
        [[1.0, 1e-300], [-5e-324, 0.0]],
        [[0.0]],
        [[False]],
        np.float16([[6e-8]]),
        [[2**63]],
    ):
        np.testing.assert_array_equal(a(value), np.asarray(value, dtype=np.float64))
    np.testing.assert_array_equal(
        spectrum([3, 3, 0, 0]), [3.0, 3.0, 0.0, 0.0]
    )  # level steps and zeros at the end


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.float16, np.float32),
        (np.longdouble, np.float64),
        (">f8", np.float64),
        (np.uint64, np.float64),
        (bool, float),
    ],
)
def test_dtypes(given, kept):
    for check, value in ((as_matrix, [[1, 0]]), (as_vector, [1, 0]), (as_vectors, [[[1, 0]]])):
        array = check(np.array(value, dtype=given), "x")
        assert array.dtype == kept
        assert array.dtype.isnative
        np.testing.assert_array_equal(array, value)
    assert a(eye := np.eye(2)) is eye  # no needless copy


def test_numbers_of_every_kind_pass():
    for value in (2, np.int8(2), 10**400):
        number = check_integer(value, "x", 2)
        assert (number, type(number)) == (value, int)
    assert [integer(value) for value in (2, np.uint64(5))] == [2, 5]
    assert [check_rank(value, (3, 2), "x") for value in (1, 2)] == [1, 2]
    assert [check_size(value, "x", bits=3) for value in (1, np.int8(7))] == [1, 7]
    assert check_size(2**31 - 1, "x") == 2**31 - 1
    for value in (0, 0.5, Fraction(1, 2), np.float32(0.5), math.nextafter(1, 0)):
        number = real(value)
        assert (number, type(number)) == (value, float)
    assert check_real(1.7e308, "x", "at least 0", 0) == 1.7e308
    assert choice("up") == "up"
    assert check_bool(False, "x") is False


Q = torch.zeros(1, 2, 4, 8)
EYE, MODEL = np.eye(3), torch.nn.Sequential(torch.nn.Linear(4, 4))
FOREIGN_NAMES = {
    "random_state: rng is its name": lambda: nmf(EYE, 2, random_state=0),
    "random_state: nothing is drawn": lambda: PCA(random_state=0),
    "n_components: k is its name": lambda: truncated_svd(EYE, n_components=2),
    "n_iter: power_iterations is its name": lambda: randomized_svd(EYE, 2, n_iter=7),
    "max_iter: max_sweeps is its name": lambda: factorize_ratings(EYE, None, 2, max_iter=7),
    "mask: observed is its name": lambda: factorize_ratings(EYE, k=2, mask=EYE > 0),
    "y: labels is its name": lambda: lda(EYE, y=[0, 1, 1], k=1),
    "tol$": lambda: truncated_svd(EYE, 2, tol=0.1),
    "tol: rtol is a share of the largest singular value": lambda: numerical_rank(EYE, tol=0.1),
    "tol: tolerance is its name": lambda: nmf(EYE, 2, tol=0.1),
    "sigma: noise is its name": lambda: noise_edge(EYE[0], 3, 1, sigma=0.1),
    "scale: divide the columns by": lambda: PCA(2, scale=True),
    "rng: generator is its name": lambda: Autoencoder(3, 2, rng=0),
    "epochs: steps is its name": lambda: Autoencoder(3, 2).fit(torch.eye(3), epochs=9),
    r"k: lr.svd.truncated_svd\(a, k\) takes it, and": lambda: rank_factorization(EYE, k=2),
    "rank: k is its name": lambda: compress(MODEL[0], rank=2),
    "inputs: moment=": lambda: compress(MODEL[0], 2, inputs=EYE),
    "num_key_value_heads: groups is its name": lambda: kv_cache_numbers(32, num_key_value_heads=8),
    "num_heads: heads is its name": lambda: LinformerSelfAttention(64, num_heads=4, max_len=9, k=3),
    "causal: each compressed key": lambda: LinformerSelfAttention(64, 4, 9, 3, causal=True),
    "target_modules: names is its name": lambda: inject_lora(MODEL, target_modules=["0"], r=2),
    "lora_alpha: alpha is its name": lambda: inject_lora(MODEL, "0", 2, lora_alpha=2),
    "dim: d is the width of one head": lambda: attention_bytes(4096, dim=512, heads=8),
    "d: dim, the width of the model": lambda: softmax_cost(8192, d=128, heads=32),
    "head_first: .* is the order here: .*; scale: it cancels.*; output_final_state: return_state is its name": (
        lambda: linear_attention(Q, Q, Q, head_first=False, scale=None, output_final_state=True)
    ),
    "scale: queries are not scaled": lambda: delta_attention(Q, Q, Q, Q[..., 0], scale=None),
    "causal: it is always causal": lambda: window_attention(Q, Q, Q, window=2, m=1, causal=True),
    "nb_features: n_features is its name": lambda: performer_attention(Q, Q, Q, nb_features=5),
    "seq_len: max_len is its name": lambda: from_mha(
        torch.nn.MultiheadAttention(8, 2), seq_len=16, k=4
    ),
    "d_model: dim is its name here; nhead: heads is its name here; seq_len: max_len is its name": (
        lambda: LinformerEncoderLayer(d_model=64, nhead=4, seq_len=128, k=32)
    ),
    "lora_alpha: alpha is its name here; modules_to_save: they learn after": (
        lambda: inject_lora(MODEL, "0", 2, lora_alpha=2, modules_to_save=["1"])
    ),
    'init_lora_weights: for "pissa" alone': lambda: inject_lora(
        MODEL, "0", 2, init_lora_weights="gaussian"
    ),
    "max_model_len: n is its name here; gpu_memory_utilization: share is its name": (
        lambda: serve("Llama-3-70B", max_model_len=1024, gpu_memory_utilization=0.9)
    ),
    "rank: k is its name here$": lambda: latent_from_heads(Q[0], Q[0], rank=2),
    "rank: torch.randn": lambda: power_step(Q[0, 0], rank=2),
    "ns_steps: steps is its name": lambda: newton_schulz(Q, ns_steps=5),
    "calibration: moment=": lambda: compress(MODEL[0], 2, calibration=EYE),
    "value: serve counts": lambda: kv_cache_numbers(2, groups=2, width=4, value=3),
}


@pytest.mark.parametrize("got", FOREIGN_NAMES)
def test_foreign_arguments(got):
    with pytest.raises(TypeError, match=rf"^options must be \w.*, got {got}"):
        FOREIGN_NAMES[got]()


WITHOUT_A_NAME = {
    "s, got 2 of them: name energy, error, gap,": lambda: choose_rank([3, 2, 1], 0.95),
    "a, got 2 of them: name rtol": lambda: numerical_rank(EYE, 0.95),
    "a, got 2 of them: name .*rtol": lambda: rank_factorization(EYE, 0.95),
    "n, got 3 of them: dim, the width of the model": lambda: softmax_cost(8192, 128, 32),
    "model, gpu, got 3 of them: name cards=8, or n=1024": lambda: serve(
        "Llama-3-70B", "H100", 1024
    ),
    "k, v, got 3 of them: for decoding, linear_attention": lambda: linear_state(Q, Q, Q),
    "words, got 2 of them: the model is built in": lambda: next_words(MODEL, "Ada wears"),
}


@pytest.mark.parametrize("got", WITHOUT_A_NAME)
def test_arguments_without_a_name(got):
    with pytest.raises(TypeError, match=f"^arguments without a name must be {got}"):
        WITHOUT_A_NAME[got]()


WITH_A_WAY = {
    "ones and a mask of -inf": (
        lambda: softmax_attention(Q, Q, Q, token_mask=Q[0, :1, :, 0]),
        ": == 0 reads a mask",
    ),
    "a mask of scores": (
        lambda: softmax_attention(Q, Q, Q, token_mask=torch.ones(1, 1, 1, 4, dtype=torch.bool)),
        r": \[:, 0, 0\] has it",
    ),
    "a mask in another order": (
        lambda: softmax_attention(Q, Q, Q, token_mask=torch.ones(1, 2, dtype=torch.bool)),
        ": heads come before tokens",
    ),
    "beta in another order": (
        lambda: delta_attention(Q, Q, Q, Q[..., 0].mT),
        ": heads come before tokens, in q, k, ",
    ),
    "a config": (
        lambda: kv_cache_numbers({"num_hidden_layers": 2}),
        r": read_config\(config\)\.parts has",
    ),
    "a path": (
        lambda: read_config("config.json"),
        r": json\.load\(open\(path\)\) reads one, config\.to_dict\(\)",
    ),
    "a long name": (
        lambda: serve("Llama-3-70B", "H100 80GB"),
        r": gpu_named\(name, bytes of memory\) finds its name",
    ),
    "weights of all heads": (
        lambda: latent_from_heads(Q[0, 0], Q[0, 0], 2),
        r": weight\.unflatten\(0, \(heads, -1\)",
    ),
    "all layers": (lambda: inject_lora(MODEL, "all-linear", 2), r': "\*" takes them all'),
    "no adapters": (lambda: load_lora(MODEL, {}), ": inject_lora first"),
    "a model": (
        lambda: compress(MODEL, 2),
        r": for all layers of a model, the loop in help\(compress\)",
    ),
    "inputs": (
        lambda: compress(MODEL[0], 2, moment=torch.ones(9, 4)),
        r": of inputs x it is x\.T @ x / len\(x\)",
    ),
    "a number": (lambda: power_step(torch.eye(4), 2), r": for rank r pass torch\.randn\(4, r\)"),
    "latents in one": (
        lambda: latent_attention(Q[0], latent_from_heads(Q[0] + 1, Q[0] + 1, 2), Q[0]),
        r": latent_attention\(x, \*latents, w_q\) unpacks them",
    ),
    "a full stop": (lambda: next_words("Ada wears red."), ": put spaces around each mark"),
}


@pytest.mark.parametrize("got", WITH_A_WAY)
def test_refusals_say_what_to_do(got):
    call, way = WITH_A_WAY[got]
    with pytest.raises((TypeError, ValueError), match=f"^.* must .*, got .*{way}"):
        call()


NOT_GIVEN = {
    "m must be given, got nothing: s = np.linalg.svd(a, compute_uv=False)": lambda: noise_edge(EYE),
    "k must be given, got nothing: as in truncated_svd(a, k)": lambda: truncated_svd(EYE),
    "k must be given, got nothing: as in Autoencoder(d, k)": lambda: Autoencoder(3, hidden=3),
    "x must be given, got nothing: as in Autoencoder.fit(x)": lambda: Autoencoder(3, 2).fit(),
    "lines must be given, got nothing: curves(range(1, len(s) + 1), {": lambda: curves(
        EYE[0], at=1
    ),
}


@pytest.mark.parametrize("message", NOT_GIVEN)
def test_arguments_not_given(message):
    with pytest.raises(TypeError, match=f"^{re.escape(message)}"):
        NOT_GIVEN[message]()


LINE = np.arange(12.0).reshape(6, 2) ** 2
RESULTS = {
    "V: take .vt.T": truncated_svd(EYE, 2),
    "W: take .c": nmf(LINE, 1, rng=0),
    "components_: take .f": nmf(LINE, 1, rng=0),
    "predict: take .estimates": factorize_ratings(LINE, LINE > 0, 1),
    "scalings_: take .axes": lda(LINE, [0, 1, 0, 1, 0, 1]),
    "fit_transform: take .project": lda(LINE, [0, 1, 0, 1, 0, 1]),
    "nothing": truncated_svd(EYE, 2),
}


@pytest.mark.parametrize("told", RESULTS)
def test_foreign_attributes(told):
    result, (name, _, way) = RESULTS[told], told.partition(": take ")
    with pytest.raises(
        AttributeError, match=rf"^{type(result).__name__} has no {re.escape(told)}$"
    ):
        getattr(result, name)
    assert not way or eval(f"result{way}") is not None
    assert not hasattr(copy.copy(result), "nothing")


def test_generators_and_seeds():
    rng = np.random.default_rng(0)
    assert check_rng(rng) is rng
    assert check_rng(None).random() != check_rng(None).random()
    for seed in (0, np.int64(42), 2**70):
        assert check_rng(seed).random() == np.random.default_rng(seed).random()


@pytest.mark.parametrize(
    ("kind", "methods", "found"),
    [
        (
            "Sparse",
            ("tocsr", "toarray"),
            "a sparse Sparse of shape (2, 3): .toarray() makes it dense",
        ),
        (
            "Map",
            ("matmat", "rmatmat"),
            "an operator, Map of shape (2, 3): @ np.eye(n) makes it dense",
        ),
    ],
)
def test_way_to_a_dense_array(kind, methods, found):
    value = type(kind, (), {"shape": (2, 3), **dict.fromkeys(methods)})()
    refuse(TypeError, a, value, f"x must be a dense array, got {found}")
    other = f"a must be a dense array, got {found}, and randomized_svd takes it as it is"
    refuse(TypeError, lambda v: truncated_svd(v, 1), value, other)
