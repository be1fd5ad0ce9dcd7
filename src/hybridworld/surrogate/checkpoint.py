"""Everything that a training is at one moment, and how it gets to disk and back."""

import io
import signal
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any, Self
from zipfile import ZipFile

import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel

from hybridworld.data.atomic import write_atomically
from hybridworld.errors import InvalidInput
from hybridworld.surrogate.config import Config
from hybridworld.surrogate.surrogate import Surrogate

FILE = "checkpoint.pt"
EVERY = 60.0
"""Seconds between two checkpoints."""

Weights = tuple[Tensor, ...] | list[Tensor]


class State:
    """Weights, optimiser, moving average, how far we are, and what was seen on the way."""

    def __init__(self, config: Config, surrogate: Surrogate, origin: Mapping[str, Any] | None = None) -> None:
        training = config.training
        self.config, self.surrogate = config, surrogate
        self.origin = {name: (origin or {}).get(name) for name in ORIGIN}
        self.optimiser = torch.optim.AdamW(
            surrogate.parameters(), lr=training.lr, weight_decay=training.weight_decay, fused=True
        )
        self.average = AveragedModel(surrogate, multi_avg_fn=moving_average(training.ema)) if training.ema else None
        self.no_change: dict[int, dict[str, float]] = {}
        self.step = 0
        self.loss_sum, self.loss_steps = 0.0, 0
        self.seconds = 0.0  # of training and validation, over all runs
        self.step_seconds = 0.0  # of the steps of this epoch
        self.history: list[dict[str, Any]] = []
        self.best_epoch = 0
        self.unsolved = 0  # mid states that the solver refused
        self.finished = False
        self.units: dict[str, float] = {}  # how well the scales are known
        self.chosen_by = 0  # trajectories that choose the best epoch
        self.began_with: float | None = None  # validation error of the model that it goes on from

    @property
    def kept(self) -> Surrogate:
        """The model that is validated and kept: the moving average where there is one."""
        return self.average.module if self.average else self.surrogate  # type: ignore[return-value]

    @property
    def epoch(self) -> int:
        """Epochs that are complete."""
        return self.step // self.config.training.steps_per_epoch

    @property
    def mean_loss(self) -> float:
        """The mean loss since the last epoch ended."""
        return self.loss_sum / max(self.loss_steps, 1)

    @property
    def rate(self) -> float:
        """Samples per second, since the last epoch ended, without validation."""
        return self.loss_steps * self.config.training.batch / max(self.step_seconds, 1e-9)

    def advance(self, loss: float, seconds: float) -> None:
        """Count a step that was made."""
        self.step += 1
        self.loss_sum += loss
        self.loss_steps += 1
        self.step_seconds += seconds
        self.seconds += seconds

    def end_epoch(self, record: dict[str, Any], seconds: float) -> None:
        """Note what was found; training is over after the last epoch, or when patience is.

        The best epoch has the lowest validation error, in the measure that training makes small.
        """
        training, measure = self.config.training, self.config.training.measure
        self.history.append(record)
        self.seconds += seconds
        if not self.best_epoch or record[measure] < self.history[self.best_epoch - 1][measure]:
            self.best_epoch = record["epoch"]
        self.finished = self.epoch >= training.epochs or self.epoch - self.best_epoch >= training.patience
        self.loss_sum, self.loss_steps, self.step_seconds = 0.0, 0, 0.0

    def content(self) -> dict[str, Any]:
        """The whole state, as tensors and plain values."""
        return {
            "config": self.config.model_dump(mode="json"),
            **self.origin,
            "system": self.surrogate.spec.name,
            "surrogate": self.surrogate.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "average": self.average.state_dict() if self.average else None,
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state_all(),
            "plain": {name: getattr(self, name) for name in PLAIN},
        }

    def restore(self, content: Mapping[str, Any]) -> None:
        """Take over what `content` returned."""
        self.surrogate.load_state_dict(content["surrogate"])
        self.optimiser.load_state_dict(content["optimiser"])
        if self.average:
            self.average.load_state_dict(content["average"])
        torch.set_rng_state(content["random"])
        torch.cuda.set_rng_state_all(content["random_cuda"])
        for name, value in content["plain"].items():
            setattr(self, name, value)


