"""`bench train` measures what it says: structure and identities, no seconds."""

import pytest
import torch

from hybridworld.app.bench_train import train_cells
from hybridworld.bench import plain_loops
from hybridworld.bench.plain_loops import Loop, if_it_works, network_alone, network_rate, plain_step, prepare, whole_batch
from hybridworld.bench.training import time_training
from hybridworld.surrogate import checkpoint
from hybridworld.surrogate.config import configure
from hybridworld.surrogate.normalisation import Normalisation
from hybridworld.surrogate.objective import Objective
from hybridworld.surrogate.surrogate import Surrogate
from tests.app.commands import run
from tests.data.decay import Decay

GRID = (8, 8)


def small(**training):
    """A narrow network for a system that costs nothing, its settings, and a batch."""
    spec = Decay(grid=GRID).spec
    config = configure(spec, "paper", ["surrogate.width=8", *(f"training.{key}={value}" for key, value in training.items())])
    horizons, channels = len(config.training.horizons), len(spec.channels)
    scales = Normalisation(
        torch.zeros(channels).numpy(), torch.ones(channels).numpy(), torch.zeros(1).numpy(), torch.ones(1).numpy(),
        torch.tensor(config.training.horizons).numpy(), torch.ones(horizons, channels).numpy(),
    )  # fmt: skip
    torch.manual_seed(0)
    batch = torch.randn(8, *spec.shape), torch.tensor([1.0, 2, 4, 1, 2, 4, 1, 2]), torch.ones(8, 1), torch.randn(8, *spec.shape)
    return Surrogate(spec, config.surrogate, scales), config.training, batch


@pytest.fixture(scope="module", autouse=True)
def quick():
    """One step is warm enough here, and on a small grid a second thread mostly waits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRIDWORLD_THREADS", "1")
        patch.setattr(plain_loops, "WARM_UP", 0.0)
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def measured():
    """A timing, what was told on the way, and how many checkpoints were written."""
    told, written, write = [], [], checkpoint.write_atomically
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "write_atomically", lambda path, content: (written.append(path), write(path, content)))
        timing = time_training(Decay(grid=GRID), seconds=1, steps=4, compiled=False, tell=told.append)
    return timing, told, written


def test_what_follows_from_the_rates(measured):
    timing, *_ = measured
    found = timing.as_dict()
    paper = configure(Decay(grid=GRID).spec, "paper").training
    assert found["ratio"] == pytest.approx(found["ours"] / found["plain_whole"])
    assert found["ratio_same_objective"] == pytest.approx(found["ours"] / found["plain_share"])
    seconds = paper.steps * paper.batch / found["ours"] + paper.epochs * found["validation_s"]
    assert found["paper_hours"] == pytest.approx(seconds / 3600)
    assert found["validation_share"] == pytest.approx(paper.epochs * found["validation_s"] / seconds)
    assert all(found[name] > 0 for name in ("plain_whole", "plain_share", "plain_none", "ours", "forward_ms", "net_rate"))


def test_our_loop_is_the_real_one_with_a_checkpoint_in_each_round(measured):
    timing, told, written = measured
    assert timing.rounds == 4 and len(written) == timing.rounds and {path.name for path in written} == {checkpoint.FILE}
    assert sum("step" in words and "loss" in words for words in told) == 1 + 4  # the warm-up, and what was asked for


def test_nothing_is_left_behind(measured):
    assert checkpoint.EVERY == 60
    torch.set_num_threads(2)
    assert network_rate(Decay(grid=GRID), 0.1) > 0  # on one thread
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)


def test_one_line_per_variant(measured):
    timing, *_ = measured
    assert {"AdamW foreach", "AdamW tensor by tensor", "channels last"} <= set(timing.variants)
    cells = train_cells(timing)
    assert {f"... {name}" for name in timing.variants} <= set(cells)
    assert cells["our loop over the plain one"] == f"{timing.ratio:.3g}x"


def test_other_numbers_of_threads_are_variants(monkeypatch):
    monkeypatch.setenv("HYBRIDWORLD_THREADS", "3")
    surrogate, training, batch = small()
    on_all, on_one = (network_alone(surrogate, training, [batch], threads, compiled=False) for threads in (3, 1))
    assert on_all["threads: 1"].threads == 1 and "threads: 3" not in on_all
    assert on_one["threads: 3"].threads == 3 and "threads: 1" not in on_one


def test_by_hand_and_ours_are_the_same_objective():
    """Where the share of the batch is all of it, the two must agree to rounding."""
    surrogate, training, batch = small(dagger=0.9)
    by_hand = sum(whole_batch(training.dagger)(surrogate, batch))
    assert by_hand.item() == pytest.approx(Objective(surrogate, training)(*batch).item(), rel=1e-5)


def test_a_plain_step_learns_and_leaves_the_original_alone():
    surrogate, training, batch = small(lr=1e-2)
    losses = []

    def noted(net, batch):
        for term in whole_batch(0.0)(net, batch):
            losses.append(term.item())
            yield term

    before = [values.clone() for values in surrogate.parameters()]
    step = plain_step(surrogate, training, [batch], noted)
    for _ in range(10):
        step()
    assert losses[-1] < losses[0]
    assert all(torch.equal(a, b) for a, b in zip(before, surrogate.parameters(), strict=True))


def test_rounds_and_steps():
    class Steady(Loop):
        def warm_up(self):
            return 1 / 64

    def planned(seconds, steps):
        loops = [Steady(lambda: None, 1), Steady(lambda: None, 1, share=0.25)]
        return prepare(loops, seconds, steps), [loop.steps for loop in loops]

    assert planned(10.0, None) == (5, [128, 32])
    assert planned(3 / 64, None) == (3, [1, 1])
    assert planned(0.0, None) == (2, [1, 1])
    assert planned(10.0, 3) == (3, [1, 1])
    assert planned(10.0, 11) == (5, [2, 2])


def test_compiling_is_tried_only_when_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda network: asked.append(type(network).__name__))
    surrogate, training, batch = small()
    assert "torch.compile" not in network_alone(surrogate, training, [batch], 1, compiled=False) and not asked
    assert network_alone(surrogate, training, [batch], 1, compiled=True)["torch.compile"] and asked == ["UNet"]


def test_what_does_not_work_is_not_available():
    def fails():
        raise RuntimeError("no compiler")

    assert if_it_works(Loop(fails, torch.get_num_threads())) is None


def test_bad_system():
    code, _, err = run("bench", "train", "--system", "nothing")
    assert code == 1 and "Unknown system 'nothing'" in err
