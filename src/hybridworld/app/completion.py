"""What a shell offers when the Tab key is pressed (`hybridworld --install-completion`). Nothing heavy is imported here."""

from pathlib import Path

import hybridworld
from hybridworld.physics.spec import SPLITS

MODELS = Path(hybridworld.__file__).parent / "deploy" / "models"


def systems(incomplete: str) -> list[str]:
    """The known systems, and the files that may define one, that begin so."""
    from hybridworld.physics.registry import known_systems

    files = [str(path) for pattern in ("*.py", "*.xml") for path in Path().glob(pattern)]
    return [name for name in (*known_systems(), *files) if name.startswith(incomplete)]


def models(incomplete: str) -> list[str]:
    """The models that ship, and the bundles of this folder, that begin so."""
    shipped = sorted(path.stem for path in MODELS.glob("*.safetensors"))
    own = sorted(str(path) for pattern in ("*.safetensors", "runs/*/model.safetensors") for path in Path().glob(pattern))
    return [name for name in (*shipped, *own) if name.startswith(incomplete)]


def engines(incomplete: str) -> list[str]:
    """The engines that begin so; written out here, since surrogate/engines/registry.py has heavy imports."""
    known = ("auto", "eager", "numba", "openvino", "openvino-bf16", "onnxruntime", "eager-bf16", "compiled")
    return [name for name in known if name.startswith(incomplete)]


def splits(incomplete: str) -> list[str]:
    """The splits that begin so."""
    return [name for name in SPLITS if name.startswith(incomplete)]
