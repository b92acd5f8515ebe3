"""A fixture that runs the cells of a chapter once, by the number in the name of the test file."""

import pytest
from chapters import CHAPTERS, run


@pytest.fixture(scope="module")
def chapter(request):
    """Return the names that the chapter's cells define."""
    number = request.path.stem.removeprefix("test_chapter_")
    (path,) = [path for path in CHAPTERS if path.stem.startswith(number)]
    return run(path).namespace
