"""What a wheel and a container need; `make wheel-check` builds and installs one."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import typer.main

from hybridworld.app.cli import app
from hybridworld.deploy.load import shipped
from hybridworld.surrogate.engines.trial import PATIENCE

ROOT = Path(__file__).parents[2]


def test_every_file_of_the_package_is_named_in_pyproject():
    told = subprocess.run(["git", "ls-files", "src/hybridworld"], cwd=ROOT, capture_output=True, text=True)
    if told.returncode:
        pytest.skip("not a checkout")
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["hybridworld"]
    package = Path("src/hybridworld")
    other = [Path(name).relative_to(package) for name in told.stdout.split() if not name.endswith(".py")]
    assert other and not [str(path) for path in other if not any(path.match(each) for each in data)]


def test_every_package_of_an_extra_has_a_pinned_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]
    names = {re.match(r"[\w-]+", each)[0].lower().replace("_", "-") for each in wanted} - {"hybrid-world-models"}
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert not names - pinned


def test_the_container_starts_the_server_as_nobody_special():
    lines = (ROOT / "Containerfile").read_text().splitlines()
    user = next(line.split()[1] for line in lines if line.startswith("USER "))
    assert user not in ("root", "0")
    program, command, *options = json.loads(next(line for line in lines if line.startswith("ENTRYPOINT")).partition(" ")[2])
    assert (program, command) == ("hybridworld", "serve")
    known = {name for parameter in typer.main.get_command(app).commands["serve"].params for name in
             (*parameter.opts, *parameter.secondary_opts)}  # fmt: skip
    assert {option for option in options if option.startswith("--")} <= known
    assert lines.index(f"USER {user}") < next(number for number, line in enumerate(lines) if line.startswith("ENTRYPOINT"))
    for source in re.findall(r"(?m)^COPY (.*) \S+$", "\n".join(lines)):
        assert all((ROOT / name).exists() for name in source.split())


def test_the_container_has_used_every_model_that_it_can_run():
    text = (ROOT / "Containerfile").read_text()
    assert "'.[serve]'" in text  # and not `robotics`
    assert {*re.search(r"for model in (.*?); do ", text)[1].split()} == {*shipped()} - {"tabletop"}


def test_the_container_may_try_engines_for_as_long_as_that_takes():
    text = (ROOT / "Containerfile").read_text()
    assert 60 * int(re.search(r"--start-period=(\d+)m", text)[1]) >= PATIENCE
