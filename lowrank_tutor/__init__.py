"""Helpers of the book *Low-Rank Attention*: one concept, one module.

``import lowrank_tutor as lr`` is enough: ``lr.svd.truncated_svd(a, k)`` imports ``svd`` when you first use it, and
nothing else. The book explains every module, and its page *Cheat sheet* says what to call:
https://lowrank-tutor.github.io/lowrank-tutor. The chapters that docstrings name, such as ``book/02-svd-pca.md``, are in
its source, https://github.com/lowrank-tutor/lowrank-tutor.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what __getattr__ does, for editors
    from lowrank_tutor import (  # noqa: F401, I001 (in the order of the book)
        rank, svd, pca, lda, nmf, factorization, autoencoder, jl, bilinear, attention, linformer, layers, shards,
        roofline, caches, states, storyteller, sentence, byhand, figures, answers, practice, kit,
    )  # fmt: skip

__all__ = [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]
__dir__ = __all__.copy
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
