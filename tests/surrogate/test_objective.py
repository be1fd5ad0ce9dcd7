"""The loss in closed form, for surrogates whose answers are known."""

from math import ceil

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn

from hybridworld.errors import InvalidInput, SolverFailure
from hybridworld.surrogate.objective import SLIGHT, STILL, Objective
from tests.surrogate.flows import OSCILLATOR, RING, Oscillator, Ring, surrogate, tiny

RATE = 0.2
MEAN, STD = 3.0, 2.0


class Known(nn.Module):
    """f(z, h) = factor(h) z, for normalised states z = (x - 3) / 2; notes what it was asked."""

    def __init__(self, factor):
        super().__init__()
        self.factor, self.asked = factor, []
        self.weight = nn.Parameter(torch.ones((), dtype=torch.float64))

    def normalise(self, states):
        return (states - MEAN) / STD

    def denormalise(self, z):
        return z * STD + MEAN

    def advance(self, z, horizons, params=None):
        self.asked.append(horizons)
        return self.weight * z * self.factor(horizons).reshape(-1, *[1] * (z.dim() - 1))

    def unit_of_change(self, horizons):
        return horizons[:, None] * torch.tensor([1.0, 3.0], dtype=torch.float64)


def exact(h):
    return torch.exp(-RATE * h)


def euler(h):
    return 1 - RATE * h


def identity(h):
    return torch.ones_like(h)


def batch(size=12, seed=0, horizons=(1, 2, 3, 4, 8), grid=()):
    """Pairs of the exact flow; the parameter tells the row."""
    rng = np.random.default_rng(seed)
    h = torch.from_numpy(rng.choice(horizons, size).astype(float))
    z = torch.from_numpy(rng.normal(size=(size, 2, *grid)))
    future = z * exact(h).reshape(-1, *[1] * (z.dim() - 1))
    return STD * z + MEAN, h, torch.arange(float(size))[:, None], STD * future + MEAN


def loss(factor, inputs, *wishes, solve=None, shard=(0, 1)):
    training = tiny(OSCILLATOR, *wishes).training
    return Objective(Known(factor), training, solve, shard)(*inputs).item()


def direct_errors(factor, inputs):
    z, h = (inputs[0] - MEAN) / STD, inputs[1][:, None]
    return (z * (factor(h) - exact(h))).square().mean(dim=1)


def halves(h):
    """Whole frames, but for a single one."""
    half = h / 2
    return torch.where(h > 1, half.floor(), half), torch.where(h > 1, half.ceil(), half)


def chain_errors(factor, inputs):
    z, h = (inputs[0] - MEAN) / STD, inputs[1][:, None]
    first, second = map(factor, halves(h))
    return (z * (first * second - exact(h))).square().mean(dim=1)


# In closed form.


@pytest.mark.parametrize("dagger", [0, 0.1, 0.5, 1])
@pytest.mark.parametrize("grid", [(), (5,), (3, 4)])
def test_the_true_flow_has_no_loss(dagger, grid):
    inputs = batch(grid=grid)
    assert loss(exact, inputs, f"training.dagger={dagger}") < 1e-25
    assert loss(exact, inputs, "training.objective=self-consistency") < 1e-25


@pytest.mark.parametrize("factor", [identity, euler])
def test_without_dagger_it_is_the_mean_square_error(factor):
    inputs = batch()
    expected = direct_errors(factor, inputs).mean().item()
    assert expected > 1e-3 and loss(factor, inputs, "training.dagger=0") == pytest.approx(expected)


@pytest.mark.parametrize("factor", [identity, euler])
def test_with_full_dagger_there_is_no_direct_term(factor):
    inputs, known = batch(), Known(factor)
    found = Objective(known, tiny(OSCILLATOR, "training.dagger=1").training)(*inputs)
    assert found.item() == pytest.approx(chain_errors(factor, inputs).mean().item())
    assert all(torch.equal(asked, half) for asked, half in zip(known.asked, halves(inputs[1]), strict=True))


@pytest.mark.parametrize(("dagger", "rows"), [(0.01, 1), (0.1, 2), (0.25, 3), (0.5, 6), (0.51, 7)])
def test_a_share_of_the_batch_stands_for_all_of_it_in_the_second_term(dagger, rows):
    inputs = batch(12)
    direct, chain = direct_errors(euler, inputs).mean(), chain_errors(euler, inputs)[:rows].mean()
    found = loss(euler, inputs, f"training.dagger={dagger}")
    assert found == pytest.approx(((1 - dagger) * direct + dagger * chain).item())


