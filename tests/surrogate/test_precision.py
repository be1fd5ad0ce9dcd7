"""Training in bfloat16: the same training but for rounding, and refused where the processor ends the trial."""

import pytest
import torch

from hybridworld.errors import InvalidInput
from hybridworld.surrogate import precision
from hybridworld.surrogate.precision import check_precision, computing_in
from hybridworld.surrogate.train import Task, train
from tests.surrogate.flows import OSCILLATOR, Oscillator, table, tiny

CPU = torch.device("cpu")
SMALL = ("training.batch=8", "training.samples=64", "training.epochs=2", "training.validation=8", "training.lr=1e-3")


@pytest.fixture(autouse=True)
def ask_again():
    yield
    precision.failure_of_bfloat16.cache_clear()


def test_products_are_rounded_and_sums_are_not():
    x = torch.full((4, 4), 1 + 2**-10)
    with computing_in("bfloat16", CPU):
        assert (x @ torch.eye(4)).dtype == torch.bfloat16
        assert (x + x).dtype == torch.float32
    with computing_in("float32", CPU):
        assert (x @ torch.eye(4)).dtype == torch.float32


def test_a_training_in_bfloat16_ends_near_that_in_float32(tmp_path, monkeypatch):
    monkeypatch.setattr(precision, "TRIAL", "")
    errors = {}
    for name in ("float32", "bfloat16"):
        config = tiny(OSCILLATOR, *SMALL, f"training.precision={name}")
        task = Task(config, table(Oscillator()), table(Oscillator(), "val", 8))
        errors[name] = train(task, tmp_path / name).history[-1]["mse"]
    assert errors["bfloat16"] != errors["float32"]
    assert errors["bfloat16"] == pytest.approx(errors["float32"], rel=0.1)


def test_a_processor_without_it_gets_a_sentence(monkeypatch):
    monkeypatch.setattr(precision, "TRIAL", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    check_precision("float32", CPU)
    with pytest.raises(InvalidInput, match="died with SIGILL: take float32"):
        check_precision("bfloat16", CPU)


def test_the_trial_here_ends_well_or_by_a_signal():
    failure = precision.failure_of_bfloat16()
    assert failure is None or failure.startswith("died with SIG")
