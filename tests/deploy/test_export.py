"""A model as an ONNX file: it answers as the model does, and modes 1 and 2 need no torch."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import hybridworld as hw
from hybridworld.data.evidence import Recorded
from hybridworld.deploy import export
from hybridworld.deploy.export import OFF, export_onnx
from hybridworld.deploy.load import assemble
from hybridworld.errors import HybridWorldError, InvalidInput
from hybridworld.surrogate.bundle import Bundle
from hybridworld.surrogate.engines.in_onnxruntime import ONNXRUNTIME
from hybridworld.surrogate.wrapped import Wrapped
from hybridworld.trust.calibrate import calibrate
from hybridworld.trust.step_doubling import StepDoubling
from tests.app.commands import run
from tests.surrogate.flows import surrogate, table, tiny

pytestmark = pytest.mark.skipif(bool(ONNXRUNTIME.missing), reason="the extra `engines` is not installed")
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SYSTEM = hw.system("euler2d").resized((16, 16))
GUIDED = ("surrogate.backbone=leap", "surrogate.guide=true", "surrogate.patch=4", "surrogate.variables=physical")
ASK = """
import json, sys
import numpy as np
sys.path.insert(0, sys.argv[2])
from onnx_modes import OnnxModel
import hybridworld as hw
model = OnnxModel(sys.argv[1], hw.system("euler2d").resized((16, 16)))
samples = [model.system.initial("test", number) for number in range(6)]
states, params = np.stack([each.state for each in samples]), np.stack([each.params for each in samples])
alone = model.mode1(states, 7, params)
answers, deferred, scores = model.mode2(states, 7, params, 0.5)
assert "torch" not in sys.modules
told = {"alone": alone, "answers": answers, "deferred": deferred, "scores": scores}
print(json.dumps({name: values.tolist() for name, values in told.items()}))
"""


@pytest.fixture(scope="module")
def guided():
    """A guided network that nobody trained, calibrated."""
    torch.manual_seed(0)
    net = surrogate(SYSTEM.spec, *GUIDED)
    for weights in net.backbone.last.parameters():
        weights.data *= 0.1
    net.attach_guide(SYSTEM)
    arrays = calibrate(net, StepDoubling(net, net.std), Recorded(table(SYSTEM, "val", 12)), (1, 4, 8), 12)
    return Bundle(net, tiny(SYSTEM.spec, *GUIDED), arrays=arrays, reference=SYSTEM.identity)


@pytest.fixture(scope="module")
def file(guided, tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "guided.onnx"
    assert export_onnx(guided, path, SYSTEM) <= OFF  # the round trip
    return path


def test_the_guides_answer_is_an_input_and_rows_are_free(file):
    import onnx

    model = onnx.load(file)
    shapes = {
        each.name: [part.dim_param or part.dim_value for part in each.type.tensor_type.shape.dim]
        for each in (*model.graph.input, *model.graph.output)
    }
    assert list(shapes) == ["states", "horizons", "then", "state"]
    assert shapes["then"][1:] == [4, 4, 4] and shapes["state"][1:] == [4, 16, 16]
    assert all(isinstance(shape[0], str) for shape in shapes.values())


def test_both_modes_run_without_torch_and_answer_as_the_model(guided, file):
    command = [sys.executable, "-c", ASK, str(file), str(EXAMPLES)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    told = {name: np.array(values) for name, values in json.loads(result.stdout).items()}
    model, samples = assemble(guided, SYSTEM), [SYSTEM.initial("test", number) for number in range(6)]
    states, params = np.stack([each.state for each in samples]), np.stack([each.params for each in samples])
    assert np.allclose(told["alone"], model.predict(states, 7, params, mode=1).state, rtol=1e-4, atol=1e-4)
    forecast = model.predict(states, 7, params, q=0.5)
    assert np.allclose(told["scores"], forecast.score, rtol=1e-3) and 0 < forecast.used_solver.sum() < 6
    assert (told["deferred"] == forecast.used_solver).all()
    assert np.allclose(told["answers"], forecast.state, rtol=1e-4, atol=1e-4)


def test_a_file_that_answers_otherwise_is_not_written(guided, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "exported", lambda net, inputs: None)
    monkeypatch.setattr(export, "write_onnx", lambda program, folder: None)
    monkeypatch.setattr("onnx.load", lambda path: __import__("onnx").ModelProto())
    monkeypatch.setattr(export, "rename", lambda model, names: None)
    monkeypatch.setattr(export, "difference", lambda *arguments: float("nan"))
    with pytest.raises(HybridWorldError, match="answers differently"):
        export_onnx(guided, tmp_path / "wrong.onnx", SYSTEM)
    assert not (tmp_path / "wrong.onnx").exists()


def test_what_cannot_be_exported_is_told(tmp_path):
    code, _, said = run("export", "ball3d")
    assert code == 1 and "--onnx FILE.onnx" in said
    with pytest.raises(InvalidInput, match="wrapped model"):
        export_onnx(Bundle(object.__new__(Wrapped), tiny(SYSTEM.spec)), tmp_path / "x.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["ball3d", "euler2d"])
def test_what_ships_can_be_exported_by_command(model, tmp_path):
    path = tmp_path / f"{model}.onnx"
    code, out, said = run("export", model, "--onnx", path)
    assert code == 0 and "differ by at most" in out, said
    command = [sys.executable, EXAMPLES / "onnx_modes.py", path, "--horizon", "4", "--count", "2"]
    assert "by the" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
