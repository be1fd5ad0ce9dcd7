"""What was asked of a training, and the recipe that follows from it: settings, and the task of the loop."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybridworld.data.dataset import Dataset
from hybridworld.data.provenance import provenance
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.backbones import GUIDED
from hybridworld.surrogate.config import Config, configure, parse_wishes
from hybridworld.surrogate.leap import default_patch
from hybridworld.surrogate.train import Task
from hybridworld.training.material import Material
from hybridworld.training.start import Start, find_start


@dataclass(frozen=True)
class Request:
    """What was asked of a training, by the command or by `hw.train`."""

    environment: Environment | None = None
    data: Path | None = None
    stream: bool = False
    minutes: float | None = None
    start: str | None = None
    """A trained model to go on from."""
    preset: str | None = None
    wishes: Sequence[str] = ()
    out: Path | None = None
    began: float = 0.0
    """When the command began, by time.monotonic."""
    device: str | None = None


@dataclass(frozen=True)
class Recipe:
    """How to learn: what stands between a request and a `Task`."""

    environment: Environment | None
    spec: StateSpec
    preset: str
    wishes: Sequence[str] = ()
    start: Start | None = None
    known: Mapping[str, Any] | None = None
    """More facts for the provenance."""

    @property
    def config(self) -> Config:
        """All settings of the training, with those that a known system adds."""
        presets = self.environment.presets if self.environment else None
        found = configure(self.spec, self.preset, self.wishes, presets)
        return self.start.configured(found, self.preset, self.wishes) if self.start else found

    def task(self, material: Material) -> Task:
        """The task of the training loop, with all that it takes to repeat it in its provenance."""
        environment, config, start = material.environment, self.config, self.start
        known: dict[str, Any] = {"system": material.spec.name, "preset": self.preset, "seed": config.training.seed}
        known |= {**material.origin, **(self.known or {}), **provenance()}
        if start:
            start.check(material)
            known |= {"from": start.told, "from name": start.name}
            before = start.bundle.provenance.get("data seconds")
            known |= {} if before is None else {"data seconds": before + known.get("data seconds", 0.0)}
        return Task(
            config,
            material.train,
            material.val,
            environment.symmetries if environment else (),
            environment.solve if environment else None,
            system=environment,
            provenance=known,
            start=start.bundle if start else None,
            units=material.units,
        )


def recipe_for(asked: Request) -> Recipe:
    """The recipe that a request asks for; what it leaves open comes from the model that it goes on from."""
    start = find_start(asked.start, asked.wishes)
    environment = start.system(asked.environment) if start else asked.environment
    if environment is None and asked.data is None:
        if asked.stream:
            raise InvalidInput("--stream needs a system to solve: name it, for example `hybridworld train ball3d --stream`.")
        raise InvalidInput("Name a system, for example `hybridworld train ball3d --minutes 10`, or give --data DIR.")
    spec = Dataset(asked.data).spec if asked.data else environment.spec  # type: ignore[union-attr]
    preset = asked.preset or (start.preset if start else None)
    if preset is None:
        network = parse_wishes(asked.wishes).get("surrogate", {}).get("backbone")
        guided = asked.minutes is not None and environment and network in (None, *GUIDED) and can_be_guided(environment, spec)
        preset = "guided" if guided else "laptop"
    return Recipe(environment, spec, preset, asked.wishes, start)


def can_be_guided(environment: Environment, spec: StateSpec) -> bool:
    """Whether the system has a grid that can be coarsened, as a guide needs it."""
    if not spec.grid:
        return False
    network = Recipe(environment, spec, "guided").config.surrogate
    patch = network.patch or default_patch(spec.grid)
    try:
        environment.unresolved.resized(spec.grid).coarsened(network.guide_factor or patch)
    except InvalidInput:
        return False
    return min(spec.grid) >= 2 * patch
