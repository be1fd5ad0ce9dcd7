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
        (lambda: EULER.in_precision("float16"), "The precision is float16: choose float64 or float32"),
        (lambda: EULER.resized((8,)), "has 1 axes, not 2"),
        (lambda: EULER.resized((8, 2.5)), "the number of cells is 2.5"),
        (lambda: BALL.solve(changed(BALL_STATE, 2, 3.0), 1, BALL_PARAMS), "position_z of state 0 is 3; allowed is -0.15"),
        (lambda: BALL.solve(changed(BALL_STATE, 0, -0.7), 1, BALL_PARAMS), "the ball must be in its box"),
        (lambda: BALL.solve(changed(BALL_STATE, 4, 1e12), 1, BALL_PARAMS), "velocity_y of state 0 is 1e+12; allowed is -4500"),
        (lambda: BALL.solve(BALL_STATE, 1, {"gravity": -9.8}), "params lack 'restitution'"),
        (lambda: BALL.solve(BALL_STATE, 1, {"gravity": -9.8, "bounce": 1}), "no parameter of the dynamics 'bounce'"),
        (lambda: BALL.solve(BALL_STATE, 1, {"gravity": "low", "restitution": 1}), "parameter 'gravity' is 'low'"),
        (lambda: BALL.solve(BALL_STATE, 1, {"gravity": [1, 2], "restitution": 1}), "or one per state (1)"),
        (lambda: BALL.solve(BALL_STATE, 1, ["a", "b"]), "params have type <U1"),
        (lambda: BALL.solve(BALL_STATE + 0j, 1, BALL_PARAMS), "type complex128; expected floating-point"),
        (lambda: BALL.solve([[1.0], [1.0, 2.0]], 1, BALL_PARAMS), "cannot be read as an array of numbers"),
        (lambda: BALL.solve(None, 1, BALL_PARAMS), "the states have shape ()"),
        (lambda: BALL.solve(BALL_STATE, None, BALL_PARAMS), "frames is none"),
        (lambda: BALL.solve(BALL_STATE, "3", BALL_PARAMS), "frames is '3'"),
        (lambda: BALL.initial("test", 1.5), "The seed is 1.5"),
        (lambda: BALL.initial("test", None), "The seed is none"),
        (lambda: BALL.spec.parameter("weight"), "ball3d has no parameter 'weight': there are restitution, gravity"),
        (lambda: BALL.resolved("fine"), "the factor of a finer reference is 'fine'"),
        (lambda: EULER.coarsened(1.5), "the factor of a coarser grid is 1.5"),
        (lambda: hw.system(None), "The system is none: give its name"),
        (lambda: hw.system("euler"), "Unknown system 'euler': choose one of oregonator, euler2d, ball3d"),
        (lambda: hw.system("nowhere.py:Thing"), "no file nowhere.py"),
    ],
)  # fmt: skip
def test_one_sentence(call, words):
    with pytest.raises(hw.InvalidInput) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


RANGES = {"id": ((1.0, 2.0),)}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hw.Axis("x", 1, 0, "wall"), "Axis 'x' runs from 1 to 0"),
        (lambda: hw.Axis("x", 1, 1, "wall"), "the first must be smaller"),
        (lambda: hw.Axis("x", "a", 1, "wall"), "give two numbers"),
        (lambda: hw.Axis("x", 0, 1, "mirror"), "has the boundary 'mirror': choose one of periodic, open, wall"),
        (lambda: hw.Field("x", "m", "tensor"), "has the kind 'tensor': choose one of scalar, vector, axial"),
        (lambda: hw.Field("x", "m", allowed=(1, 0)), "runs from 1 to 0"),
        (lambda: hw.Parameter("a", "1", "", {"id": ((2.0, 1.0),)}), "Parameter 'a', id: the interval runs from 2 to 1"),
        (lambda: hw.Parameter("a", "1", "", {"id": (1.0, 2.0)}), "give two numbers, as (low, high)"),
        (lambda: hw.Parameter("a", "1", "", {"id": 1.0}), "give intervals"),
        (lambda: hw.Parameter("a", "1", "", ((1.0, 2.0),)), "ranges must map a regime"),
        (lambda: hw.Parameter("a", "1", "", {"odd": ((1.0, 2.0),)}), "has a range for 'odd': choose one of id, ood-near"),
        (lambda: hw.Parameter("a", "1", "", RANGES, allowed=(1, 0)), "the allowed interval runs from 1 to 0"),
        (lambda: hw.Parameter("a", "1", "", RANGES, allowed=(float("nan"), 0)), "runs from nan to 0"),
        (lambda: hw.Parameter("a", "1", "", RANGES, role="end"), "has the role 'end': choose one of dynamics, action, start"),
        (lambda: hw.Parameter("a", "1", "", RANGES).draw(np.random.default_rng(0), "ood-far"), "no range for 'ood-far'"),
    ],
)  # fmt: skip
def test_what_a_spec_is_made_of_is_checked_when_it_is_made(make, words):
    with pytest.raises(hw.InvalidInput) as caught:
        make()
    assert words in str(caught.value)


def test_params_by_name_are_params_by_place():
    states = np.stack([BALL.initial("test", seed).state for seed in range(3)])
    restitution = np.array([0.7, 0.8, 0.9])
    expected = BALL.solve(states, 5, np.stack([restitution, np.full(3, -9.8)], axis=1))
    np.testing.assert_array_equal(BALL.solve(states, 5, {"gravity": -9.8, "restitution": restitution}), expected)


def test_states_that_lie_a_little_inside_a_wall_go_on():
    """As networks put them: the solver brings the ball back into its box."""
    state = changed(changed(BALL_STATE, 0, 0.6), 3, 1.0)
    assert BALL.solve(state, 1, BALL_PARAMS)[0] <= 0.45


class Broken(type(BALL)):
    def advance(self, states, frames, params):
        return states / np.array([0])["never"]


def test_an_error_in_a_users_solver_names_the_users_line_alone():
    with pytest.raises(hw.CodeFailure) as caught:
        Broken().solve(BALL_STATE, 1, BALL_PARAMS)
    told = str(caught.value)
    assert told.startswith("ball3d: advance raised IndexError") and "\n" not in told
    assert f'({__file__}, line {Broken.advance.__code__.co_firstlineno + 1}: return states / np.array([0])["never"])' in told


def test_an_answer_of_another_shape_or_type_is_named():
    for answer in (None, np.zeros(3), np.zeros((1, 9), int)):
        system = type("Odd", (type(BALL),), {"advance": lambda self, *_, answer=answer: answer})()
        with pytest.raises(hw.CodeFailure, match="the shape must stay, and the numbers must be floating-point"):
            system.solve(BALL_STATE, 1, BALL_PARAMS)


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
        Fails().solve(np.full(9, 0.5), 10, BALL_PARAMS)
