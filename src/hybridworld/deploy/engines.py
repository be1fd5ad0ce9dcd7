"""Which engine answers for a model on this machine: tried once, remembered on disk.

    network -> program -> a process of its own: does the engine live?  -> here: does it agree with eager torch, is it faster?

Agreement is asked of states and of scores, by the model's own trust signal, guide and chained passes included. An engine in
float32 may differ by EXACT deviations; one in bfloat16 by a share SHARE of the model's own error, the rmse on its validation
data at the horizon of the answer, and answers from the horizon on from which that holds. The fastest that agrees answers, for
single states and for batches by themselves.
Where none is faster, and wherever anything fails, that is eager torch.
"""

import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from math import ceil, inf
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from torch import Tensor

from hybridworld.data.atomic import write_atomically
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.verdicts import MEMORY, Memory, Verdict, cache, forget, key_of
from hybridworld.errors import HybridWorldError, InvalidInput, raised
from hybridworld.surrogate.engines.engine import Run, Running, exported
from hybridworld.surrogate.engines.registry import AUTO, EAGER, find_engine, installed
from hybridworld.surrogate.engines.trial import Trial, gain_over, prepare, take_turns, try_engines
from hybridworld.surrogate.horizons import listed
from hybridworld.surrogate.parallel import threads_for
from hybridworld.surrogate.pieces import rows_at_once
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.wrapped import Wrapped

EXACT, SHARE = 1e-5, 0.1
"""How far an engine may be from eager torch: in deviations (float32), and as a share of the model's own error (bfloat16)."""
AMPLIFIED = 1e-3
"""How far a score may be off besides, as a share of itself: where two passes differ much, the second one amplifies rounding."""
MANY = 16
"""States in a batch, at most, with which engines are tried."""
LOCK = ".lock"
WISH = "HYBRIDWORLD_ENGINE"


class NoEngine(UserWarning):
    """Why eager torch answers though an engine was chosen."""


# What a caller says.


def set_engine(model: HybridModel, wish: str | None = None, look: Callable[[str], None] | None = None) -> None:
    """Let that engine answer for the model: eager, auto, or one by its name, which is tried first and refused where it fails.

    `auto`, the default unless HYBRIDWORLD_ENGINE says otherwise, is the best that is remembered. Where nothing is, engines are
    tried if somebody is there to be told so, by `look`; else eager torch answers.
    """
    wish = wish or os.environ.get(WISH) or AUTO
    if wish not in (AUTO, EAGER):
        find_engine(wish)
    surrogate = model.surrogate
    surrogate.engine = None
    if wish == EAGER or (wish == AUTO and not runnable(surrogate)):
        return
    if not runnable(surrogate):
        where = "another device" if not isinstance(surrogate, Wrapped) else "code of its own"
        raise InvalidInput(f"The engine {wish} runs trained networks on the CPU, and this model runs on {where}: use eager.")
    try:
        memory = Memory.of(surrogate)
        if wish != AUTO:
            memory = memory if wish in memory.verdicts else compare_engines(model, [wish])
        elif not memory.complete and look is not None:
            look(f"looking for the fastest engine for {model.spec.name} on this machine, once (--engine eager: not now)")
            memory = compare_engines(model, installed(quick=True))
            look(in_words(memory))
    except (OSError, HybridWorldError) as error:
        if wish != AUTO:
            raise
        warnings.warn(f"Engines cannot be tried or remembered ({error}): eager torch answers.", NoEngine, stacklevel=2)
        return
    if wish != AUTO and memory.verdicts[wish].failure:
        raise InvalidInput(f"The engine {wish} cannot answer for this model here: it {memory.verdicts[wish].failure}.")
    surrogate.engine = opened(surrogate, memory, None if wish == AUTO else wish)


def in_words(memory: Memory) -> str:
    """A sentence about which engine answers, how much it gains, and which ones failed."""
    choice = memory.choice()
    chosen = "eager torch answers, as no engine is faster"
    if {*choice.engines} != {EAGER}:
        gains = (memory.gain("one"), memory.gain("many"))
        times = "{:.2g} times as fast as eager torch on one state and {:.2g} times in batches".format(*gains)
        chosen = f"{choice.name} answers, {times}"
    failed = "; ".join(f"{each.engine} {each.failure}" for each in memory.verdicts.values() if each.failure)
    return f"{chosen}. Not used: {failed}" if failed else chosen


