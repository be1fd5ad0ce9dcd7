"""The loop: whatever happens on the way, the model is that of an undisturbed training."""

import json
import math
import multiprocessing
import random
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from hybridworld.errors import HybridWorldError, InvalidInput
from hybridworld.surrogate import checkpoint
from hybridworld.surrogate import train as training
from hybridworld.surrogate.bundle import load_bundle
from hybridworld.surrogate.checkpoint import FILE, Checkpoints, moving_average
from hybridworld.surrogate.train import METRICS, MODEL, Task, Watch, learning_rate, train
from hybridworld.surrogate.validation import Errors
from tests.surrogate import killable
from tests.surrogate.flows import OSCILLATOR, Oscillator, Table, surrogate, table, tiny

SMALL = ("training.batch=8", "training.samples=32", "training.epochs=3", "training.validation=8", "training.lr=3e-3")


def small(*wishes, train_on=None, **options):
    return Task(tiny(OSCILLATOR, *SMALL, *wishes), train_on or table(Oscillator()), table(Oscillator(), "val", 8), **options)


def metrics(folder):
    """All that was noted, but for times."""
    records = [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "samples_per_second"} for record in records]


def same_weights(one, other):
    a, b = (load_file(folder / MODEL) for folder in (one, other))
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture
def eager(monkeypatch):
    """A checkpoint whenever none is being written."""
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)


# Killed and resumed.


