"""How Gymnasium comes to know our environments, by name alone: it imports neither them nor torch.

    gymnasium.make("hybridworld:hybridworld/Tabletop-v0")                   it imports the module before the colon
    import hybridworld; gymnasium.make("hybridworld/Tabletop-v0")           whichever of the two is imported first
    gymnasium.make("hybridworld.deploy.gym:hybridworld/Mine-v0")            systems of installed packages as well

Up to 0.29 Gymnasium looked for entry points of installed packages (`gymnasium.envs`), so that the bare name did without any
import of ours; 1.0 has dropped them, and knows of no other way.
"""

import sys
from collections.abc import Iterable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

PACKAGE = "gymnasium.envs"
"""The part of Gymnasium that has to be there before anything can be registered."""


def register(names: Iterable[str] | None = None) -> None:
    """One environment for each of these systems that can be acted on, by default for each that is known."""
    from gymnasium.envs.registration import register as tell
    from gymnasium.envs.registration import registry

    from hybridworld.errors import HybridWorldError
    from hybridworld.physics.registry import find_system, known_systems

    for name in known_systems() if names is None else names:
        title = f"hybridworld/{''.join(part.capitalize() for part in name.split('_'))}-v0"
        if title in registry:
            continue
        try:
            acts = bool(find_system(name).spec.actions)
        except HybridWorldError:  # a plug-in that does not load must not break Gymnasium
            continue
        if acts:
            entries = {"entry_point": "hybridworld.deploy.gym:World", "vector_entry_point": "hybridworld.deploy.gym:Worlds"}
            tell(title, kwargs={"system": name}, **entries)  # type: ignore[arg-type]


def follow_gymnasium() -> None:
    """Register the built-in systems: now, where Gymnasium is imported, and else as soon as it is.

    `import hybridworld` calls it. It imports nothing, so that nobody waits for a Gymnasium that is not used. It leaves out the
    systems of other packages, whose code might be the one that imports us.
    """
    if PACKAGE in sys.modules:
        register_built_in()
    elif not any(isinstance(each, Watch) for each in sys.meta_path):
        sys.meta_path.insert(0, Watch())


def register_built_in() -> None:
    """Those systems whose code is ours."""
    from hybridworld.physics.registry import BUILT_IN

    register(BUILT_IN)


class Watch(MetaPathFinder):
    """Lets whatever imports Gymnasium's environments register ours at the end; of other modules it knows nothing."""

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """What Python finds for Gymnasium's environments, which then register ours; None for any other module."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname == PACKAGE else None
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module: ModuleType) -> None:
                run(module)
                register_built_in()

            spec.loader.exec_module = run_and_register  # type: ignore[method-assign]  # of this one loader
        return spec