@pytest.mark.parametrize("dagger", [0, 0.5, 1])
@pytest.mark.parametrize("kind", ["chain", "solver"])
def test_errors_can_count_relative_to_the_change_at_their_horizon(dagger, kind):
    """The units of the two channels are h and 3 h here, so an error counts 1 / (5 h^2)."""
    inputs = batch(12)
    weights = 1 / (5 * inputs[1] ** 2)
    direct = (weights * direct_errors(euler, inputs)).mean()
    second = chain_errors(euler, inputs) if kind == "chain" else solver_errors(inputs)
    second = (weights * second)[: ceil(12 * dagger)].sum() / max(ceil(12 * dagger), 1)
    wishes = (f"training.dagger={dagger}", f"training.dagger_kind={kind}", "training.weighting=horizon")
    assert loss(euler, inputs, *wishes, solve=Solver()) == pytest.approx(((1 - dagger) * direct + dagger * second).item())


def test_errors_can_count_relative_to_the_change_of_their_own_sample():
    states, h, params, futures = batch(12)
    change, usual = (((futures - states) / STD) ** 2).mean(dim=1), 5 * h**2  # the units of the two channels are h and 3 h
    expected = (direct_errors(euler, (states, h, params, futures)) / (change + STILL * usual)).mean().item()
    wishes = ("training.dagger=0", "training.weighting=sample")
    assert loss(euler, (states, h, params, futures), *wishes) == pytest.approx(expected)
    assert loss(identity, (states, h, params, futures), *wishes) < 1  # no change is what errors are relative to


@pytest.mark.parametrize("grid", [(), (5,)])
def test_robust_errors_count_by_their_size_per_cell_and_each_channel_by_its_change(grid):
    states, h, params, futures = batch(12, grid=grid)
    unit = h[:, None] * torch.tensor([1.0, 3.0], dtype=torch.float64)
    relative = ((states - futures) / STD).reshape(12, 2, -1) / unit[:, :, None]
    expected = (relative.square().mean(dim=1) + SLIGHT**2).sqrt().mean().item()
    found = loss(identity, (states, h, params, futures), "training.dagger=0", "training.weighting=robust")
    assert found == pytest.approx(expected) and expected > SLIGHT


def test_the_identity_is_consistent_with_itself_and_wrong():
    inputs = batch()
    assert loss(identity, inputs, "training.objective=self-consistency") == 0
    assert loss(identity, inputs) > 1e-2


def test_self_consistency_does_not_look_at_the_future():
    states, h, params, futures = batch()
    z, step = (states - MEAN) / STD, h[:, None]
    first, second = map(euler, halves(step))
    expected = (z * (euler(step) - first * second)).square().mean().item()
    for other in (futures, futures + 100):
        assert loss(euler, (states, h, params, other), "training.objective=self-consistency") == pytest.approx(expected)


# The solver as the teacher.


class Solver:
    """The true flow; `refuses` says which rows (told by the parameter) have no answer."""

    def __init__(self, refuses=(), error=InvalidInput):
        self.refuses, self.error, self.calls = set(refuses), error, []

    def __call__(self, states, frames, params):
        assert type(frames) is int and len(states) == len(params) == 1
        self.calls.append((int(params[0, 0]), frames, states[0]))
        if int(params[0, 0]) in self.refuses:
            raise self.error("There is no such state.")
        return (states - MEAN) * np.exp(-RATE * frames) + MEAN


SOLVER = ("training.dagger_kind=solver", "training.dagger=1")


