"""Which classes wait until they are asked for? Those that need PyTorch, in modules that otherwise do without it.

No chapter: ``bilinear`` and ``family`` share it, so that to import them takes no time.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def on_demand(module: str, **classes: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a module's ``__getattr__`` and ``__dir__``, given each class and the module of the package that has it."""

    def fetch(name: str) -> Any:
        if name not in classes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(f"lowrank_tutor.{classes[name]}"), name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *classes})

    return fetch, names