def runnable(surrogate: Surrogate) -> bool:
    """Whether an engine other than eager torch can run the surrogate."""
    return not isinstance(surrogate, Wrapped) and surrogate.mean.device.type == "cpu"


# How engines are compared with eager torch.


def compare_engines(model: HybridModel, names: Sequence[str], again: bool = False) -> Memory:
    """Try the engines that are not known yet, or all `again`; remember what is found, and return all that is known."""
    surrogate = model.surrogate
    folder = cache() / key_of(surrogate)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / LOCK):  # another process may have the same question
        known = dict(Memory.of(surrogate).verdicts)
        new = [name for name in names if again or name not in known]
        if new:
            known |= {verdict.engine: verdict for verdict in verdicts(model, new, folder)}
            content = {name: asdict(verdict) for name, verdict in known.items()}
            write_atomically(folder / MEMORY, json.dumps(content, indent=1).encode())
    forget()
    return Memory(folder, known)


def verdicts(model: HybridModel, names: Sequence[str], folder: Path) -> Iterator[Verdict]:
    """One per engine: first all of them in a process of their own, then those that lived, here."""
    surrogate, asked = model.surrogate, questions(model)
    threads = threads_for(surrogate.spec)
    with torch.no_grad(), surrogate.eager():
        inputs = [surrogate.inputs(*each, surrogate.ask_guide(*each) if surrogate.config.guide else None) for each in asked]
        given = [(list(each.values()), surrogate.answer(**each)) for each in inputs]
    try:
        prepare(exported(surrogate, inputs[-1]), given, folder)
    except Exception as error:  # a network of the user's own may do anything
        why = f"needs a network that torch can export, and this one raised {raised(error)}"
        yield from (Verdict(name, why) for name in names)
        return
    for trial in try_engines(names, folder, threads):
        yield verdict_of(model, trial, asked, folder)
    for path in chain(folder.glob("*.pt"), folder.glob("program.*")):
        path.unlink()


def verdict_of(model: HybridModel, trial: Trial, asked: Sequence[tuple[Tensor, Tensor, Tensor]], folder: Path) -> Verdict:
    """The verdict on an engine: its failure, or how its answers, maps and times compare with those of eager torch."""
    if trial.failure:
        return Verdict(trial.engine, trial.failure)
    surrogate = model.surrogate
    threads = threads_for(surrogate.spec)
    run = find_engine(trial.engine).open(folder, positional(surrogate), threads)
    differences: list[Tensor] = []  # rows of (states, scores, horizon, allowed for states, for scores)
    gains = []
    with torch.inference_mode():
        for each in asked:
            with surrogate.eager():
                expected = model.signal(*each)
            surrogate.engine = Running(trial.engine, run)
            try:
                found = model.signal(*each)
                slow, fast = take_turns([eagerly(surrogate, *each), lambda each=each: surrogate(*each)])  # type: ignore[misc]
            finally:
                surrogate.engine = None
            gains.append(gain_over(slow, fast, threads))
            unit = surrogate.std.reshape(-1, *[1] * len(surrogate.spec.grid))
            off = ((found.prediction - expected.prediction) / unit).flatten(1).square().mean(dim=1).sqrt()
            score = (found.score - expected.score).abs().reshape(off.shape)
            limit = allowed(model, trial.engine, each[1]).to(off)
            of_score = limit + AMPLIFIED * expected.score.reshape(off.shape)
            differences.append(torch.stack([off, score, each[1].to(off), limit, of_score], dim=1))
    rows = torch.cat(differences)
    since = agrees_since(rows)
    if since == inf or (since and find_engine(trial.engine).exact):
        states, scores = rows[:, :2].amax(dim=0).tolist()
        excess = (rows[:, :2].nan_to_num(torch.inf) / rows[:, 3:].clamp(min=1e-30)).amax(dim=1)
        state, score, horizon, *limits = rows[excess.argmax()].tolist()
        by = f"{state:.2g} deviations (states) and {score:.2g} (scores) at {listed([horizon])}"
        why = "differs from eager torch by {}; allowed is {:.2g} and {:.2g}".format(by, *limits)
        return Verdict(trial.engine, why, states=states, scores=scores)
    states, scores = rows[rows[:, 2] >= since, :2].amax(dim=0).tolist()
    return Verdict(trial.engine, None, gains[0], gains[-1], states, scores, since)


