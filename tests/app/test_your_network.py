"""docs/your-network.md shows docs/examples/my_network.py, and that network is trained and asked as the page says."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import hybridworld as hw
from hybridworld.physics.registry import module_from_file
from hybridworld.training.recipe import Request, recipe_for
from tests.app.commands import command, predict, train
from tests.surrogate import flows

DOCS = Path(__file__).parents[2] / "docs"
FILE = DOCS / "examples" / "my_network.py"
SYSTEM, CODE = f"{flows.__file__}:Drift", f"{FILE}:Net"
SHORT = (
    "training.epochs=1", "training.samples=8", "training.batch=4", "training.validation=2", "training.calibration=12",
    "training.horizons=1,2,4", "surrogate.width=4", f"surrogate.backbone={CODE}",
)  # fmt: skip


def test_the_page_shows_the_file_that_runs():
    assert f'```python title="my_network.py"\n{FILE.read_text()}```' in (DOCS / "your-network.md").read_text()


@pytest.mark.parametrize("boundaries", [("periodic",), ("open", "wall"), ("periodic", "open", "wall")])
def test_it_keeps_shapes_and_sees_its_condition(boundaries):
    torch.manual_seed(0)
    net = module_from_file(FILE).Net(2, boundaries, 5, width=4)
    x, condition = torch.randn(3, 2, *[16] * len(boundaries)), torch.randn(3, 5)
    answer = net(x, condition)
    assert answer.shape == x.shape and not torch.allclose(answer, net(x, 2 * condition))
    torch.testing.assert_close(answer[:1], net(x[:1], condition[:1]))


def test_it_goes_from_training_to_mode_2(tmp_path):
    code, _, err = train(SYSTEM, "--stream", "--out", tmp_path / "run", wishes=SHORT)
    assert code == 0, err
    saved, own = tmp_path / "run" / "model.safetensors", ("--backbone", CODE)
    told = predict(saved, *own, "--system", SYSTEM, "--horizon", 4, "--count", 4, "--check", "--out", tmp_path)
    assert told["mode"] == 2 and len(told["trajectories"]) == 4
    system = hw.system(SYSTEM)
    model, start = hw.load(saved, solver=system, backbone=CODE), system.initial("test", 0)
    assert bool(model.predict(start.state, 4, start.params).used_solver) == told["trajectories"][0]["used_solver"]
    with pytest.raises(hw.InvalidInput, match="--backbone"):
        command("predict", saved, "--system", SYSTEM, "--horizon", 4, "--out", tmp_path)


def test_with_a_budget_its_preset_has_no_guide():
    """Without a network of one's own it would be `guided` there."""
    own = Request(flows.Drift(), minutes=1.0, wishes=[f"surrogate.backbone={CODE}"])
    assert recipe_for(own).preset == "laptop" and recipe_for(replace(own, wishes=[])).preset == "guided"
