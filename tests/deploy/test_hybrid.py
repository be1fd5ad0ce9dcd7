"""A surrogate that asks the solver where it doubts itself."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridworld.data.evidence import Recorded
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.errors import InvalidInput, SolverFailure
from hybridworld.surrogate import pieces
from hybridworld.trust.bounds import ErrorBound, Residuals
from hybridworld.trust.calibrate import calibrate
from hybridworld.trust.calibration import Calibration
from hybridworld.trust.signal import Estimate
from hybridworld.trust.step_doubling import StepDoubling
from tests.deploy.fakes import DAMPING, Solver, Told, seeded, told, with_scores
from tests.surrogate.flows import OSCILLATOR, Oscillator, Ring, surrogate, table


@cache
def made(environment):
    """A calibrated model, and states with parameters that it was not calibrated on."""
    net, source = seeded(environment.spec), table(environment, "val", 32)
    arrays = calibrate(net, StepDoubling(net, net.std), Recorded(source), (1, 2, 4, 8), 32)
    residuals = Residuals.from_arrays(arrays, "trajectory")
    model = HybridModel(net, Calibration.of(residuals), environment.solve, ErrorBound(residuals))
    samples = [environment.initial("test", seed) for seed in range(24)]
    return model, np.stack([sample.state for sample in samples]), np.stack([sample.params for sample in samples])


@pytest.fixture(scope="module", params=[Oscillator(), Ring()], ids=["vector", "field"])
def case(request):
    return request.param, *made(request.param)


# The two ends.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_an_infinite_threshold_it_is_mode_1_bit_for_bit(case, dtype):
    _, model, states, params = case
    states = states.astype(dtype)
    alone = model.predict(states, 4, params, mode=1)
    for options in ({"threshold": np.inf}, {"q": 1}):
        gated = model.predict(states, 4, params, **options)
        np.testing.assert_array_equal(gated.state, alone.state)
        assert not gated.used_solver.any()
    assert alone.state.dtype == np.float32 and not alone.used_solver.any()
    assert alone.error_map is None and alone.score is None and alone.threshold is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_a_negative_threshold_it_is_the_solver_bit_for_bit(case, dtype):
    environment, model, states, params = case
    states = states.astype(dtype)
    for options in ({"threshold": -1}, {"q": 0}):
        gated = model.predict(states, 4, params, **options)
        np.testing.assert_array_equal(gated.state, environment.solve(states, 4, params))
        assert gated.used_solver.all()


def test_in_mode_2_answers_are_float64_whoever_gave_them(case):
    """It holds the solver's numbers exactly, and those of the surrogate too; the type does not depend on the data."""
    environment, model, states, params = case
    for q in (0, 0.5, 1):
        gated = model.predict(states.astype(np.float32), 4, params, q=q)
        assert gated.state.dtype == np.float64
        flagged = gated.used_solver
        if flagged.any():
            truth = environment.solve(states[flagged].astype(np.float32), 4, params[flagged])
            np.testing.assert_array_equal(gated.state[flagged], truth)


def test_the_surrogate_is_asked_as_it_would_be_by_hand(case):
    _, model, states, params = case
    with torch.no_grad():
        now, given_params = (torch.from_numpy(each.astype(np.float32)) for each in (states, params))
        by_hand = model.surrogate(now, 4.0, given_params)
    np.testing.assert_allclose(model.predict(states, 4, params, mode=1).state, by_hand, rtol=1e-5, atol=1e-6)


# In between.


@settings(max_examples=25)
@given(st.floats(0, 1), st.floats(0, 1))
def test_who_keeps_more_defers_no_one_else(q, other):
    model, states = told({1: np.linspace(0, 1, 101)}), with_scores(np.linspace(0, 1, 57))
    few, many = (model.predict(states, 1, DAMPING, q=share).used_solver for share in sorted((q, other), reverse=True))
    assert (few <= many).all()


