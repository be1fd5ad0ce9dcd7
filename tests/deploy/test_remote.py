"""The solver on a cluster answers as the solver here does, bit for bit, whatever happens to its workers."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import hybridworld as hw
from hybridworld.deploy import remote
from hybridworld.deploy.remote import RemoteSolver, solve_on
from tests.data.decay import Decay

distributed = pytest.importorskip("distributed")


@dataclass(frozen=True)
class Deadly(Decay):
    """Kills the process that solves it: the first (who leaves the mark), or without a mark each."""

    mark: str = ""

    def advance(self, states, frames, params):
        if not (self.mark and Path(self.mark).exists()):
            Path(self.mark or os.devnull).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().advance(states, frames, params)


@dataclass(frozen=True)
class Bursting(Decay):
    """Overflows in the third frame where the rate is above 2."""

    def advance(self, states, frames, params):
        with np.errstate(over="ignore"):
            return states * (np.where(params > 2, 1e150, 0.5) ** frames)[..., None, None]


@dataclass(frozen=True)
class Refusing(Decay):
    """Raises an error of its own."""

    error: type = hw.SolverFailure

    def advance(self, states, frames, params):
        raise self.error("decay: the solver is out of ink.")


def rows(environment, count):
    samples = [environment.initial("test", seed) for seed in range(count)]
    return np.stack([sample.state for sample in samples]), np.stack([sample.params for sample in samples])


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster:
        yield cluster


@pytest.fixture
def solver_of(cluster):
    """environment -> its solver on the cluster, closed before the cluster is."""
    with ExitStack() as held:
        yield lambda environment: held.enter_context(closing(RemoteSolver(cluster.scheduler_address, environment)))


# The same bits.


@pytest.mark.parametrize("name", ["ball3d", "euler2d"])
def test_any_number_of_rows_comes_back_in_order_bit_for_bit(name, solver_of):
    environment = hw.system(name)
    if environment.spec.grid:
        environment = environment.resized((16, 16))
    states, params = rows(environment, 37)
    expected, solve = environment.solve(states, 5, params), solver_of(environment).solve
    for count in (37, 3, 1):  # many in a chunk; fewer than chunks; one
        np.testing.assert_array_equal(solve(states[:count], 5, params[:count]), expected[:count])
    assert len(np.unique(expected.reshape(37, -1), axis=0)) == 37


def test_it_takes_what_the_solver_here_takes(solver_of):
    (state, *_), (params, *_) = rows(Decay(), 1)
    solve = solver_of(Decay()).solve
    np.testing.assert_array_equal(solve(state, 2, params), Decay().solve(state, 2, params))
    few = np.stack([state, 2 * state]).astype(np.float32)
    np.testing.assert_array_equal(solve(few, 2, params), Decay().solve(few, 2, params))
    assert solve(few[:0], 2, params).shape == (0, 3, 6, 4)


def test_large_states_travel_without_a_warning(solver_of, recwarn):
    environment = Decay(grid=(1024, 512))
    states, params = rows(environment, 1)
    np.testing.assert_array_equal(solver_of(environment).solve(states, 1, params), environment.solve(states, 1, params))
    assert not recwarn.list


def test_a_worker_that_dies_costs_no_answer(solver_of, tmp_path):
    environment = Deadly(mark=str(tmp_path / "died"))
    states, params = rows(environment, 9)
    np.testing.assert_array_equal(solver_of(environment).solve(states, 3, params), Decay().solve(states, 3, params))
    assert (tmp_path / "died").exists()


# The connection.


def test_it_connects_when_first_asked_and_only_once(solver_of, monkeypatch):
    made, connected = [], remote.connected
    monkeypatch.setattr(remote, "connected", lambda *arguments: made.append(arguments) or connected(*arguments))
    states, params = rows(Decay(), 3)
    solver = solver_of(Decay())
    assert not made
    threads = [threading.Thread(target=solver.solve, args=(states, 1, params)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    solver.solve(states, 1, params)
    assert len(made) == 1
    solver.close()
    solver.close()
    solver.solve(states, 1, params)
    assert len(made) == 2


def test_it_leaves_the_cluster_when_nobody_holds_it_and_is_nobodys_default(cluster):
    states, params = rows(Decay(), 3)
    before = set(cluster.scheduler.clients)
    solve = solve_on(cluster.scheduler_address, Decay())
    solve(states, 1, params)
    assert len(set(cluster.scheduler.clients) - before) == 1
    with pytest.raises(ValueError, match="No global client"):
        distributed.get_client()
    del solve
    assert set(cluster.scheduler.clients) <= before


OWN = """
import sys
from pathlib import Path
import numpy as np
import hybridworld as hw
from hybridworld.deploy.remote import solve_on

