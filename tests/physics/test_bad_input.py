"""Bad input gets one sentence that names the value and what is allowed."""

import numpy as np
import pytest

import hybridworld as hw
from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.oregonator import Oregonator

OREGONATOR, EULER, BALL = Oregonator(grid=(16, 16)), Euler2D(grid=(16, 16)), hw.system("ball3d")
FIELDS = np.zeros((2, 16, 16))
GAS = EULER.quadrants("SR3")
BALL_STATE, BALL_PARAMS = BALL.initial("test", 0).state, np.array([0.8, -9.8])


def changed(state, index, value):
    copy = state.copy()
    copy[index] = value
    return copy


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: EULER.solve(GAS[:3], 1), "shape (3, 16, 16); expected (4, 16, 16)"),
        (lambda: EULER.solve(GAS[0], 1), "expected (4, 16, 16)"),
        (lambda: EULER.solve(changed(GAS, (3, 2, 5), np.nan), 1), "energy of state 0 is nan at cell (2, 5)"),
        (lambda: EULER.solve(changed(GAS, (0, 2, 5), -0.2), 1), "density of state 0 is -0.2 at cell (2, 5)"),
        (lambda: EULER.solve(changed(GAS, (3, 2, 5), 1e-9), 1), "pressure of state 0 is"),
        (lambda: EULER.solve(GAS.astype(int), 1), "floating-point"),
        (lambda: EULER.solve(GAS, -1), "frames is -1"),
        (lambda: EULER.solve(GAS, 1.5), "frames is 1.5"),
        (lambda: EULER.solve(GAS, 1, np.array([1.0])), "params have shape (1,); expected (1, 0)"),
        (lambda: OREGONATOR.solve(FIELDS, 1), "with the values of: eps, f"),
        (lambda: OREGONATOR.solve(FIELDS, 1, np.array([-0.1, 1.0])), "'eps' of state 0 is -0.1; allowed is 0.001 to 1"),
        (lambda: BALL.solve(BALL_STATE, 1, np.array([1.4, -9.8])), "'restitution' of state 0 is 1.4; allowed is 0 to 1"),
        (lambda: BALL.solve(BALL_STATE, 1, np.array([0.8, np.nan])), "'gravity' of state 0 is nan"),
        (lambda: BALL.solve(changed(BALL_STATE, 0, np.inf), 1, BALL_PARAMS), "position_x of state 0 is inf"),
        (lambda: BALL.coarsened(2), "no grid"),
        (lambda: EULER.coarsened(3), "must divide the grid"),
        (lambda: EULER.initial("tset", 0), "Unknown split 'tset': choose one of train, val, test, ood-near, ood-far"),
        (lambda: EULER.initial("test", -1), "seed is -1"),
        (lambda: BALL.in_precision("float32"), "no choice of dtype"),
        (lambda: hw.system("euler"), "Unknown system 'euler': choose one of oregonator, euler2d, ball3d"),
        (lambda: hw.system("nowhere.py:Thing"), "no file nowhere.py"),
    ],
)  # fmt: skip
def test_one_sentence(call, words):
    with pytest.raises(hw.InvalidInput) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_batch_takes_one_row_of_params_for_all():
    states = np.stack([BALL.initial("test", seed).state for seed in range(3)])
    rows = np.tile(BALL_PARAMS, (3, 1))
    np.testing.assert_array_equal(BALL.solve(states, 5, BALL_PARAMS), BALL.solve(states, 5, rows))


def test_a_solver_that_fails_says_where_and_when():
    class Fails(type(BALL)):
        def advance(self, states, frames, params):
            for _ in range(frames):
                states = np.where(states > 1e9, np.nan, 2e3 * states)
            return states

    with pytest.raises(hw.SolverFailure, match=r"restitution = 0.8, gravity = -9.8\) at frame 4, t = 0.04 s"):
        Fails().solve(np.ones(9), 10, BALL_PARAMS)
