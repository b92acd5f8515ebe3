"""Import optional packages late, and name the extra to install where one is missing.

No chapter: every module that needs more than NumPy shares it. `on_demand` is for ``bilinear`` and
``caches``, which import quickly because their parts in PyTorch load when they are first used.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

# The extra that installs each package; pillow comes with matplotlib.
EXTRAS = {"torch": "torch", "gguf": "smollm", "tokenizers": "smollm"} | dict.fromkeys(
    ("IPython", "PIL", "ipywidgets", "matplotlib", "scipy", "sympy"), "book"
)


@contextmanager
def needed(by: str) -> Iterator[None]:
    """Name the missing package and the extra that installs it if an import inside fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        remedy = f'pip install "lowrank-tutor[{EXTRAS[package]}]"'
        raise ModuleNotFoundError(f"{by} needs {package}: {remedy}", name=error.name) from None


def on_demand(module: str, *parts: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``, which load names from its parts."""
    members = vars(sys.modules[module])

    def fetch(name: str) -> Any:
        if name in members["__all__"]:
            with needed(f"{module}.{name}"):
                for part in (import_module(f"{module}.{part}") for part in parts):
                    if hasattr(part, name):
                        return getattr(part, name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return fetch, members["__all__"].copy
