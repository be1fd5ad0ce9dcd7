"""The example of docs/adding-a-system.md is a complete system, and short."""

import numpy as np

import hybridworld as hw


def test_it_passes_the_check(gray_scott):
    assert hw.check_environment(gray_scott) == []


def test_a_uniform_state_follows_the_kinetics(gray_scott):
    """u = 1, v = 0 is at rest; v alone decays by (1 - F - k) per step."""
    feed, kill = params = np.array([0.04, 0.06])
    rest = np.stack([np.ones(gray_scott.grid), np.zeros(gray_scott.grid)])
    np.testing.assert_allclose(gray_scott.solve(rest, 3, params), rest, atol=1e-14)
    fading = np.stack([np.zeros(gray_scott.grid), np.full(gray_scott.grid, 1e-9)])
    found = gray_scott.solve(fading, 1, params)[1]
    np.testing.assert_allclose(found, 1e-9 * (1 - feed - kill) ** gray_scott.steps_per_frame, rtol=1e-6)


def test_a_pattern_grows(gray_scott):
    sample = gray_scott.initial("train", 0)
    later = gray_scott.solve(sample.state, gray_scott.spec.frames - 1, sample.params)
    assert later[1].std() > 2 * sample.state[1].std() > 0