@pytest.fixture(scope="module")
def processes():
    """New processes in which everything is imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["hybridworld.surrogate.train", "torch._dynamo"])  # the latter on torch's own behalf
    return context


def die(processes, *arguments):
    """The exit code of a training that gets a signal, if it gets there."""
    process = processes.Process(target=killable.run_and_die, args=arguments)
    process.start()
    process.join()
    return process.exitcode


@pytest.mark.parametrize("kind", killable.WISHES)
def test_killed_again_and_again_a_training_ends_as_if_nothing_had_happened(kind, processes, tmp_path):
    whole, killed, chance = tmp_path / "whole", tmp_path / "killed", random.Random(kind)
    total = killable.task(kind).config.training.steps
    assert die(processes, kind, whole, signal.SIGKILL, total + 1) == 0
    for _ in range(5):
        steps = (total - 5) // 5  # so that it is not through before the last kill
        assert die(processes, kind, killed, signal.SIGKILL, steps, chance.randrange(1, 8 * steps)) == -signal.SIGKILL
    for number in (signal.SIGINT, signal.SIGTERM):
        before = progress(killed)
        assert die(processes, kind, killed, number, 2) == 130
        assert progress(killed) == before + 2  # the step under way was finished, and is safe
    assert die(processes, kind, killed, signal.SIGKILL, total + 1) == 0
    assert same_weights(whole, killed) and metrics(whole) == metrics(killed)
    own = killable.Forgetful if kind == "own" else None
    one, other = (load_bundle(folder / MODEL, own) for folder in (whole, killed))
    assert one.config == other.config and one.validation == other.validation
    assert not list(killed.glob(".*.part")) and (kind != "own" or metrics(whole)[-1]["unsolved"] > 0)


def progress(folder):
    """Steps that are on disk."""
    return torch.load(folder / FILE, weights_only=True)["plain"]["step"] if (folder / FILE).exists() else 0


def test_a_finished_training_has_nothing_left_to_do(tmp_path):
    first = train(small(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    steps = []
    again = train(small(), tmp_path, Watch(on_step=lambda state, loss: steps.append(loss)))
    assert not steps and again.history == first.history and again.finished
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_same_seed_gives_the_same_model_and_another_seed_another(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(small(f"training.seed={seed}"), tmp_path / name)
    assert same_weights(tmp_path / "a", tmp_path / "b") and not same_weights(tmp_path / "a", tmp_path / "c")


def test_the_callers_random_numbers_stay_as_they_are(tmp_path):
    before = torch.get_rng_state()
    train(small("training.epochs=1"), tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_training_may_run_beside_the_main_thread(tmp_path):
    """Signals are heard by the main thread only."""
    thread = threading.Thread(target=lambda: train(small(), tmp_path / "thread"))
    thread.start()
    thread.join()
    train(small(), tmp_path / "main")
    assert same_weights(tmp_path / "thread", tmp_path / "main")


def test_signals_are_handled_as_before_once_it_is_over(tmp_path):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    train(small("training.epochs=1"), tmp_path)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


# When it ends, and what is kept.


@pytest.fixture
def scripted(monkeypatch):
    """Validation errors as if read from a list."""

    def script(*values):
        left = list(values)
        monkeypatch.setattr(
            training, "validation_errors", lambda model, checks: dict.fromkeys(checks, Errors(left.pop(0), 0.0))
        )

    return script


@pytest.mark.parametrize("ema", [0, 0.5])
def test_after_patience_it_stops_and_keeps_the_best_model(ema, scripted, tmp_path):
    scripted(5.0, 2.0, 3.0, 2.0, 2.5, 1.0)  # as good is not better
    seen = []

    def remember(state, record):
        kept = state.average.module if ema else state.surrogate
        seen.append({name: values.clone() for name, values in kept.state_dict().items()})

    wishes = ("training.epochs=9", "training.patience=3", f"training.ema={ema}")
    state = train(small(*wishes), tmp_path, Watch(on_epoch=remember))
    assert state.finished and state.best_epoch == 2 and len(seen) == len(metrics(tmp_path)) == 5
    kept = load_bundle(tmp_path / MODEL)
    assert kept.validation["mse"] == 2.0 and kept.provenance["epoch"] == 2
    weights = kept.surrogate.state_dict()
    matches = [all(torch.equal(weights[name], values) for name, values in each.items()) for each in seen]
    assert matches == [False, True, False, False, False]


def test_it_does_not_stop_while_it_gets_better(scripted, tmp_path):
    scripted(5.0, 6.0, 4.0, 6.0, 3.0, 6.0)
    state = train(small("training.epochs=6", "training.patience=2"), tmp_path)
    assert state.best_epoch == 5 and state.epoch == 6


def test_patience_counts_on_after_an_interruption(scripted, tmp_path):
    scripted(1.0, 2.0, 3.0, 4.0, 5.0)

    def interrupt(state, loss):
        if state.step == 10:
            signal.raise_signal(signal.SIGINT)

    task = small("training.epochs=9", "training.patience=4")
    with pytest.raises(KeyboardInterrupt):
        train(task, tmp_path, Watch(on_step=interrupt))
    assert progress(tmp_path) == 10 and train(task, tmp_path).epoch == 5


def test_a_training_learns(tmp_path):
    state = train(small("training.epochs=5", "surrogate.width=16", "training.samples=120", "training.lr=1e-2"), tmp_path)
    losses = [record["loss"] for record in state.history]
    no_change = np.mean([score["mse"] for score in state.no_change.values()])
    assert losses[-1] < 0.5 * losses[0] and state.history[-1]["mse"] < 0.5 * no_change


def test_what_is_noted_is_what_can_be_measured(tmp_path):
    task = small("training.dagger=0", "training.epochs=2")
    losses = []
    state = train(task, tmp_path, Watch(on_step=lambda state, loss: losses.append(loss)))
    for epoch, record in enumerate(metrics(tmp_path)):
        assert record["epoch"] == epoch + 1 and record["step"] == 4 * (epoch + 1)
        assert record["loss"] == pytest.approx(np.mean(losses[4 * epoch : 4 * epoch + 4]))
        assert record["lr"] == learning_rate(task.config.training, record["step"] - 1)
        assert record["mse"] == pytest.approx(np.mean([errors["mse"] for errors in record["horizons"].values()]))
        assert all(errors["no_change"]["mse"] > 0 for errors in record["horizons"].values())
    assert len(losses) == 8 and state.history[-1]["samples_per_second"] > 0


def test_the_error_map_is_looked_at_every_few_epochs_and_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "MAP_EVERY", 2)
    asked = []

    def map_quality(model, checks):
        asked.append(model.training)
        return dict.fromkeys(checks, 0.75)

    train(small("training.epochs=5", "training.ema=0.5"), tmp_path / "watched", Watch(map_quality=map_quality))
    found = [record["epoch"] for record in metrics(tmp_path / "watched") if "auroc" in record]
    assert found == [2, 4, 5] and asked == [False] * 3
    train(small("training.epochs=5", "training.ema=0.5"), tmp_path / "alone")
    assert same_weights(tmp_path / "watched", tmp_path / "alone")


# The learning rate.


schedules = st.builds(
    lambda lr, epochs, share, samples: tiny(
        OSCILLATOR, f"training.lr={lr!r}", f"training.epochs={epochs}", f"training.warmup={share * epochs!r}",
        "training.batch=1", f"training.samples={samples}",
    ).training,
    st.floats(1e-6, 1), st.integers(1, 6), st.floats(0, 0.95), st.integers(20, 60),
)  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(schedule=schedules)
def test_the_learning_rate_rises_over_the_warm_up_and_falls_to_zero_along_a_cosine(schedule):
    rates = np.array([learning_rate(schedule, step) for step in range(schedule.steps)])
    warmup = schedule.warmup * schedule.steps_per_epoch
    rising = math.ceil(warmup)
    assert (rates > 0).all() and (np.diff(rates[:rising]) > 0).all() and (np.diff(rates[rising:]) < 1e-12).all()
    assert rates.max() <= schedule.lr * (1 + 1e-12)
    np.testing.assert_allclose(rates[:rising], schedule.lr * np.arange(1, rising + 1) / (warmup + 1), rtol=1e-9)
    share = (np.arange(rising, schedule.steps) - warmup) / (schedule.steps - warmup)
    np.testing.assert_allclose(rates[rising:], schedule.lr * np.cos(np.pi * share / 2) ** 2, rtol=1e-6)
    assert learning_rate(schedule, schedule.steps) == pytest.approx(0, abs=1e-12 * schedule.lr)


def test_the_learning_rate_of_the_paper_at_its_corners():
    schedule = tiny(OSCILLATOR, "training.lr=2e-4", "training.epochs=60", "training.warmup=3",
                    "training.samples=5000", "training.batch=8").training  # fmt: skip
    assert learning_rate(schedule, 0) == pytest.approx(2e-4 / 1876)
    assert learning_rate(schedule, 3 * 625) == 2e-4
    assert learning_rate(schedule, 3 * 625 + 57 * 625 // 2) == pytest.approx(1e-4, rel=1e-3)
    assert learning_rate(schedule, schedule.steps - 1) < 1e-6 * 2e-4


# Refusals.


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ("training.lr=1e-3", r"holds a training with training\.lr=0\.003, and this one has 0\.001: choose another folder"),
        ("training.horizons=1,2", r"training\.horizons=\[1, 2, 4, 8, 16\], and this one has \[1, 2\]"),
        ("surrogate.width=16", r"surrogate\.width=8, and this one has 16"),
        ("training.epochs=9", r"training\.epochs=3, and this one has 9"),
    ],
)
def test_a_folder_with_another_training_is_refused_by_the_setting_that_differs(wish, words, tmp_path):
    train(small(), tmp_path)
    before = (tmp_path / MODEL).read_bytes()
    with pytest.raises(InvalidInput, match=words):
        train(small(wish), tmp_path)
    assert (tmp_path / MODEL).read_bytes() == before


def test_a_folder_with_a_training_on_other_data_is_refused(tmp_path):
    train(small(provenance={"data": "a stream"}), tmp_path)
    with pytest.raises(InvalidInput, match="holds a training on a stream, and this one is on a disk"):
        train(small(provenance={"data": "a disk"}), tmp_path)


def test_no_damage_to_a_checkpoint_is_believed(tmp_path):
    """Refused in one line that says what to do, or harmless."""
    train(small(), tmp_path)
    path, chance = tmp_path / FILE, random.Random(3)
    good = path.read_bytes()
    config = small().config
    wanted = flat(Checkpoints(tmp_path).load(config))
    damaged = [b"", b"hello", good[:-1], good[: len(good) // 2], bytes(len(good))]
    for _ in range(60):
        place = chance.randrange(len(good))
        damaged.append(good[:place] + bytes([good[place] ^ 1 << chance.randrange(8)]) + good[place + 1 :])
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            found = Checkpoints(tmp_path).load(config)
        except InvalidInput as error:
            assert str(error) == f"{path} is damaged, or no checkpoint: delete it to begin anew."
            refused += 1
        else:
            assert all(map(torch.equal, flat(found), wanted))
    assert refused > 40
    for foreign in ([1], {"weights": torch.ones(3)}):
        torch.save(foreign, path)
        with pytest.raises(InvalidInput, match="is damaged, or no checkpoint"):
            train(small(), tmp_path)


def flat(content):
    """All tensors of a checkpoint, in order."""
    if isinstance(content, torch.Tensor):
        return [content]
    parts = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    return [tensor for part in parts for tensor in flat(part)]


class Poisoned(Table):
    """Batches are nan once so many pairs were drawn."""

    def __init__(self, healthy, pairs):
        super().__init__(healthy.spec, healthy._states, healthy._params)
        self._pairs, self._ill = pairs, False

    def window(self, drawn):
        self._ill = drawn >= self._pairs
        return super().window(drawn)

    def read(self, trajectories, frames):
        return super().read(trajectories, frames) * (np.nan if self._ill else 1)


def test_a_loss_that_is_not_finite_stops_it_and_leaves_what_came_before(eager, tmp_path):
    healthy = table(Oscillator())
    with pytest.raises(
        HybridWorldError, match=r"^The loss is not finite at step 11: try a smaller training.lr\. .* in .*sick\.$"
    ):
        train(small(train_on=Poisoned(healthy, 80)), tmp_path / "sick")
    train(small(train_on=healthy), tmp_path / "whole")
    assert metrics(tmp_path / "sick") == metrics(tmp_path / "whole")[:2]
    assert load_bundle(tmp_path / "sick" / MODEL).provenance["epoch"] in (1, 2) and progress(tmp_path / "sick") <= 10
    train(small(train_on=healthy), tmp_path / "sick")
    assert same_weights(tmp_path / "sick", tmp_path / "whole")


def test_two_trainings_in_one_folder_refuse_each_other(tmp_path):
    refused = []

    def second(state, loss):
        with pytest.raises(InvalidInput, match=rf"^Another training is at work in {tmp_path}: wait for it, or"):
            train(small(), tmp_path)
        refused.append(state.step)

    train(small("training.epochs=1"), tmp_path, Watch(on_step=second))
    assert refused == [1, 2, 3, 4]


def test_horizons_beyond_the_trajectories_are_refused_before_anything_is_trained(tmp_path):
    with pytest.raises(InvalidInput, match=r"33 frames"):
        train(small("training.horizons=64"), tmp_path)
    assert not (tmp_path / MODEL).exists()


# What a checkpoint is.


def test_a_checkpoint_does_not_change_while_it_is_written(eager, tmp_path, monkeypatch):
    """The thread sees the state of its moment, though training goes on."""
    entered, go_on = threading.Event(), threading.Event()
    write = Checkpoints._write
    seen = []

    def slow(self, content):
        if not entered.is_set():
            before = [tensor.clone() for tensor in flat(content)]
            entered.set()
            go_on.wait(10)
            seen.append((content["plain"]["step"], all(map(torch.equal, before, flat(content)))))
        write(self, content)

    monkeypatch.setattr(Checkpoints, "_write", slow)
    train(small(), tmp_path, Watch(on_step=lambda state, loss: go_on.set() if state.step > 6 else None))
    assert seen == [(1, True)]


def test_an_error_in_the_writing_thread_is_not_lost(eager, tmp_path, monkeypatch):
    def fail(self, content):
        raise OSError("The disk is full.")

    monkeypatch.setattr(Checkpoints, "_write", fail)
    with pytest.raises(OSError, match="full"):
        train(small(), tmp_path)


def test_a_state_comes_back_whole(tmp_path):
    config = tiny(OSCILLATOR, *SMALL, "training.ema=0.5")
    one, other = (checkpoint.State(config, surrogate(OSCILLATOR)) for _ in range(2))
    for _ in range(3):
        one.surrogate(torch.ones(2, 2), 1.0, torch.ones(2, 1)).square().sum().backward()
        one.optimiser.step()
        one.average.update_parameters(one.surrogate)
        one.advance(0.5, 0.25)
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save_if_due(one, at_once=True)
    other.restore(Checkpoints(tmp_path).load(config))
    assert all(map(torch.equal, flat(one.content()), flat(other.content())))
    assert one.content()["plain"] == other.content()["plain"] and other.mean_loss == 0.5 and other.step == 3


def test_a_task_is_a_value():
    with pytest.raises(AttributeError):
        small().config = None
    assert replace(small(), symmetries=()).symmetries == ()


def test_the_moving_average_soon_forgets_the_first_weights_and_then_changes_slowly():
    weights, update = [torch.zeros(3)], moving_average(0.99)
    for count in range(1, 31):
        update(weights, [torch.ones(3)], torch.tensor(count))
    assert weights[0].min() > 0.99  # with 0.99 from the start it would be 0.26
    update(weights, [torch.zeros(3)], torch.tensor(10_000))
    torch.testing.assert_close(weights[0], torch.full((3,), 0.99), rtol=0, atol=2e-3)
