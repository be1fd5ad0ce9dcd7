"""Oregonator: waves of the Belousov-Zhabotinsky reaction on a periodic square.

    du/dt = D lap(u) + (1/eps) [ u (1 - u) - f v (u - q) / (u + q) ]        activator
    dv/dt = u - v                                                           inhibitor, does not diffuse

Tyson's two-variable reduction, non-dimensional, with q = 0.002, D = 1 and side L = 100. A front is a thin layer in which u
jumps from nearly 0 to nearly 1; behind it v rises and the medium recovers. Small eps sharpens the front, large f lengthens
the recovery. Spirals and rings appear.

Scheme, per frame: react (half step), diffuse (whole step), react (half step).
  Reaction   one implicit Euler step, Newton in u (v is linear in u, so it is eliminated in closed form).
  Diffusion  explicit five-point FTCS with as many equal substeps as 0.4 of its stability limit asks for.

Limitation of the scheme: for tau / eps > 1 the implicit equation can have several roots. Newton is stopped after eight steps,
and some 0.2 to 0.7 % of the cells (at the fronts) have not converged by then; there the outcome depends on rounding. The
compiled form therefore repeats the operations below in the same order and agrees to the last bit.

`Rosenbrock` is the same splitting with reaction steps of second order that need no Newton iteration, as many as eps asks for.
Ahead of a front traces of u grow by a factor e^(tau/eps) per step, which implicit Euler replaces by 1 / (1 - tau/eps): its
fronts are too fast. The published reference has that error; this scheme is the rival that it has to be compared with.
"""

from dataclasses import dataclass, fields, replace
from math import ceil, sqrt
from typing import Any, ClassVar

import numpy as np

from hybridworld.physics.environment import Environment, Sample, record_with
from hybridworld.physics.spec import Axis, Field, Parameter, StateSpec
from hybridworld.physics.symmetry import Symmetry, square_symmetries
from hybridworld.physics.threads import over_trajectories

Q, DIFFUSION, SIDE = 0.002, 1.0, 100.0
U_MAX, V_MAX = 1.5, 2.0
NEWTON_STEPS = 8
TOLERANCE = {"float64": 1e-10, "float32": 1e-6}
BURN_IN = 200  # frames that turn random cells into a developed pattern

EPS = Parameter(
    name="eps",
    unit="1",
    meaning="time scale of the activator over that of the inhibitor",
    ranges={
        "id": ((0.02, 0.08),),
        "ood-near": ((0.015, 0.02), (0.08, 0.10)),
        "ood-far": ((0.010, 0.015), (0.10, 0.15)),
    },
    allowed=(0.001, 1.0),
)
F = Parameter(
    name="f",
    unit="1",
    meaning="stoichiometric factor: how strongly the inhibitor acts",
    ranges={"id": ((0.5, 2.0),), "ood-near": ((0.4, 0.5), (2.0, 2.2)), "ood-far": ((0.3, 0.4), (2.2, 2.5))},
    allowed=(0.0, 10.0),
)
KINDS = {"spiral": 0.5, "target": 0.3, "random": 0.2}


def react(u_old, v_old, tau, eps, f, tolerance=TOLERANCE["float64"]):
    """One implicit Euler step of length tau: (u, v) with u = u_old + tau du/dt(u, v), v = v_old + tau dv/dt(u, v).

    v = (v_old + tau u) / (1 + tau), which leaves g(u) = 0 with
        g = u - u_old - (tau/eps) [ u (1 - u) - f v (u - q)/(u + q) ].
    Newton's quotient g / g' is written with both multiplied by (u + q)^2: one division in place of three.
    """
    k, c = tau / eps, 1 / (1 + tau)
    u, moving = np.clip(u_old, 0, U_MAX), np.ones(u_old.shape, dtype=bool)
    for _ in range(NEWTON_STEPS):
        w = v_old + tau * u
        square, mixed = (u + Q) * (u + Q), (u + Q) * (u - Q)
        value = (u - u_old - k * (u * (1 - u))) * square + k * f * c * (w * mixed)
        slope = (1 - k * (1 - 2 * u)) * square + k * f * c * (tau * mixed + 2 * Q * w)
        new = np.where(moving, np.clip(u - value / slope, 0, U_MAX), u)
        moving = np.abs(new - u) > tolerance
        u = new
        if not moving.any():
            break
    return u, np.clip(c * (v_old + tau * u), 0, V_MAX)


