"""Helpers of the book *Low-Rank Attention*: one concept, one module.

``import lowrank_tutor as lr`` is enough: ``lr.svd.truncated_svd(a, k)`` imports ``svd`` when you
first use it, and nothing else; ``lr.truncated_svd`` finds its module. The book explains every
module, and its page *Cheat sheet* says what to call: https://lowrank-tutor.github.io/lowrank-tutor.
The chapters that docstrings name, such as ``book/02-svd-pca.md``, are in its source,
https://github.com/lowrank-tutor/lowrank-tutor.
"""

import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what __getattr__ does, for editors
    from lowrank_tutor import (  # noqa: F401, I001 (in the order of the book)
        rank, svd, pca, lda, nmf, factorization, autoencoder, jl, bilinear, attention, linformer, layers, shards,
        roofline, caches, states, storyteller, smollm, sentence, byhand, figures, answers, practice, kit,
    )  # fmt: skip

__all__ = [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]
__version__ = "0.1.0"

_QKV = "(q, k, v) with (batch, heads, tokens, width)"
# What to call for names that other libraries have, and for modules that are called like functions.
CALLS = {
    ("rank", "matrix_rank"): "lr.rank.numerical_rank(a)",
    ("svd", "TruncatedSVD"): "lr.svd.truncated_svd(a, k), or in a pipeline scikit-learn's",
    (
        "rsvd",
        "LSA",
        "LatentSemanticAnalysis",
        "svds",
    ): "lr.svd.randomized_svd(a, k), or SciPy's exact svds(a, k)",
    ("svdvals", "pinv", "cond", "condition_number"): "numpy.linalg's",
    (
        "lstsq",
        "least_squares",
        "PCR",
    ): "numpy.linalg.lstsq(a, b, rcond=0.01), which cuts small directions",
    ("scree", "scree_plot"): 'lr.kit.curves(range(1, len(s) + 1), {"singular values": s})',
    (
        "ppmi",
        "PMI",
        "embed",
        "word2vec",
    ): "lr.svd.randomized_svd(counts, k), with counts of your own",
    (
        "CUR",
        "qr",
        "pivoted_qr",
        "column_subset",
        "select_columns",
    ): "scipy.linalg.qr(a, pivoting=True)[2][:k]",
    (
        "skeleton",
        "interpolative",
        "interpolative_decomposition",
    ): "lr.rank.rank_factorization(a), or SciPy's",
    ("pca",): "lr.pca.PCA(k).fit_transform(x)",
    (
        "lda",
        "LinearDiscriminantAnalysis",
    ): "lr.lda.lda(x, labels, k), or in a pipeline scikit-learn's",
    ("nmf",): "lr.nmf.nmf(x, k)",
    ("factorization", "als", "matrix_factorization", "matrix_completion", "SoftImpute"): (
        "lr.factorization.factorize_ratings(ratings, None, k)"
    ),
    ("IterativeImputer", "SimpleImputer", "impute"): (
        "lr.factorization.factorize_ratings(x - m, None, k).estimates + m, with m = np.nanmean(x, axis=0)"
    ),
    ("cosine_similarity", "cosine_distances", "cosine", "similarity", "NearestNeighbors"): (
        "unit @ unit.T, with unit = x / np.linalg.norm(x, axis=1, keepdims=True), for all cosines"
    ),
    ("jl", "random_projection", "GaussianRandomProjection"): "lr.jl.gaussian_projection(k, d)",
    ("johnson_lindenstrauss_min_dim",): "lr.jl.min_dim(n_points, eps)",
    (
        "SparseRandomProjection",
        "sparse_projection",
    ): "scikit-learn's, or lr.jl.gaussian_projection(k, d)",
    ("autoencoder",): "lr.autoencoder.Autoencoder(d, k)",
    ("bilinear",): "lr.bilinear.factorize(w, k)",
    ("attention", "sdpa", "scaled_dot_product_attention", "GQA", "flash_attn_func"): (
        f"lr.attention.softmax_attention{_QKV} (k and v may have fewer heads), or PyTorch's own"
    ),
    (
        "MultiheadAttention",
        "from_mha",
    ): "lr.layers.from_mha(mha, max_len, k), which converts torch.nn's",
    (
        "convert",
        "convert_model",
        "TransformerEncoderLayer",
    ): "lr.layers.from_layer(layer, max_len, k) for each layer",
    ("performer", "FastAttention"): "lr.attention.performer_attention(q, k, v)",
    (
        "LinearAttention",
        "linear_transformer",
        "chunk_linear_attn",
    ): f"lr.attention.linear_attention{_QKV}",
    ("sliding_window", "sliding_window_attention", "local_attention"): (
        "PyTorch's scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(n, n, dtype=bool).tril().triu(1-window))"
        "; or, to see means of older tokens too, lr.states.window_attention(q, k, v, window=64, m=8)"
    ),
    (
        "DeltaNet",
        "GatedDeltaNet",
        "delta_rule",
        "delta_net",
        "chunk_delta_rule",
        "chunk_gated_delta_rule",
    ): (
        "lr.states.delta_attention(q, k, v, beta) with (batch, heads, tokens, width), beta (batch, heads, tokens)"
    ),
    (
        "KVCache",
        "kv_cache",
        "kv_cache_size",
    ): "lr.caches.kv_cache_numbers(layers, groups=groups, width=width)",
    ("MLA", "MultiHeadLatentAttention"): "lr.caches.latent_attention(x, w_dkv, w_uk, w_uv, w_q)",
    ("linformer",): "lr.linformer.LinformerSelfAttention(dim, heads, max_len, k)",
    (
        "lora",
        "LoraConfig",
        "get_peft_model",
        "PeftModel",
        "add_lora",
    ): "lr.caches.inject_lora(model, names, r)",
    ("DoRA",): "lr.caches.inject_lora(model, names, r, magnitude=True)",
    ("merge_and_unload",): "lr.caches.merge_lora(model)",
    (
        "count_parameters",
        "print_trainable_parameters",
    ): "sum(p.numel() for p in model.parameters() if p.requires_grad)",
    ("save_lora",): "lr.caches.lora_state(model), and torch.save",
    (
        "add_weighted_adapter",
        "average_lora",
    ): "torch.linalg.svd on the mean of each layer's .update()",
    (
        "unmerge_lora",
        "remove_lora",
        "disable_lora",
        "disable_adapter",
    ): "lr.caches.without_lora(model)",
    ("compress_model", "compress_linear"): "lr.caches.compress(linear, k) for each layer",
    ("PowerSGD",): "lr.caches.power_step(gradient, torch.randn(n, r)) for each gradient (m, n)",
    ("Muon", "zeropower_via_newtonschulz5"): "lr.caches.newton_schulz(momentum)",
    ("generate",): "lr.storyteller.next_words(words) for one word after another",
    (
        "IncrementalPCA",
        "KernelPCA",
        "SparsePCA",
        "TSNE",
        "UMAP",
        "FastICA",
        "KMeans",
        "ridge",
    ): "scikit-learn's",
    ("MDS", "StandardScaler"): "scikit-learn's",
    ("RobustPCA", "RPCA"): "another library's, since nothing here sets outliers apart",
}
ASIDE = (
    "byhand",
    "figures",
    "answers",
    "kit",
    "practice",
    "smollm",
)  # here come names last that other modules have too


