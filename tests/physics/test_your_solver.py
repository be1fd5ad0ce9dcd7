"""docs/your-solver.md shows the files of docs/examples/burgers, and these solve Burgers' equation in every language."""

import importlib.util
import re
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import hybridworld as hw
from hybridworld.physics import check

DOCS = Path(__file__).parents[2] / "docs"
COMPILERS = {"Burgers": None, "BurgersC": "gcc", "BurgersCpp": "g++", "BurgersFortran": "gfortran", "BurgersJax": None}
FENCES = {"burgers.py": "python", "burgers.c": "c", "burgers.cpp": "cpp", "burgers.f90": "fortran"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The example in a folder of its own, where it may compile."""
    copy = tmp_path_factory.mktemp("solver") / "burgers"
    shutil.copytree(DOCS / "examples" / "burgers", copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return copy


@pytest.fixture(params=COMPILERS)
def system(request, folder):
    compiler = COMPILERS[request.param]
    if compiler and not shutil.which(compiler):
        pytest.skip(f"needs {compiler}, which is not installed")
    if request.param == "BurgersJax" and not importlib.util.find_spec("jax"):
        pytest.skip("needs jax, which is not installed")
    return hw.system(f"{folder}/burgers.py:{request.param}")


def starts(system, count):
    return system.initials("test", range(count))


@pytest.mark.parametrize("name", FENCES)
def test_the_page_shows_the_file_that_runs(name):
    file = (DOCS / "examples" / "burgers" / name).read_text()
    assert f'```{FENCES[name]} title="{name}"\n{file}```' in (DOCS / "your-solver.md").read_text()


def test_the_page_states_the_tolerances_of_check():
    rows = (DOCS / "your-solver.md").read_text().split("## The tolerances")[1]
    found = re.findall(r"\| (\d[\d.e-]*) \|", rows)
    assert [float(each) for each in found] == [check.SAME, check.SAME, check.TWIN, check.SYMMETRIC]
    assert f"{sum(check.FRAMES)} frames, and {check.FRAMES[0]} frames followed by {check.FRAMES[1]}" in rows


def test_it_passes_the_check(system):
    assert hw.check_environment(system) == []


def test_it_agrees_with_the_numpy_form_on_every_grid(system):
    for form in (system, system.coarsened(4)):
        states, params = starts(form, 3)
        expected = form.advance_numpy(states, 32, params)
        np.testing.assert_allclose(form.solve(states.astype(np.float32), 32, params), expected, atol=1e-5)
        np.testing.assert_allclose(form.solve(states, 32, params), expected, rtol=1e-11, atol=1e-13)


def test_a_smooth_wave_follows_its_characteristics(system):
    """Without viscosity and before the shock, u(x + u0(x) t, t) = u0(x)."""
    fine = system.resized((2048,))
    x, frames = fine.spec.centres()[0], 10
    start = 1 + 0.2 * np.sin(2 * np.pi * x)
    arrived = x + start * frames * fine.frame_step
    exact = np.interp(x, np.concatenate([arrived - 1, arrived, arrived + 1]), np.tile(start, 3))
    assert np.abs(fine.solve(start[None], frames, [0.0])[0] - exact).max() < 2e-3


def test_what_it_cannot_do_is_a_sentence(system):
    states, params = starts(system, 2)
    said = r"(?i)^burgers: (a frame needs 1\.\d+e\+06 steps|the solver left finite numbers).*\.$"
    with pytest.raises(hw.SolverFailure, match=said):
        system.solve(1e6 * states, 1, params)


@pytest.mark.parametrize("name", ["BurgersC", "BurgersCpp", "BurgersFortran"])
def test_other_threads_go_on_while_it_solves(name, folder):
    if not shutil.which(COMPILERS[name]):
        pytest.skip(f"needs {COMPILERS[name]}, which is not installed")
    system = hw.system(f"{folder}/burgers.py:{name}")
    states, params = starts(system, 1)
    system.advance(states, 1, params)
    solving = threading.Thread(target=system.advance, args=(states, 300_000, params))
    solving.start()
    turns = 0
    while solving.is_alive():
        time.sleep(0.001)
        turns += 1
    assert turns > 20  # one or two where the call keeps the lock