@pytest.mark.parametrize("q", [0.2, 0.5, 0.75])
def test_trajectories_whose_score_exceeds_the_threshold_are_deferred_and_no_others(case, q):
    _, model, states, params = case
    gated = model.predict(states, 4, params, q=q)
    assert gated.threshold == model.threshold(4, q)
    np.testing.assert_array_equal(gated.used_solver, gated.score > gated.threshold)
    assert 0 < gated.used_solver.sum() < len(states)
    assert gated.error_map.shape == (len(states), *model.spec.grid)
    np.testing.assert_allclose(gated.error_map.reshape(len(states), -1).mean(axis=1), gated.score, rtol=1e-5)


@settings(max_examples=25)
@given(st.permutations(range(24)), st.integers(1, 24))
def test_an_answer_does_not_depend_on_order_or_batch(order, size):
    for environment in (Oscillator(), Ring()):
        model, states, params = made(environment)
        whole = model.predict(states, 4, params, q=0.5)
        pieces = [order[start : start + size] for start in range(0, 24, size)]
        found = [model.predict(states[rows], 4, params[rows], q=0.5) for rows in pieces]
        rows = np.concatenate(pieces)
        clear = np.abs(whole.score[rows] / whole.threshold - 1) > 1e-4
        assert clear.sum() > 20
        flags = np.concatenate([each.used_solver for each in found])
        np.testing.assert_array_equal(flags[clear], whole.used_solver[rows][clear])
        answers = np.concatenate([each.state for each in found])
        np.testing.assert_allclose(answers[clear], whole.state[rows][clear], rtol=1e-5, atol=1e-5)


