"""What is known about engines on this machine: a verdict on each, per model, remembered on disk."""

import inspect
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from math import inf
from pathlib import Path

from torch import Tensor

import hybridworld
from hybridworld.data.provenance import cpu
from hybridworld.physics.spec_text import spec_to_text
from hybridworld.surrogate.bundle import digest
from hybridworld.surrogate.engines.registry import EAGER, ENGINES, installed
from hybridworld.surrogate.parallel import threads_for
from hybridworld.surrogate.surrogate import Surrogate

WORTH = 1.05
"""An engine must be so many times as fast as eager torch."""
KEPT = 24
"""Models that are remembered; those that were not used for longest are forgotten."""
MEMORY = "verdicts.json"
PACKAGES = ("torch", "openvino", "onnxruntime", "onnx", "onnxscript")


@dataclass(frozen=True)
class Verdict:
    """What is known about one engine: how many times as fast as eager torch it is, by how much it differs; or why it is out."""

    engine: str
    failure: str | None = None
    one: float = 0.0
    """How many times as fast as eager torch it is on single states."""
    many: float = 0.0
    """How many times as fast as eager torch it is on batches."""
    states: float | None = None
    """Root mean square of the difference, in deviations: the largest over states."""
    scores: float | None = None
    """The largest difference of a score."""
    since: float = 0.0
    """The shortest horizon from which on it agrees; an engine in bfloat16 may be too coarse for shorter ones."""


@dataclass(frozen=True)
class Choice:
    """Which engines answer, for (single states, batches)."""

    engines: tuple[str, str]
    shorter: tuple[str, str]
    """Those for horizons shorter than `since`."""
    since: float = 0.0

    @property
    def name(self) -> str:
        """All of it in words."""
        words = ["{} (batches: {})".format(*pair) if pair[0] != pair[1] else pair[0] for pair in (self.engines, self.shorter)]
        return words[0] if self.shorter == self.engines else f"{words[0]}; below {self.since:g} frames {words[1]}"


@dataclass(frozen=True)
class Memory:
    """The verdicts about one model with so many threads on this machine, and the folder with what the engines wrote."""

    folder: Path
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    @classmethod
    def of(cls, surrogate: Surrogate) -> "Memory":
        """What is remembered; nothing, where nothing is or where it cannot be read."""
        folder = cache() / key_of(surrogate)
        try:
            found = {name: Verdict(**each) for name, each in json.loads((folder / MEMORY).read_text()).items()}
        except (OSError, ValueError, TypeError, AttributeError):
            found = {}
        return cls(folder, found)

    def best(self, rows: str, horizon: float = inf) -> str:
        """The engine for `one` state or for `many`, at that horizon and longer ones."""
        agree = {name: each for name, each in self.verdicts.items() if not each.failure and each.since <= horizon}
        gains = {name: getattr(each, rows) for name, each in agree.items() if name in ENGINES}
        fastest = max(gains, key=lambda name: gains[name], default=EAGER)
        return fastest if gains.get(fastest, 0) >= WORTH else EAGER

    def gain(self, rows: str) -> float:
        """How many times as fast as eager torch that is."""
        name = self.best(rows)
        return 1.0 if name == EAGER else getattr(self.verdicts[name], rows)

    def choice(self, wish: str | None = None) -> Choice:
        """The engine that was wished for, with eager torch where it does not agree; or the fastest ones."""
        if wish is not None:
            since = 0.0 if wish == EAGER else self.verdicts[wish].since
            return Choice((wish, wish), (EAGER, EAGER) if since else (wish, wish), since)
        engines = self.best("one"), self.best("many")
        since = max(self.verdicts[name].since if name != EAGER else 0.0 for name in engines)
        return Choice(engines, (self.best("one", 0), self.best("many", 0)) if since else engines, since)

    @property
    def complete(self) -> bool:
        """Is every engine known that would be tried unasked?"""
        return set(installed(quick=True)) <= set(self.verdicts)


def cache() -> Path:
    """The folder for all models: $HYBRIDWORLD_CACHE, else hybridworld in the user's cache."""
    given = os.environ.get("HYBRIDWORLD_CACHE")
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hybridworld"
    return (Path(given) if given else usual) / "engines"


def forget() -> None:
    """Remove all but the models that were used last."""
    known = sorted((path for path in cache().iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in known[KEPT:]:
        shutil.rmtree(path, ignore_errors=True)


def key_of(surrogate: Surrogate) -> str:
    """Changes with weights, settings, code, processor, versions and threads."""
    text = [
        hybridworld.__version__,
        surrogate.config.model_dump_json(),
        json.dumps(spec_to_text(surrogate.spec), default=str),
        cpu(),
        instructions(),
        *(f"{name} {version_of(name)}" for name in PACKAGES),
        str(threads_for(surrogate.spec)),
        *(path.read_text() for path in code_of(surrogate)),
    ]
    tensors = {name: values.cpu() for name, values in surrogate.state_dict().items() if isinstance(values, Tensor)}
    return f"{surrogate.spec.name}-{digest(chr(10).join(text), tensors)[:24]}"


def code_of(surrogate: Surrogate) -> list[Path]:
    """The files whose change may change a network: those of this package, and that of a backbone of the user's."""
    own = [inspect.getsourcefile(type(surrogate.backbone))] if hasattr(surrogate, "backbone") else []
    return [*sorted(Path(inspect.getfile(Surrogate)).parent.rglob("*.py")), *(Path(path) for path in own if path)]


def instructions() -> str:
    """What the processor says that it can do."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def version_of(package: str) -> str:
    """The version of a package, or `none` where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
