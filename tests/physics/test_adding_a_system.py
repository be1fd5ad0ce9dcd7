"""The example of docs/adding-a-system.md is a complete system, and short."""

import re
from pathlib import Path

import numpy as np
import pytest

import hybridworld as hw

DOC = Path(__file__).parents[2] / "docs" / "adding-a-system.md"


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    (code,) = re.findall(r"```python\n(.*?)```", DOC.read_text(), flags=re.DOTALL)
    assert len(code.splitlines()) < 150
    path = tmp_path_factory.mktemp("example") / "gray_scott.py"
    path.write_text(code)
    return hw.system(f"{path}:GrayScott")


def test_it_passes_the_check(env):
    assert hw.check_environment(env) == []


def test_a_uniform_state_follows_the_kinetics(env):
    """u = 1, v = 0 is at rest; v alone decays by (1 - F - k) per step."""
    feed, kill = params = np.array([0.04, 0.06])
    rest = np.stack([np.ones(env.grid), np.zeros(env.grid)])
    np.testing.assert_allclose(env.solve(rest, 3, params), rest, atol=1e-14)
    fading = np.stack([np.zeros(env.grid), np.full(env.grid, 1e-9)])
    found = env.solve(fading, 1, params)[1]
    np.testing.assert_allclose(found, 1e-9 * (1 - feed - kill) ** env.steps_per_frame, rtol=1e-6)


def test_a_pattern_grows(env):
    sample = env.initial("train", 0)
    later = env.solve(sample.state, env.spec.frames - 1, sample.params)
    assert later[1].std() > 2 * sample.state[1].std() > 0
