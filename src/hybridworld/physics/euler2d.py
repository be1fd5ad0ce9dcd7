"""Euler 2D: inviscid compressible flow in the unit square with open boundaries.

    d/dt (rho, rho u, rho v, E) + d/dx (rho u, rho u^2 + p, rho u v, (E + p) u)
                                + d/dy (rho v, rho u v, rho v^2 + p, (E + p) v) = 0
    p = (gamma - 1) (E - rho (u^2 + v^2) / 2),   a = sqrt(gamma p / rho),   gamma = 1.4

Shocks, contacts and rarefactions from two kinds of initial states: Schulz-Rinne quadrants (four constant states that meet at
a point, cases SR3, SR4, SR6 and SR12) and a Sedov blast (energy in a small disk). The walls between the quadrants are moved
by a different amount in each trajectory, in fractions of a cell (a cell cut by a wall holds its average), so that no
trajectory occurs twice. The dynamics have no parameter: all that is drawn shapes the initial state.

Scheme: unsplit first-order finite volumes with HLL fluxes,

    wave fan at a face      s = min(u_l - a_l, u_r - a_r),  S = max(u_l + a_l, u_r + a_r)

          s  \\    q*   /  S            F = F_l                                                 if 0 <= s
       q_l     \\     /     q_r         F = (S F_l - s F_r + s S (q_r - q_l)) / (S - s)          if s < 0 < S
                 \\ /                   F = F_r                                                 if S <= 0

    (the three cases are one formula once s is cut at 0 from above and S from below), zero-gradient boundaries, and
    dt = CFL / (max(|u| + a) / dx + max(|v| + a) / dy) with CFL = 0.4; the last substep of a frame is cut to land on it.

With `order=2`, MUSCL-Hancock: the same fluxes between states that are linear in each cell, half a step later (`faces_of`).
The published reference is of first order; this one is the rival that it has to be compared with.
"""

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import describe_cell
from hybridworld.physics.brushes import Brush, Setting, near, radius_setting
from hybridworld.physics.environment import Environment, Sample, record_with
from hybridworld.physics.spec import Axis, Field, Parameter, StateSpec
from hybridworld.physics.symmetry import Symmetry, square_symmetries
from hybridworld.physics.threads import over_trajectories

GAMMA = 1.4
AMBIENT_PRESSURE = 1e-5
LARGEST_CFL = 0.8
FLOOR = 0.05

QUADRANTS = {  # (rho, u, v, p) top-right, top-left, bottom-left, bottom-right
    "SR3": ((1.5, 0, 0, 1.5), (0.5323, 1.206, 0, 0.3), (0.138, 1.206, 1.206, 0.029), (0.5323, 0, 1.206, 0.3)),
    "SR4": ((1.1, 0, 0, 1.1), (0.5065, 0.8939, 0, 0.35), (1.1, 0.8939, 0.8939, 1.1), (0.5065, 0, 0.8939, 0.35)),
    "SR6": ((1, 0.75, -0.5, 1), (2, 0.75, 0.5, 1), (1, -0.75, 0.5, 1), (3, -0.75, -0.5, 1)),
    "SR12": ((0.5313, 0, 0, 0.4), (1, 0.7276, 0, 1), (0.8, 0, 0, 1), (1, 0, 0.7276, 1)),
}
KINDS = {
    "id": {"SR3": 1 / 7, "SR4": 1 / 7, "SR6": 1 / 7, "SR12": 1 / 7, "sedov": 3 / 7},
    "ood-near": {"sedov": 1.0},
    "ood-far": {"SR3": 0.2, "SR4": 0.2, "sedov": 0.6},
}
BLAST_ENERGY = Parameter(
    name="blast_energy",
    unit="1",
    meaning="energy E0 of a Sedov blast",
    ranges={"id": ((0.5, 2.0),), "ood-near": ((0.3, 0.5), (2.0, 2.5)), "ood-far": ((0.1, 0.3), (2.5, 5.0))},
    allowed=(0.0, np.inf),
    role="start",
)
BACKGROUND_DENSITY = Parameter(
    name="background_density",
    unit="1",
    meaning="density around a Sedov blast",
    ranges={"id": ((0.8, 1.2),), "ood-near": ((0.6, 0.8), (1.2, 1.5)), "ood-far": ((0.4, 0.6), (1.5, 2.0))},
    allowed=(0.0, np.inf),
    role="start",
)
WALL_SHIFT = Parameter(
    name="wall_shift",
    unit="side",
    meaning="how far a wall between quadrants lies from the centre, per axis",
    ranges={"id": ((-0.02, 0.02),), "ood-far": ((-0.05, -0.02), (0.02, 0.05))},
    allowed=(-0.5, 0.5),
    role="start",
)