def test_large_batches_go_in_pieces_and_come_back_whole(case, monkeypatch):
    _, model, states, params = case
    whole = model.predict(states, 4, params, q=0.5)
    monkeypatch.setattr(pieces, "CELLS", 5 * int(np.prod(model.spec.grid)))
    some = model.predict(states, 4, params, q=0.5)
    np.testing.assert_array_equal(some.used_solver, whole.used_solver)
    np.testing.assert_allclose(some.state, whole.state, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(some.error_map, whole.error_map, rtol=1e-3, atol=1e-5)


def test_only_deferred_states_reach_the_solver_in_one_call_and_untouched():
    solver = Solver()
    scores = np.array([0.1, 0.9, 0.5, 1 / 3, 0.7])
    gated = told({1: np.linspace(0, 1, 11)}, solver).predict(with_scores(scores), 1, DAMPING, threshold=0.5)
    assert gated.used_solver.tolist() == [False, True, False, False, True]
    assert solver.calls == 1
    np.testing.assert_array_equal(solver.rows, with_scores(scores)[[1, 4]])  # in float64, as they were given
    np.testing.assert_array_equal(gated.state[:, 1], [0, 1, 0, 0, 1])


def test_where_nothing_is_deferred_the_solver_sleeps():
    solver = Solver()
    told({1: np.linspace(0, 1, 11)}, solver).predict(with_scores(np.zeros(3)), 1, DAMPING)
    assert solver.calls == 0


def test_the_input_stays_as_it_is():
    states = with_scores(np.linspace(0, 1, 9)).astype(np.float32)
    before = states.copy()
    model = told({1: np.linspace(0, 1, 11)})
    model.predict(states, 1, DAMPING).state[:] = 7
    model.predict(states, 1, DAMPING, mode=1).state[:] = 7
    np.testing.assert_array_equal(states, before)


@pytest.mark.parametrize("threshold", [0.5, np.inf])
def test_a_score_that_is_no_number_is_deferred(threshold):
    class Lost(Told):
        def __call__(self, states, horizons, params):
            return Estimate(states.clone(), torch.tensor([0.0, torch.nan, 0.0]))

    solver = Solver()
    model = HybridModel(seeded(OSCILLATOR), None, solver, signal=Lost())
    gated = model.predict(np.zeros((3, 2)), 1, DAMPING, threshold=threshold)
    assert gated.used_solver.tolist() == [False, True, False]
    assert np.isfinite(gated.state).all() and len(solver.rows) == 1


def test_a_signal_that_fails_leaves_torch_as_it_was(case):
    """Gradients are off while an answer is made, and on again afterwards, whatever happened."""
    environment, model, states, params = case

    class Broken(Told):
        def __call__(self, *inputs):
            assert torch.is_inference_mode_enabled()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        HybridModel(model.surrogate, model.calibration, environment.solve, signal=Broken()).predict(states, 4, params)
    assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()


# A tolerance instead of a share.


@pytest.mark.parametrize("coverage", [0.5, 0.8])
@pytest.mark.parametrize("tolerance", [0.01, 0.5, 2.0, 1e6])
def test_with_a_tolerance_the_solver_answers_what_no_bound_promises_and_nothing_else(case, tolerance, coverage):
    environment, model, states, params = case
    forecast = model.predict(states, 4, params, tolerance=tolerance, coverage=coverage)
    np.testing.assert_array_equal(forecast.used_solver, ~(model.bound(forecast.score, 4, coverage) <= tolerance))
    solved = forecast.used_solver
    np.testing.assert_array_equal(forecast.state[solved], environment.solve(states, 4, params)[solved])
    np.testing.assert_array_equal(forecast.state[~solved], model.predict(states, 4, params, mode=1).state[~solved])
    assert forecast.threshold is None and (model.error_bounds(forecast, coverage) <= tolerance).all()
    assert model.delivers(4, tolerance, coverage).exceeding <= 1 - coverage


@pytest.mark.parametrize("beginning", [None, True, False])
def test_who_knows_where_a_state_stands_in_its_trajectory_gets_that_bound(case, beginning):
    """Beginnings err ten times as much for their score here: unless it is said, a state may be one."""
    environment, model, states, params = case
    rng, begins = np.random.default_rng(0), np.arange(400) % 2 == 0
    scores = np.repeat(rng.uniform(0.5, 1, 200), 2)
    residuals = Residuals({4.0: scores}, {4.0: np.where(begins, 10, 1) * scores})
    apart = HybridModel(model.surrogate, model.calibration, environment.solve, ErrorBound(residuals, beginning=begins))
    forecast = apart.predict(states, 4, params, threshold=np.inf, beginning=beginning)
    ratio = apart.error_bounds(forecast) / apart.error_bounds(replace(forecast, beginning=False))
    np.testing.assert_allclose(ratio, 1 if beginning is False else 10, rtol=1e-6)
    tolerance = float(np.median(apart.error_bounds(forecast)))
    promised = apart.predict(states, 4, params, tolerance=tolerance, beginning=beginning)
    np.testing.assert_array_equal(promised.used_solver, ~(apart.error_bounds(forecast) <= tolerance))
    assert apart.delivers(4, 2.0, beginning=beginning).deferred == (0.0 if beginning is False else 1.0)


@pytest.mark.parametrize("horizon", [9, 20])
def test_what_has_no_bound_is_solved_when_there_is_a_tolerance(case, horizon):
    environment, model, states, params = case
    forecast = model.predict(states, horizon, params, tolerance=0.5, coverage=0.8)
    np.testing.assert_array_equal(forecast.state, environment.solve(states, horizon, params))
    assert forecast.used_solver.all() and forecast.score is None and forecast.links == ()
    assert forecast.notes == (
        f"There is no error bound at {horizon} frames, so with a tolerance the solver answers everything.",
    )
    assert model.delivers(horizon, 0.5) is None
    one = model.predict(states[0], horizon, params[0], tolerance=0.5, coverage=0.8)
    assert one.state.shape == model.spec.shape and one.used_solver.shape == ()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tolerance": 0.1, "q": 0.5}, "give it, or q, or a threshold, but one"),
        ({"tolerance": 0.1, "threshold": 0.5}, "give it, or q, or a threshold, but one"),
        ({"tolerance": 0.1, "mode": 1}, "it needs mode 2"),
        ({"tolerance": 0}, "The tolerance is 0 deviations: it must be a positive number"),
        ({"tolerance": float("nan")}, "The tolerance is nan"),
        ({"tolerance": 0.1, "coverage": 0.99}, "The coverage is 0.99: with 32 validation trajectories"),
    ],
)
def test_a_tolerance_that_cannot_be_is_refused_in_words(options, says):
    model, states, params = made(Oscillator())
    with pytest.raises(InvalidInput, match=says):
        model.predict(states, 4, params, **options)