GAMMA = 1 - 1 / sqrt(2)
"""Makes ROS2 L-stable."""
LONGEST = 0.35
"""The longest step of ROS2, in units of eps: where the activator is fast, longer ones drive fronts at the wrong speed."""


def react_rosenbrock(u_old, v_old, tau, eps, f):
    """One step of length tau by ROS2, of second order: (u, v) = y with f(y) = dy/dt and J = f'(y_old),

        (1 - gamma tau J) k1 = f(y_old),   (1 - gamma tau J) k2 = f(y_old + tau k1) - 2 k1,   y = y_old + tau (3 k1 + k2) / 2.

    Concentrations that would be negative are zero, also in between.
    """
    a, c = GAMMA * tau, 1 + GAMMA * tau
    inverse = 1 / (u_old + Q)
    share = (u_old - Q) * inverse
    slope = (1 - 2 * u_old - 2 * Q * f * (v_old * inverse * inverse)) / eps  # d(du/dt)/du
    d, b = 1 - a * slope, a * f * share / eps  # 1 - gamma tau J = ((d, b), (-a, c))
    scale = 1 / (d * c + a * b)
    k, m = (u_old * (1 - u_old) - f * (v_old * share)) / eps, u_old - v_old
    k, m = (c * k - b * m) * scale, (d * m + a * k) * scale
    u, v = np.maximum(u_old + tau * k, 0), np.maximum(v_old + tau * m, 0)
    k2, m2 = (u * (1 - u) - f * (v * ((u - Q) / (u + Q)))) / eps - 2 * k, u - v - 2 * m
    k2, m2 = (c * k2 - b * m2) * scale, (d * m2 + a * k2) * scale
    half = tau / 2
    return np.clip(u_old + half * (3 * k + k2), 0, U_MAX), np.clip(v_old + half * (3 * m + m2), 0, V_MAX)


def diffuse(u, kx, ky):
    """One FTCS substep: u + kx (second difference along x) + ky (second difference along y)."""
    along_x = np.roll(u, 1, 0) + np.roll(u, -1, 0) - 2 * u
    along_y = np.roll(u, 1, 1) + np.roll(u, -1, 1) - 2 * u
    return u + (kx * along_x + ky * along_y)


