"""Kuramoto-Sivashinsky: flame fronts that wrinkle without end, in one dimension.

    du/dt + u du/dx + d2u/dx2 + nu d4u/dx4 = 0          periodic in x, chaotic

Long waves grow, short ones decay, and u du/dx hands what grows to what decays. States are averages over cells; in Fourier space
an average is the value times sin(k dx/2) / (k dx/2), so that a coarser grid holds exactly the averages of a finer one. In time:
ETDRK4 (Cox and Matthews, with the contour integrals of Kassam and Trefethen), which treats the linear terms exactly; the
nonlinear one is computed on the grid and cut at two thirds of the wavenumbers.

    hybridworld check docs/examples/kuramoto_sivashinsky.py
    hybridworld train docs/examples/kuramoto_sivashinsky.py --minutes 10
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hybridworld import Axis, Environment, Field, Parameter, Sample, StateSpec, Symmetry

LENGTH = 32.0
BURN_IN = 200
"""Frames from a random start to the attractor."""
ROOTS = np.exp(2j * np.pi * (np.arange(32) + 0.5) / 32)
"""Points of the contour around each value."""

NU = Parameter(
    "nu", "1", "strength of the short waves' decay",
    ranges={"id": ((0.9, 1.1),), "ood-near": ((0.8, 0.9),), "ood-far": ((0.65, 0.8),)},
    allowed=(0.3, 3.0),
)  # fmt: skip


@lru_cache(maxsize=4096)
def etdrk4(cells: int, step: float, nu: float) -> np.ndarray:
    """exp(L h), exp(L h / 2), and the weights q, f1, f2, f3 of the scheme, per wavenumber: (6, cells / 2 + 1)."""
    k = 2 * np.pi * np.fft.rfftfreq(cells, LENGTH / cells)
    linear = step * (k**2 - nu * k**4)
    z = linear[:, None] + ROOTS
    whole, half = np.exp(z), np.exp(z / 2)
    weights = [
        (half - 1) / z,
        (-4 - z + whole * (4 - 3 * z + z**2)) / z**3,
        (2 + z + whole * (z - 2)) / z**3,
        (-4 - 3 * z - z**2 + whole * (4 - z)) / z**3,
    ]
    return np.stack([np.exp(linear), np.exp(linear / 2), *(step * each.mean(axis=1).real for each in weights)])


@dataclass(frozen=True)
class KuramotoSivashinsky(Environment):
    """Wrinkles; see the module's docstring."""

    grid: tuple[int, ...] = (128,)
    frame_step: float = 0.25
    steps_per_frame: int = 1

    @property
    def spec(self) -> StateSpec:
        return StateSpec(
            name="kuramoto_sivashinsky",
            title="Kuramoto-Sivashinsky: wrinkling fronts",
            fields=(Field("u", "1", "vector"),),
            axes=(Axis("x", 0.0, LENGTH, "periodic"),),
            grid=self.grid,
            frame_step=self.frame_step,
            time_unit="1",
            frames=129,
            draw="u_x",
            parameters=(NU,),
        )

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return tuple(Symmetry((0,), (sign,)) for sign in (1, -1))  # the mirror image of u(x) is -u(-x)

    def sample(self, rng: np.random.Generator, split: str) -> Sample:
        """A state on the attractor: a few random long waves, and what has become of them."""
        params = np.array([NU.draw(rng, self.spec.regime(split))])
        phase = 2 * np.pi * (self.spec.centres()[0] / LENGTH)[:, None] * np.arange(1, 9) + rng.uniform(0, 2 * np.pi, 8)
        waves = np.cos(phase) @ rng.normal(size=8)
        return Sample(self.solve(waves[None], BURN_IN, params), params)

    def with_steps(self, factor: float) -> tuple[Environment, float]:
        return replace(self, steps_per_frame=max(round(factor * self.steps_per_frame), 1)), 1

    def advance(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        (cells,) = self.grid
        k = 2 * np.pi * np.fft.rfftfreq(cells, LENGTH / cells)
        average = np.sinc(k * LENGTH / cells / (2 * np.pi))  # of a wave over a cell
        flux = np.where(np.arange(len(k)) <= cells // 3, -0.5j * k, 0)
        step = self.frame_step / self.steps_per_frame
        rows = [etdrk4(cells, step, float(nu)) for nu in params[:, 0]]
        full, half, q, f1, f2, f3 = np.stack(rows, axis=1)[:, :, None] if rows else np.empty((6, 0, 1, len(k)))

        def nonlinear(v: np.ndarray) -> np.ndarray:
            return flux * np.fft.rfft(np.fft.irfft(v, cells) ** 2)

        v = np.fft.rfft(states.astype(np.float64)) / average
        for _ in range(frames * self.steps_per_frame):
            now = nonlinear(v)
            a = half * v + q * now
            then_a = nonlinear(a)
            b = half * v + q * then_a
            then_b = nonlinear(b)
            c = half * a + q * (2 * then_b - now)
            v = full * v + f1 * now + 2 * f2 * (then_a + then_b) + f3 * nonlinear(c)
        return np.fft.irfft(v * average, cells) if frames else states.astype(np.float64)

    def conserved(self, states: np.ndarray, params: np.ndarray) -> dict[str, np.ndarray]:
        return {"mean": states.mean(axis=2)}
