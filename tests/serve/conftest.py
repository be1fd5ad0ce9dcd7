import pytest

from tests.serve.served import catalogue, running
from tests.surrogate.conftest import one_thread  # noqa: F401 - networks here are too small for more threads


@pytest.fixture(scope="package")
def known(tmp_path_factory):
    """A catalogue with a model of every kind of state."""
    return catalogue(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="package")
def server(known):
    """A running server of it, shared: tests must leave it as they found it."""
    with running(known) as found:
        yield found
