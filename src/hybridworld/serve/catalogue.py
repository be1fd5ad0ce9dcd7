"""What is served: models that ship, a user's own bundles, and systems that have a solver and no model yet."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Lock

from hybridworld.deploy.forecast import Forecast
from hybridworld.deploy.gate import Gate
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.load import find_model, load, shipped
from hybridworld.errors import InvalidInput, nearest
from hybridworld.physics.brushes import Brush
from hybridworld.physics.environment import Environment
from hybridworld.physics.registry import find_system, known_systems
from hybridworld.physics.spec import StateSpec
from hybridworld.serve.limits import Refusal
from hybridworld.trust.disagreement import RandomAugmentation
from hybridworld.trust.physical import Richardson
from hybridworld.trust.registry import signals_for
from hybridworld.trust.signal import Ingredients, TrustSignal

log = logging.getLogger("hybridworld.serve")


class Served:
    """A model under its name; or a system under its name, without a model."""

    def __init__(
        self,
        name: str,
        model: HybridModel | None,
        system: Environment | None = None,
        path: Path | None = None,
        engine: str | None = None,
    ) -> None:
        self.name, self.model, self.path, self._engine = name, model, path, engine
        self.system = system if model is None else model.system
        self._lock, self._variants = Lock(), dict[str, HybridModel]()
        self._watching = Lock()
        self._gate = Gate(model) if model is not None and model.calibration is not None else None

    @property
    def spec(self) -> StateSpec:
        """What its states mean."""
        found = self.model or self.system
        assert found is not None
        return found.spec

    @cached_property
    def signals(self) -> Mapping[str, TrustSignal]:
        """Trust signals that need no data to be fitted on, by name; the model's own is the first."""
        if self.model is None:
            return {}
        found: dict[str, TrustSignal] = {self.model.signal.name: self.model.signal}
        for name, make in signals_for(Ingredients(self.model.surrogate, self.system)).items():
            try:
                signal = make()
            except InvalidInput:
                continue
            noise = isinstance(signal, RandomAugmentation) and self.guided  # a guide refuses states that cannot exist
            if (
                name not in found and not noise and not isinstance(signal, Richardson)
            ):  # which runs the solver, beyond all budgets
                found[name] = signal
        return found

    def close(self) -> None:
        """Write down what waits to be kept."""
        if self.model is not None and self.model.log is not None:
            self.model.log.flush()

    @property
    def guided(self) -> bool:
        """Does its network correct a coarse solver?"""
        return self.model is not None and bool(getattr(self.model.surrogate.config, "guide", False))

    @cached_property
    def brushes(self) -> Mapping[str, Brush]:
        """Name -> a way to draw an initial state."""
        return {} if self.system is None else {brush.name: brush for brush in self.system.brushes}

    def with_signal(self, name: str | None) -> HybridModel:
        """The model with that trust signal. One without a calibration knows q = 0 and q = 1 alone, and no bound."""
        assert self.model is not None
        if name is None or name == self.model.signal.name:
            return self.model
        if name not in self.signals:
            known = ", ".join(self.signals)
            raise Refusal(422, f"{self.name} has no trust signal '{name[:80]}': choose {known}.{nearest(name, self.signals)}")
        with self._lock:
            if name not in self._variants:
                self._variants[name] = self._calibrated(name) or self._uncalibrated(name)
            return self._variants[name]

    def observe(self, forecast: Forecast) -> tuple[float, bool] | None:
        """Count an answer that could have been deferred; the deferral so far and the alarm, for a calibrated model."""
        if self._gate is None:
            return None
        with self._watching:
            self._gate.observe(forecast)
            return self._gate.deferral, self._gate.alarm

    def _calibrated(self, name: str) -> HybridModel | None:
        """The model with that signal, where its file holds a calibration for it."""
        if self.path is None:
            return None
        assert self.model is not None
        try:
            found = load(self.path, self.system, signal=name, engine=self._engine)
        except InvalidInput:
            return None
        found.log = self.model.log
        return found

    def _uncalibrated(self, name: str) -> HybridModel:
        assert self.model is not None
        return self.model.with_signal(self.signals[name])