class _Elsewhere:
    """Another library's name: shown or called, it says what to call here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{self.name} is not here: call {_CALLS[_plain(self.name)]}"

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise TypeError(repr(self))


class _Module(ModuleType):
    """A module of this package. Called like a function, or asked for another library's name, it says what to call."""

    __module__ = property()  # modules have none, and Sphinx would take the class's

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        call = _CALLS.get(
            _plain(self.__name__.rpartition(".")[2]), f"one of {', '.join(self.__all__)}"
        )
        raise TypeError(f"{self.__name__} is a module: call {call}")

    def __getattr__(self, name: str) -> Any:  # what neither the module has nor a __getattr__ in it
        if name[0] != "_" and _plain(name) in _CALLS:
            return _Elsewhere(name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:  # what completion and "Did you mean" offer
        names = vars(self).get("__all__") or [*vars(self)]
        return sorted(
            {*names, *(each for part in names for each in _names_in(part))}
            if self is _PACKAGE
            else names
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if (
            isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        ):  # it was just imported
            value.__class__ = _Module
        super().__setattr__(name, value)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


_CALLS = {_plain(name): call for names, call in CALLS.items() for name in names}
_PACKAGE = sys.modules[__name__]
_PACKAGE.__class__ = _Module


def _names_in(module: str) -> list[str]:
    """Read the public names of a module from its source: importing all of them would load PyTorch."""
    spec: Any = find_spec(f"{__name__}.{module}")
    source = spec.loader.get_data(spec.origin).decode()
    return re.findall(r'"(\w+)"', source.partition("\n__all__ = [")[2].partition("]")[0])


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    if name[0] != "_":
        for module in sorted(__all__, key=ASIDE.__contains__):
            if name in _names_in(module):
                return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
