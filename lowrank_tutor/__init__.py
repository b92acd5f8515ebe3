"""Helpers of the book *Low-Rank Attention*: one concept, one module.

``import lowrank_tutor as lr`` is enough: ``lr.svd.truncated_svd(a, k)`` imports ``svd`` when you
first use it, and nothing else; ``lr.truncated_svd`` finds its module. The book explains every
module, and its page *Cheat sheet* says what to call: https://lowrank-tutor.github.io/lowrank-tutor.
The chapters that docstrings name, such as ``book/02-svd-pca.md``, are in its source,
https://github.com/lowrank-tutor/lowrank-tutor.
"""

import json
import re
from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what __getattr__ does, for editors
    from lowrank_tutor import (  # noqa: F401, I001 (in the order of the book)
        rank, svd, pca, lda, nmf, factorization, autoencoder, jl, bilinear, attention, linformer,
        layers, roofline, caches, adapters, states, storyteller, smollm, sentence, byhand, figures,
        course, kit,
    )  # fmt: skip

__all__ = [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]
__version__ = "0.1.0"

# Where another module has a name too, these come last.
ASIDE = ("byhand", "figures", "course", "kit", "smollm")


def _names_in(module: str) -> list[str]:
    """Read the public names of a module from its source.

    Importing all of them would load PyTorch.
    """
    here = files(__name__)
    path = (
        here / f"{module}.py"
        if (here / f"{module}.py").is_file()
        else here / module / "__init__.py"
    )
    listed = path.read_text("utf-8").partition("\n__all__ = [")[2].partition("]")[0]
    return re.findall(r'"(\w+)"', listed)


def __dir__() -> list[str]:  # what completion and "Did you mean" offer
    return sorted({*__all__, *(name for part in __all__ for name in _names_in(part))})


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    if name[0] != "_":
        for module in sorted(__all__, key=ASIDE.__contains__):
            if name in _names_in(module):
                return getattr(import_module(f"{__name__}.{module}"), name)
    # Names that other libraries have, without case and underscores, and what to call instead.
    others = json.loads((files(__name__) / "data" / "other_names.json").read_text("utf-8"))
    way = others.get(name.lower().replace("_", ""), "")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{way and ': call ' + way}")
