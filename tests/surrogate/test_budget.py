"""A budget is divided so that its parts fill it, evidence shrinks with it, and too little is said to be too little."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridworld.data.evidence import VECTORS, Held, Solved
from hybridworld.errors import InvalidInput
from hybridworld.surrogate import budget
from hybridworld.surrogate.budget import (
    AIM,
    DATA,
    FEWEST,
    FEWEST_CALIBRATING,
    PAIRS,
    TRAINING,
    Costs,
    calibrating_seconds,
    divide,
    pace,
    passing_seconds,
    samples_within,
    time_trajectories,
)
from hybridworld.surrogate.train import Task
from tests.surrogate.flows import OSCILLATOR, RING, Oscillator, Ring, table, tiny

EULER, OREGONATOR, BALL = Costs(1.0, 0.08, 0.02), Costs(6.0, 0.2, 0.07), Costs(1e-4, 5e-4, 1e-4)

costs = st.builds(Costs, st.floats(1e-3, 10), st.floats(1e-3, 1), st.floats(1e-4, 0.3))
trainings = st.builds(
    lambda batch, guided, validation, calibration: tiny(
        RING, f"training.batch={batch}", f"training.samples={10 * batch}", f"training.validation={validation}",
        f"training.calibration={calibration}", "training.dagger=0",
        *(["surrogate.backbone=leap", "surrogate.guide=true", "training.weighting=guide"] if guided else []),
    ).training,
    st.integers(1, 16), st.booleans(), st.integers(1, 100), st.integers(0, 300),
)  # fmt: skip


def training(spec=RING, *wishes):
    return tiny(spec, "training.batch=8", *wishes).training


@given(costs, trainings, st.floats(60, 36_000), st.floats(0, 0.1), st.one_of(st.none(), st.integers(1, 5_000)))
def test_the_parts_fill_the_budget(each, chosen, seconds, share, most):
    """Unless it is too short, everything together takes what is to be given away, to within one step per epoch."""
    spent = share * seconds
    try:
        found = divide(seconds, spent, each, chosen, True, most, "ring")
    except InvalidInput as error:
        assert "are too short for ring" in str(error)
        return
    data = found.trajectories * each.trajectory
    choosing = each.trajectory + found.epochs * passing_seconds(each, chosen)
    evidence = found.validation * choosing + found.calibration * calibrating_seconds(each, chosen)
    epochs, samples = found.epochs, samples_within(seconds, spent + data, each, found, chosen)
    total = spent + data + evidence + found.verdict + epochs * samples * each.sample
    step = epochs * chosen.batch * each.sample
    assert AIM * seconds - step <= total <= AIM * seconds + 1e-6 or samples == chosen.batch
    assert found.validation <= chosen.validation and found.calibration <= chosen.calibration
    assert found.validation >= min(FEWEST, chosen.validation) and found.calibration >= min(10, chosen.calibration)
    assert 3 <= epochs <= 10 and samples % chosen.batch == 0 and epochs * samples * each.sample >= TRAINING * seconds - step
    if most is None:
        assert found.trajectories == 0
    else:
        assert min(FEWEST, most) <= found.trajectories <= most and data <= DATA * seconds + 1e-6
        assert epochs * samples >= PAIRS * found.trajectories - epochs * chosen.batch


@given(costs, trainings, st.floats(60, 10_000), st.floats(1, 10))
def test_more_time_never_means_less_evidence(each, chosen, seconds, longer):
    with suppress(InvalidInput):
        less, more = (divide(time, 0, each, chosen, True, 500, "ring") for time in (seconds, longer * seconds))
        assert less.trajectories <= more.trajectories and less.verdict <= more.verdict
        assert less.epochs <= more.epochs and less.calibration <= more.calibration
        assert less.validation <= more.validation or less.epochs < more.epochs


def test_what_an_expensive_reference_gets():
    """Oregonator with a reference four times finer, ten minutes on two cores: few trajectories, each for many pairs."""
    chosen = training(RING, "training.validation=64", "training.calibration=200")
    found = divide(600, 20, OREGONATOR, chosen, True, 150, "oregonator")
    epochs, samples = found.epochs, samples_within(600, 20 + 6 * found.trajectories, OREGONATOR, found, chosen)
    assert found.trajectories == 25 and found.validation == FEWEST and found.calibration == FEWEST_CALIBRATING
    assert 30 < epochs * samples / found.trajectories < 80
    cheap = divide(600, 20, EULER, chosen, True, 600, "euler2d")
    assert cheap.trajectories == 150 and cheap.validation > 2 * FEWEST


def test_state_vectors_are_counted_in_blocks():
    chosen = training(OSCILLATOR, "training.validation=2000", "training.calibration=2000")
    found = divide(60, 5, BALL, chosen, False, 10**6, "ball3d")
    assert found.validation >= VECTORS and found.calibration >= VECTORS and found.trajectories > 1_000


def test_too_little_is_refused_with_what_would_do():
    chosen = training(RING, "training.validation=64", "training.calibration=200")
    with pytest.raises(
        InvalidInput, match=r"^1 minutes are too short for oregonator, .* takes 6 s .* give it (\S+) minutes\.$"
    ) as told:
        divide(60, 5, OREGONATOR, chosen, True, 100, "oregonator")
    enough = 60 * float(str(told.value).split()[-2])
    divide(1.05 * enough, 5, OREGONATOR, chosen, True, 100, "oregonator")


@pytest.mark.parametrize("environment", [Oscillator(), Ring()], ids=["vector", "field"])
def test_trajectories_are_timed_and_kept(environment):
    blocks, seconds = time_trajectories(environment, 0.0)
    assert seconds > 0 and len(blocks) == 1
    for block, other in zip(blocks, Solved(environment, "train").blocks(len(blocks[0].states)), strict=True):
        assert (block.states == other.states).all()


def test_the_pace_is_that_of_a_training_that_leaves_nothing_behind(monkeypatch):
    """It is measured after the first steps, and the task is as it was."""
    steps = []
    before = budget.update
    monkeypatch.setattr(budget, "update", lambda *given: steps.append(1) or before(*given))
    held = Held(OSCILLATOR, list(Solved(Oscillator(), "train").blocks(8)))
    sample, forward = pace(Task(tiny(OSCILLATOR), held, table(Oscillator(), "val", 8)), 0.0)
    assert sample > 0 and forward > 0 and len(steps) == budget.FIRST_STEPS + 1