def conserved_from_primitive(rho, u, v, p):
    """(rho, rho u, rho v, E) from density, velocities and pressure."""
    return np.stack([rho, rho * u, rho * v, p / (GAMMA - 1) + 0.5 * rho * (u**2 + v**2)])


def primitive_from_conserved(q):
    """Velocities, pressure and sound speed of conserved states (4, ...)."""
    rho, mx, my, energy = q
    u, v = mx / rho, my / rho
    p = (GAMMA - 1) * (energy - 0.5 * (mx * u + my * v))
    return u, v, p, np.sqrt(GAMMA * p / rho)


def hll_flux(left, right, axis):
    """HLL flux along an axis through the faces between cells `left` and `right`, both (4, ...)."""

    def flux(q, normal, p):
        f = q * normal
        f[1 + axis] += p
        f[3] += p * normal
        return f

    *velocity_l, p_l, a_l = primitive_from_conserved(left)
    *velocity_r, p_r, a_r = primitive_from_conserved(right)
    n_l, n_r = velocity_l[axis], velocity_r[axis]
    slow = np.minimum(np.minimum(n_l - a_l, n_r - a_r), 0)
    fast = np.maximum(np.maximum(n_l + a_l, n_r + a_r), 0)
    middle = fast * flux(left, n_l, p_l) - slow * flux(right, n_r, p_r) + slow * fast * (right - left)
    return middle / (fast - slow)


def limited(before, after):
    """The MC limiter: the mean of two differences, at most twice the smaller one; 0 where their signs differ."""
    size = np.minimum(2 * np.minimum(abs(before), abs(after)), abs(before + after) / 2)
    return np.where(before * after > 0, np.sign(after) * size, 0)


def faces_of(q, kx, ky):
    """Conserved states at the faces x-, x+, y-, y+ of cells (4, nx, ny), half a step later; kx = dt / dx, ky = dt / dy.

    In the primitive variables w = (rho, u, v, p), with limited slopes w_x and w_y per cell,
        w(face) = w - (kx A w_x + ky B w_y) / 2 -+ w_x / 2   (or w_y),       A, B from the equations in primitive form.
    A cell with a face below FLOOR times its own density or pressure takes its average for all of its faces.
    """
    u, v, p, _ = primitive_from_conserved(q)
    w = rho, u, v, p = np.stack([q[0], u, v, p])
    wide = np.pad(w, ((0, 0), (1, 1), (1, 1)), mode="edge")
    w_x = rho_x, u_x, v_x, p_x = limited(w - wide[:, :-2, 1:-1], wide[:, 2:, 1:-1] - w)
    w_y = rho_y, u_y, v_y, p_y = limited(w - wide[:, 1:-1, :-2], wide[:, 1:-1, 2:] - w)
    along_x = np.stack([u * rho_x + rho * u_x, u * u_x + p_x / rho, u * v_x, u * p_x + GAMMA * p * u_x])
    along_y = np.stack([v * rho_y + rho * v_y, v * u_y, v * v_y + p_y / rho, v * p_y + GAMMA * p * v_y])
    later = w - (kx * along_x + ky * along_y) / 2
    lowest = later - np.maximum(abs(w_x), abs(w_y)) / 2
    safe = (lowest[0] > FLOOR * rho) & (lowest[3] > FLOOR * p)
    later, w_x, w_y = np.where(safe, later, w), np.where(safe, w_x, 0), np.where(safe, w_y, 0)
    return [conserved_from_primitive(*(later + side * slope / 2)) for slope in (w_x, w_y) for side in (-1, 1)]


