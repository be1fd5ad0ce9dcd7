"""Step-doubling on propagators whose answer is known."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridworld.trust.step_doubling import StepDoubling

UNIT = torch.ones(2, dtype=torch.float64)
NONE = torch.zeros(4, 0)


def states(seed=0, batch=4, grid=()):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(batch, 2, *grid)))


def horizons(value, batch=4):
    return torch.full((batch,), float(value), dtype=torch.float64)


def column(horizons, states):
    return horizons.reshape(-1, *[1] * (states.dim() - 1))


def exponential(rate):
    return lambda s, h, p: s * torch.exp(-rate * column(h, s))


def forward_euler(rate):
    return lambda s, h, p: s * (1 - rate * column(h, s))


@given(st.floats(0.01, 3), st.floats(0.3, 100))
def test_an_exact_flow_has_no_error(rate, horizon):
    found = StepDoubling(exponential(rate), UNIT)(states(), horizons(horizon), NONE)
    assert found.error_map.max() < 1e-14
    assert torch.equal(found.prediction, exponential(rate)(states(), horizons(horizon), NONE))


@given(st.floats(0.01, 0.5), st.one_of(st.integers(1, 9).map(float), st.floats(0.3, 8)))
def test_forward_euler_gives_its_closed_form(rate, horizon):
    """(1 - rh) s against (1 - ra) (1 - rb) s: they differ by r^2 a b |s|; whole horizons have whole halves a and b."""
    now = states()
    found = StepDoubling(forward_euler(rate), UNIT)(now, horizons(horizon), NONE)
    whole = horizon >= 2 and horizon == int(horizon)
    a, b = (horizon // 2, (horizon + 1) // 2) if whole else (horizon / 2, horizon / 2)
    torch.testing.assert_close(found.error_map, rate**2 * a * b * now.norm(dim=1), rtol=1e-9, atol=1e-12)


@settings(max_examples=200)
@given(st.integers(0, 2**31), st.floats(0, 3), st.floats(0, 0.5), st.floats(0.5, 64))
def test_the_map_is_bounded_by_the_error_and_the_lipschitz_constant(seed, stretch, eps, horizon):
    """e <= eps (2 + L) for a flow s -> expm(A h) s with |expm(A b)| = L, and a propagator that is off by at most eps."""
    rng = np.random.default_rng(seed)
    turn = rng.normal()

    def flow(s, h, p):
        angle, growth = turn * h, torch.exp(stretch * h / horizon)
        rotated = torch.stack([s[:, 0] * angle.cos() - s[:, 1] * angle.sin(), s[:, 0] * angle.sin() + s[:, 1] * angle.cos()], 1)
        return growth[:, None] * rotated

    def propagator(s, h, p):
        error = torch.sin(7 * s + h[:, None])
        return flow(s, h, p) + eps * error / error.norm(dim=1, keepdim=True).clamp(min=1e-12)

    second = np.ceil(horizon / 2) if horizon >= 2 and horizon == int(horizon) else horizon / 2
    lipschitz = float(np.exp(stretch * second / horizon))
    found = StepDoubling(propagator, UNIT)(states(seed), horizons(horizon), NONE)
    assert found.error_map.max() <= eps * (2 + lipschitz) + 1e-9


def test_the_blind_spot_a_propagator_that_is_consistent_and_wrong_looks_perfect():
    found = StepDoubling(lambda s, h, p: s, UNIT)(states(), horizons(64), NONE)
    assert found.error_map.max() == 0


def test_the_map_is_per_cell_on_a_grid_and_per_trajectory_without_one():
    signal = StepDoubling(forward_euler(0.1), UNIT)
    field = signal(states(grid=(5, 3)), horizons(2), NONE)
    assert field.error_map.shape == (4, 5, 3)
    torch.testing.assert_close(field.score, field.error_map.mean(dim=(1, 2)))
    vector = signal(states(), horizons(2), NONE)
    assert vector.error_map.shape == (4,)
    assert torch.equal(vector.score, vector.error_map)


def test_the_unit_makes_channels_comparable():
    """A channel in millimetres instead of metres leaves the map as it is."""
    scale = torch.tensor([1.0, 1000.0], dtype=torch.float64)
    f = forward_euler(0.2)
    metres = StepDoubling(f, UNIT)(states(), horizons(3), NONE)
    millimetres = StepDoubling(f, scale)(states() * scale, horizons(3), NONE)
    torch.testing.assert_close(metres.error_map, millimetres.error_map)


def test_three_passes_are_made_and_one_of_them_is_the_prediction():
    calls = []

    def f(s, h, p):
        calls.append(float(h[0]))
        return s

    StepDoubling(f, UNIT)(states(), horizons(5), NONE)
    assert calls == [5, 2, 3]
    assert StepDoubling.cost.passes == 3
