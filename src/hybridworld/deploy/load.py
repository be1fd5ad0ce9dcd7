"""A trained model, ready to answer: from the package, or from a file."""

from pathlib import Path

import torch

from hybridworld.deploy.hybrid import HybridModel
from hybridworld.errors import InvalidInput, nearest
from hybridworld.physics.environment import Environment
from hybridworld.physics.registry import find_system, known_systems
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.backbones import Backbone
from hybridworld.surrogate.bundle import load_bundle
from hybridworld.trust.bounds import ErrorBound, Residuals
from hybridworld.trust.calibration import Calibration

MODELS = Path(__file__).parent / "models"
"""What ships with the package: SYSTEM.safetensors."""


def load(model: str | Path, solver: Environment | None = None, backbone: type[Backbone] | None = None) -> HybridModel:
    """The model of that name or file, with the solver of its system where there is one: mode 2 needs it."""
    bundle = load_bundle(find_model(model), backbone)
    spec = bundle.surrogate.spec
    if solver is None and spec.name in known_systems():
        solver = find_system(spec.name)
    if solver is not None:
        solver = fitting(solver, spec)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    residuals = Residuals.from_arrays(bundle.arrays, "trajectory")
    return HybridModel(
        bundle.surrogate.to(device),
        Calibration.from_arrays(bundle.arrays),
        None if solver is None else solver.solve,
        None if residuals is None else ErrorBound(residuals),
    )


def find_model(model: str | Path) -> Path:
    """The file of a name that ships, or the path itself."""
    shipped = {path.stem: path for path in sorted(MODELS.glob("*.safetensors"))}
    if str(model) in shipped:
        return shipped[str(model)]
    path = Path(model)
    if path.suffix != ".safetensors" and not path.exists():
        names = ", ".join(shipped) or "none"
        raise InvalidInput(
            f"There is no model '{model}': shipped are {names}; give one of them, or path/to/model.safetensors."
            f"{nearest(str(model), shipped)}"
        )
    return path


def fitting(solver: Environment, spec: StateSpec) -> Environment:
    """The solver on the grid of the model; raises where the two are about different things."""
    if solver.spec.grid != spec.grid and len(solver.spec.grid) == len(spec.grid):
        solver = solver.resized(spec.grid)
    theirs = solver.spec
    for what, here, there in (
        ("channels", spec.channels, theirs.channels),
        ("grid", spec.grid, theirs.grid),
        ("parameters", [each.name for each in spec.params], [each.name for each in theirs.params]),
        ("frame step", spec.frame_step, theirs.frame_step),
    ):
        if here != there:
            raise InvalidInput(f"The model of {spec.name} has the {what} {here}, the solver of {theirs.name} has {there}.")
    return solver