class Catalogue:
    """Name -> what is served. `refresh` finds the bundles that appear in the folder `runs`, and drops those that vanish."""

    def __init__(
        self,
        models: Iterable[str] | None = (),
        runs: Path | None = None,
        systems: Sequence[Environment] = (),
        backbone: str | None = None,
        engine: str | None = None,
        keep: Path | None = None,
        most: int | None = None,
    ) -> None:
        """`models`: names that ship, files, or NAME=FILE; None: all that ship and can be solved with what is installed.

        `systems` are the user's own, with their solvers.
        With `keep`, what the solver answers is kept in keep/NAME, `most` answers per model.
        """
        self._keep, self._most = keep, most
        self._runs, self._systems, self._backbone, self._engine, self._lock = runs, systems, backbone, engine, Lock()
        self._entries: dict[str, Served] = {}
        self._stamps: dict[Path, int] = {}
        self._named: set[Path] = set()  # files that were asked for: they are not served once more for being in `runs`
        self.problems: dict[str, str] = {}
        """Why a bundle in `runs`, or a model that ships and was not asked for by name, is not served."""
        if models is None:
            for name, path in shipped().items():
                self._try(name, path)
        for wish in models or ():
            name, _, file = wish.rpartition("=")
            path = find_model(file)
            if "/" in name:
                raise InvalidInput(f"The name '{name}' has a slash, which no address of a model can hold: choose another one.")
            self._named.add(path.resolve())
            self.add(self._load(name or (file if file in shipped() else name_of(path)), path))
        self._add_systems()
        self.refresh()

    def add(self, served: Served) -> None:
        """Serve it under its name, in place of a bare system of that name."""
        known = self._entries.get(served.name)
        if known is not None and known.model is not None and known.path != served.path:
            raise InvalidInput(
                f"Two models are called '{served.name}' ({known.path}, {served.path}): give one of them a name, NAME=FILE."
            )
        self._entries = self._entries | {served.name: served}  # a new one, as others may go through the old one now
        if known is not None:
            known.close()

    def refresh(self, warm_up: Callable[[Served], None] = lambda served: None) -> None:
        """Serve new and changed bundles once `warm_up` has returned, and drop those that have vanished.

        One that cannot be loaded or warmed up is named in `problems`, and disturbs nothing.
        """
        if self._runs is None:
            return
        with self._lock:
            paths = [*self._runs.glob("*.safetensors"), *self._runs.glob("*/model.safetensors")]
            found = stamps(path for path in paths if path.resolve() not in self._named)
            for path in self._stamps.keys() - found.keys():
                self._drop(path)
            changed = {path: stamp for path, stamp in found.items() if self._stamps.get(path) != stamp}
            self._stamps = found
            for path in sorted(changed):
                self._try(name_of(path), path, warm_up)

    def _drop(self, path: Path) -> None:
        name = name_of(path)
        self.problems.pop(name, None)
        gone = self._entries.get(name)
        if gone is not None and gone.path == path:
            self._entries = {each: served for each, served in self._entries.items() if each != name}
            gone.close()
            self._add_systems()

    def find(self, name: str) -> Served:
        """The model or system of that name."""
        known = self._entries
        if name not in known:
            raise Refusal(404, f"There is no model '{name[:80]}': there is {', '.join(known)}.{nearest(name, known)}")
        return known[name]

    def model(self, name: str) -> Served:
        """The model of that name; a bare system is none."""
        served = self.find(name)
        if served.model is None:
            raise Refusal(404, f"'{name[:80]}' is a system without a model: train one, or ask for its future on the page.")
        return served

    @property
    def all(self) -> list[Served]:
        """All that is served: models first, then bare systems."""
        return sorted(self._entries.values(), key=lambda served: served.model is None)

    def _try(self, name: str, path: Path, warm_up: Callable[[Served], None] = lambda served: None) -> None:
        """Serve what is there, or say why not."""
        try:
            served = self._load(name, path)
            warm_up(served)
            self.add(served)
            self.problems.pop(name, None)
        except Exception as error:  # a bundle may hold code of the user's own, and its file may vanish
            self.problems[name] = str(error)
            log.warning("%s is not served: %s", name, error)

    def _load(self, name: str, path: Path) -> Served:
        model = self._model(path)
        if model.system is not None and model.system.lacks:
            raise InvalidInput(model.system.lacks)
        if self._keep is not None:
            model = model.keeping(self._keep / name, self._most)
        return Served(name, model, path=path, engine=self._engine)

    def _model(self, path: Path) -> HybridModel:
        for system in self._systems:
            try:
                model = load(path, system, self._backbone, engine=self._engine)
            except InvalidInput:
                continue
            if model.spec.name == system.spec.name:
                return model
        return load(path, None, self._backbone, engine=self._engine)

    def _add_systems(self) -> None:
        """Add the systems for which there is no model, and that can be solved with what is installed."""
        with_model = {served.spec.name for served in self._entries.values()}
        own = {system.spec.name: system for system in self._systems}
        for name in (*own, *known_systems()):
            if name in with_model or name in self._entries:
                continue
            system = own[name] if name in own else find_system(name)
            if not system.lacks:
                self.add(Served(name, None, system))


def stamps(paths: Iterable[Path]) -> dict[Path, int]:
    """Path -> when it was written, of those that are still there."""
    found = {}
    for path in paths:
        with suppress(OSError):
            found[path] = path.stat().st_mtime_ns
    return found


def name_of(path: Path) -> str:
    """runs/NAME/model.safetensors, or NAME.safetensors."""
    return path.parent.name if path.name == "model.safetensors" and path.parent.name else path.stem
