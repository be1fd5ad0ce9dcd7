"""`hybridworld doctor`: does everything work on this machine? What could crash is tried in a process of its own."""

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import hybridworld
from hybridworld.app.progress import stderr
from hybridworld.data.provenance import commit, cpu
from hybridworld.data.room import size_in_words
from hybridworld.physics.threads import thread_count

NEEDED = ("numpy", "numba", "torch", "h5py", "safetensors", "scikit-learn", "crepes")
EXTRAS = {"serve": "starlette", "dask": "distributed", "tensorboard": "tensorboard", "robotics": "mujoco"}
ROOM = 2e9  # bytes that should be free


class Finding(NamedTuple):
    """Something that was looked at. It is well, it is missing and need not be there (None), or it has to be mended."""

    what: str
    well: bool | None
    told: str


def examine(as_json: bool) -> bool:
    """Examine everything and print the findings; returns whether nothing has to be mended."""
    found: list[Finding] = []
    with stderr.status("looking") as status:
        for look in (packages, machine, engines, disk, solvers, models):
            for finding in look():
                found.append(finding)
                status.update(finding.what)
    if as_json:
        print(json.dumps([finding._asdict() for finding in found], indent=2))
    else:
        show(found)
    return all(finding.well is not False for finding in found)


def show(found: list[Finding]) -> None:
    """One line per finding, and what to do about those that are not well."""
    marks = {True: "[green]ok[/green]", None: "[dim]-[/dim]", False: "[red]mend[/red]"}
    table = Table("", "", "", box=None, show_header=False, padding=(0, 0, 0, 2))
    for finding in found:
        table.add_row(marks[finding.well], finding.what, escape(finding.told))
    console = Console(highlight=False)
    console.print(table)
    wrong = sum(finding.well is False for finding in found)
    console.print(f"\n{wrong} of {len(found)} to mend." if wrong else "\nAll is well.")


def packages() -> Iterator[Finding]:
    """Versions of what is needed, and of what may be there."""
    yield Finding("hybridworld", True, f"{hybridworld.__version__} ({commit()})")
    yield Finding("python", sys.version_info >= (3, 11), platform.python_version())
    for name in NEEDED:
        found = installed(name)
        yield Finding(name, found is not None, found or "missing: install the package again")
    for extra, name in EXTRAS.items():
        found = installed(name)
        hint = f"not installed: pip install 'hybrid-world-models[{extra}]' brings it"
        yield Finding(name, True if found else None, found or hint)


def machine() -> Iterator[Finding]:
    """Processor, threads, graphics card."""
    yield Finding("processor", True, cpu())
    wish = os.environ.get("HYBRIDWORLD_THREADS")
    limited = f" (HYBRIDWORLD_THREADS={wish})" if wish else ""
    yield tried("threads", lambda: f"{thread_count()} of {os.cpu_count()} cores{limited}")

    import torch

    card = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    yield Finding("gpu", True if card else None, card or "none: networks run on the processor")


def engines() -> Iterator[Finding]:
    """Inference engines, judged on the first model that ships. Eager torch is enough, so none of them has to be mended."""
    from hybridworld.app.loading import load_hybrid
    from hybridworld.deploy.engines import compare_engines
    from hybridworld.deploy.load import shipped
    from hybridworld.surrogate.engines.registry import ENGINES
    from hybridworld.surrogate.engines.registry import installed as engines_here

    here, name = engines_here(quick=True), next(iter(shipped()))
    known = compare_engines(load_hybrid(name), here).verdicts
    for each, engine in ENGINES.items():
        if engine.missing:
            yield Finding(f"engine {each}", None, f"not installed: {', '.join(engine.missing)}")
        elif each in here:
            failure = known[each].failure
            yield Finding(f"engine {each}", None if failure else True, failure or f"works, judged on {name}")
        else:
            yield Finding(f"engine {each}", None, f"not tried: `hybridworld bench engines {name}` does, in a minute or two")


def disk() -> Iterator[Finding]:
    """Room here, and a place for compiled kernels."""
    free = shutil.disk_usage(Path.cwd()).free
    yield Finding("disk", free > ROOM, f"{size_in_words(free)} free in this folder")
    cache = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(hybridworld.__file__).parent / "physics" / "kernels")
    writable = os.access(cache, os.W_OK)
    note = "kept" if writable else f"{cache} cannot be written, so they are compiled again and again: set NUMBA_CACHE_DIR"
    yield Finding("compiled kernels", True if writable else None, note)


def solvers() -> Iterator[Finding]:
    """Every known system takes a step."""
    from hybridworld.physics.registry import find_system, known_systems

    def step(name: str) -> str:
        environment = find_system(name)
        if environment.lacks:
            return f"not installed: {environment.lacks}"
        state, params = environment.blank(), environment.initial("test", 0).params
        environment.solve(state, 1, params)
        return "works"

    for name in known_systems():
        yield tried(f"solver {name}", lambda name=name: step(name))  # type: ignore[misc]


def models() -> Iterator[Finding]:
    """Every model that ships is whole, bit by bit, and answers."""
    from hybridworld.app.loading import load_hybrid
    from hybridworld.deploy.load import shipped

    def answer(name: str) -> str:
        model = load_hybrid(name, engine=None)
        assert model.system is not None
        sample = model.system.initial("test", 0)
        forecast = model.predict(sample.state, model.longest, sample.params)
        by = "solver" if forecast.used_solver else "surrogate"
        score = float(forecast.score)  # type: ignore[arg-type]
        return f"whole; {model.longest:g} frames ahead, score {score:.3g}, answered by the {by}, engine {model.engine}"

    for name in shipped():
        yield tried(f"model {name}", lambda name=name: answer(name))  # type: ignore[misc]


def tried(what: str, action: Callable[[], str]) -> Finding:
    """What the action says, or what it raises."""
    try:
        return Finding(what, True, action())
    except Exception as error:
        return Finding(what, False, f"{type(error).__name__}: {error}")


def installed(name: str) -> str | None:
    """The version of a package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