PLAIN = (
    "step", "loss_sum", "loss_steps", "seconds", "step_seconds", "history", "best_epoch", "unsolved", "finished", "units",
    "chosen_by", "began_with",
)  # fmt: skip
ORIGIN = {"data": "on", "from": "from"}
"""What a training learns from and goes on from, by their names in its provenance: a run goes on only with the same."""


def moving_average(decay: float) -> Callable[[Weights, Weights, Tensor | int], None]:
    """The update of averaged weights; its decay begins small, so that the first weights are soon forgotten."""

    @torch.no_grad()
    def update(averaged: Weights, current: Weights, count: Tensor | int) -> None:
        n = int(count)
        torch._foreach_lerp_(averaged, current, 1 - min(decay, (1 + n) / (10 + n)))

    return update


class Checkpoints:
    """The file `checkpoint.pt` of a folder, written by a thread of its own whenever `due(seconds since the last one)`."""

    def __init__(self, folder: Path, due: Callable[[float], bool] | None = None) -> None:
        self._path = folder / FILE
        self._due = due or (lambda seconds: seconds >= EVERY)
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._writing: Future | None = None
        self._last = time.monotonic()

    def load(self, config: Config, origin: Mapping[str, Any] | None = None, system: str | None = None) -> dict[str, Any] | None:
        """What was saved here, if anything; it must be of the same training: its system, its data, the model it began with."""
        if not self._path.exists():
            return None
        try:
            with ZipFile(self._path) as file:  # torch itself does not look at checksums
                if file.testzip() is not None:
                    raise ValueError("a checksum differs")
            content = torch.load(self._path, map_location="cpu", weights_only=True)  # tensors and plain values, no code
            here = content["config"]
        except Exception as error:
            raise InvalidInput(f"{self._path} is damaged, or no checkpoint: delete it to begin anew.") from error
        if system is not None and content.get("system", system) != system:
            raise InvalidInput(
                f"{self._path.parent} holds a training of {content['system']}, not of {system}: choose another folder."
            )
        wanted = config.model_dump(mode="json")
        for section, settings in wanted.items():
            for key, value in settings.items():
                if here.get(section, {}).get(key) != value:
                    raise InvalidInput(
                        f"{self._path.parent} holds a training with {section}.{key}={here.get(section, {}).get(key)}, "
                        f"and this one has {value}: choose another folder, or delete it."
                    )
        for name, word in ORIGIN.items():
            saved, asked = content.get(name), (origin or {}).get(name)
            if saved != asked:
                nothing = "unknown data" if name == "data" else "no model"
                raise InvalidInput(
                    f"{self._path.parent} holds a training {word} {saved or nothing}, "
                    f"and this one is {word} {asked or nothing}: choose another folder, or delete it."
                )
        return content

    def save_if_due(self, state: State, at_once: bool) -> None:
        """Copy the state now, and let the thread write it."""
        busy = self._writing is not None and not self._writing.done()
        if not at_once and (busy or not self._due(time.monotonic() - self._last)):
            return
        self.wait()
        self._last = time.monotonic()
        self._writing = self._thread.submit(self._write, _copied(state.content()))
        if at_once:
            self.wait()

    def wait(self) -> None:
        """Wait until the file is on disk; an error of the thread is raised here."""
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def _write(self, content: dict[str, Any]) -> None:
        memory = io.BytesIO()
        torch.save(content, memory)
        write_atomically(self._path, memory.getvalue())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown()
        self.wait()


def _copied(value: Any) -> Any:
    """Tensors change while they are written; everything else in a state does not, or is replaced."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list | tuple) else value


class Interrupts:
    """While it is active, Ctrl-C and SIGTERM wait for the step under way, so that a state is whole when it is saved.

    A second one does not wait. Only the main thread of a process hears signals: elsewhere this does nothing.
    """

    def __init__(self) -> None:
        self.asked: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked is not None:
            raise KeyboardInterrupt
        self.asked = number

    def stop_if_asked(self) -> None:
        """Raise what the signal would have raised."""
        if self.asked is not None:
            raise KeyboardInterrupt
