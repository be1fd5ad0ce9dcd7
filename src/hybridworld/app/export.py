"""`hybridworld export`: a model for programs without torch."""

from pathlib import Path

from hybridworld.app.loading import load_model
from hybridworld.app.progress import stderr
from hybridworld.data.room import size_in_words
from hybridworld.deploy.export import check_installed, export_onnx
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment


def export_model(model: str, onnx: Path | None, environment: Environment | None, backbone: str | None) -> None:
    """Write the file, check it, and say how well it agrees."""
    if onnx is None:
        raise InvalidInput(f"Say what to write: hybridworld export {model} --onnx FILE.onnx.")
    check_installed()
    with stderr.status("exporting"):
        off = export_onnx(load_model(model, backbone, environment), onnx, environment)
    size = size_in_words(onnx.stat().st_size)
    print(f"{onnx}  {size}; ONNX Runtime and torch differ by at most {off:.2g} deviations of the training data")
