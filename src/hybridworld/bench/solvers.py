"""How fast is the compiled solver against its plain NumPy twin? Both in one run, on the same states; warm-up apart."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment

FIELD_SEEDS = range(3)  # a field is solved one trajectory at a time, over the first test trajectories
VECTOR_BATCH = 1000


@dataclass(frozen=True)
class SolverTiming:
    """Milliseconds for one call: a field alone, or a batch of state vectors."""

    numpy_ms: float
    compiled_ms: float
    speedup: float
    max_relative_difference: float
    float32_ms: float | None
    warmup_s: float
    batch: int
    frames: int

    def as_dict(self) -> dict[str, float | int | None]:
        """All numbers as plain data."""
        return asdict(self)


def time_solver(
    environment: Environment, frames: int = 64, repeats: int = 3, tick: Callable[[], None] = lambda: None
) -> SolverTiming:
    """Best of `repeats` for each form, averaged over the states; `tick` is called after each of `ticks(...)` measurements."""
    spec = environment.spec
    count = len(FIELD_SEEDS) if spec.grid else VECTOR_BATCH
    states, params = environment.initials("test", range(count))
    batch = 1 if spec.grid else count
    if environment.advance_numpy(states[:1], 0, params[:1]) is None:
        raise InvalidInput(f"{spec.name} has no NumPy twin to compare with: define advance_numpy.")

    def best(solve: Callable[..., np.ndarray]) -> tuple[float, np.ndarray]:
        seconds, answers = 0.0, []
        for start in range(0, count, batch):
            chunk = slice(start, start + batch)
            runs = []
            for _ in range(repeats):
                began = time.perf_counter()
                answer = solve(states[chunk], frames, params[chunk])
                runs.append(time.perf_counter() - began)
                tick()
            seconds += min(runs)
            answers.append(answer)
        return 1e3 * seconds / (count // batch), np.concatenate(answers)

    began = time.perf_counter()
    environment.solve(states[:batch], 1, params[:batch])
    warmup = time.perf_counter() - began
    compiled_ms, compiled = best(environment.solve)
    float32_ms = None
    if hasattr(environment, "dtype"):
        single = environment.in_precision("float32")
        single.solve(states[:batch], 1, params[:batch])
        float32_ms, _ = best(single.solve)
    numpy_ms, plain = best(environment.advance_numpy)  # type: ignore[arg-type]
    axes = tuple(axis for axis in range(plain.ndim) if axis != 1)
    difference = (np.abs(compiled - plain).max(axes) / np.abs(plain).max(axes)).max()
    return SolverTiming(numpy_ms, compiled_ms, numpy_ms / compiled_ms, float(difference), float32_ms, warmup, batch, frames)


def ticks(environment: Environment, repeats: int = 3) -> int:
    """How often `time_solver` calls `tick`."""
    calls = len(FIELD_SEEDS) if environment.spec.grid else 1
    return repeats * calls * (3 if hasattr(environment, "dtype") else 2)
