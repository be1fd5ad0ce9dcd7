"""`hybridworld simulate`: one trajectory as HDF5, picture and animation."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hybridworld.app.progress import progress_bar
from hybridworld.data.atomic import make_folder
from hybridworld.data.trajectory import simulate
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment


@dataclass(frozen=True)
class Simulation:
    """What was simulated, and the files that show it."""

    title: str
    seconds: float
    data: Path
    picture: Path
    animation: Path | None


def simulate_to_files(
    environment: Environment, split: str, seed: int, frames: int | None, out: Path, gif: bool,
    params: Mapping[str, float] | None = None,
) -> Simulation:  # fmt: skip
    """Run the reference solver on trajectory `seed` of a split, and write it below `out`."""
    from hybridworld.figures.trajectories import animate_trajectory, draw_trajectory

    spec = environment.spec
    frames = spec.frames - 1 if frames is None else frames
    if frames < 1:
        raise InvalidInput(f"frames is {frames}: simulate at least 1.")
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"--out is {out}, which is a file: name a folder.")
    make_folder(out)
    stem = f"{spec.name}-{split}-{seed}"

    with progress_bar() as bar:
        task = bar.add_task(f"{spec.name}: preparing", total=frames)
        sample = environment.initial(split, seed)
        environment.solve(sample.state, 1, sample.params)  # compiles on the first run
        bar.update(task, description=f"{spec.name}: simulating")
        began = time.perf_counter()
        trajectory = simulate(environment, split, seed, frames, params, lambda done: bar.update(task, completed=done))
        seconds = time.perf_counter() - began

        data, picture = out / f"{stem}.hdf5", out / f"{stem}.png"
        trajectory.save(data)
        draw_trajectory(spec, trajectory.states, trajectory.title, picture)
        animation = out / f"{stem}.gif" if gif else None
        if animation:
            bar.update(task, description=f"{spec.name}: drawing", completed=0)
            animate_trajectory(
                spec, trajectory.states, trajectory.title, animation,
                lambda done, total: bar.update(task, completed=done, total=total),
            )  # fmt: skip
    result = Simulation(trajectory.title, seconds, data, picture, animation)
    report(result, frames)
    return result


def report(result: Simulation, frames: int) -> None:
    """Print what was simulated, and where its files are."""
    console = Console(highlight=False)
    name, _, drawn = result.title.partition("\n")
    console.print(f"[bold]{name}[/bold]  {drawn}", soft_wrap=True)
    told = "1 frame" if frames == 1 else f"{frames} frames"
    console.print(f"  {told} in {result.seconds:.2f} s, {1e3 * result.seconds / frames:.2f} ms each")
    for path in (result.data, result.picture, result.animation):
        if path:
            console.print(f"  {path}", soft_wrap=True)
