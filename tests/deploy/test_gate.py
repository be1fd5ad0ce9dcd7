"""A gate that watches itself, on scores and errors that are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from hybridworld.deploy.gate import Gate
from hybridworld.errors import InvalidInput
from hybridworld.trust.bounds import ErrorBound, Residuals
from tests.deploy.fakes import DAMPING, Solver, told, with_scores


def draw(count, seed, shift=1.0):
    """Scores like those of the validation data, or larger by a factor."""
    return (shift * np.random.default_rng(seed).lognormal(size=count)).astype(np.float32)


def feed(gate, scores, horizon=1, batch=50):
    """All answers, one after the other."""
    found = [
        gate.predict(with_scores(scores[start : start + batch]), horizon, DAMPING) for start in range(0, len(scores), batch)
    ]
    return np.concatenate([each.state for each in found]), np.concatenate([each.used_solver for each in found])


def gate_of(number=0, size=1000, solver=None, bound=None, **options):
    """A gate with validation data of its own."""
    return Gate(told({1: draw(size, [number, 1])}, solver, bound), **options)


# Deferral.


@pytest.mark.parametrize("q", [0.5, 0.75, 0.95])
def test_on_data_like_the_validation_data_a_share_of_1_minus_q_is_deferred(q):
    gate = gate_of(size=2000, q=q)
    feed(gate, draw(5000, 7))
    deviation = np.sqrt(q * (1 - q) * (1 / 5000 + 1 / 2000))
    assert abs(gate.health.deferral - (1 - q)) < 4 * deviation
    assert gate.health.expected_deferral == 1 - q
    assert gate.health.answers == 5000


def test_a_frozen_gate_answers_as_the_model_does_in_mode_2():
    gate, states = gate_of(q=0.6), with_scores(draw(100, 3))
    found, expected = gate.predict(states, 1, DAMPING), gate.model.predict(states, 1, DAMPING, q=0.6)
    np.testing.assert_array_equal(found.state, expected.state)
    np.testing.assert_array_equal(found.used_solver, expected.used_solver)
    assert found.threshold == expected.threshold


@pytest.mark.parametrize("shift", [0.3, 3.0])
def test_under_shift_an_adaptive_threshold_brings_deferral_back_to_1_minus_q(shift):
    frozen, adaptive = (gate_of(q=0.75, adaptive=choice, window=200) for choice in (False, True))
    flags = []
    for gate in (frozen, adaptive):
        feed(gate, draw(1000, 1))
        feed(gate, draw(200, 2, shift))  # the window turns over
        flags.append(feed(gate, draw(3000, 3, shift))[1].mean())
    assert abs(flags[0] - 0.25) > 0.1
    assert abs(flags[1] - 0.25) < 0.03


def test_each_horizon_adapts_by_itself():
    gate = Gate(told({1: draw(500, 0), 4: draw(500, 1)}), adaptive=True, window=100)
    feed(gate, draw(400, 2, shift=5), horizon=1)
    assert gate.predict(with_scores(draw(1, 0)), 1, DAMPING).threshold > 3 * gate.model.threshold(1, 0.75)
    assert gate.predict(with_scores(draw(1, 0)), 4, DAMPING).threshold == gate.model.threshold(4, 0.75)


@settings(max_examples=20)
@given(st.floats(0.05, 0.95), st.integers(20, 60))
def test_an_adaptive_threshold_keeps_a_share_q_of_the_window(q, window):
    gate = gate_of(q=q, adaptive=True, window=window)
    scores = draw(window, window)
    feed(gate, scores)
    threshold = gate.predict(with_scores(scores[:1]), 1, DAMPING).threshold
    assert q - 1e-9 <= np.mean(scores <= np.float32(threshold)) <= q + 1 / window + 1e-9


@pytest.mark.parametrize(("q", "deferred"), [(0, 300), (1, 0)])
def test_all_or_nothing_stays_so_when_the_threshold_adapts(q, deferred):
    gate = gate_of(q=q, adaptive=True, window=20)
    feed(gate, draw(300, 1), batch=10)
    assert gate.health.deferral * 300 == deferred


def test_a_score_that_is_no_number_is_deferred_and_does_not_spoil_the_threshold():
    gate = gate_of(q=0.75, adaptive=True, window=50)
    scores = draw(50, 1)
    feed(gate, scores)
    gate._recent[1].extend([float("nan")])
    threshold = gate.predict(with_scores(scores[:1]), 1, DAMPING).threshold
    assert np.sort(scores)[35] <= threshold <= np.sort(scores)[39]


# Drift.


def test_on_data_like_the_validation_data_alarms_are_as_rare_as_stated():
    rate, alarms, windows = 0.02, 0, 0
    for seed in range(60):
        gate = gate_of(seed, size=200, window=100, false_alarms=rate)
        feed(gate, draw(2000, [seed, 2]), batch=2000)
        alarms += sum(drift.alarm for drift in gate.health.drifts)
        windows += len(gate.health.drifts)
    assert windows == 1200
    assert alarms <= 3 * rate * windows
    assert alarms > 0  # it is a rate, not a promise


def test_at_a_horizon_between_those_that_were_calibrated_it_is_quiet_too():
    """Scores grow tenfold from 1 to 4; at 2 they lie in between, as the threshold does."""
    alarms = 0
    for seed in range(10):
        base = draw(200, [seed, 1])
        gate = Gate(told({1: base, 4: 10 * base}), window=100, false_alarms=0.02)
        feed(gate, draw(1000, [seed, 2], shift=5.5), horizon=2)
        alarms += sum(drift.alarm for drift in gate.health.drifts)
        assert abs(gate.health.deferral - 0.25) < 0.15
    assert alarms <= 3 * 0.02 * 100


def test_the_p_value_is_that_of_the_two_samples_themselves():
    known, seen = draw(300, 1), draw(100, 2, shift=1.2)
    gate = Gate(told({1: known}), window=100)
    feed(gate, seen)
    assert gate.health.drifts[0].p_value == pytest.approx(ks_2samp(seen, known, method="asymp").pvalue)


@pytest.mark.parametrize("shift", [0.3, 3.0])
def test_shifted_scores_raise_the_alarm_and_it_ends_when_they_return(shift):
    gate = gate_of(window=200)
    feed(gate, draw(1000, 1))
    assert not gate.health.alarm
    feed(gate, draw(200, 2, shift))
    assert gate.health.alarm and gate.health.drifts[-1].p_value < 0.001
    feed(gate, draw(200, 3))
    assert not gate.health.alarm


def test_a_window_is_tested_when_it_is_full_however_answers_arrive():
    piecewise, at_once = gate_of(window=100), gate_of(window=100)
    scores = draw(250, 5)
    feed(piecewise, scores, batch=7)
    feed(at_once, scores, batch=250)
    assert [drift.answers for drift in at_once.health.drifts] == [100, 200]
    assert [drift.p_value for drift in piecewise.health.drifts] == [drift.p_value for drift in at_once.health.drifts]


# Audits.


def hard(states):
    """Errors that the score tells something about."""
    return 0.1 + 0.2 * states[:, 0] ** 2


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_audits_estimate_the_mean_error_of_what_was_accepted(share):
    """Within four standard errors of the truth for each of many gates, and without bias for all of them together."""
    off = []
    for seed in range(20):
        gate = gate_of(seed, solver=Solver(hard), audit=share, seed=seed)
        scores = draw(3000, [seed, 5])
        feed(gate, scores, batch=300)
        accepted = with_scores(scores)[scores <= gate.model.threshold(1, 0.75)]
        health = gate.health
        assert abs(health.audits - share * len(accepted)) < 5 * np.sqrt(share * len(accepted))
        off.append((health.error - hard(accepted).mean()) / health.error_deviation)
        assert abs(off[-1]) < 4
    assert abs(np.mean(off)) < 4 / np.sqrt(len(off))


def test_audited_answers_are_those_of_the_solver_and_say_so():
    solver = Solver(lambda states: 1 / 3)
    gate = gate_of(solver=solver, audit=0.5)
    scores = draw(400, 1)
    answers, used = feed(gate, scores)
    deferred = scores > gate.model.threshold(1, 0.75)
    audited = used & ~deferred
    assert audited.sum() == gate.health.audits > 100 and used[deferred].all()
    np.testing.assert_array_equal(answers[used, 1], 1 / 3)  # exactly, in float64
    np.testing.assert_array_equal(answers[~used, 1], 0)
    assert len(solver.rows) == used.sum()
    assert gate.health.deferral == deferred.mean()  # audits are not deferrals


@pytest.mark.parametrize(("share", "audits"), [(0.0, 0), (1.0, "all")])
def test_none_or_all_that_is_accepted_may_be_audited(share, audits):
    gate = gate_of(audit=share)
    scores = draw(100, 1)
    feed(gate, scores)
    accepted = np.sum(scores <= gate.model.threshold(1, 0.75))
    assert gate.health.audits == (accepted if audits == "all" else 0)


def test_audits_take_the_params_of_their_rows():
    class Strict(Solver):
        def __call__(self, states, frames, params):
            answer = super().__call__(states, frames, params)
            np.testing.assert_array_equal(params[:, 0], states[:, 0])
            return answer

    scores = np.linspace(0.1, 0.9, 30)
    gate = Gate(told({1: np.linspace(0, 1, 100)}, Strict()), audit=0.5)
    gate.predict(with_scores(scores), 1, scores[:, None])
    assert 5 < gate.health.audits < 25


def test_bounds_are_audited_too():
    scores = draw(1000, [0, 1]).astype(float)
    errors = np.random.default_rng(3).uniform(0, 1, 1000) * scores
    bound = ErrorBound(Residuals({1.0: scores}, {1.0: errors}))
    rng = np.random.default_rng(4)
    gate = gate_of(solver=Solver(lambda s: rng.uniform(0, 1, len(s)) * s[:, 0]), bound=bound, audit=1.0, coverage=0.9)
    feed(gate, draw(2000, 9))
    assert 0.85 < gate.health.coverage < 0.95
    broken = gate_of(solver=Solver(lambda s: 100.0), bound=bound, audit=1.0)
    feed(broken, draw(100, 9))
    assert broken.health.coverage == 0


# A tolerance instead of a share.


def bounded(seed=0, size=1000):
    """Bounds of errors that are a share of the score."""
    scores = draw(size, [0, 1]).astype(float)
    errors = np.random.default_rng(seed).uniform(0, 1, size) * scores
    return ErrorBound(Residuals({1.0: scores}, {1.0: errors}))


def test_with_a_tolerance_the_gate_accepts_what_the_bound_promises_and_audits_tell_how_it_goes():
    rng = np.random.default_rng(4)
    options = {"solver": Solver(lambda s: rng.uniform(0, 1, len(s)) * s[:, 0]), "bound": bounded(), "tolerance": 1.0}
    gate, scores = gate_of(**options, coverage=0.8, audit=1.0), draw(3000, 9)
    _, used = feed(gate, scores)
    accepted = gate.model.bound(scores, 1, 0.8) <= 1.0
    health = gate.health
    assert used.all() and health.audits == accepted.sum() and health.deferral == pytest.approx(1 - accepted.mean())
    assert health.deferral == pytest.approx(health.expected_deferral, abs=0.05)
    assert 0 < health.exceeding <= 0.2 and health.exceeding == pytest.approx(health.exceeding_accepted * accepted.mean())


def test_beyond_its_bounds_a_gate_with_a_tolerance_leaves_everything_to_the_solver():
    gate = gate_of(bound=bounded(), tolerance=1.0)
    feed(gate, draw(60, 1), horizon=20)
    assert (gate.health.answers, gate.health.deferral, gate.health.expected_deferral) == (60, 1, 1)
    assert np.isnan(gate.health.exceeding)


@pytest.mark.parametrize("options", [{"q": 0.5}, {"adaptive": True}])
def test_a_tolerance_excludes_what_keeps_a_share(options):
    with pytest.raises(InvalidInput, match="it excludes q and adaptive=True"):
        gate_of(bound=bounded(), tolerance=1.0, **options)


def test_a_gate_with_a_tolerance_needs_bounds_and_a_tolerance_that_can_be():
    with pytest.raises(InvalidInput, match="no error bound to hold a tolerance against"):
        gate_of(tolerance=1.0)
    with pytest.raises(InvalidInput, match="The tolerance is -1 deviations"):
        gate_of(bound=bounded(), tolerance=-1)


# Small things.


def test_single_states_work_with_and_without_audit():
    gate = gate_of(audit=0.5)
    scores = draw(100, 1)
    for score in scores:
        found = gate.predict(np.array([score, 0.0]), 1, DAMPING)
        assert found.state.shape == (2,) and found.used_solver.shape == () and found.score.shape == ()
        assert found.state[1] == found.used_solver  # the solver adds one
    assert gate.health.answers == 100 and gate.health.audits > 20
    whole = gate_of(audit=0.5)
    feed(whole, scores, batch=100)
    assert whole.health.deferral == gate.health.deferral


def test_before_anything_happened_it_is_healthy_and_knows_nothing():
    health = gate_of(q=0.8, audit=0.1).health
    assert (health.answers, health.deferral, health.audits, health.drifts, health.alarm) == (0, 0, 0, (), False)
    assert health.expected_deferral == pytest.approx(0.2)
    assert np.isnan([health.error, health.error_deviation, health.coverage]).all()


def test_after_one_audit_there_is_an_error_but_no_deviation_yet():
    gate = gate_of(audit=1.0)
    gate.predict(np.array([0.0, 0.0]), 1, DAMPING)
    assert gate.health.error == pytest.approx(1.0)
    assert np.isnan(gate.health.error_deviation)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"q": 1.5}, "q is 1.5"),
        ({"q": float("nan")}, "q is nan"),
        ({"audit": -0.1}, "audit share is -0.1"),
        ({"false_alarms": 2}, "false alarm rate is 2"),
        ({"coverage": 1.1}, "coverage is 1.1"),
        ({"window": 19}, "window is 19 answers: a test needs at least 20"),
    ],
)
def test_impossible_wishes_are_refused_in_words(options, says):
    with pytest.raises(InvalidInput, match=says):
        gate_of(**options)


def test_a_coverage_that_the_bounds_cannot_promise_is_refused_before_the_first_answer():
    scores = draw(50, 0)
    bound = ErrorBound(Residuals({1.0: scores}, {1.0: scores}))
    for coverage in (0, 0.99, 1):
        with pytest.raises(InvalidInput, match="with 50 validation trajectories"):
            gate_of(bound=bound, coverage=coverage)


def test_a_gate_needs_a_calibrated_model_and_a_horizon_that_can_be():
    model = told({1: draw(50, 0)})
    for horizon in (0, -1, float("nan")):
        with pytest.raises(InvalidInput, match=r"horizon is .* positive"):
            Gate(model).predict(with_scores(draw(1, 0)), horizon, DAMPING)
    model.calibration = None
    with pytest.raises(InvalidInput, match="no validation scores: run `hybridworld calibrate`"):
        Gate(model)
