"""Signals that know the physics, where the physics is known."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import hybridworld as hw
from hybridworld.errors import InvalidInput
from hybridworld.physics.ball3d import Ball3D
from hybridworld.trust.physical import ConservationResidual, Richardson
from tests.surrogate.flows import Oscillator


@dataclass(frozen=True)
class Spinner(hw.Environment):
    """Two fields on a line of `cells`, or two numbers, that turn around each other and keep u² + v²."""

    cells: int = 0

    @property
    def spec(self):
        fields = hw.Field("u", "1"), hw.Field("v", "1")
        axes, grid = (hw.Axis("x", 0, 1, "open"),), (self.cells,) if self.cells else ()
        return hw.StateSpec("spinner", "", fields, axes if grid else (), grid, 0.1, "s", 9, "u")

    def sample(self, rng, split):
        return hw.Sample(rng.normal(size=self.spec.shape), np.zeros(0))

    def advance(self, states, frames, params):
        angle = 0.1 * frames
        u, v = states[:, 0], states[:, 1]
        return np.stack([u * np.cos(angle) - v * np.sin(angle), u * np.sin(angle) + v * np.cos(angle)], axis=1)

    def conserved(self, states, params):
        energy = (states**2).sum(axis=1)
        if not self.cells:
            return {"energy": energy, "both": np.stack([energy, 2 * energy], axis=1)}
        return {"energy": energy, "total": energy.sum(axis=1), "both": np.stack([energy, energy], axis=1).sum(axis=2)}


def flow(environment):
    """The true one, as a propagator."""
    return lambda s, h, p: torch.from_numpy(environment.solve(s.numpy(), int(h[0]), p.numpy()))


def starts(environment, count=5):
    samples = [environment.initial("val", seed) for seed in range(count)]
    return tuple(torch.from_numpy(np.stack(part)) for part in zip(*((s.state, s.params) for s in samples), strict=True))


def horizons(value, count=5):
    return torch.full((count,), float(value), dtype=torch.float64)


# What is conserved.


@pytest.mark.parametrize(
    ("environment", "quantity", "shape"),
    [
        (Spinner(), "energy", (5,)),
        (Spinner(), "both", (5,)),
        (Spinner(6), "energy", (5, 6)),
        (Spinner(6), "total", (5,)),
        (Spinner(6), "both", (5,)),
        (Spinner(2), "both", (5, 2)),  # two totals, or two cells: nobody can tell
    ],
)
def test_a_flow_that_conserves_has_no_residual_per_cell_or_per_trajectory(environment, quantity, shape):
    states, params = starts(environment)
    found = ConservationResidual(flow(environment), environment, quantity)(states, horizons(3), params)
    assert found.error_map.shape == shape
    assert found.error_map.max() < 1e-12
    assert found.score.shape == (5,)


@given(st.floats(-0.5, 0.5))
def test_a_flow_that_loses_energy_has_what_it_lost_as_its_residual(loss):
    environment = Spinner()
    states, params = starts(environment)
    energy = states.square().sum(dim=1)
    lossy = ConservationResidual(lambda s, h, p: s * np.sqrt(1 - loss), environment, "energy")
    torch.testing.assert_close(lossy(states, horizons(3), params).error_map, abs(loss) * energy, rtol=1e-9, atol=1e-12)
    both = ConservationResidual(lambda s, h, p: s * np.sqrt(1 - loss), environment, "both")
    expected = abs(loss) * energy * np.sqrt(1 + 2**2)  # the norm over its components
    torch.testing.assert_close(both(states, horizons(3), params).error_map, expected, rtol=1e-9, atol=1e-12)


def test_its_blind_spot_nothing_moves_and_all_is_conserved():
    states, params = starts(Spinner())
    found = ConservationResidual(lambda s, h, p: s, Spinner(), "energy")(states, horizons(8), params)
    assert found.error_map.max() == 0


def test_a_ball_in_exact_flight_keeps_its_energy_and_one_pass_is_made():
    ball, calls = Ball3D(), []

    def exact(s, h, p):
        calls.append(len(s))
        return torch.from_numpy(ball.exact(s.numpy(), int(h[0]), p.numpy()))

    states, params = flying()
    signal = ConservationResidual(exact, ball, "energy")
    assert signal(states, horizons(4, 3), params).error_map.max() < 1e-9
    assert (signal.name, len(calls), signal.cost.passes) == ("energy residual", 1, 1)


def test_an_unknown_quantity_is_refused_with_those_there_are():
    with pytest.raises(InvalidInput, match="no conserved quantity 'mass': it has energy, momentum"):
        ConservationResidual(lambda s, h, p: s, Ball3D(), "mass")
    with pytest.raises(InvalidInput, match="it has none"):
        ConservationResidual(lambda s, h, p: s, Oscillator(), "energy")


# The solver against itself.

UNIT = torch.tensor([1, 1, 0.5, 1, 1, 2, 1, 1, 1], dtype=torch.float64)


def flying(gravity=-9.81):
    """Balls that meet no wall within 0.1 s."""
    rng = np.random.default_rng(0)
    states = np.concatenate([[[0, 0, 0.5]] * 3, rng.uniform(-0.5, 0.5, (3, 3)), rng.normal(size=(3, 3))], axis=1)
    return torch.from_numpy(states), torch.tensor([[0.8, gravity]] * 3, dtype=torch.float64)


def richardson(environment, states, horizons, params, **options):
    return Richardson(lambda s, h, p: s, UNIT, environment, **options)(states, horizons, params).error_map


@pytest.mark.parametrize("frames", [1, 4, 10])
def test_in_free_flight_the_fixed_order_estimate_is_the_true_error_of_the_scheme(frames):
    """Semi-implicit Euler is off by g T dt / 2 in height and by nothing else: the extrapolation removes all of it."""
    ball = Ball3D()
    states, params = flying()
    found = richardson(ball, states, horizons(frames, 3), params)
    closed = 9.81 * (frames * ball.frame_step) * (ball.frame_step / ball.substeps) / 2 / 0.5
    np.testing.assert_allclose(found, closed, rtol=1e-6)
    solved, exact = (answer(states.numpy(), frames, params.numpy()) for answer in (ball.solve, ball.exact))
    np.testing.assert_allclose(found, np.linalg.norm((solved - exact) / UNIT.numpy(), axis=1), rtol=1e-6)


def test_without_gravity_the_scheme_is_exact_in_flight_and_so_the_estimate_is_zero():
    states, params = flying(gravity=0.0)
    for variant in ("fixed-order", "geometric-mean"):
        assert richardson(Ball3D(), states, horizons(8, 3), params, variant=variant).max() < 1e-12


def test_half_the_step_has_half_the_estimate():
    states, params = flying()
    coarse, fine = (richardson(Ball3D(substeps=substeps), states, horizons(8, 3), params) for substeps in (50, 100))
    np.testing.assert_allclose(coarse / fine, 2, rtol=1e-6)


def test_the_geometric_mean_lies_half_way_between_the_two_answers_where_they_are_close():
    """|a - sqrt(a b)| = |a - b| / 2 to first order: a quarter of 2 |a - b|, the estimate of fixed order."""
    states, params = flying()
    fixed, mean = (
        richardson(Ball3D(), states, horizons(8, 3), params, variant=variant) for variant in ("fixed-order", "geometric-mean")
    )
    np.testing.assert_allclose(mean / fixed, 0.25, rtol=1e-3)


def test_the_ball_that_bounces_is_less_certain_than_the_one_that_flies():
    states, params = (part.repeat(2, 1) for part in flying())
    states[3:, 2], states[3:, 5] = 0.08, -3.0  # down to the floor
    found = richardson(Ball3D(), states, horizons(8, 6), params)
    assert found[3:].min() > 2 * found[:3].max()


def test_each_state_has_its_own_horizon():
    states, params = flying()
    mixed = richardson(Ball3D(), states, torch.tensor([1.0, 8.0, 1.0]), params)
    for row, frames in enumerate([1, 8, 1]):
        np.testing.assert_array_equal(mixed[row], richardson(Ball3D(), states, horizons(frames, 3), params)[row])


def test_the_prediction_that_is_judged_is_the_surrogates():
    states, params = flying()
    signal = Richardson(lambda s, h, p: s + 1, UNIT, Ball3D())
    assert torch.equal(signal(states, horizons(2, 3), params).prediction, states + 1)
    assert signal.name == "Richardson, fixed-order"


def test_a_system_that_cannot_halve_its_step_an_unknown_variant_and_half_a_frame_are_refused():
    with pytest.raises(InvalidInput, match="oscillator does not say how to halve its time step"):
        Richardson(lambda s, h, p: s, torch.ones(2), Oscillator())
    with pytest.raises(InvalidInput, match=r"Unknown variant 'bold'.*fixed-order or geometric-mean"):
        Richardson(lambda s, h, p: s, UNIT, Ball3D(), variant="bold")
    with pytest.raises(InvalidInput, match="whole frames"):
        richardson(Ball3D(), flying()[0], horizons(1.5, 3), flying()[1])