@dataclass(frozen=True)
class Euler2D(Environment):
    """Compressible flow with shocks; see the module's docstring."""

    grid: tuple[int, ...] = (128, 128)
    dtype: str = "float64"
    frame_step: float = 0.002
    cfl: float = 0.4
    order: int = 1

    def __post_init__(self) -> None:
        if self.order not in (1, 2):
            raise InvalidInput(f"euler2d: the order is {self.order}; choose 1 or 2.")

    @property
    def spec(self) -> StateSpec:
        return StateSpec(
            name="euler2d",
            title="Euler 2D: compressible flow with shocks",
            fields=(Field("density", "1"), Field("momentum", "1", "vector"), Field("energy", "1")),
            axes=(Axis("x", 0.0, 1.0, "open"), Axis("y", 0.0, 1.0, "open")),
            grid=self.grid,
            frame_step=self.frame_step,
            time_unit="1",
            frames=100,
            draw="density",
            parameters=(BLAST_ENERGY, BACKGROUND_DENSITY, WALL_SHIFT),
            kinds=KINDS,
            gamma=GAMMA,
            counts={"train": 500, "val": 100, "test": 100, "ood-near": 150, "ood-far": 150},
        )

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return square_symmetries(swap=self.grid[0] == self.grid[1])

    @property
    def presets(self) -> dict[str, dict[str, dict[str, str]]]:
        guide = {"guide_scheme": "second order"} if self.order == 1 else {}  # 0.4 of the error for twice the time
        return {"guided": {"surrogate": guide}}

    def with_steps(self, factor: float) -> tuple[Environment, float] | None:
        if self.cfl / factor > LARGEST_CFL:
            return None
        return replace(self, frame_step=self.frame_step / factor, cfl=self.cfl / factor), factor  # a frame may be one substep

    def refined(self, factor: int) -> tuple[Environment, int]:
        return self.resized(tuple(factor * cells for cells in self.grid)), 1  # the CFL condition sets the step

    def variants(self) -> dict[str, Environment]:
        return {"second order": replace(self, order=2)} if self.order == 1 else {}

    def sample(self, rng: np.random.Generator, split: str) -> Sample:
        regime, kind = self.spec.regime(split), self.spec.draw_kind(rng, split)
        if kind == "sedov":
            energy, density = BLAST_ENERGY.draw(rng, regime), BACKGROUND_DENSITY.draw(rng, regime)
            centre = 0.5 + rng.uniform(-0.02, 0.02, size=2)
            origin = {"blast_energy": energy, "background_density": density, "centre_x": centre[0], "centre_y": centre[1]}
            state = self.blast(energy, density, centre)
        else:
            shift = WALL_SHIFT.draw(rng, regime), WALL_SHIFT.draw(rng, regime)
            origin = {"wall_x": 0.5 + shift[0], "wall_y": 0.5 + shift[1]}
            state = self.quadrants(kind, origin["wall_x"], origin["wall_y"])
        return Sample(state, np.zeros(0), {"kind": kind, **origin})

    def blast(self, energy: float, density: float, centre=(0.5, 0.5)) -> np.ndarray:
        """Gas at rest with `energy` spread evenly over the cells within two cell sizes of `centre`."""
        rest, ones = np.zeros(self.grid), np.ones(self.grid)
        state = conserved_from_primitive(density * ones, rest, rest, AMBIENT_PRESSURE * ones)
        return self._heated(state, np.array([centre]), energy)

    def _heated(self, state: np.ndarray, points: np.ndarray, energy: float) -> np.ndarray:
        """The state with `energy` spread evenly over the cells within two cell sizes of a point."""
        (x0, y0), (dx, dy) = points[0], self.spec.spacing
        x, y = np.meshgrid(*self.spec.centres(), indexing="ij")
        hot, heated = np.hypot(x - x0, y - y0) <= 2 * max(dx, dy), np.array(state)
        heated[3, hot] += energy / (hot.sum() * dx * dy)
        return heated

    def quadrants(self, case: str, wall_x: float = 0.5, wall_y: float = 0.5) -> np.ndarray:
        """Four constant states that meet at (wall_x, wall_y), as exact cell averages."""
        top_right, top_left, bottom_left, bottom_right = (
            conserved_from_primitive(*np.array(state, dtype=float))[:, None, None] for state in QUADRANTS[case]
        )
        left, below = (
            np.clip((wall - (centre - step / 2)) / step, 0, 1)  # share of the cell before the wall
            for wall, centre, step in zip((wall_x, wall_y), self.spec.centres(), self.spec.spacing, strict=True)
        )
        left, below = left[:, None], below[None, :]
        return (
            left * (below * bottom_left + (1 - below) * top_left)
            + (1 - left) * (below * bottom_right + (1 - below) * top_right)
        )  # fmt: skip

    def blank(self) -> np.ndarray:
        return self.blast(0.0, 1.0)

    @property
    def brushes(self) -> tuple[Brush, ...]:
        def cloud(state: np.ndarray, points: np.ndarray, density: float, radius: float) -> np.ndarray:
            u, v, p, _ = primitive_from_conserved(state)
            inside = near(self.spec, points, radius)
            return conserved_from_primitive(np.where(inside, density, state[0]), u, v, p)

        energy, density = Setting("energy", "1", 0.1, 5.0, 1.0), Setting("density", "1", 0.1, 3.0, 2.0)
        return (
            Brush("blast", "Set off a blast: energy in a small disk.", "point", self._heated, (energy,)),
            Brush("cloud", "Change the density along a line, at the same pressure.", "stroke", cloud,
                  (density, radius_setting(self.spec))),
            *(
                Brush(f"quadrants {case}", "Four constant states that meet at a point.", "point",
                      lambda state, points, case=case: self.quadrants(case, *points[0]))
                for case in QUADRANTS
            ),
        )  # fmt: skip

    def conserved(self, states: np.ndarray, params: np.ndarray) -> dict[str, np.ndarray]:
        """Totals over the domain, kept until a wave reaches its boundary."""
        totals = states.sum(axis=(-2, -1)) * np.prod(self.spec.spacing)
        return {"mass": totals[:, 0], "momentum": totals[:, 1:3], "energy": totals[:, 3]}

    def check_physical(self, states: np.ndarray) -> None:
        if (states[:, 0] <= 0).any():
            index = np.argwhere(states[:, 0] <= 0)[0]
            cell = describe_cell(self.spec, states, (int(index[0]), 0, *map(int, index[1:])))
            raise InvalidInput(f"euler2d: {cell}; density must be above 0.")
        with np.errstate(invalid="ignore"):
            pressure = primitive_from_conserved(states.swapaxes(0, 1).astype(np.float64))[2]
        if (pressure <= 0).any():
            row, *where = (int(i) for i in np.argwhere(pressure <= 0)[0])
            raise InvalidInput(
                f"euler2d: pressure of state {row} is {pressure[row, *where]:g} at cell {tuple(where)}; it must be above 0, "
                "so the energy must exceed the kinetic energy."
            )

    def advance(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        return self._run(states, frames, params)

    def record(self, states: np.ndarray, frames: int, params: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return record_with(self._run, self, states, frames, params, out)

    def _run(self, states: np.ndarray, frames: int, params: np.ndarray, saved: np.ndarray | None = None) -> np.ndarray:
        from hybridworld.physics.kernels.euler2d import advance

        dx, dy = self.spec.spacing
        answer = states.astype(self.dtype)

        def work(index: int, threads: int) -> None:
            room = None if saved is None else saved[index]
            final = advance(answer[index], frames, self.frame_step, dx, dy, GAMMA, FLOOR, self.cfl, self.order, threads, room)
            answer[index] = np.nan if final is None else final

        substeps = ceil(self.frame_step / (self.cfl * min(dx, dy)))  # per frame, about
        over_trajectories(work, len(states), frames * substeps * states[0, 0].size)
        return answer

    def advance_numpy(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        dx, dy = self.spec.spacing
        answer = states.astype(self.dtype)
        for q in answer:
            for _ in range(frames):
                left = self.frame_step
                while left > 0:
                    u, v, _, a = primitive_from_conserved(q)
                    dt = min(self.cfl / ((abs(u) + a).max() / dx + (abs(v) + a).max() / dy), left)
                    left -= dt
                    faces = [q] * 4 if self.order == 1 else faces_of(q, dt / dx, dt / dy)
                    west, east, south, north = faces
                    # Beyond an open end the state is that on the near side of the outermost face.
                    x_flux = hll_flux(np.insert(east, 0, west[:, 0], 1), np.append(west, east[:, -1:], 1), axis=0)
                    y_flux = hll_flux(np.insert(north, 0, south[:, :, 0], 2), np.append(south, north[:, :, -1:], 2), axis=1)
                    q -= dt / dx * np.diff(x_flux, axis=1) + dt / dy * np.diff(y_flux, axis=2)
        return answer
