"""`hybridworld simulate`: one trajectory as HDF5, picture and animation."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from hybridworld.app.progress import progress_bar
from hybridworld.data.well import write_trajectories
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment, Sample


@dataclass(frozen=True)
class Simulation:
    """What was simulated, and the files that show it."""

    title: str
    seconds: float
    data: Path
    picture: Path
    animation: Path | None


def simulate_to_files(environment: Environment, split: str, seed: int, frames: int | None, out: Path, gif: bool) -> Simulation:
    """Run the reference solver on trajectory `seed` of a split, and write it below `out`."""
    from hybridworld.evaluate.pictures import animate_trajectory, draw_trajectory

    spec = environment.spec
    frames = spec.frames - 1 if frames is None else frames
    if frames < 1:
        raise InvalidInput(f"frames is {frames}: simulate at least 1.")
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"--out is {out}, which is a file: name a folder.")
    out.mkdir(parents=True, exist_ok=True)
    stem = f"{spec.name}-{split}-{seed}"

    with progress_bar() as bar:
        task = bar.add_task(f"{spec.name}: preparing", total=frames)
        sample = environment.initial(split, seed)
        environment.solve(sample.state, 1, sample.params)  # compiles on the first run
        bar.update(task, description=f"{spec.name}: simulating")
        began = time.perf_counter()
        states = [sample.state]
        for state in list_after_first(environment, sample, frames):
            states.append(state)
            bar.advance(task)
        seconds = time.perf_counter() - began
        trajectory = np.stack(states)

        title = describe_sample(environment, split, seed, sample)
        data, picture = out / f"{stem}.hdf5", out / f"{stem}.png"
        write_trajectories(data, environment, split, [seed], [sample], trajectory[None])
        draw_trajectory(spec, trajectory, title, picture)
        animation = out / f"{stem}.gif" if gif else None
        if animation:
            bar.update(task, description=f"{spec.name}: drawing", completed=0)
            animate_trajectory(
                spec, trajectory, title, animation, lambda done, total: bar.update(task, completed=done, total=total)
            )
    result = Simulation(title, seconds, data, picture, animation)
    report(result, frames)
    return result


def list_after_first(environment: Environment, sample: Sample, frames: int):
    """The states after the first, as they are solved."""
    trajectory = environment.trajectory(sample.state, frames, sample.params)
    next(trajectory)
    return trajectory


def describe_sample(environment: Environment, split: str, seed: int, sample: Sample) -> str:
    """For example `ball3d, test 0: restitution = 0.77, gravity = -9.91 m/s^2`."""
    spec = environment.spec
    drawn = [
        f"{parameter.name} = {value:.3g}{'' if parameter.unit == '1' else ' ' + parameter.unit}"
        for parameter, value in zip(spec.params, sample.params, strict=True)
    ]
    drawn += [f"{name} = {value:.3g}" for name, value in sample.origin.items() if not isinstance(value, str)]
    words = [value for name, value in sample.origin.items() if isinstance(value, str) and value != "none" and name == "kind"]
    return f"{spec.name}, {split} {seed}: {', '.join([*words, *drawn])}"


def report(result: Simulation, frames: int) -> None:
    """What was done, and where it lies."""
    console = Console(highlight=False)
    console.print(f"[bold]{result.title}[/bold]", soft_wrap=True)
    console.print(f"  {frames} frames in {result.seconds:.2f} s, {1e3 * result.seconds / frames:.2f} ms each")
    for path in (result.data, result.picture, result.animation):
        if path:
            console.print(f"  {path}", soft_wrap=True)
