"""Training loops as one writes them by hand, and a fair way to time them: they take turns.

Batches wait in memory as tensors; a step is loss, backward, clip, AdamW, and nothing else.
"""

import copy
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from statistics import median

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from hybridworld.physics.environment import Environment
from hybridworld.physics.threads import thread_count
from hybridworld.surrogate.config import TrainingConfig, configure
from hybridworld.surrogate.normalisation import Normalisation
from hybridworld.surrogate.surrogate import Surrogate

ROUNDS = range(2, 6)  # the fewer, the longer a step takes
WARM_UP = 0.5  # seconds
FEW = 2  # samples in a step of a U-Net alone

Tensors = tuple[Tensor, Tensor, Tensor, Tensor]  # states, horizons, params, futures
Terms = Callable[[Surrogate, Tensors], Iterator[Tensor]]  # of a loss: each is made when the one before has served


@dataclass
class Loop:
    """A step that is repeated, on so many of torch's threads."""

    step: Callable[[], object]
    threads: int
    share: float = 1.0  # of the seconds that a loop is given
    steps: int = 1  # per round
    seconds: list[float] = field(default_factory=list)  # per step, of each round

    def warm_up(self) -> float:
        """One step, or more until it is warm; returns the seconds of the last one."""
        torch.set_num_threads(self.threads)
        began = last = time.perf_counter()
        while True:
            self.step()
            now = time.perf_counter()
            if now - began > WARM_UP:
                return now - last
            last = now

    def run(self) -> None:
        """Run one round of steps, and remember the seconds per step."""
        torch.set_num_threads(self.threads)
        began = time.perf_counter()
        for _ in range(self.steps):
            self.step()
        self.seconds.append((time.perf_counter() - began) / self.steps)


def prepare(loops: Iterable[Loop], seconds: float, steps: int | None) -> int:
    """Warm up, decide on the steps per round such that a loop takes so many seconds or steps; returns the number of rounds."""
    times = [(loop, loop.warm_up()) for loop in loops]
    slowest = max(each for _, each in times)
    rounds = min(max(steps or int(seconds / slowest), ROUNDS[0]), ROUNDS[-1])
    for loop, each in times:
        loop.steps = max(1, (steps or int(loop.share * seconds / each)) // rounds)
    return rounds


def take_turns(loops: Iterable[Loop]) -> None:
    """Run a round of each loop."""
    for loop in loops:
        loop.run()


@contextmanager
def same_threads_afterwards() -> Iterator[None]:
    """Whatever happens inside, torch has as many threads afterwards as before."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def plain_step(
    surrogate: Surrogate,
    training: TrainingConfig,
    batches: Sequence[Tensors],
    terms: Terms,
    fused: bool | None = None,
    foreach: bool | None = None,
    compiled: bool = False,
) -> Callable[[], None]:
    """The step, on a copy of the network; batches come in turn."""
    net, source, decay = copy.deepcopy(surrogate), cycle(batches), training.weight_decay
    adam = torch.optim.AdamW(net.parameters(), lr=training.lr, weight_decay=decay, fused=fused, foreach=foreach)
    if compiled:  # the copy: what is compiled is not copied
        nn.Module.compile(net.backbone)

    def step() -> None:
        adam.zero_grad()
        for term in terms(net, next(source)):
            term.backward()
        clip_grad_norm_(net.parameters(), training.clip)
        adam.step()

    return step


def whole_batch(dagger: float) -> Terms:
    """Both terms of the supervised objective on the whole batch; memory is that of the larger one."""

    def terms(net: Surrogate, batch: Tensors) -> Iterator[Tensor]:
        states, horizons, params, futures = batch
        z, target = net.normalise(states), net.normalise(futures)
        yield (1 - dagger) * F.mse_loss(net.advance(z, horizons, params), target)
        if dagger:
            mid = net.advance(z, horizons / 2, params)
            yield dagger * F.mse_loss(net.advance(mid, horizons / 2, params), target)

    return terms


def network_alone(
    surrogate: Surrogate, training: TrainingConfig, batches: Sequence[Tensors], threads: int, compiled: bool
) -> dict[str, Loop | None]:
    """Supervised steps with the optimiser of our loop, and with one thing changed at a time; None: not available."""

    def loop(net: Surrogate = surrogate, on: int = threads, **how: bool) -> Loop:
        return Loop(plain_step(net, training, batches, whole_batch(0.0), **({"fused": True} | how)), on)

    loops: dict[str, Loop | None] = {
        "as used": loop(),
        "AdamW foreach": loop(fused=False, foreach=True),
        "AdamW tensor by tensor": loop(fused=False, foreach=False),
    }
    if len(surrogate.spec.grid) == 2:
        turned = copy.deepcopy(surrogate).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        loops["channels last"] = loop(turned)  # convolutions pass it on
    if compiled:
        loops["torch.compile"] = if_it_works(loop(compiled=True))
    for number in sorted({1, thread_count()} - {threads}):
        loops[f"threads: {number}"] = loop(on=number)
    return loops


def if_it_works(loop: Loop) -> Loop | None:
    """The loop, warmed up; None where its first step fails, say for want of a C++ compiler."""
    torch.set_num_threads(loop.threads)
    try:
        loop.step()
    except Exception:  # of whichever layer of the compiler
        return None
    return loop


def network_rate(environment: Environment, seconds: float = 4.0) -> float:
    """Samples per second in supervised steps of the paper's network, on random states: neither data nor solver needed."""
    spec, config = environment.spec, configure(environment.spec, "paper", presets=environment.presets)
    horizons, channels, params = config.training.horizons, len(spec.channels), len(spec.params)
    units = (np.zeros(channels), np.ones(channels), np.zeros(params), np.ones(params))
    surrogate = Surrogate(spec, config.surrogate, Normalisation(*units, np.array(horizons), np.ones((len(horizons), channels))))
    states = torch.randn(FEW, *spec.shape)
    batch = (states, torch.full((FEW,), float(horizons[-1])), torch.zeros(FEW, params), states.flip(0))
    loop = Loop(plain_step(surrogate, config.training, [batch], whole_batch(0.0), fused=True), thread_count())
    with same_threads_afterwards():
        for _ in range(prepare([loop], seconds, None)):
            loop.run()
    return FEW / median(loop.seconds)
