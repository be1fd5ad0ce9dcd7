"""What each inference engine takes for the forecasts of one model, by turns in one run, beside eager torch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from hybridworld.deploy.engines import MANY, compare_engines, opened
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.verdicts import Memory, Verdict
from hybridworld.errors import InvalidInput
from hybridworld.surrogate.engines.engine import Running
from hybridworld.surrogate.engines.registry import EAGER
from hybridworld.surrogate.engines.trial import take_turns

SIZES = (1, MANY)
"""Numbers of states per call at which engines are timed."""


@dataclass(frozen=True)
class EngineTiming:
    """Milliseconds per state, by the number of states in a call. Empty where it is out."""

    engine: str
    verdict: Verdict | None
    alone: dict[int, float] = field(default_factory=dict)
    """Wall time per state in mode 1."""
    mapped: dict[int, float] = field(default_factory=dict)
    """Wall time per state with the error map."""
    cores: dict[int, float] = field(default_factory=dict)
    """Processor time per state in mode 1, of all cores together."""


def time_engines(
    model: HybridModel, names: Sequence[str], horizon: float, rounds: int, seconds: float = 20.0
) -> tuple[list[EngineTiming], Memory]:
    """Compare those engines anew, which is remembered, and time the ones that agree; eager torch is the first row."""
    if model.system is None:
        raise InvalidInput(f"There is no solver for {model.spec.name} to make states: give --system FILE.py:CLASS.")
    memory = compare_engines(model, names, again=True)
    runs: dict[str, Running | None] = {EAGER: None}
    runs |= {name: opened(model.surrogate, memory, name) for name in names if not memory.verdicts[name].failure}
    states, params = model.system.initials("test", range(max(SIZES)))

    def forecast(engine: str, count: int, mapped: bool) -> None:
        model.surrogate.engine = runs[engine]
        model.predict(states[:count], horizon, params[:count], mode=1, error_map=mapped)

    asked = [(engine, count, mapped) for count in SIZES for mapped in (False, True) for engine in runs]
    before = model.surrogate.engine
    try:
        took = dict(zip(asked, take_turns([partial(forecast, *each) for each in asked], rounds, seconds), strict=True))
    finally:
        model.surrogate.engine = before

    def row(engine: str) -> EngineTiming:
        found = [
            {count: 1e3 * getattr(took[engine, count, mapped], part) / count for count in SIZES} if engine in runs else {}
            for mapped, part in ((False, "clock"), (True, "clock"), (False, "cores"))
        ]
        return EngineTiming(engine, memory.verdicts.get(engine), *found)

    return [row(engine) for engine in (EAGER, *names)], memory