@dataclass(frozen=True)
class Oregonator(Environment):
    """Reaction-diffusion fronts; see the module's docstring."""

    grid: tuple[int, ...] = (256, 256)
    dtype: str = "float64"
    frame_step: float = 0.05
    rosenbrock: ClassVar[bool] = False

    @property
    def spec(self) -> StateSpec:
        return StateSpec(
            name="oregonator",
            title="Oregonator: reaction-diffusion fronts",
            fields=(Field("u", "1", allowed=(0.0, U_MAX)), Field("v", "1", allowed=(0.0, V_MAX))),
            axes=(Axis("x", 0.0, SIDE, "periodic"), Axis("y", 0.0, SIDE, "periodic")),
            grid=self.grid,
            frame_step=self.frame_step,
            time_unit="1",
            frames=201,
            draw="u",
            parameters=(EPS, F),
            kinds={"id": KINDS, "ood-near": KINDS, "ood-far": KINDS},
            counts={"train": 1200, "val": 150, "test": 150, "ood-near": 250, "ood-far": 250},
        )

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return square_symmetries(swap=self.grid[0] == self.grid[1])

    @property
    def presets(self) -> dict[str, dict[str, dict[str, Any]]]:
        guide = {} if self.rosenbrock else {"guide_scheme": "Rosenbrock"}  # little more than half of the error, and no slower
        return {
            "paper": {"training": {"samples": 5_000, "epochs": 60, "warmup": 3}},
            "laptop": {"training": {"samples": 60, "validation": 8}},  # four times the cells of Euler
            "guided": {"surrogate": {"guide_factor": 2} | guide},  # on coarser grids fronts travel at the wrong speed
        }

    def with_steps(self, factor: float) -> tuple[Environment, float]:
        return replace(self, frame_step=self.frame_step / factor), factor

    def variants(self) -> dict[str, Environment]:
        settings = {each.name: getattr(self, each.name) for each in fields(self)}
        return {} if self.rosenbrock else {"Rosenbrock": Rosenbrock(**settings)}

    def sample(self, rng: np.random.Generator, split: str) -> Sample:
        """Out of distribution a third shifts f only, a third eps only, a third both."""
        spec = self.spec
        regime = spec.regime(split)
        shift = "none" if regime == "id" else str(rng.choice(["f", "eps", "both"]))
        eps = EPS.draw(rng, regime if shift in ("eps", "both") else "id")
        f = F.draw(rng, regime if shift in ("f", "both") else "id")
        params = np.array([eps, f])

        kind = spec.draw_kind(rng, split)
        x, y = (axis / SIDE for axis in np.meshgrid(*spec.centres(), indexing="ij"))
        u, v = np.zeros(self.grid), np.zeros(self.grid)
        if kind == "spiral":
            u[(x < 0.5) & (y > 0.5)] = 1.0
            v[(x < 0.5) & (y < 0.5)] = rng.uniform(0.3, 0.7)
        elif kind == "target":
            (x0, y0), radius = rng.uniform(0.3, 0.7, size=2), rng.uniform(0.03, 0.08)
            u[np.hypot(x - x0, y - y0) < radius] = 1.0
        state = np.stack([u, v])
        if kind == "random":
            state = self.solve(rng.uniform(0.0, 0.5, size=spec.shape), BURN_IN, params)
        return Sample(state, params, {"kind": kind, "shift": shift})

    def _coefficients(self) -> tuple[int, float, float]:
        """Diffusion substeps per frame, and D dt / dx^2, D dt / dy^2 of one substep."""
        dx, dy = self.spec.spacing
        substeps = ceil(self.frame_step / (0.4 * min(dx, dy) ** 2 / (4 * DIFFUSION)))
        step = DIFFUSION * self.frame_step / substeps
        return substeps, step / dx**2, step / dy**2

    def advance(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        return self._run(states, frames, params)

    def record(self, states: np.ndarray, frames: int, params: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return record_with(self._run, self, states, frames, params, out)

    def _run(self, states: np.ndarray, frames: int, params: np.ndarray, saved: np.ndarray | None = None) -> np.ndarray:
        from hybridworld.physics.kernels.oregonator import advance

        substeps, kx, ky = self._coefficients()
        answer = states.astype(self.dtype)

        def work(index: int, threads: int) -> None:
            eps, f = params[index]
            answer[index] = advance(
                answer[index], frames, self.frame_step / 2, kx, ky, substeps, eps, f, Q, NEWTON_STEPS,
                TOLERANCE[self.dtype], U_MAX, V_MAX, self._ros_steps(eps), GAMMA, threads,
                None if saved is None else saved[index],
            )  # fmt: skip

        over_trajectories(work, len(states), frames * states[0, 0].size)
        return answer

    def advance_numpy(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        substeps, kx, ky = self._coefficients()
        answer = states.astype(self.dtype)
        for index, (eps, f) in enumerate(params):
            u, v = answer[index]
            for _ in range(frames):
                u, v = self._half(u, v, eps, f)
                for _ in range(substeps):
                    u = diffuse(u, kx, ky)
                u, v = self._half(u, v, eps, f)
            answer[index] = u, v
        return answer

    def _half(self, u: np.ndarray, v: np.ndarray, eps: float, f: float) -> tuple[np.ndarray, np.ndarray]:
        """The reaction alone, for half a frame."""
        steps, half = self._ros_steps(eps), self.frame_step / 2
        for _ in range(steps):
            u, v = react_rosenbrock(u, v, half / steps, eps, f)
        return (u, v) if steps else react(u, v, half, eps, f)

    def _ros_steps(self, eps: float) -> int:
        """Steps of ROS2 per half frame; 0: one step of implicit Euler."""
        return 0


@dataclass(frozen=True)
class Rosenbrock(Oregonator):
    """The same equations, splitting and diffusion; the reaction is by ROS2, in steps of `LONGEST` eps at most."""

    rosenbrock: ClassVar[bool] = True

    def _ros_steps(self, eps: float) -> int:
        return ceil(self.frame_step / 2 / (LONGEST * eps))
