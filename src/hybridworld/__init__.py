"""Hybrid neural world models: fast surrogates of physical dynamics that know when to ask the solver.

import hybridworld as hw
env = hw.system("euler2d")
start = env.initial("test", seed=0)
later = env.solve(start.state, 64, start.params)
model = hw.load("ball3d")
forecast = model.predict(state, horizon=64, params={"restitution": 0.8, "gravity": -9.8}, mode=2, q=0.75)
forecast.plot()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hybridworld.deploy.registration import follow_gymnasium

if TYPE_CHECKING:  # what `_WHERE` says, for editors and type checkers
    from hybridworld.app.notebook import calibrate, generate, train
    from hybridworld.data.dataset import Dataset
    from hybridworld.data.trajectory import Trajectory, simulate
    from hybridworld.deploy.forecast import Forecast
    from hybridworld.deploy.gate import Gate
    from hybridworld.deploy.hybrid import HybridModel
    from hybridworld.deploy.load import load
    from hybridworld.deploy.wrap import wrap
    from hybridworld.errors import CodeFailure, HybridWorldError, InvalidInput, SolverFailure
    from hybridworld.physics.check import check_environment
    from hybridworld.physics.environment import Environment, Sample
    from hybridworld.physics.registry import find_system as system
    from hybridworld.physics.spec import Axis, Field, Parameter, StateSpec
    from hybridworld.physics.symmetry import Symmetry, square_symmetries
    from hybridworld.physics.threads import over_trajectories, thread_limit

__version__ = "0.1.0"

_WHERE = {
    "Axis": "physics.spec",
    "CodeFailure": "errors",
    "Dataset": "data.dataset",
    "Environment": "physics.environment",
    "Field": "physics.spec",
    "Forecast": "deploy.forecast",
    "Gate": "deploy.gate",
    "HybridModel": "deploy.hybrid",
    "HybridWorldError": "errors",
    "InvalidInput": "errors",
    "Parameter": "physics.spec",
    "Sample": "physics.environment",
    "SolverFailure": "errors",
    "StateSpec": "physics.spec",
    "Symmetry": "physics.symmetry",
    "Trajectory": "data.trajectory",
    "calibrate": "app.notebook",
    "check_environment": "physics.check",
    "generate": "app.notebook",
    "load": "deploy.load",
    "over_trajectories": "physics.threads",
    "simulate": "data.trajectory",
    "square_symmetries": "physics.symmetry",
    "system": "physics.registry:find_system",
    "thread_limit": "physics.threads",
    "train": "app.notebook",
    "wrap": "deploy.wrap",
}
"""Public name -> where it is defined, and its name there where that differs."""

__all__ = [
    "Axis", "CodeFailure", "Dataset", "Environment", "Field", "Forecast", "Gate", "HybridModel", "HybridWorldError",
    "InvalidInput", "Parameter", "Sample", "SolverFailure", "StateSpec", "Symmetry", "Trajectory", "__version__", "calibrate",
    "check_environment", "generate", "load", "over_trajectories", "simulate", "square_symmetries", "system", "thread_limit",
    "train", "wrap",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Public names are looked up on first use, so that `import hybridworld` stays light."""
    if name not in _WHERE:
        raise AttributeError(f"module 'hybridworld' has no attribute '{name}'")
    module, _, other = _WHERE[name].partition(":")
    return getattr(import_module(f"hybridworld.{module}"), other or name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__


follow_gymnasium()  # so that `gymnasium.make` knows our names; it imports nothing that is not there already
