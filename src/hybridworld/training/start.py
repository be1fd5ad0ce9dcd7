"""`hybridworld train --from MODEL`: go on from a trained model, with its weights, its units and its network."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hybridworld.data.manifest import sha256
from hybridworld.deploy.load import find_model, solver_of
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment, difference
from hybridworld.surrogate.bundle import Bundle, load_bundle
from hybridworld.surrogate.config import PRESETS, Config, checked, parse_wishes
from hybridworld.training.material import Material

OF_THE_RUN = {"guide_scheme", "guide_steps"}
"""Settings of a guide that leave the shapes of all weights as they are."""


@dataclass(frozen=True)
class Start:
    """A trained model to go on from."""

    name: str
    bundle: Bundle
    sha256: str

    @property
    def preset(self) -> str | None:
        """The preset with which the model was trained; None where there is no such preset any more."""
        found = self.bundle.provenance.get("preset")
        return found if found in PRESETS else None

    @property
    def told(self) -> str:
        """Which model it is, in words, for the provenance of the models that come of it."""
        return f"{self.name} with the sha256 {self.sha256}"

    def system(self, given: Environment | None) -> Environment | None:
        """The system with the reference that the model approximates: the given one, or the known one of that name."""
        spec = self.bundle.surrogate.spec
        if given is not None and given.spec.name != spec.name:
            raise InvalidInput(f"{self.name} is a model of {spec.name}, not of {given.spec.name}: name that system.")
        return solver_of(self.bundle, given)

    def check(self, material: Material) -> None:
        """Raise unless the material is about the same states and the same reference."""
        here, there = self.bundle.surrogate.spec, material.spec
        for what, mine, theirs in (
            ("system", here.name, there.name),
            ("channels", here.channels, there.channels),
            ("grid", here.grid, there.grid),
            ("parameters", [each.name for each in here.params], [each.name for each in there.params]),
        ):
            if mine != theirs:
                raise self._contradiction(what, mine, theirs)
        found = difference(self.bundle.reference, material.identity)
        if found:
            raise self._contradiction(f"reference's {found[0]}", *found[1:])

    def configured(self, config: Config, preset: str, wishes: Sequence[str]) -> Config:
        """The given settings with the network of the model; what was asked for and contradicts the model is refused.

        What the guide runs can change, since the weights fit any guide on the same grid.
        """
        asked, mine = parse_wishes(wishes), self.bundle.config
        wished, free = {*asked.get("surrogate", {})}, OF_THE_RUN if mine.surrogate.guide else set()
        guide = {key: getattr(config.surrogate, key) for key in free & wished}
        network = {*PRESETS[preset][self.bundle.surrogate.spec.is_field].get("surrogate", {}), *wished}
        settings = [("surrogate", key) for key in sorted(network - free)]
        if "horizons" in asked.get("training", {}):  # units are those of its horizons
            settings.append(("training", "horizons"))
        for section, key in settings:
            has, wanted = (getattr(getattr(each, section), key) for each in (mine, config))
            if has != wanted:
                raise self._contradiction(f"{section}.{key}", has, wanted)
        training = config.training.model_dump() | {"horizons": mine.training.horizons}
        return checked({"surrogate": mine.surrogate.model_dump() | guide, "training": training})

    def _contradiction(self, what: str, has: Any, wanted: Any) -> InvalidInput:
        return InvalidInput(
            f"{self.name} has the {what} {has}, and this training has {wanted}: take the same, or leave out --from."
        )


def find_start(model: str | None, wishes: Sequence[str]) -> Start | None:
    """The model that --from names; None where no model is named."""
    if model is None:
        return None
    own = str(parse_wishes(wishes).get("surrogate", {}).get("backbone", ""))
    path = find_model(model)
    return Start(path.name, load_bundle(path, own if ":" in own else None), sha256(path))