if __name__ == "__main__":
    own = hw.system(sys.argv[1] + ":Own")
    sample = own.initial("test", 0)
    solve = solve_on("local", own)
    assert (solve(sample.state, 3, sample.params) == own.solve(sample.state, 3, sample.params)).all()
    print("solved")
"""


def test_processes_here_solve_a_users_own_file_and_end_quietly_with_the_program(tmp_path):
    code = Path(sys.modules[Decay.__module__].__file__).read_text().replace("Decay(", "Own(")
    (tmp_path / "own_system.py").write_text(code)
    (tmp_path / "script.py").write_text(OWN)
    run = subprocess.run(
        [sys.executable, tmp_path / "script.py", tmp_path / "own_system.py"],
        env=os.environ | {"HYBRIDWORLD_THREADS": "1"}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, "solved\n", "")


# Failures.


def test_a_failure_reads_as_it_does_without_a_cluster(solver_of):
    states, params = rows(Bursting(), 20)
    params[17] = 3
    with pytest.raises(hw.SolverFailure) as here:
        Bursting().solve(states, 5, params)
    with pytest.raises(hw.SolverFailure) as there:
        solver_of(Bursting()).solve(states, 5, params)
    assert str(there.value) == str(here.value) and "in state 17 (rate = 3) at frame 3" in str(here.value)


@pytest.mark.parametrize(
    ("error", "comes", "said"),
    [
        (hw.SolverFailure, hw.SolverFailure, r"^decay: the solver is out of ink\.$"),
        (hw.InvalidInput, hw.InvalidInput, r"^decay: the solver is out of ink\.$"),
        (ZeroDivisionError, hw.CodeFailure, r"^decay: advance raised ZeroDivisionError: decay: the solver is out of ink \("),
    ],
)
def test_an_error_that_the_system_raises_comes_back(error, comes, said, solver_of):
    with pytest.raises(comes, match=said):
        solver_of(Refusing(error=error)).solve(rows(Decay(), 3)[0], 1, [1.0])


def test_what_cannot_be_solved_is_refused_before_connecting():
    states, params = rows(Decay(), 3)
    with pytest.raises(hw.InvalidInput, match="parameter 'rate' of state 0 is -"):
        solve_on("tcp://127.0.0.1:1", Decay())(states, 1, -params)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere://else"])
def test_no_scheduler_at_the_address(address):
    with pytest.raises(hw.InvalidInput, match=f"No dask scheduler answers at '{address}'"):
        solve_on(address, Decay())(rows(Decay(), 3)[0], 1, [1.0])


def test_no_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(hw.InvalidInput, match=r"needs dask.distributed: pip install 'hybrid-world-models\[dask\]'"):
        solve_on("local", Decay())(rows(Decay(), 3)[0], 1, [1.0])


def test_no_workers(monkeypatch):
    monkeypatch.setattr(remote, "PATIENCE", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        closing(RemoteSolver(empty.scheduler_address, Decay())) as solver,
        pytest.raises(hw.HybridWorldError, match=r"The cluster at .* failed .*0/1 workers"),
    ):
        solver.solve(rows(Decay(), 3)[0], 1, [1.0])


def test_a_system_that_takes_down_every_worker(solver_of, cluster, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)  # instead of 3, to be quick
    with pytest.raises(hw.HybridWorldError, match=r"The cluster at .* failed .*KilledWorker"):
        solver_of(Deadly()).solve(rows(Decay(), 1)[0], 1, [1.0])
