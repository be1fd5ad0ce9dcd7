"""Every engine beside eager torch, which needs none. One line per engine."""

from pathlib import Path

from hybridworld.errors import InvalidInput, nearest
from hybridworld.physics.arguments import checked_text
from hybridworld.physics.registry import module_from_file
from hybridworld.surrogate.engines import in_numba, in_onnxruntime, in_openvino, in_torch
from hybridworld.surrogate.engines.engine import Engine

EAGER, AUTO = "eager", "auto"
EVERY = (
    in_numba.NUMBA,
    in_openvino.OPENVINO,
    in_openvino.BFLOAT16,
    in_onnxruntime.ONNXRUNTIME,
    in_torch.BFLOAT16,
    in_torch.COMPILED,
)
ENGINES = {engine.name: engine for engine in EVERY}


def installed(quick: bool = False) -> list[str]:
    """The engines that can be tried here, or those of them that are written in seconds."""
    return [name for name, engine in ENGINES.items() if not engine.missing and (engine.quick or not quick)]


def find_engine(name: str) -> Engine:
    """The engine of that name, or a user's own: the Engine that `path/to/file.py:NAME` holds."""
    path, _, own = checked_text("The engine", name).partition(":")
    found = getattr(module_from_file(Path(path)), own, None) if path.endswith(".py") else ENGINES.get(name)
    if not isinstance(found, Engine):
        choices = (AUTO, EAGER, *ENGINES)
        raise InvalidInput(
            f"There is no engine '{name}': choose {', '.join(choices)}, or give path/to/file.py:NAME.{nearest(name, choices)}"
        )
    if found.missing:
        raise InvalidInput(
            f"The engine {name} needs more packages ({', '.join(found.missing)}): pip install 'hybrid-world-models[engines]'."
        )
    return found
