"""What the tests of a chapter ask: its cells, run once. Each file names its page, ``CHAPTER``."""

from typing import Any

import pytest
from chapters import run


@pytest.fixture(scope="module")
def chapter(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The names that the chapter's cells have made."""
    return run(request.module.CHAPTER).namespace


@pytest.fixture(scope="module")
def printed(request: pytest.FixtureRequest) -> str:
    """What the chapter's cells have printed."""
    return run(request.module.CHAPTER).printed
