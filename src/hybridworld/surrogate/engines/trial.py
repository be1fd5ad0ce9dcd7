"""Engines are tried in a process of their own: instructions that the processor or the hypervisor lacks end it.

    python -m hybridworld.surrogate.engines.trial FOLDER THREADS ENGINE...

FOLDER holds a program, and questions with their answers. What the first engine did is written there as trial-0.json, and so on.
The process ends when its standard input is closed: whoever began it holds the other end, and may be killed.
"""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hybridworld.errors import InvalidInput
from hybridworld.surrogate.engines.engine import Program, Run
from hybridworld.surrogate.engines.registry import find_engine

PROGRAM, QUESTIONS = "program.pt2", "questions.pt"
PATIENCE = 1800.0
"""Seconds for all trials of a process: on a busy machine a network is written slowly."""
ROUNDS, SECONDS = 12, 1.5
"""How often an engine is timed, at most, and for how long at each size of a batch."""


@dataclass(frozen=True)
class Trial:
    """What an engine did: how many times as fast as eager torch it was for each number of states, or why it is out."""

    engine: str
    gain: Mapping[str, float] = field(default_factory=dict)
    failure: str | None = None


Question = tuple[Sequence[Tensor], Tensor]
"""The inputs of a surrogate, and what eager torch makes of them."""


def prepare(program: Program, questions: Sequence[Question], folder: Path) -> None:
    """Write the program, the inputs and the expected answers that trials read."""
    with warnings.catch_warnings(action="ignore"):  # about the exporter's own ways
        torch.export.save(program, folder / PROGRAM)
    torch.save([[*inputs, answer] for inputs, answer in questions], folder / QUESTIONS)


def try_engines(names: Sequence[str], folder: Path, threads: int, patience: float = PATIENCE) -> list[Trial]:
    """One trial per engine, in a process of their own, which is begun again after an engine that ended it.

    `folder` was prepared; what the engines write stays there.
    """
    found: list[Trial] = []
    while len(found) < len(names):
        left = names[len(found) :]
        command = [sys.executable, "-m", __spec__.name, str(folder), str(threads), *left]
        theirs, ours = os.pipe()
        try:
            done = subprocess.run(command, stdin=theirs, capture_output=True, text=True, timeout=patience, check=False)
            ended = in_words(done.returncode, done.stderr)
        except subprocess.TimeoutExpired:
            ended = f"gave no answer in {patience:g} s"
        finally:
            os.close(theirs)
            os.close(ours)
        for path in [folder / result(number) for number in range(len(left))]:
            if path.exists():
                found.append(Trial(**json.loads(path.read_text())))
                path.unlink()
        if len(found) < len(names):
            found.append(Trial(names[len(found)], failure=ended))
    return found


def result(number: int) -> str:
    """The file about that engine of a process."""
    return f"trial-{number}.json"


def in_words(code: int, text: str) -> str:
    """How a process ended."""
    if code < 0:
        return f"died with {signal.Signals(-code).name}"
    return (text.strip().splitlines() or ["ended without an answer"])[-1]


# In that process.


def end_with_parent() -> None:
    """End this process when standard input is closed."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


def main(folder: Path, threads: int, names: Sequence[str]) -> None:
    """Try each, and write what it did."""
    torch.set_num_threads(threads)
    program = torch.export.load(folder / PROGRAM)
    questions = [(tensors[:-1], tensors[-1]) for tensors in torch.load(folder / QUESTIONS)]
    for number, name in enumerate(names):
        try:
            trial = tried(name, program, questions, folder, threads)
        except InvalidInput as error:  # it says so itself
            trial = Trial(name, failure=str(error))
        except Exception as error:
            first = (str(error).strip().splitlines() or [""])[0][:300]
            trial = Trial(name, failure=f"raised {type(error).__name__}: {first}")
        (folder / result(number)).write_text(json.dumps(asdict(trial)))


def tried(name: str, program: Program, questions: Sequence[Question], folder: Path, threads: int) -> Trial:
    """Write, open, answer, and take turns with eager torch."""
    engine = find_engine(name)
    engine.write(program, folder)
    eager: Run = program.module()
    with torch.inference_mode():
        run, gain = engine.open(folder, eager, threads), {}
        for inputs, answer in questions:
            found = run(*inputs)
            if found.shape != answer.shape or not found.isfinite().all():
                return Trial(name, failure=f"answered with shape {tuple(found.shape)}, or with values that are not finite")
            slow, fast = take_turns([lambda i=inputs: eager(*i), lambda i=inputs: run(*i)])  # type: ignore[misc]
            gain[str(len(answer))] = gain_over(slow, fast, threads)
    return Trial(name, gain)


class Times(NamedTuple):
    """The least seconds of a call: by the clock, and of the cores together."""

    clock: float
    cores: float


def gain_over(slow: Times, fast: Times, threads: int) -> float:
    """How many times as fast: by the clock, or for one thread by the time of its core, to which no other program adds."""
    return slow.cores / fast.cores if threads == 1 else slow.clock / fast.clock


def take_turns(calls: Sequence[Callable[[], Any]], rounds: int = ROUNDS, seconds: float = SECONDS) -> list[Times]:
    """The least seconds of each call; in a round each has one turn.

    In its turn it is made twice, and the second time counts: with caches and threads as warm as for whoever asks one engine
    again and again. Whatever else runs on the machine only adds to a time.
    """
    took: list[list[Times]] = [[] for _ in calls]
    end = time.perf_counter() + seconds * len(calls)
    for turn in range(rounds):
        if turn >= 3 and time.perf_counter() > end:
            break
        for call, times in zip(calls, took, strict=True):
            call()
            began, work = time.perf_counter(), time.process_time()
            call()
            times.append(Times(time.perf_counter() - began, time.process_time() - work))
    return [Times(*map(min, zip(*times, strict=True))) for times in took]


if __name__ == "__main__":
    Thread(target=end_with_parent, daemon=True).start()
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
