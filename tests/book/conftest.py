"""Fixtures that run the cells of a chapter once; each test file names its page, ``CHAPTER``."""

from typing import Any

import pytest
from chapters import run


@pytest.fixture(scope="module")
def chapter(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the names that the chapter's cells define."""
    return run(request.module.CHAPTER).namespace


@pytest.fixture(scope="module")
def printed(request: pytest.FixtureRequest) -> str:
    """Return what the chapter's cells print."""
    return run(request.module.CHAPTER).printed
