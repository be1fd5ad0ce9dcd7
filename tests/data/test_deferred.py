"""The log of deferred questions: whole files whoever writes and dies, a bound that holds, trajectories that stay apart."""

import multiprocessing
import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridworld.data import deferred
from hybridworld.data.dataset import Dataset
from hybridworld.data.deferred import DeferredLog, NotKept, files_of, name_of, read_log
from hybridworld.errors import InvalidInput
from tests.surrogate.flows import OSCILLATOR, RING, Oscillator

IDENTITY = Oscillator().identity


def some(count, seed=0, spec=OSCILLATOR):
    rng = np.random.default_rng(seed)
    states, answers = rng.normal(size=(2, count, *spec.shape)).astype(np.float32).astype(float)
    return states, rng.uniform(0.1, 0.5, (count, 1)), answers


def filled(root, count=8, horizon=4, seed=0, **options):
    log = DeferredLog(root, OSCILLATOR, IDENTITY, "1", **options)
    states, params, answers = some(count, seed)
    log.add(states, horizon, params, answers)
    log.flush()
    return states, params, answers


def write_for_ever(root, seed):
    log = DeferredLog(root, OSCILLATOR, IDENTITY, "1", most=40)
    for turn in range(10**9):
        states, params, answers = some(8, 1000 * seed + turn)
        log.add(states, 1 + turn % 3, params, answers)
        log.flush()


def test_what_is_kept_is_read_again(tmp_path):
    states, params, answers = filled(tmp_path, horizon=4)
    more = filled(tmp_path, horizon=2, seed=1)
    found = read_log(tmp_path, OSCILLATOR, IDENTITY)
    assert found.pairs.horizons.tolist() == [4] * 8 + [2] * 8  # in the order in which they came
    assert (found.pairs.states == np.concatenate([states, more[0]])).all()
    assert (found.pairs.futures == np.concatenate([answers, more[2]])).all()
    assert np.allclose(found.pairs.params, np.concatenate([params, more[1]]))
    assert len(set(found.trajectories)) == 16


@pytest.mark.parametrize("spec", (OSCILLATOR, RING))
def test_each_horizon_is_a_dataset_in_the_wells_layout(tmp_path, spec):
    log = DeferredLog(tmp_path, spec)
    states, params, answers = some(3, spec=spec)
    log.add(states, 4, params, answers)
    log.flush()
    dataset = Dataset(tmp_path / "h4")
    assert dataset.splits == ("train",) and dataset.frames == 2
    assert dataset.spec.frame_step == pytest.approx(4 * spec.frame_step)
    assert (dataset.trajectory("train", 1) == np.stack([states[1], answers[1]])).all()


def test_a_file_is_written_when_it_is_full_or_old(tmp_path, monkeypatch):
    log = DeferredLog(tmp_path, OSCILLATOR)
    states, params, answers = some(deferred.FULL_PAIRS - 1)
    log.add(states, 4, params, answers)
    assert not list(files_of(tmp_path))
    log.add(states[:1], 4, params[:1], answers[:1])
    assert len(list(files_of(tmp_path))) == 1
    log.add(states[:1], 4, params[:1], answers[:1])
    monkeypatch.setattr(deferred, "PATIENCE", -1.0)
    log.add(states[:1], 2, params[:1], answers[:1])
    assert len(list(files_of(tmp_path))) == 3


def test_the_oldest_make_room(tmp_path):
    for seed in range(6):
        filled(tmp_path, 8, horizon=1 + seed % 2, seed=seed, most=20)
    found = read_log(tmp_path, OSCILLATOR, IDENTITY)
    newest = np.concatenate([some(8, seed)[0] for seed in (4, 5)])
    assert (found.pairs.states == newest).all()


def test_many_processes_write_one_log_and_are_killed(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_for_ever, args=(tmp_path, seed)) for seed in range(3)]
    for writer in writers:
        writer.start()
    deadline = time.monotonic() + 600  # cores are shared
    while len({path.name.split("-")[1][:-6] for path in files_of(tmp_path)}) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
    found = read_log(tmp_path, OSCILLATOR, IDENTITY)  # every file is whole
    assert 0 < len(found) <= 40 + 3 * 8  # whoever was killed before it could make room
    filled(tmp_path, 8, most=40)
    assert len(read_log(tmp_path, OSCILLATOR, IDENTITY)) <= 40


def test_what_a_killed_writer_left_aside_is_cleared(tmp_path):
    filled(tmp_path)
    aside = next(files_of(tmp_path)).with_name(".1-2-3.hdf5.part")
    aside.write_bytes(b"half a file")
    filled(tmp_path)
    assert aside.exists()  # its writer may be at work
    os.utime(aside, (0, 0))
    filled(tmp_path)
    assert not aside.exists() and len(read_log(tmp_path, OSCILLATOR, IDENTITY)) == 24


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 16)), min_size=1, max_size=80))
@settings(max_examples=30, deadline=None)
def test_a_trajectory_is_held_out_whole_and_for_ever(asked):
    names = np.array([name_of(np.full(2, number), np.zeros(1)) for number, _ in asked])
    pairs = deferred.Batch(*(np.zeros(len(asked)) for _ in range(4)))
    held = deferred.Deferred(pairs, names).held_out
    assert all(len(set(held[names == name])) == 1 for name in names)
    assert (deferred.Deferred(pairs, names[:1]).held_out == held[:1]).all()  # whatever else the log holds


def test_about_one_trajectory_in_four_is_held_out():
    names = np.array([name_of(np.full(2, number), np.zeros(1)) for number in range(2000)])
    pairs = deferred.Batch(*(np.zeros(len(names)) for _ in range(4)))
    assert 0.2 < deferred.Deferred(pairs, names).held_out.mean() < 0.3


def test_a_log_of_something_else_is_refused(tmp_path):
    filled(tmp_path)
    with pytest.raises(InvalidInput, match="has the channels"):
        read_log(tmp_path, replace(OSCILLATOR, fields=OSCILLATOR.fields[:1]), IDENTITY)
    with pytest.raises(InvalidInput, match="a solver with frame_step"):
        read_log(tmp_path, OSCILLATOR, Oscillator(frame_step=0.2).identity)
    with pytest.raises(InvalidInput, match="nothing to learn from"):
        read_log(tmp_path / "elsewhere", OSCILLATOR, IDENTITY)


def test_a_damaged_file_is_told(tmp_path):
    filled(tmp_path)
    path = next(files_of(tmp_path))
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InvalidInput, match="damaged"):
        read_log(tmp_path, OSCILLATOR, IDENTITY)


def test_a_full_disk_costs_the_pairs_and_not_the_answer(tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(deferred, "write_atomically", full)
    with pytest.warns(NotKept, match="8 answers of the solver could not be kept"):
        filled(tmp_path)
