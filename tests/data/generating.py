"""A small dataset, made by a process of its own: `python -m tests.data.generating ROOT [largest file in bytes]`."""

import os
import resource
import signal
import sys
from pathlib import Path

from hybridworld.data import generate as generation
from hybridworld.data import manifest
from hybridworld.data import plan as planning
from hybridworld.data.generate import generate
from hybridworld.data.plan import Plan
from tests.data.decay import Decay

COUNTS = {"train": 13, "val": 4, "test": 3, "ood-near": 2, "ood-far": 5}
SHARD_BYTES = 3 * Plan(Decay(), COUNTS).trajectory_bytes
"""Three trajectories per shard."""


def generate_and_die(root, moment):
    """Kill oneself at that moment: moments are before and after each write, sync and rename."""
    events = 0

    def event():
        nonlocal events
        events += 1
        if events == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def deadly(function):
        def call(*arguments, **options):
            event()
            result = function(*arguments, **options)
            event()
            return result

        return call

    for module, name in ((Path, "replace"), (os, "fsync"), (generation, "file_image"), (generation, "_write"),
                         (manifest, "write_atomically"), (generation, "write_atomically")):  # fmt: skip
        setattr(module, name, deadly(getattr(module, name)))
    planning.SHARD_BYTES = SHARD_BYTES
    generate(Plan(Decay(), COUNTS), root, workers=2)


if __name__ == "__main__":
    planning.SHARD_BYTES = SHARD_BYTES
    for limit in sys.argv[2:]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    generate(Plan(Decay(), COUNTS), Path(sys.argv[1]), 2)
