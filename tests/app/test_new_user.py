"""A new user, with the docs alone: every kind of thing of one's own goes to a mode 2 forecast, by command and in Python."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hybridworld as hw
from hybridworld.surrogate.budget import Division
from hybridworld.training import schedule
from tests.app.commands import command, predict

DOCS = Path(__file__).parents[2] / "docs"
MINUTES = 2
OWN = {
    "an ODE": ("pendulum.py:Pendulum", None),
    "a PDE in NumPy": ("burgers.py:Burgers", None),
    "a solver in C": ("burgers.py:BurgersC", None),
    "a network": ("burgers.py:BurgersC", "my_network.py:Net"),
}
"""What is one's own -> the system, and the network."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the pages say to copy, and nothing else."""
    place = tmp_path_factory.mktemp("new_user")
    for file in ("pendulum.py", "my_network.py", "my_model.py", "burgers/burgers.py", "burgers/burgers.c"):
        shutil.copy(DOCS / "examples" / file, place)
    return place


@pytest.fixture
def any_machine(monkeypatch):
    """The same short training wherever it runs: the budget is not measured."""
    monkeypatch.setattr(schedule, "TIMED_SHARE", 0.0)
    monkeypatch.setattr(schedule, "divide", lambda *given: Division(32, 2, 4, 24, 0.2, 0.2))
    monkeypatch.setattr(schedule, "samples_within", lambda *given: 256)


@pytest.mark.parametrize("own", OWN)
def test_a_system_or_network_of_ones_own_reaches_mode_2(own, folder, any_machine, monkeypatch):
    """docs/adding-a-system.md, your-solver.md, your-network.md: check, simulate, train, predict; then hw.train and predict."""
    system, network = OWN[own]
    if system.endswith("BurgersC") and not shutil.which("gcc"):
        pytest.skip("needs gcc, which is not installed")
    monkeypatch.chdir(folder)
    run = Path("runs") / own.replace(" ", "-")
    chosen, code = (("--set", f"surrogate.backbone={network}"), ("--backbone", network)) if network else ((), ())
    assert "nothing to mend" in command("check", system)
    assert Path(command("simulate", system, "--out", run).split()[-1]).exists()
    assert "Worth it?" in command("train", system, "--minutes", MINUTES, *chosen, "--out", run)
    asked = ("--horizon", 32, "--count", 8, "--check", "--out", run)
    told = predict(run / "model.safetensors", "--system", system, *code, *asked)
    assert told["mode"] == 2 and told["threshold"] > 0 and len(told["trajectories"]) == 8
    assert all(row["error"] == 0 for row in told["trajectories"] if row["used_solver"])

    environment, settings = hw.system(system), {"surrogate.backbone": network} if network else None
    assert hw.check_environment(environment) == []
    model = hw.train(environment, minutes=MINUTES, settings=settings, out=run)  # that training has ended: it is loaded
    start = environment.initial("test", seed=0)
    forecast = model.predict(start.state, 32, start.params)
    assert bool(forecast.used_solver) == told["trajectories"][0]["used_solver"]
    assert forecast.score == pytest.approx(told["trajectories"][0]["score"], rel=1e-3)
    assert forecast.plot()._repr_png_().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_trained_model_of_ones_own_reaches_mode_2(folder, monkeypatch):
    """docs/your-model.md: the file is run, then the commands."""
    monkeypatch.chdir(folder)
    subprocess.run([sys.executable, "my_model.py"], check=True)
    own = ("--backbone", "my_model.py:load")
    command("calibrate", "--model", "my_model.py:load", "--system", "ball3d", "--horizons", "1-32", "--count", 400)
    told = predict("my_model.safetensors", *own, "--horizon", 32, "--tolerance", 0.5, "--check")
    assert told["mode"] == 2 and all(row["error_bound"] <= 0.5 for row in told["trajectories"])
    worth = command("bench", "worth", "ball3d", "--model", "my_model.safetensors", *own, "--horizon", 32, "--count", 16)
    assert "at its error" in worth or "no better than" in worth
    assert "above it, of all" in command("bench", "tolerance", "my_model.safetensors", *own, "--count", 100)

    model = hw.load("my_model.safetensors", backbone="my_model.py:load")
    start = hw.system("ball3d").initial("test", seed=0)
    forecast = model.predict(start.state, 32, start.params, tolerance=0.5)
    assert bool(forecast.used_solver) == told["trajectories"][0]["used_solver"]