def test_without_bounds_there_is_nothing_to_hold_a_tolerance_against(case):
    environment, model, states, params = case
    with pytest.raises(InvalidInput, match=r"no error bound to hold a tolerance against: run `hybridworld calibrate`"):
        HybridModel(model.surrogate, model.calibration, environment.solve).predict(states, 4, params, tolerance=1.0)


def test_a_rollout_holds_the_tolerance_at_each_link(case):
    _, model, states, params = case
    links = list(model.rollout(states, 4, 2, params, tolerance=1.0, coverage=0.8))
    again = model.predict(links[0].state, 4, params, tolerance=1.0, coverage=0.8)
    np.testing.assert_array_equal(links[1].used_solver, again.used_solver)


def test_mode_1_draws_its_map_if_asked_and_needs_no_solver_for_it(case):
    _, model, states, params = case
    alone = HybridModel(model.surrogate, model.calibration, bound=model.bound)
    forecast = alone.predict(states, 4, params, mode=1, error_map=True)
    np.testing.assert_array_equal(forecast.score, model.predict(states, 4, params).score)
    np.testing.assert_array_equal(forecast.state, model.predict(states, 4, params, mode=1).state)
    assert not forecast.used_solver.any() and (alone.error_bounds(forecast, 0.8) > 0).all()
    chain = alone.predict(states, 20, params, mode=1, error_map=True)
    assert len(chain.links) == 3 and chain.error_map.shape == (24, *model.spec.grid)


# One state, many states, chains.


@pytest.mark.parametrize("mode", [1, 2])
def test_one_state_is_a_batch_without_its_axis(case, mode):
    _, model, states, params = case
    batch = model.predict(states[:1], 4, params[:1], mode)
    one = model.predict(states[0], 4, params[0], mode)
    assert one.state.shape == model.spec.shape and one.used_solver.shape == ()
    np.testing.assert_array_equal(one.state, batch.state[0])
    assert one.used_solver == batch.used_solver[0]
    if mode == 2:
        assert one.error_map.shape == model.spec.grid and one.score.shape == ()
        assert (one.score, one.threshold) == (batch.score[0], batch.threshold)


def test_one_row_of_params_stands_for_all(case):
    _, model, states, params = case
    one, all_rows = (model.predict(states, 4, rows) for rows in (params[0], np.repeat(params[:1], len(states), axis=0)))
    np.testing.assert_array_equal(one.state, all_rows.state)


@pytest.mark.parametrize("options", [{"mode": 1}, {"q": 0.5}, {"threshold": 0.1}, {"q": 0}])
def test_a_rollout_is_a_chain_of_predictions(case, options):
    _, model, states, params = case
    state = states[:6]
    links = list(model.rollout(state, 4, 3, params[:6], **options))
    assert len(links) == 3
    for link in links:
        by_hand = model.predict(state, 4, params[:6], **options)
        np.testing.assert_array_equal(link.state, by_hand.state)
        np.testing.assert_array_equal(link.used_solver, by_hand.used_solver)
        state = by_hand.state


def test_a_rollout_that_always_defers_is_the_trajectory_of_the_solver(case):
    environment, model, states, params = case
    last = list(model.rollout(states[0], 2, 4, params[0], q=0))[-1].state
    np.testing.assert_allclose(last, environment.solve(states[0], 8, params[0]), rtol=1e-10, atol=1e-12)


# Beyond the longest trained horizon, here 8.


@pytest.mark.parametrize("options", [{"mode": 1}, {"q": 0.5}, {"threshold": np.inf}, {"q": 0}])
@pytest.mark.parametrize(("horizon", "spans"), [(9, (5, 4)), (16, (8, 8)), (17, (6, 6, 5)), (20, (7, 7, 6))])
def test_a_long_horizon_is_a_chain_of_trained_ones_with_the_gate_at_each_link(case, horizon, spans, options):
    _, model, states, params = case
    whole, state = model.predict(states, horizon, params, **options), states
    assert tuple(link.horizon for link in whole.links) == spans and whole.horizon == horizon
    used = np.zeros(len(states), bool)
    for link, span in zip(whole.links, spans, strict=True):
        by_hand = model.predict(state, span, params, **options)
        np.testing.assert_array_equal(link.state, by_hand.state)
        assert link.threshold == by_hand.threshold
        state, used = by_hand.state, used | by_hand.used_solver
    np.testing.assert_array_equal(whole.state, state)
    np.testing.assert_array_equal(whole.used_solver, used)
    assert whole.threshold is None and f"{horizon} frames are more than the longest trained horizon, 8" in whole.notes[0]
    assert " + ".join(map(str, spans)) in whole.notes[0]


