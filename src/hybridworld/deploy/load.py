"""A trained model, ready to answer: from the package, or from a file."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from hybridworld.deploy.engines import set_engine
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.remote import solve_on
from hybridworld.errors import InvalidInput, nearest
from hybridworld.physics.arguments import checked_text, is_file, shown
from hybridworld.physics.environment import Environment
from hybridworld.physics.registry import find_system, known_systems
from hybridworld.surrogate.bundle import Bundle, Code, load_bundle
from hybridworld.surrogate.horizons import drawn_horizons
from hybridworld.surrogate.parallel import device_of
from hybridworld.surrogate.wrapped import Wrapped
from hybridworld.trust.bounds import ErrorBound, Residuals
from hybridworld.trust.calibrate import BEGINNING, calibrated_signals, calibration_arrays
from hybridworld.trust.calibration import Calibration
from hybridworld.trust.disagreement import Symmetric
from hybridworld.trust.registry import find_signal
from hybridworld.trust.signal import Ingredients, TrustSignal
from hybridworld.trust.step_doubling import StepDoubling

MODELS = Path(__file__).parent / "models"
"""What ships with the package: NAME.safetensors, and its card as NAME.json."""

SIGNAL = "signal"
"""What the provenance of a model calls its default signal, if that is not the first that it is calibrated for."""
HARDLY, FEW = 0.8, 50
"""A validation MSE above this share of that of "no change", and fewer calibrating trajectories than this, are warned about."""


class WeakModel(UserWarning):
    """What makes the answers or the promises of a model worth little."""


def load(
    model: str | Path,
    solver: Environment | None = None,
    backbone: str | Code | None = None,
    dask: str | None = None,
    signal: str | None = None,
    device: str | torch.device | None = None,
    engine: str | None = None,
) -> HybridModel:
    """The model of that name or file, with the solver of its system where there is one: mode 2 needs it.

    `solver` is for a system of your own, `backbone` for a network or a wrapped model of your own: its class or function, or
    `path/to/file.py:name`. With `dask` (the address of a scheduler, or `local`) flagged trajectories are solved on a cluster.
    `signal` names what draws the error map, as "step-doubling + symmetries": the file must hold its calibration.
    `device` is where the network computes: by default a GPU where there is one. `engine` is who runs it on a CPU: `eager`
    torch, an engine by its name, or `auto`, the fastest that is known to agree on this machine (docs/engines.md; the default,
    unless HYBRIDWORLD_ENGINE names another). What makes a model worth little is told as a warning.
    """
    if solver is not None and not isinstance(solver, Environment):
        raise InvalidInput(f"The solver is {shown(solver)}: give a system, as hw.system('file.py:Class').")
    if dask is not None:
        checked_text("The address of the dask scheduler", dask)
    loaded = ready(load_bundle(find_model(model), backbone, solver), solver, dask, signal, device, str(model))
    set_engine(loaded, engine)
    return loaded


def ready(
    bundle: Bundle,
    solver: Environment | None = None,
    dask: str | None = None,
    signal: str | None = None,
    device: str | torch.device | None = None,
    name: str = "MODEL",
) -> HybridModel:
    """What `load` returns, of a bundle that is in memory, with eager torch; `name` is how the user named the model."""
    sized = bundle if solver is None else bundle.like(solver.spec)
    solver = solver_of(sized, solver)
    if bundle.surrogate.config.guide and solver is None:
        raise InvalidInput(
            f"The model of {bundle.surrogate.spec.name} is guided by the solver of its system: give that as `solver`, or name "
            "its --system."
        )
    sized.surrogate.to(device_of(device))
    loaded = assemble(sized, solver, dask, chosen_signal(sized, solver, signal, name))
    loaded.bundle = bundle  # what is saved is what was calibrated
    warn_if_weak(loaded, 4)
    return loaded


def warn_if_weak(model: HybridModel, stacklevel: int) -> None:
    """Say what makes the answers or the promises of a model worth little; `stacklevel` is how far above the user's line is."""
    share = model.bundle.share_of_no_change if model.bundle else None
    if share is not None and share > HARDLY:
        warnings.warn(
            f"The model of {model.spec.name} hardly beats no change: its validation MSE is {share:.2g} times that of answering "
            "with the state as it was. Train it longer before you use it.",
            WeakModel,
            stacklevel,
        )
    if model.calibration is not None and model.calibration.size < FEW:
        promised = f" (bounds: at most {model.bound.most:.0%})" if model.bound is not None else ""
        warnings.warn(
            f"The model of {model.spec.name} was calibrated by {model.calibration.size} trajectories, which promise little"
            f"{promised}: calibrate it with {FEW} or more (`hybridworld calibrate --count {FEW}`, in Python count={FEW}).",
            WeakModel,
            stacklevel,
        )


