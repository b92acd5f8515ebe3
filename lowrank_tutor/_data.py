"""Read the package's stored data."""

import json
from importlib.resources import files
from typing import Any


def read_data(name: str) -> Any:
    """Return what ``data/<name>.json`` holds."""
    return json.loads(files("lowrank_tutor").joinpath(f"data/{name}.json").read_text("utf-8"))
