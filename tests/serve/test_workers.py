"""Processes that solve, and that may die."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridworld.data.cluster import NoCluster
from hybridworld.errors import HybridWorldError, InvalidInput
from hybridworld.physics.registry import find_system
from hybridworld.serve.limits import Budgets, Refusal, Request, asking, late
from hybridworld.serve.solvers import Cost, Solvers
from hybridworld.serve.workers import Workers
from tests.serve.moody import Cold, Moody
from tests.serve.served import wait_until

PARAMS = np.array([[0.3]])


def state(mood=1.0):
    return np.array([[mood, 0.5]])


@pytest.fixture(scope="module")
def workers():
    found = Workers(2)
    wait_until(lambda: found.alive == 2)
    yield found
    found.close()
    assert not found.pids


def solve(workers, mood=1.0, mark="", seconds=120.0):
    return workers.run(Moody(mark=str(mark)), "solve", state(mood), 3, PARAMS, seconds=seconds)


def test_the_answer_is_that_of_the_solver_here(workers):
    answer, seconds = solve(workers)
    np.testing.assert_array_equal(answer, Moody().solve(state(), 3, PARAMS))
    assert seconds > 0
    sample, _ = workers.run(Moody(), "initial", "test", 3, seconds=60)
    np.testing.assert_array_equal(sample.state, Moody().initial("test", 3).state)


def test_processes_that_were_killed_at_rest_are_replaced(workers):
    for pid in workers.pids:
        os.kill(pid, signal.SIGKILL)
    np.testing.assert_array_equal(solve(workers)[0], Moody().solve(state(), 3, PARAMS))
    wait_until(lambda: workers.alive == 2)


def test_a_task_survives_the_death_of_its_process(workers, tmp_path):
    np.testing.assert_array_equal(solve(workers, 6, tmp_path / "died")[0], Moody().solve(state(1.0) * [[6, 1]], 3, PARAMS))
    assert (tmp_path / "died").exists()
    wait_until(lambda: workers.alive == 2)


def test_a_task_that_kills_twice_is_given_up(workers, tmp_path):
    with pytest.raises(Refusal, match="killed 2 times") as told:
        solve(workers, 8, tmp_path / "died")
    assert told.value.status == 503 and told.value.retry_after
    wait_until(lambda: workers.alive == 2)
    solve(workers)


def test_a_task_that_never_ends_is_ended_with_its_process(workers):
    before = set(workers.pids)
    with pytest.raises(Refusal) as told:
        solve(workers, 7, seconds=2.0)
    assert told.value.status == 504
    wait_until(lambda: workers.alive == 2 and set(workers.pids) != before)


def test_errors_come_back_as_they_were(workers):
    with pytest.raises(InvalidInput, match="every value must be finite"):
        solve(workers, np.nan)
    with pytest.raises(HybridWorldError, match="ZeroDivisionError"):
        solve(workers, 9)


def test_a_system_from_a_file_of_the_user_is_found_there(workers, tmp_path):
    file = tmp_path / "my_decay.py"
    file.write_text("from tests.serve.moody import Moody\nclass Mine(Moody):\n    pass\n")
    mine = find_system(f"{file}:Mine")
    answer, _ = workers.run(mine, "solve", state(), 3, PARAMS, seconds=120)
    np.testing.assert_array_equal(answer, mine.solve(state(), 3, PARAMS))


def test_a_process_solves_once_before_it_takes_tasks_also_when_it_was_replaced(workers):
    workers.prepare(Cold())
    for _ in range(2):
        wait_until(lambda: workers.alive == 2)
        for _ in range(4):
            np.testing.assert_array_equal(workers.run(Cold(), "solve", state(), 1, PARAMS, seconds=120)[0], state())
        for pid in workers.pids:
            os.kill(pid, signal.SIGKILL)


# Budgets.


@given(call=st.floats(0, 1), unit=st.floats(1e-6, 1), works=st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_the_price_of_a_solver_is_learnt_from_its_calls(call, unit, works):
    cost = Cost(call)
    for work in works:
        cost.learn(work, call + unit * work)
    assert cost.of(100) == pytest.approx(call + 100 * unit, rel=1e-6)


@pytest.fixture
def solvers(workers):
    spent = []
    found = Solvers(workers, Budgets(1.0), spent=lambda system, seconds: spent.append(system))
    found.spent = spent
    found.environment = Moody()
    asking.set(Request("me", time.monotonic() + 120, 10.0))
    return found


def test_a_request_that_would_take_too_long_is_refused_before_any_work(solvers):
    cost = solvers.measure(solvers.environment, 120)
    cost.seconds = cost.work  # a second per trajectory and frame
    with pytest.raises(Refusal, match=r"would work about 11\.0 s on this request, and may work 10\.0 s") as told:
        solvers.solve_for(solvers.environment)(state(), 11, PARAMS)
    assert told.value.status == 422 and not solvers.spent


class Fake:
    """In place of workers: whatever has to be solved takes a second, so they say, and 16 frames wait for a cue."""

    def __init__(self, measuring=0.0):
        self.measuring, self.solved, self.cue = measuring, 0, threading.Event()

    def prepare(self, environment):
        pass

    def run(self, environment, method, *arguments, seconds):
        if method == "initial":
            time.sleep(self.measuring)
            return environment.initial(*arguments), 0.0
        if arguments[1] == 16:
            self.solved += 1
            self.cue.wait(5)
        return arguments[0], float(arguments[1] > 0)


@pytest.mark.parametrize("measuring", [0.0, 0.2], ids=["measured before", "measured meanwhile"])
def test_horizons_that_are_solved_at_once_share_the_time_of_their_request(measuring):
    workers, refused = Fake(measuring), []
    solvers = Solvers(workers, Budgets(600.0))
    if not measuring:
        solvers.measure(Moody(), 10)
    request = Request("me", time.monotonic() + 60, 7.0)  # enough for one solve of 16 frames, at a second per 4

    def solve(_):
        asking.set(request)
        try:
            solvers.solve_for(Moody())(state(), 16, PARAMS)
        except Refusal as error:
            refused.append(error.status)
            if len(refused) == 19:
                workers.cue.set()

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(solve, range(20)))
    assert workers.solved == 1 and refused == [422] * 19
    assert request.solver_seconds == pytest.approx(6.0)  # of the 4 s that were reserved, 3 came back


def test_a_measurement_that_failed_is_made_again():
    workers, moody = Fake(), Moody()
    solvers, workers.run = Solvers(workers, Budgets(600.0)), fails
    with pytest.raises(Refusal, match="no answer in time"):
        solvers.measure(moody, 10)
    del workers.run
    assert solvers.measure(moody, 10).of(8) == pytest.approx(2.0)


def fails(*arguments, **more):
    raise late()


def test_a_client_that_has_used_its_time_is_refused_and_others_are_not(solvers):
    solve = solvers.solve_for(solvers.environment)
    np.testing.assert_array_equal(solve(state(), 3, PARAMS), Moody().solve(state(), 3, PARAMS))
    solvers._budgets.give("me", -100.0)
    with pytest.raises(Refusal) as told:
        solve(state(), 3, PARAMS)
    assert told.value.status == 429
    asking.set(Request("you", time.monotonic() + 120, 10.0))
    solve(state(), 3, PARAMS)
    assert solvers.spent == ["moody"] * 2


def test_the_future_is_the_solvers_at_every_frame_that_was_asked_for(solvers):
    whole, _ = solvers.future(solvers.environment, state()[0], 4, PARAMS[0], every=2)
    assert whole.shape == (3, 2)
    for k, frames in enumerate((0, 2, 4)):
        np.testing.assert_allclose(whole[k], Moody().solve(state(), frames, PARAMS)[0], rtol=1e-6)
    once, seconds = solvers.future(solvers.environment, state()[0], 4, PARAMS[0], every=4)
    np.testing.assert_array_equal(once[1], Moody().solve(state(), 4, PARAMS)[0])
    assert seconds > 0


def test_initial_states_can_begin_later(solvers):
    samples, states = solvers.initial(solvers.environment, "test", range(2, 4), 3)
    for sample, now, seed in zip(samples, states, (2, 3), strict=True):
        expected = Moody().initial("test", seed)
        np.testing.assert_array_equal(sample.state, expected.state)
        np.testing.assert_allclose(now, Moody().solve(expected.state, 3, expected.params), rtol=1e-6)


# On a cluster.


@pytest.fixture
def cluster(workers, monkeypatch):
    """Solvers whose cluster does what `acts` says."""

    class Cluster(Solvers):
        def acts(self, action):
            monkeypatch.setattr("hybridworld.serve.solvers.solve_on", lambda address, environment: action)
            self._remote.clear()
            return self.solve_for(Moody())

    found = Cluster(workers, Budgets(60.0), dask="tcp://nowhere")
    asking.set(Request("me", time.monotonic() + 120, 10.0))
    return found


def test_deferred_trajectories_go_to_the_cluster(cluster):
    solve = cluster.acts(lambda states, frames, params: states + frames)
    np.testing.assert_array_equal(solve(state(), 3, PARAMS), state() + 3)


def test_a_cluster_that_fails_is_told_and_what_is_the_users_fault_stays_theirs(cluster):
    def fails(states, frames, params):
        raise HybridWorldError("The cluster at 'tcp://nowhere' failed.")

    with pytest.raises(Refusal, match="The cluster at") as told:
        cluster.acts(fails)(state(), 3, PARAMS)
    assert told.value.status == 503 and told.value.retry_after

    def refuses(states, frames, params):
        raise InvalidInput("No such state.")

    with pytest.raises(InvalidInput, match="No such state"):
        cluster.acts(refuses)(state(), 3, PARAMS)


def test_a_cluster_that_is_not_there_is_told_without_asking_it_again_and_found_when_it_is_back(cluster, caplog):
    asked = []

    def missing(states, frames, params):
        asked.append(frames)
        raise NoCluster("No dask scheduler answers at 'tcp://nowhere'.")

    solve = cluster.acts(missing)
    for _ in range(2):
        with pytest.raises(Refusal, match="No dask scheduler answers") as told:
            solve(state(), 3, PARAMS)
        assert told.value.status == 503 and told.value.retry_after
    assert asked == [3]
    cluster.reach(Moody(), 60)
    assert "No dask" in cluster.cut_off and asked == [3, 1]
    solve = cluster.acts(lambda states, frames, params: states)
    cluster.reach(Moody(), 60)
    assert not cluster.cut_off
    solve(state(), 3, PARAMS)


def test_a_cluster_that_never_answers_is_given_up_in_time(cluster):
    asking.set(Request("me", time.monotonic() + 2, 10.0))
    never = threading.Event()
    with pytest.raises(Refusal) as told:
        cluster.acts(lambda states, frames, params: never.wait(60))(state(), 3, PARAMS)
    never.set()
    assert told.value.status == 504


@pytest.mark.slow
def test_a_real_cluster_gives_the_bits_of_the_solver_here(workers):
    pytest.importorskip("distributed")
    asking.set(Request("me", time.monotonic() + 300, 100.0))
    solve = Solvers(workers, Budgets(600.0), dask="local").solve_for(Moody())
    np.testing.assert_array_equal(solve(state(), 3, PARAMS), Moody().solve(state(), 3, PARAMS))
