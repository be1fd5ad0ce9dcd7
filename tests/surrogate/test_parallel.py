"""Two processes that share each batch train what one process trains."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from hybridworld.errors import InvalidInput
from hybridworld.surrogate.parallel import Team, team
from hybridworld.surrogate.train import METRICS, MODEL, Task, Watch
from hybridworld.surrogate.train import run as run_loop
from tests.surrogate import together
from tests.surrogate.flows import OSCILLATOR, Oscillator, table, tiny


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """What one process and two have made."""
    root = tmp_path_factory.mktemp("parallel")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path]), "OMP_NUM_THREADS": "1"}
    two = subprocess.Popen(
        [*command, together.__file__, root / "two"], env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        together.run(root / "one")
        out, err = two.communicate(timeout=120)
    finally:
        two.terminate()  # it ends its workers, should they hang
    assert two.returncode == 0, out + err
    return root


@pytest.mark.parametrize("name", ["mlp", "solver"])
def test_two_processes_train_the_weights_of_one(name, folders):
    one, two = (load_file(folders / count / name / MODEL) for count in ("one", "two"))
    assert one.keys() == two.keys()
    for key, values in one.items():
        assert (values - two[key]).abs().max() <= 1e-5 * values.abs().max(), key


def test_the_same_holds_on_a_grid(folders):
    """Some of its biases matter to nobody: GroupNorm takes them out again. So Adam makes steps out of rounding errors there."""
    one, two = (load_file(folders / count / "unet" / MODEL) for count in ("one", "two"))
    apart = sum((one[key] - two[key]).square().sum() for key in one)
    assert apart.sqrt() < 2e-3 * sum(values.square().sum() for values in one.values()).sqrt()


@pytest.mark.parametrize("name", together.CASES)
def test_the_leader_notes_once_what_one_process_would_note(name, folders):
    one, two = (
        [json.loads(line) for line in (folders / count / name / METRICS).read_text().splitlines()] for count in ("one", "two")
    )
    assert [record["epoch"] for record in two] == [1, 2, 3]
    for a, b in zip(one, two, strict=True):
        assert a["mse"] == pytest.approx(b["mse"], rel=1e-4) and a["step"] == b["step"]
    assert sorted(path.name for path in (folders / "one" / name).iterdir()) == sorted(
        path.name for path in (folders / "two" / name).iterdir()
    )


def test_they_did_train(folders):
    for name in together.CASES:
        first, *_, last = (json.loads(line)["mse"] for line in (folders / "two" / name / METRICS).read_text().splitlines())
        assert last < first


@pytest.mark.parametrize(("batch", "world"), [(9, 2), (8, 3), (1, 2)])
def test_a_batch_that_cannot_be_shared_evenly_is_refused(batch, world, tmp_path):
    source = table(Oscillator(), count=4)
    task = Task(tiny(OSCILLATOR, f"training.batch={batch}"), source, source)
    with pytest.raises(InvalidInput, match=rf"^training.batch is {batch}: {world} processes cannot share it evenly\.$"):
        run_loop(task, tmp_path, Watch(), Team(0, world, torch.device("cpu")))


def test_without_torchrun_one_is_a_team_and_leads(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    us = team()
    assert us.leads and us.world == 1 and us.agree(True) and not us.agree(False)
    net = torch.nn.Linear(1, 1)
    assert us.share(net) is net
