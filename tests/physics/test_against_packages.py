"""The reference solvers against packages nobody here wrote, at the rate the resolution allows.

Differences are mean absolute ones, as a share of how far the package's solution has moved from the initial state: 1 would be
no better than standing still. A wrong term, constant or axis leaves a difference that refinement does not remove, which shows
both in the fitted order and in the bound on the finest one.
"""

import numpy as np
import pytest

from hybridworld.physics.euler2d import QUADRANTS, Euler2D
from hybridworld.physics.grids import coarsen
from hybridworld.physics.oregonator import Oregonator
from tests.physics.convergence import fitted_order

pytestmark = pytest.mark.slow


def test_oregonator_approaches_py_pde_at_first_order_in_the_frame_step():
    pde = pytest.importorskip("pde")
    eps, f, end = 0.08, 1.5, 1.0  # eps large enough for one root of the implicit reaction step
    env = Oregonator(grid=(144, 48))  # dx != dy, and two diffusion substeps in the longest frame
    x, y = np.meshgrid(*env.spec.centres(), indexing="ij")
    u = 0.9 * np.exp(-(((x - 40) / 12) ** 2) - ((y - 55) / 8) ** 2)
    v = 0.05 * (1 + np.sin(2 * np.pi * x / 100))  # the front is slower where v is large
    start = np.stack([u, v])

    # py-pde's Laplacian is the same five-point one on the same cell centres, so what differs is the error in time.
    cells = pde.CartesianGrid([[0, 100], [0, 100]], env.grid, periodic=True)
    equations = pde.PDE({"u": f"laplace(u) + (u * (1 - u) - {f} * v * (u - 0.002) / (u + 0.002)) / {eps}", "v": "u - v"})
    fields = pde.FieldCollection([pde.ScalarField(cells, each) for each in start])
    expected = equations.solve(fields, end, solver="scipy", rtol=1e-6, atol=1e-8, backend="numpy", tracker=None).data
    moved = abs(expected - start).mean(axis=(1, 2))

    frames = np.array([20, 40, 80, 160, 320, 640])
    answers = [Oregonator(env.grid, frame_step=end / n).solve(start, n, np.array([eps, f])) for n in frames]
    answers.append(2 * answers[-1] - answers[-2])  # without the error of first order
    u_difference, v_difference = np.transpose([abs(each - expected).mean(axis=(1, 2)) / moved for each in answers])
    assert 0.97 < fitted_order(end / frames, u_difference[:-1]) < 1.07
    assert 0.95 < fitted_order(end / frames, v_difference[:-1]) < 1.05
    assert max(u_difference[-2], v_difference[-2]) < 0.0035
    assert max(u_difference[-1], v_difference[-1]) < 0.0001


def pyro_quadrants(case):
    """Initial states as parameters of pyro, which numbers the quadrants as mathematicians do: 1 top right, 2 top left ..."""
    return {
        f"quadrant.{name}{number}": float(value)
        for number, state in enumerate(QUADRANTS[case], start=1)
        for name, value in zip(("rho", "u", "v", "p"), state, strict=True)
    }


def test_sr3_has_the_states_pyro_has():
    known = pytest.importorskip("pyro.compressible.problems.quad").PROBLEM_PARAMS
    ours = pyro_quadrants("SR3")
    assert ours == pytest.approx({name: known[name] for name in ours}, abs=1e-4)  # pyro has them with more digits


@pytest.mark.parametrize(
    ("case", "least_order", "bound"),
    [
        ("SR3", 1.0, 0.027),  # shocks, symmetric about the diagonal but for the walls
        ("SR6", 0.5, 0.15),  # contacts, which a first-order scheme smears over sqrt(cells), and no symmetry
    ],
)
def test_euler2d_approaches_pyro(case, least_order, bound, tmp_path, monkeypatch):
    pyro = pytest.importorskip("pyro.pyro_sim")
    wall_x, wall_y, end, finest = 0.375, 0.875, 0.1, 256  # walls off the diagonal, and so high that waves leave at the top

    monkeypatch.chdir(tmp_path)  # pyro writes its parameters to the working directory
    monkeypatch.setattr(pyro.plt, "ion", lambda: None)  # and would leave interactive plots on
    theirs = pyro.Pyro("compressible")  # second order (corner transport upwind, HLLC); gamma is 1.4 unless told
    setting = {"quadrant.cx": wall_x, "quadrant.cy": wall_y, "mesh.nx": finest, "mesh.ny": finest, "driver.tmax": end}
    theirs.initialize_problem("quad", inputs_dict=pyro_quadrants(case) | setting)  # outflow on all sides
    theirs.run_sim()
    assert theirs.sim.cc_data.t == pytest.approx(end)
    names = "density", "x-momentum", "y-momentum", "energy"
    expected = np.stack([theirs.get_var(name).v() for name in names])

    grids, differences = np.array([64, 128, 256, 512]), []
    for cells in grids:
        env = Euler2D(grid=(cells, cells))
        start = env.quadrants(case, wall_x, wall_y)
        answer = env.solve(start, round(end / env.frame_step))
        common = min(cells, finest)
        start, answer = coarsen(env.spec, np.stack([start, answer]), cells // common)
        target = coarsen(env.spec, expected, finest // common)
        differences.append(abs(answer - target).mean() / abs(start - target).mean())
    assert fitted_order(1 / grids, differences) > least_order
    assert differences[-1] < bound
