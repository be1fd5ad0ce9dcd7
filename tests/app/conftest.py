"""Commands choose how many threads torch has: other tests get their own number back."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def same_threads():
    """After the tests of a module torch has as many threads as before."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
