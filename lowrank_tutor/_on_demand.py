"""What does a module need that may not be there? It is fetched when it is asked for, and named where it is missing.

No chapter: every room that needs more than NumPy shares it. `on_demand` is for ``bilinear``, ``family`` and
``caches``, whose parts in PyTorch wait until they are asked for, so that to import these modules takes no time.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

# Which extra of the package brings what; pillow comes with matplotlib.
EXTRAS = {"torch": "torch"} | dict.fromkeys(("IPython", "PIL", "ipywidgets", "matplotlib", "scipy", "sympy"), "book")


@contextmanager
def needed(by: str) -> Iterator[None]:
    """Name the package that is missing, and the extra that brings it, if an import inside fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        remedy = f'pip install "lowrank-tutor[{EXTRAS[package]}]"'
        raise ModuleNotFoundError(f"{by} needs {package}: {remedy}", name=error.name) from None


def on_demand(module: str, **parts: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a module's ``__getattr__`` and ``__dir__``, given each part and the module of the package that has it."""

    def fetch(name: str) -> Any:
        if name not in parts:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        with needed(f"{module}.{name}"):
            return getattr(import_module(f"lowrank_tutor.{parts[name]}"), name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *parts})

    return fetch, names
