"""A trained model, ready to answer: from the package, or from a file."""

import warnings
from pathlib import Path

import numpy as np
import torch

from hybridworld.deploy.hybrid import HybridModel, share_of_no_change
from hybridworld.deploy.remote import solve_on
from hybridworld.errors import InvalidInput, nearest
from hybridworld.physics.arguments import shown
from hybridworld.physics.environment import Environment
from hybridworld.physics.registry import find_system, known_systems
from hybridworld.surrogate.backbones import Backbone
from hybridworld.surrogate.bundle import Bundle, load_bundle
from hybridworld.surrogate.horizons import drawn_horizons
from hybridworld.surrogate.parallel import device_of
from hybridworld.trust.bounds import ErrorBound, Residuals
from hybridworld.trust.calibrate import BEGINNING
from hybridworld.trust.calibration import Calibration

MODELS = Path(__file__).parent / "models"
"""What ships with the package: SYSTEM.safetensors."""

HARDLY, FEW = 0.8, 50
"""A validation MSE above this share of that of "no change", and fewer calibrating trajectories than this, are warned about."""


class WeakModel(UserWarning):
    """What makes the answers or the promises of a model worth little."""


def load(
    model: str | Path,
    solver: Environment | None = None,
    backbone: type[Backbone] | None = None,
    dask: str | None = None,
    device: str | torch.device | None = None,
) -> HybridModel:
    """The model of that name or file, with the solver of its system where there is one: mode 2 needs it.

    `solver` is for a system of your own, `backbone` for a network of your own. With `dask` (the address of a scheduler, or
    `local`) flagged trajectories are solved on a cluster. `device` is where the network computes: by default a GPU where there
    is one. What makes a model worth little is told as a warning.
    """
    if solver is not None and not isinstance(solver, Environment):
        raise InvalidInput(f"The solver is {shown(solver)}: give a system, as hw.system('file.py:Class').")
    bundle = load_bundle(find_model(model), backbone, solver)
    solver = solver_of(bundle, solver)
    if bundle.surrogate.config.guide and solver is None:
        raise InvalidInput(
            f"The model of {bundle.surrogate.spec.name} is guided by the solver of its system: give that as `solver`."
        )
    whole, cells = (Residuals.from_arrays(bundle.arrays, kind) for kind in ("trajectory", "cell"))
    bound = None if whole is None else ErrorBound(whole, beginning=beginnings_of(bundle))
    training = bundle.config.training
    loaded = HybridModel(
        bundle.surrogate.to(device_of(device)),
        calibration_of(bundle),
        None if solver is None else solve_on(dask, solver) if dask else solver.solve,
        bound,
        None if cells is None or bound is None else ErrorBound(cells, bound.trajectories),
        trained=drawn_horizons(training.horizons, training.draw)[0].tolist(),
        system=solver,
        about={"validation": bundle.validation, "provenance": bundle.provenance},
    )
    warn_if_weak(loaded)
    return loaded


def warn_if_weak(model: HybridModel) -> None:
    """Say what makes the answers or the promises of a model worth little."""
    share = share_of_no_change(model.about.get("validation", {}))
    if share is not None and share > HARDLY:
        warnings.warn(
            f"The model of {model.spec.name} hardly beats no change: its validation MSE is {share:.2g} times that of answering "
            "with the state as it was. Train it longer before you use it.",
            WeakModel,
            stacklevel=3,
        )
    if model.calibration is not None and model.calibration.size < FEW:
        promised = f" (bounds: at most {model.bound.most:.0%})" if model.bound is not None else ""
        warnings.warn(
            f"The model of {model.spec.name} was calibrated by {model.calibration.size} trajectories, which promise little"
            f"{promised}: run `hybridworld calibrate` with --count {FEW} or more.",
            WeakModel,
            stacklevel=3,
        )


def calibration_of(bundle: Bundle) -> Calibration | None:
    """Thresholds and ranks from what a model's file holds; None where it was never calibrated."""
    residuals = Residuals.from_arrays(bundle.arrays, "trajectory")
    return None if residuals is None else Calibration.of(residuals, beginnings_of(bundle))


def beginnings_of(bundle: Bundle) -> np.ndarray | None:
    """Which validation answers were asked at the beginning of a trajectory; None where a model's file does not say."""
    found = bundle.arrays.get(BEGINNING)
    return None if found is None else found > 0


def solver_of(bundle: Bundle, given: Environment | None = None) -> Environment | None:
    """The system that a model approximates, on the grid of its states: the given one, or the one that is known by its name.

    The reference of the model may run on a finer grid than its states; a given system that says otherwise is refused.
    """
    spec, resolved = bundle.surrogate.spec, bundle.reference.get("resolved", 1)
    if given is None and spec.name not in known_systems():
        return None
    system = (given or find_system(spec.name)).fitted(spec, f"The model of {spec.name}")
    asked = system.identity.get("resolved", resolved)
    if asked != resolved:
        raise InvalidInput(
            f"The model of {spec.name} was trained on a reference {resolved} times finer than its states, and the given system "
            f"has one {asked} times finer: give the system itself, the model knows its reference."
        )
    return system.resolved(resolved)


def shipped() -> dict[str, Path]:
    """Name -> file of the models in the package."""
    return {path.stem: path for path in sorted(MODELS.glob("*.safetensors"))}


def find_model(model: str | Path) -> Path:
    """The file of a name that ships, or the path itself."""
    if not isinstance(model, str | Path):
        raise InvalidInput(f"The model is {shown(model)}: give the name of one that ships, or path/to/model.safetensors.")
    known = shipped()
    if str(model) in known:
        return known[str(model)]
    path = Path(model)
    if path.suffix != ".safetensors" and not path.exists():
        names = ", ".join(known) or "none"
        raise InvalidInput(
            f"There is no model '{model}': shipped are {names}; give one of them, or path/to/model.safetensors."
            f"{nearest(str(model), known)}"
        )
    return path
