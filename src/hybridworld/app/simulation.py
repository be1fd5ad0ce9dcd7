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
    from hybridworld.figures.trajectories import animate_trajectory, draw_trajectory

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
        states = []
        for state in environment.trajectory(sample.state, frames, sample.params):
            states.append(state)
            bar.update(task, completed=len(states) - 1)
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


def describe_sample(environment: Environment, split: str, seed: int, sample: Sample) -> str:
    """Which trajectory it is, and on a second line what was drawn for it."""
    spec = environment.spec
    drawn = [
        f"{parameter.name} = {value:.3g}{'' if parameter.unit == '1' else ' ' + parameter.unit}"
        for parameter, value in zip(spec.params, sample.params, strict=True)
    ]
    drawn += [f"{name} = {value:.3g}" for name, value in sample.origin.items() if not isinstance(value, str)]
    kind = sample.origin.get("kind")
    return f"{spec.name}, {split} {seed}{f': {kind}' if kind else ''}\n{', '.join(drawn)}"


def report(result: Simulation, frames: int) -> None:
    """What was done, and where it lies."""
    console = Console(highlight=False)
    name, _, drawn = result.title.partition("\n")
    console.print(f"[bold]{name}[/bold]  {drawn}", soft_wrap=True)
    console.print(f"  {frames} frames in {result.seconds:.2f} s, {1e3 * result.seconds / frames:.2f} ms each")
    for path in (result.data, result.picture, result.animation):
        if path:
            console.print(f"  {path}", soft_wrap=True)
