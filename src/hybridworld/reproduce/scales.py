"""How large a reproduction is: `smoke` (is everything connected?), `laptop` (hours on two cores), `paper` (as published)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hybridworld.data.plan import SCALES, at_scale
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment


@dataclass(frozen=True)
class Setting:
    """What is done for one system at one scale."""

    scale: str
    environment: Environment
    counts: dict[str, int]
    """Trajectories of the dataset for training, by split; empty: pairs come straight from the solver."""
    preset: str
    wishes: tuple[str, ...]
    seeds: tuple[int, ...]
    ablated: tuple[int, ...]
    """The seeds over which ablations are trained."""
    pairs: int
    """Pairs per cell, each from a trajectory of its own."""
    head_steps: int
    """Training steps of the learned error head."""


def setting(environment: Environment, scale: str, wishes: Sequence[str] = ()) -> Setting:
    """The setting of a system at a scale, with the user's own `wishes` for all trainings.

    State vectors are cheap, so theirs is the paper's size from `laptop` on.
    """
    found = setting_of_scale(environment, scale)
    return replace(found, wishes=(*found.wishes, *wishes))


def setting_of_scale(environment: Environment, scale: str) -> Setting:
    """The setting of a system at a scale."""
    if scale not in SCALES:
        raise InvalidInput(f"The scale is '{scale}': choose one of {', '.join(SCALES)}.")
    field, wishes = environment.spec.is_field, tuple[str, ...]()
    if scale == "smoke":
        small, counts = at_scale(environment, "smoke")
        wishes = ("training.epochs=2", "training.samples=32", "training.batch=4") if field else ("training.epochs=2",)
        return Setting(scale, small, counts, "smoke", wishes, (0, 1), (0, 1), 24 if field else 200, 20)
    if scale == "laptop" and field:
        samples = 500 if max(environment.spec.grid) > 128 else 1_200  # about half an hour each on two cores
        wishes = ("training.epochs=16", f"training.samples={samples}", "training.patience=16")
        return Setting(scale, environment, {}, "pure", wishes, (0, 1, 2), (0,), 200, 400)
    whole, counts = at_scale(environment, "paper")
    train = {split: counts[split] for split in ("train", "val")}
    if scale == "laptop":
        quicker = ("training.epochs=32", "training.batch=256", "training.lr=1e-3")
        return Setting(scale, whole, train, "paper", quicker, (0, 1, 2), (0, 1, 2), 4000, 2000)
    return Setting(scale, whole, train, "paper", (), (0, 1, 2), (0, 1, 2), 1000 if field else 4000, 2000)
