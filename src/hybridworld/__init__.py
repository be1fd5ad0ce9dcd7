"""Hybrid neural world models: fast surrogates of physical dynamics that know when to ask the solver.

import hybridworld as hw
env = hw.system("euler2d")
start = env.initial("test", seed=0)
later = env.solve(start.state, 64, start.params)
model = hw.load("ball3d")
forecast = model.predict(state, horizon=64, params=params, mode=2, q=0.75)
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "Axis": "physics.spec",
    "CodeFailure": "errors",
    "Environment": "physics.environment",
    "Field": "physics.spec",
    "Forecast": "deploy.hybrid",
    "Gate": "deploy.gate",
    "HybridModel": "deploy.hybrid",
    "HybridWorldError": "errors",
    "InvalidInput": "errors",
    "Parameter": "physics.spec",
    "Sample": "physics.environment",
    "SolverFailure": "errors",
    "StateSpec": "physics.spec",
    "Symmetry": "physics.symmetry",
    "check_environment": "physics.check",
    "over_trajectories": "physics.threads",
    "square_symmetries": "physics.symmetry",
    "thread_limit": "physics.threads",
}
__all__ = ["__version__", "load", "system", *_WHERE]


def load(model: Any, **options: Any) -> Any:
    """A trained model, ready to answer: the name of one that ships (`ball3d`), or path/to/model.safetensors.

    `solver=hw.system("file.py:Class")` gives it the solver of a system of your own, `dask=ADDRESS` a cluster to solve on.
    """
    from hybridworld.deploy.load import load

    return load(model, **options)


def system(name: str) -> Any:
    """The physical system of that name: `euler2d`, a plug-in's, or `path/to/file.py:Class`."""
    from hybridworld.physics.registry import find_system

    return find_system(name)


def __getattr__(name: str) -> Any:
    """Public names are looked up on first use, so that `import hybridworld` stays light."""
    if name in _WHERE:
        return getattr(import_module(f"hybridworld.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'hybridworld' has no attribute '{name}'")