def test_a_chain_that_always_defers_is_the_solver_and_has_no_doubt(case):
    environment, model, states, params = case
    whole = model.predict(states, 20, params, q=0)
    np.testing.assert_allclose(whole.state, environment.solve(states, 20, params), rtol=1e-9, atol=1e-11)
    assert (whole.score == 0).all() and (whole.error_map == 0).all()


def test_the_map_of_a_chain_is_the_sum_of_the_maps_of_what_the_surrogate_answered(case):
    _, model, states, params = case
    whole = model.predict(states, 20, params, q=0.5)
    kept = [np.where(link.used_solver, 0, link.score) for link in whole.links]
    np.testing.assert_allclose(whole.score, np.sum(kept, axis=0), rtol=1e-6)
    np.testing.assert_allclose(whole.error_map.reshape(len(states), -1).mean(axis=1), whole.score, rtol=1e-4)


def test_a_chain_has_no_bound_and_a_single_forecast_has_one(case):
    _, model, states, params = case
    assert model.error_bounds(model.predict(states, 20, params)) is None
    assert model.error_bounds(model.predict(states, 4, params, mode=1)) is None
    forecast = model.predict(states, 3, params, q=0.5)
    bounds = model.error_bounds(forecast, 0.8)
    assert (bounds[forecast.used_solver] == 0).all() and (bounds[~forecast.used_solver] > 0).all()


def test_one_state_has_a_chain_without_batch_axis(case):
    _, model, states, params = case
    one, batch = model.predict(states[0], 20, params[0]), model.predict(states[:1], 20, params[:1])
    assert one.state.shape == model.spec.shape and one.links[1].state.shape == model.spec.shape
    np.testing.assert_array_equal(one.state, batch.state[0])


def test_a_fraction_beyond_the_longest_is_a_chain_of_equal_links(case):
    _, model, states, params = case
    assert [link.horizon for link in model.predict(states, 20.4, params, mode=1).links] == [pytest.approx(6.8)] * 3


def test_a_link_that_starts_from_no_state_says_which_and_what_to_do():
    def picky(states, frames, params):
        raise InvalidInput("There is no such state.")

    class Late(Told):
        calls = 0

        def __call__(self, states, horizons, params):
            self.calls += 1
            return Estimate(states.clone(), torch.full((len(states),), float(self.calls > 1)))

    model = HybridModel(seeded(OSCILLATOR), None, picky, signal=Late())
    with pytest.raises(SolverFailure, match=r"Link 2 of the forecast: .*no such state.*smaller q"):
        model.predict(np.zeros((3, 2)), 16, DAMPING, threshold=0.5)


# What is said beside an answer.


def test_a_horizon_that_training_saw_needs_no_note(case):
    _, model, states, params = case
    for horizon, mode in ((2, 2), (3, 1), (8, 2), (1, 1)):
        assert model.predict(states, horizon, params, mode).notes == ()


def test_one_frame_with_a_map_says_that_half_a_frame_is_untrained(case):
    _, model, states, params = case
    (note,) = model.predict(states, 1, params).notes
    assert "two half frames, which no training has seen" in note


@pytest.mark.parametrize(("horizon", "mode"), [(3, 1), (3, 2), (1.5, 1)])
def test_a_horizon_between_those_of_training_says_so(case, horizon, mode):
    environment, model, states, params = case
    listed = HybridModel(model.surrogate, model.calibration, environment.solve, trained=(1, 2, 4, 8))
    (note,) = listed.predict(states, horizon, params, mode).notes
    assert f"No training has seen a horizon of {horizon:g} frames (it has seen 1, 2, 4, 8)" in note


