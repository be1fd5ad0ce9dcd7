"""What a model is judged by: pairs from numbered trajectories that are solved, read out and dropped.

    val: numbers 0, 1, 2 ...            choose the epoch of a training
         numbers CALIBRATING, ...       calibrate thresholds and bounds
    test, ood-near, ood-far             judge, and choose nothing

Each trajectory gives one pair per horizon, so the number of pairs at a horizon is the number of independent trajectories
behind it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import count as count_from

import numpy as np

from hybridworld.data.pairs import Batch
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment

CALIBRATING = 1_000_000
"""The first trajectory of `val` that calibrates; a dataset never reaches it, so none of these has chosen an epoch."""
VECTORS = 256
"""State vectors that are solved at once: one alone would take the time of all."""


@dataclass(frozen=True)
class Block:
    """Whole trajectories, few enough to be in memory together."""

    params: np.ndarray  # (rows, number of spec.params)
    states: np.ndarray  # float32 (rows, channels, frames, *grid)
    kinds: tuple[str, ...]
    """The kind of initial state of each row; empty where the system has no kinds."""


def numbers_in_share(environment: Environment, split: str, count: int, first: int = 0) -> list[int]:
    """The first `count` trajectory numbers from `first` on whose kinds of initial state stand in the shares of the split."""
    if count < 1:
        raise InvalidInput(f"The number of trajectories is {count}: it must be at least 1.")
    shares = environment.spec.kinds.get(environment.spec.regime(split), {})
    if not shares:
        return list(range(first, first + count))
    left, found, numbers = quotas(shares, count), list[int](), count_from(first)
    while len(found) < count:
        number = next(numbers)
        kind = str(environment.initial(split, number).origin.get("kind"))
        if kind not in shares:
            raise InvalidInput(
                f"{environment.spec.name}: trajectory {number} of '{split}' has the kind '{kind}', and spec.kinds lists "
                f"{', '.join(shares)}: `sample` must return one of them as origin['kind']."
            )
        if left[kind]:
            left[kind] -= 1
            found.append(number)
    return found


def quotas(shares: Mapping[str, float], count: int) -> Counter[str]:
    """How many of `count` trajectories each kind gets: its share, rounded by largest remainders."""
    exact = {kind: share * count for kind, share in shares.items()}
    found = Counter({kind: int(value) for kind, value in exact.items()})
    for kind in sorted(exact, key=lambda kind: int(exact[kind]) - exact[kind])[: count - found.total()]:
        found[kind] += 1
    return found


def solved_blocks(environment: Environment, split: str, numbers: Sequence[int]) -> Iterator[Block]:
    """The trajectories of these numbers: one field, or 256 state vectors, at a time."""
    size = 1 if environment.spec.grid else VECTORS
    for begin in range(0, len(numbers), size):
        samples = [environment.initial(split, number) for number in numbers[begin : begin + size]]
        states, params = (np.stack([getattr(sample, part) for sample in samples]) for part in ("state", "params"))
        kinds = tuple(str(sample.origin.get("kind", "")) for sample in samples)
        yield Block(params, environment.record(states, environment.spec.frames - 1, params), kinds)


def pairs_of(blocks: Iterable[Block], horizons: Sequence[int], rng: np.random.Generator) -> Iterator[Batch]:
    """A batch per block: one pair per trajectory and horizon, at uniform starts; all pairs of a horizon stand together."""
    for block in blocks:
        rows, frames = np.arange(len(block.states)), block.states.shape[2]
        if max(horizons) >= frames:
            raise InvalidInput(f"The horizon is {max(horizons)}: with {frames} frames it must be among 1 to {frames - 1}.")
        starts = np.concatenate([rng.integers(0, frames - h, len(rows)) for h in horizons])
        spans, trajectories = np.repeat(horizons, len(rows)), np.tile(rows, len(horizons))
        now, later = (block.states[trajectories, :, frame].copy() for frame in (starts, starts + spans))
        yield Batch(now, spans, block.params[trajectories].astype(np.float32), later)


def by_horizon(batches: Iterable[Batch]) -> dict[int, Batch]:
    """Horizon -> all pairs of that horizon, in the order of their trajectories."""
    found: dict[int, list[Batch]] = {}
    for batch in batches:
        for horizon in dict.fromkeys(batch.horizons.tolist()):
            rows = batch.horizons == horizon
            found.setdefault(horizon, []).append(Batch(*(getattr(batch, each.name)[rows] for each in fields(Batch))))
    return {
        horizon: Batch(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Batch)))
        for horizon, parts in found.items()
    }


def fresh_pairs(
    environment: Environment,
    split: str,
    numbers: Sequence[int],
    horizons: Sequence[int],
    seed: int = 0,
    tell: Callable[[int], None] = lambda solved: None,
) -> dict[int, Batch]:
    """Horizon -> one pair from each of these trajectories, solved now; the same at each call. `tell` hears how many are done."""
    return by_horizon(pairs_of(_told(solved_blocks(environment, split, numbers), tell), horizons, np.random.default_rng(seed)))


def _told(blocks: Iterable[Block], tell: Callable[[int], None]) -> Iterator[Block]:
    done = 0
    for block in blocks:
        yield block
        done += len(block.states)
        tell(done)