def assemble(
    bundle: Bundle, system: Environment | None, dask: str | None = None, signal: TrustSignal | None = None
) -> HybridModel:
    """What a bundle holds, ready to answer; without a signal, with its default one."""
    signal = signal or chosen_signal(bundle, system)
    arrays = calibration_arrays(bundle.arrays, signal.name)
    whole, cells = (Residuals.from_arrays(arrays, kind) for kind in ("trajectory", "cell"))
    bound = None if whole is None else ErrorBound(whole, beginning=beginnings_of(arrays))
    trained: Sequence[int] | None = bundle.surrogate.answered
    if not isinstance(bundle.surrogate, Wrapped):
        trained = drawn_horizons(bundle.config.training.horizons, bundle.config.training.draw)[0].tolist()
    return HybridModel(
        bundle.surrogate,
        calibration_of(arrays),
        None if system is None else solve_on(dask, system) if dask else system.solve,
        bound,
        None if cells is None or bound is None else ErrorBound(cells, bound.trajectories),
        signal,
        trained,
        system,
        bundle,
    )


def chosen_signal(bundle: Bundle, system: Environment | None, name: str | None = None, model: str = "MODEL") -> TrustSignal:
    """The signal of that name, which the file must hold a calibration for; without a name, its default one.

    `model` is how the user named the file.
    """
    known = calibrated_signals(bundle.arrays)
    signal = find_signal(name or default_signal(bundle, system), Ingredients(bundle.surrogate, system))
    if name is not None and signal.name not in known:
        others = " and ".join(f"'{each}'" for each in known) or "none"
        there = " --out FILE" if model in shipped() else ""
        raise InvalidInput(
            f"The model {model} has no calibration for the signal '{signal.name}' (it has {others}): "
            f'run `hybridworld calibrate {model} --signal "{signal.name}"{there}`.'
        )
    return signal


def default_signal(bundle: Bundle, system: Environment | None) -> str:
    """What draws a model's error map where no signal is named: what its file says, else the first that it is calibrated for.

    A model without a calibration is meant for step-doubling. If it is guided, it is meant for the symmetries of its system:
    two coarse runs in a row differ from one by more than either errs (docs/trust.md).
    """
    known = calibrated_signals(bundle.arrays)
    if known:
        return str(bundle.provenance.get(SIGNAL, known[0]))
    guided = bundle.surrogate.config.guide and Symmetric.offers(Ingredients(bundle.surrogate, system))
    return Symmetric.name if guided else StepDoubling.name


def calibration_of(arrays: Mapping[str, np.ndarray]) -> Calibration | None:
    """Thresholds and ranks from the arrays of one signal; None where it was never calibrated."""
    residuals = Residuals.from_arrays(arrays, "trajectory")
    return None if residuals is None else Calibration.of(residuals, beginnings_of(arrays))


def beginnings_of(arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Which validation answers were asked at the beginning of a trajectory; None where a model's file does not say."""
    found = arrays.get(BEGINNING)
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


def ships(path: Path) -> bool:
    """Whether the file is part of the package."""
    return path.resolve().is_relative_to(MODELS)


def find_model(model: str | Path) -> Path:
    """The file of a name that ships, or the path itself."""
    if not isinstance(model, str | Path):
        raise InvalidInput(f"The model is {shown(model)}: give the name of one that ships, or path/to/model.safetensors.")
    known = shipped()
    if str(model) in known:
        return known[str(model)]
    path = Path(model)
    if path.suffix != ".safetensors" and not is_file(path):
        names = ", ".join(known) or "none"
        raise InvalidInput(
            f"There is no model '{model}': shipped are {names}; give one of them, or path/to/model.safetensors."
            f"{nearest(str(model), known)}"
        )
    return path
