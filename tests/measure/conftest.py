"""Fixtures of all tests of measurements."""

import pytest
import torch


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Many tiny operations: on a busy machine the threads of each would wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
