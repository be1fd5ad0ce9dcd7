"""Where a number comes from: commit, versions, hardware. Stands under every table and figure that we publish."""

import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hybridworld
from hybridworld.physics.threads import thread_count

SOURCES = OWN, STREAM, DATASET = "data of its own", "a stream", "a dataset"
"""Where the pairs of a training come from: trajectories that were made for it, the solver at work, or a dataset."""


def provenance() -> dict[str, str]:
    """What it takes to judge, and to repeat, a measurement."""
    return {
        "hybridworld": f"{hybridworld.__version__} ({commit()})",
        "cpu": cpu(),
        "threads": str(thread_count()),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
        "torch": version("torch"),
    }


def commit() -> str:
    """The commit of the checkout this package runs from, marked where files differ from it."""
    try:
        command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=10"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "no checkout"


def cpu() -> str:
    """The processor's own name."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def footnote() -> str:
    """One line for the foot of a table."""
    return ", ".join(f"{name} {value}" for name, value in provenance().items())


def was_streamed(provenance: Mapping[str, Any]) -> bool:
    """Whether a model with that provenance learned from the solver at work."""
    return provenance.get("source") == STREAM


def from_older_file(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """A model's provenance with `source` and `from name`, which files of older versions tell in sentences alone."""
    known = dict(provenance)
    if str(known.get("data", "")).startswith("a stream"):
        known.setdefault("source", STREAM)
    if "from" in known:
        known.setdefault("from name", known["from"].partition(" ")[0])
    return known