def test_time_is_accounted_for(case):
    _, model, states, params = case
    assert set(model.predict(states, 4, params, mode=1).seconds) == {"surrogate"}
    seconds = model.predict(states, 4, params).seconds
    assert set(seconds) == {"surrogate and error map", "solver"} and min(seconds.values()) > 0


def test_the_error_of_a_prediction_is_the_mean_of_its_distance_in_deviations(case):
    _, model, states, _ = case
    std = model.surrogate.std.numpy().reshape(-1, *[1] * len(model.spec.grid))
    wrong = states + 0.5 * std
    expected = 0.5 * np.sqrt(len(model.spec.channels))
    np.testing.assert_allclose(model.errors(wrong, states), expected, rtol=1e-4)
    assert model.errors(states, states).max() == 0


# What cannot be.


def test_without_a_solver_mode_1_works_and_mode_2_says_what_is_missing(case):
    _, model, states, params = case
    alone = HybridModel(model.surrogate, model.calibration)
    np.testing.assert_array_equal(
        alone.predict(states, 4, params, mode=1).state, model.predict(states, 4, params, mode=1).state
    )
    for ask in (lambda: alone.predict(states, 4, params), lambda: alone.solve(states, 4, params)):
        with pytest.raises(
            InvalidInput, match=f"Mode 2 and true errors need a solver, and there is none for {model.spec.name}"
        ):
            ask()


def test_without_calibration_q_has_no_threshold_but_one_may_be_given(case):
    environment, model, states, params = case
    raw = HybridModel(model.surrogate, solve=environment.solve)
    with pytest.raises(InvalidInput, match=r"no validation scores.*`hybridworld calibrate`, or give a threshold"):
        raw.predict(states, 4, params)
    given_threshold = raw.predict(states, 4, params, threshold=model.threshold(4, 0.5))
    np.testing.assert_array_equal(given_threshold.state, model.predict(states, 4, params, q=0.5).state)


def test_a_fraction_of_a_frame_is_for_mode_1_alone(case):
    _, model, states, params = case
    assert np.isfinite(model.predict(states, 1.5, params, mode=1).state).all()
    with pytest.raises(InvalidInput, match=r"horizon is 1\.5 frames: mode 2 .* whole frames"):
        model.predict(states, 1.5, params)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"mode": 3}, "mode is 3: choose 1 .* or 2"),
        ({"mode": 0}, "mode is 0"),
        ({"horizon": 0}, "horizon is 0 frames: it must be a positive number"),
        ({"horizon": -1}, "horizon is -1 frames"),
        ({"horizon": float("nan")}, "horizon is nan frames"),
        ({"horizon": float("inf")}, "horizon is inf frames"),
        ({"q": 1.5}, "keep fraction q is 1.5"),
        ({"params": None}, "params have shape none.*damping"),
        ({"params": np.zeros((3, 1))}, r"params have shape \(3, 1\).*\(24, 1\)"),
        ({"params": np.array([-1.0])}, "'damping' of state 0 is -1; allowed is 0 to 10"),
        ({"state": np.zeros((2, 3))}, "states have shape"),
        ({"state": np.zeros((0, 2))}, "there are no states"),
        ({"state": np.full((2,), np.nan)}, "must be finite"),
        ({"state": np.zeros((2,), int)}, "floating-point"),
    ],
)
def test_bad_input_is_refused_in_words(change, says):
    model, states, params = made(Oscillator())
    with pytest.raises(InvalidInput, match=says):
        model.predict(**{"state": states, "horizon": 4, "params": params, **change})


def test_a_surrogate_that_sees_the_state_alone_needs_params_only_for_the_solver():
    model = HybridModel(surrogate(OSCILLATOR, "surrogate.params=false"), solve=Oscillator().solve)
    assert model.predict(np.ones((3, 2)), 1, mode=1).state.shape == (3, 2)
    with pytest.raises(InvalidInput, match="damping"):
        model.predict(np.ones((3, 2)), 1, threshold=0.0)
