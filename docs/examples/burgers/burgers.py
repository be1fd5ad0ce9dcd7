"""Burgers' equation: waves that steepen into shocks, with a solver in NumPy, C, C++, Fortran or JAX.

    du/dt + d(u^2/2)/dx = nu d2u/dx2          periodic line of length 1

`Burgers` is the NumPy form. Each class below it replaces `advance` by a solver in another language; keep the one you need.
"""

import ctypes
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from hybridworld import Axis, Environment, Field, Parameter, Sample, SolverFailure, StateSpec, Symmetry, over_trajectories

COMPILERS = {".c": ["gcc", "-std=c11", "-lm"], ".cpp": ["g++", "-std=c++17"], ".f90": ["gfortran"]}
MOST_STEPS = 100_000

NU = Parameter(
    "nu", "1", "viscosity",
    ranges={"id": ((0.002, 0.004),), "ood-near": ((0.0015, 0.002),), "ood-far": ((0.001, 0.0015),)},
    allowed=(0.0, 0.1),
)  # fmt: skip


@dataclass(frozen=True)
class Burgers(Environment):
    """Plain NumPy: the scheme as a textbook has it."""

    grid: tuple[int, ...] = (128,)  # coarsened(), and with it `--preset guided`, needs the field `grid`
    frame_step: float = 0.01  # with the field `frame_step` a guide runs for any real horizon

    @property
    def spec(self) -> StateSpec:
        return StateSpec(
            name="burgers",
            title="Burgers: waves that steepen into shocks",
            fields=(Field("u", "1", "vector"),),
            axes=(Axis("x", 0.0, 1.0, "periodic"),),
            grid=self.grid,
            frame_step=self.frame_step,
            time_unit="1",
            frames=101,
            draw="u_x",
            parameters=(NU,),
        )

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return tuple(Symmetry((0,), (sign,)) for sign in (1, -1))  # the mirror image of u(x) is -u(-x)

    def sample(self, rng: np.random.Generator, split: str) -> Sample:
        """Three random waves on a random wind, so that shocks move."""
        x, nu = self.spec.centres()[0], NU.draw(rng, self.spec.regime(split))
        waves = [rng.normal() * np.sin(2 * np.pi * (k * x + rng.uniform())) / k for k in (1, 2, 3)]
        return Sample(np.sum(waves, axis=0)[None] + rng.normal(scale=0.5), np.array([nu]))

    def advance_numpy(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        (dx,), answer = self.spec.spacing, states.astype(np.float64)
        for u, (nu,) in zip(answer[:, 0], params, strict=True):
            for _ in range(frames):
                steps = max(np.ceil(self.frame_step * (np.abs(u).max() / dx + 2 * nu / dx**2)), 1.0)
                if not steps <= MOST_STEPS:
                    raise SolverFailure(f"burgers: a frame needs {steps:.3g} steps; at most {MOST_STEPS} are made.")
                for _ in range(int(steps)):
                    right = np.roll(u, -1)
                    flux = 0.5 * (np.maximum(u, 0) ** 2 + np.minimum(right, 0) ** 2) - nu * (right - u) / dx
                    u -= self.frame_step / steps / dx * (flux - np.roll(flux, 1))
        return answer

    def advance(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        return self.advance_numpy(states, frames, params)

    def conserved(self, states: np.ndarray, params: np.ndarray) -> dict[str, np.ndarray]:
        return {"mean": states.mean(axis=2)}


@lru_cache
def compiled(source: str) -> ctypes._CFuncPtr:
    """The function `burgers` of a source file beside this one, compiled where the library is missing or older."""
    path = Path(__file__).with_name(source)
    library = path.with_name(f"{source}.so")
    if not library.exists() or library.stat().st_mtime < path.stat().st_mtime:
        new = library.with_suffix(".new")
        compiler, *options = COMPILERS[path.suffix]
        command = [compiler, "-O3", "-shared", "-fPIC", path, "-o", new, *options]
        subprocess.run(command, check=True)
        new.replace(library)  # in one step: another process may be loading it
    function = ctypes.CDLL(str(library.resolve())).burgers  # CDLL releases the GIL during a call, PyDLL would not
    array, whole, real = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS"), ctypes.c_int64, ctypes.c_double
    function.argtypes = [array, whole, whole, real, real, real, ctypes.c_char_p, whole]
    function.restype = ctypes.c_int
    return function


@dataclass(frozen=True)
class BurgersC(Burgers):
    """The same in C: one call per trajectory, all cores over a batch."""

    source: ClassVar[str] = "burgers.c"

    def advance(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        answer, (dx,), function = np.array(states, np.float64, order="C"), self.spec.spacing, compiled(self.source)

        def work(index: int, threads: int) -> None:
            message = ctypes.create_string_buffer(200)
            u, (nu,) = answer[index, 0], params[index]
            if function(u, u.size, frames, self.frame_step, dx, nu, message, len(message)):
                raise SolverFailure(f"burgers: {message.value.decode()} (trajectory {index}, nu = {nu:g}).")

        over_trajectories(work, len(answer), frames * answer[0].size if len(answer) else 0)
        return answer


@dataclass(frozen=True)
class BurgersCpp(BurgersC):
    """The same in C++."""

    source: ClassVar[str] = "burgers.cpp"


@dataclass(frozen=True)
class BurgersFortran(BurgersC):
    """The same in Fortran."""

    source: ClassVar[str] = "burgers.f90"


@lru_cache
def traced():
    """(states, params, frames, frame_step, dx) -> states, compiled by JAX once per shape."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)  # JAX computes in float32 unless told

    def step(u, nu, dt, dx):
        right = jnp.roll(u, -1)
        flux = 0.5 * (jnp.maximum(u, 0) ** 2 + jnp.minimum(right, 0) ** 2) - nu * (right - u) / dx
        return u - dt / dx * (flux - jnp.roll(flux, 1))

    def frame(u, nu, frame_step, dx):
        steps = jnp.maximum(jnp.ceil(frame_step * (jnp.abs(u).max() / dx + 2 * nu / dx**2)), 1)
        stable = steps <= MOST_STEPS
        count = jnp.where(stable, steps, 0).astype(int)
        after = jax.lax.fori_loop(0, count, lambda _, u: step(u, nu, frame_step / steps, dx), u)
        return jnp.where(stable, after, jnp.nan)  # JAX cannot raise; `solve` refuses nan and says where and when it came

    @jax.jit
    def run(states, params, frames, frame_step, dx):
        def one(trajectory):
            u, nu = trajectory
            return jax.lax.fori_loop(0, frames, lambda _, u: frame(u, nu, frame_step, dx), u)

        return jax.lax.map(one, (states, params))  # one after the other, so that no answer depends on its batch

    return run


@dataclass(frozen=True)
class BurgersJax(Burgers):
    """The same in JAX."""

    def advance(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        answer = traced()(states[:, 0].astype(np.float64), params[:, 0], frames, self.frame_step, self.spec.spacing[0])
        return np.array(answer)[:, None]