def agrees_since(rows: Tensor) -> float:
    """The shortest horizon from which on no row differs too much: 0 for all, or inf.

    Rows: differences of states and of scores, the horizon, and what is allowed of either.
    """
    wrong = ~(rows[:, :2] <= rows[:, 3:]).all(dim=1)  # so that nan counts as wrong
    if not wrong.any():
        return 0.0
    horizons = rows[:, 2]
    return min(horizons[horizons > horizons[wrong].max()].tolist(), default=inf)


def eagerly(surrogate: Surrogate, *inputs: Tensor) -> Callable[[], Tensor]:
    """A call of the network itself."""

    def call() -> Tensor:
        with surrogate.eager():
            return surrogate(*inputs)

    return call


def allowed(model: HybridModel, engine: str, horizons: Tensor) -> Tensor:
    """How far an engine may be from eager torch at these horizons, in deviations."""
    if find_engine(engine).exact:
        return torch.full(horizons.shape, EXACT)
    errors = model.validation_rmse(horizons.numpy())
    return torch.zeros(horizons.shape) if errors is None else torch.from_numpy(SHARE * errors)


def questions(model: HybridModel) -> list[tuple[Tensor, Tensor, Tensor]]:
    """One state, and batches with all horizons of the training; some states are answers. (states, horizons, params)"""
    surrogate, spec = model.surrogate, model.spec
    count = max(2, min(MANY, rows_at_once(spec)))
    if model.system is not None:
        states, params = (torch.from_numpy(each.astype(np.float32)) for each in model.system.initials("val", range(count)))
    else:
        rng = torch.Generator().manual_seed(0)
        unit = surrogate.std.reshape(-1, *[1] * len(spec.grid))
        states = surrogate.mean.reshape(unit.shape) + unit * torch.randn(count, *spec.shape, generator=rng)
        params = surrogate.param_mean.expand(count, -1).clone()
    trained = sorted(surrogate.horizons.tolist(), reverse=True)
    horizons = torch.tensor(trained * count, dtype=torch.float32)[: count * ceil(len(trained) / count)].reshape(-1, count)
    with torch.no_grad(), surrogate.eager():
        states[1::2] = surrogate(states[1::2], trained[0], params[1::2])
    return [(states[:1].clone(), horizons[0, :1].clone(), params[:1].clone()), *((states, each, params) for each in horizons)]


def positional(surrogate: Surrogate) -> Run:
    """`Surrogate.answer` with its inputs in their order."""
    names = ["states", "horizons", *(["params"] if surrogate.sees_params else []), "then"]
    return lambda *inputs: surrogate.answer(**dict(zip(names, inputs, strict=False)))


def opened(surrogate: Surrogate, memory: Memory, wish: str | None = None) -> Running | None:
    """The engines that answer, ready: that one, or the fastest; None, with a warning, where one cannot be opened."""
    choice = memory.choice(wish)
    names = {*choice.engines, *choice.shorter}
    if names == {EAGER}:
        return None
    eager, threads = positional(surrogate), threads_for(surrogate.spec)
    try:
        runs = {name: find_engine(name).open(memory.folder, eager, threads) for name in names - {EAGER}} | {EAGER: eager}
        os.utime(memory.folder)
    except Exception as error:
        told = f"The engine {choice.name} cannot be opened ({raised(error)}): eager torch answers."
        warnings.warn(f"{told} Remove {memory.folder} to look for engines again.", NoEngine, stacklevel=3)
        return None
    if len(names) == 1:
        return Running(choice.name, runs[names.pop()])
    few = max(2, min(MANY, rows_at_once(surrogate.spec))) ** 0.5  # half way, in octaves

    def run(*inputs: Tensor) -> Tensor:
        states, horizons = inputs[:2]
        pair = choice.engines if float(horizons.min()) >= choice.since else choice.shorter
        return runs[pair[len(states) > few]](*inputs)

    return Running(choice.name, run)
