import os

if "PYTEST_XDIST_WORKER" in os.environ:  # one of several processes that share the cores
    for name in ("HYBRIDWORLD_THREADS", "OMP_NUM_THREADS"):  # torch and NumPy read it when they are imported
        os.environ.setdefault(name, "1")

import signal

import pytest
import torch
from hypothesis import settings

settings.register_profile("unhurried", deadline=None)  # cores are shared, so a slow example proves nothing
settings.load_profile("unhurried")

os.environ["HYBRIDWORLD_ENGINE"] = "eager"  # the same answers on every machine; tests of engines name theirs

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and what they start, ignore Ctrl-C

LONGEST = ("reproduce/test_reproduce.py", "docs/test_blocks.py", "reproduce/test_jury.py")


def pytest_collection_modifyitems(items):
    """The files that take longest begin first: `make test` gives whole files to cores, and would wait for one at the end."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONGEST))


@pytest.fixture(autouse=True)
def the_same_weights_in_every_run():
    """A network that a test makes does not depend on chance, nor on which tests ran before it."""
    torch.manual_seed(0)
