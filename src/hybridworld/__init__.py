"""Hybrid neural world models: fast surrogates of physical dynamics that know when to ask the solver.

import hybridworld as hw
env = hw.system("euler2d")
start = env.initial("test", seed=0)
later = env.solve(start.state, 64, start.params)
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "Axis": "physics.spec",
    "Environment": "physics.environment",
    "Field": "physics.spec",
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
__all__ = ["__version__", "system", *_WHERE]


def system(name: str) -> Any:
    """The physical system of that name: `euler2d`, a plug-in's, or `path/to/file.py:Class`."""
    from hybridworld.physics.registry import find_system

    return find_system(name)


def __getattr__(name: str) -> Any:
    """Public names are looked up on first use, so that `import hybridworld` stays light."""
    if name in _WHERE:
        return getattr(import_module(f"hybridworld.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'hybridworld' has no attribute '{name}'")
