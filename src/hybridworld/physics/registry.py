"""Find a system by name: built in, from an installed package, or from a user's file."""

import importlib
import importlib.util
import inspect
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from hybridworld.errors import CodeFailure, InvalidInput, nearest, raised
from hybridworld.physics.arguments import is_file, shown
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import StateSpec

BUILT_IN = {
    "oregonator": "hybridworld.physics.oregonator:Oregonator",
    "euler2d": "hybridworld.physics.euler2d:Euler2D",
    "ball3d": "hybridworld.physics.ball3d:Ball3D",
    "tabletop": "hybridworld.physics.tabletop:Tabletop",
}
ENTRY_POINT_GROUP = "hybridworld.systems"


def known_systems() -> dict[str, str]:
    """Name -> `module:Class` of the built-in systems and of those that installed packages bring along."""
    return BUILT_IN | {point.name: point.value for point in entry_points(group=ENTRY_POINT_GROUP)}


def built_in() -> list[Environment]:
    """The built-in systems that can be solved with what is installed."""
    return [system for system in map(find_system, BUILT_IN) if not system.lacks]


def find_system(name: str | Path) -> Environment:
    """The system called `name`: a known name, `path/to/file.py:Class`, or an MJCF file `path/to/scene.xml` for a tabletop.

    The class may be left out if there is only one.
    """
    if not isinstance(name, str | Path):
        raise InvalidInput(f"The system is {shown(name)}: give its name, or path/to/file.py:Class, as text.")
    name = str(name)
    path, _, class_name = name.partition(":")
    if path.endswith(".py"):
        return _instance(class_from_file(Path(path), class_name, Environment), name)
    if name.endswith(".xml"):
        from hybridworld.physics.tabletop import Tabletop

        return Tabletop(scene=name)
    known = known_systems()
    if name not in known:
        choices = f"choose one of {', '.join(known)}, or give path/to/file.py:Class"
        raise InvalidInput(f"Unknown system '{name}': {choices}.{nearest(name, known)}")
    module, _, class_name = known[name].partition(":")
    try:
        return _instance(getattr(importlib.import_module(module), class_name), name)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(f"System '{name}' is registered as {known[name]}, which cannot be loaded: {error}.") from error


def module_from_file(path: Path) -> ModuleType:
    """What a user's file defines."""
    if not is_file(path):
        raise InvalidInput(f"There is no file {path}.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InvalidInput(f"{path} does not import: {raised(error)}.") from error
    return module


def class_from_file(path: Path, class_name: str, base: type) -> type:
    """The subclass of `base` that a user's file defines; its name may be left out if there is only one."""
    module = module_from_file(path)
    found = {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, base) and value.__module__ == module.__name__
    }
    if class_name and class_name not in found:
        present = f"it has {', '.join(found)}" if found else "it has none"
        raise InvalidInput(f"{path} has no {base.__name__} class '{class_name}': {present}.")
    if not class_name and len(found) != 1:
        raise InvalidInput(f"{path} has {len(found)} {base.__name__} classes: say which one with {path}:Class.")
    return found[class_name] if class_name else next(iter(found.values()))


def _instance(found: type, name: str) -> Environment:
    if not (inspect.isclass(found) and issubclass(found, Environment)):
        raise InvalidInput(f"System '{name}' is not a subclass of hybridworld.Environment.")
    missing = sorted(getattr(found, "__abstractmethods__", ()))
    if missing:
        raise InvalidInput(f"System '{name}' lacks {', '.join(missing)}: an Environment must define them.")
    try:
        system = found()
    except (Exception, SystemExit) as error:
        raise InvalidInput(f"System '{name}' cannot be created without arguments: {raised(error)}.") from error
    try:
        spec = system.spec
    except (Exception, SystemExit) as error:
        raise CodeFailure(f"System '{name}': `spec` raised {raised(error)}.") from error
    if not isinstance(spec, StateSpec):
        raise CodeFailure(f"System '{name}': `spec` is {shown(spec)}, not a hybridworld.StateSpec.")
    return system