def test_the_solver_is_asked_whole_frames_from_the_surrogates_own_mid_states():
    inputs, solver = batch(20), Solver()
    loss(euler, inputs, *SOLVER, solve=solver)
    several = [row for row in range(20) if inputs[1][row] > 1]
    assert [row for row, _, _ in solver.calls] == several and len(several) < 20
    for row, frames, state in solver.calls:
        horizon = int(inputs[1][row])
        assert frames == (horizon + 1) // 2
        mid = (inputs[0][row] - MEAN) * (1 - RATE * (horizon // 2)) + MEAN
        np.testing.assert_allclose(state, mid)


def solver_errors(inputs):
    """From the mid state f(z, floor(h/2)), against the true flow from there; one frame has no mid state."""
    z, half = (inputs[0] - MEAN) / STD, inputs[1][:, None] / 2
    errors = (z * euler(half.floor()) * (euler(half.ceil()) - exact(half.ceil()))).square().mean(dim=1)
    return torch.where(inputs[1] > 1, errors, direct_errors(euler, inputs))


@pytest.mark.parametrize("error", [InvalidInput, SolverFailure])
@pytest.mark.parametrize("refused", [[], [0, 3, 4], range(20)])
def test_states_that_the_solver_refuses_are_left_out_and_counted(refused, error):
    inputs, training = batch(20), tiny(OSCILLATOR, *SOLVER).training
    objective = Objective(Known(euler), training, Solver(refused, error))
    found = objective(*inputs)
    gone = [row for row in refused if inputs[1][row] > 1]
    errors = solver_errors(inputs)
    errors[gone] = 0
    assert found.item() == pytest.approx(errors.mean().item()) and objective.unsolved == len(gone)
    found.backward()
    objective(*inputs)
    assert objective.unsolved == 2 * len(gone)


def test_with_a_small_share_few_states_are_solved():
    solver = Solver()
    loss(euler, batch(20, horizons=(2, 4)), "training.dagger_kind=solver", "training.dagger=0.1", solve=solver)
    assert [row for row, _, _ in solver.calls] == [0, 1]


def test_one_frame_needs_no_solver_and_is_supervised():
    inputs, solver = batch(horizons=(1,)), Solver()
    assert loss(euler, inputs, *SOLVER, solve=solver) == pytest.approx(direct_errors(euler, inputs).mean().item())
    assert not solver.calls


def test_an_error_in_the_solver_itself_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        loss(euler, batch(), *SOLVER, solve=Solver(range(99), ZeroDivisionError))


def test_the_mid_state_is_a_place_to_learn_from_not_a_thing_to_change():
    """d/dw of |w m - target|^2 with m fixed, though m = w z came from the same weights."""
    inputs = batch(horizons=(2, 8))
    known = Known(euler)
    Objective(known, tiny(OSCILLATOR, *SOLVER).training, Solver())(*inputs).backward()
    z, half = (inputs[0] - MEAN) / STD, inputs[1][:, None] / 2
    mid = z * euler(half)
    expected = (2 * (euler(half) - exact(half)) * mid * euler(half) * mid).mean()
    assert known.weight.grad.item() == pytest.approx(expected.item())


@pytest.mark.parametrize("environment", [Oscillator(), Ring()])
@pytest.mark.parametrize("horizons", [(1,), (2,), (1, 2, 3, 4)])
@pytest.mark.parametrize("refuse", [False, True])
def test_real_networks_and_solvers_work_together_even_if_nothing_is_left(environment, horizons, refuse):
    def solve(*arguments):
        if refuse:
            raise InvalidInput("There is no such state.")
        return environment.solve(*arguments)

    net = surrogate(environment.spec)
    rng = np.random.default_rng(0)
    states = torch.from_numpy(rng.normal(size=(5, *environment.spec.shape)).astype(np.float32))
    objective = Objective(net, tiny(environment.spec, *SOLVER).training, solve)
    found = objective(states, torch.from_numpy(rng.choice(horizons, 5)).float(), torch.full((5, 1), 0.3), states)
    found.backward()
    assert found.isfinite() and all(each.grad is not None and each.grad.isfinite().all() for each in net.parameters())


def test_a_teacher_that_is_missing_is_asked_for():
    with pytest.raises(InvalidInput, match=r"^training.dagger_kind=solver needs a solver: name the system, or choose chain\.$"):
        loss(euler, batch(), "training.dagger_kind=solver")


@pytest.mark.parametrize("wish", ["training.dagger=0", "training.objective=self-consistency"])
def test_where_no_teacher_is_needed_none_is_asked_for(wish):
    assert loss(euler, batch(), "training.dagger_kind=solver", wish) > 0


# Many processes.


@settings(max_examples=150, deadline=None)
@given(
    world=st.integers(1, 10),
    size=st.integers(1, 10),
    dagger=st.one_of(st.sampled_from([0, 0.1, 0.2, 0.7, 1]), st.floats(0, 1)),
    mode=st.sampled_from(["dagger_kind=chain", "dagger_kind=solver", "objective=self-consistency"]),
    weighting=st.sampled_from(["none", "horizon", "sample", "robust"]),
    seed=st.integers(0, 2**32 - 1),
)
@example(world=10, size=3, dagger=0.1, mode="dagger_kind=chain", weighting="none", seed=0)
def test_the_mean_over_processes_is_the_loss_of_one(world, size, dagger, mode, weighting, seed):
    inputs = batch(world * size, seed)
    wishes = (f"training.dagger={dagger!r}", f"training.{mode}", f"training.weighting={weighting}")
    whole = loss(euler, inputs, *wishes, solve=Solver([1, 4]))
    parts = [
        loss(euler, [each[rank::world] for each in inputs], *wishes, solve=Solver([1, 4]), shard=(rank, world))
        for rank in range(world)
    ]
    assert sum(parts) / world == pytest.approx(whole, rel=1e-9)


def test_each_refused_state_is_counted_by_one_process():
    inputs = batch(20)
    counts = []
    for rank in range(2):
        objective = Objective(Known(euler), tiny(OSCILLATOR, *SOLVER).training, Solver(range(20)), (rank, 2))
        objective(*(each[rank::2] for each in inputs))
        counts.append(objective.unsolved)
    assert sum(counts) == (inputs[1] > 1).sum() and min(counts) > 0


def test_a_grid_state_weighs_as_much_as_a_vector():
    """The mean is over samples, channels and cells alike."""
    z = torch.ones(3, 1, 16, dtype=torch.float64)
    inputs = STD * z + MEAN, torch.full((3,), 2.0), torch.zeros(3, 1), STD * 0 * z + MEAN
    objective = Objective(Known(identity), tiny(RING, "training.dagger=0").training)
    assert objective(*inputs).item() == 1
