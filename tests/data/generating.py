"""A small dataset, made by a process of its own: `python -m tests.data.generating ROOT [largest file in bytes]`."""

import resource
import sys
from pathlib import Path

from hybridworld.data import plan as planning
from hybridworld.data.generate import generate
from hybridworld.data.plan import Plan
from tests.data.decay import Decay

COUNTS = {"train": 13, "val": 4, "test": 3, "ood-near": 2, "ood-far": 5}
SHARD_BYTES = 3 * Plan(Decay(), COUNTS).trajectory_bytes
"""Three trajectories per shard."""

if __name__ == "__main__":
    planning.SHARD_BYTES = SHARD_BYTES
    for limit in sys.argv[2:]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    generate(Plan(Decay(), COUNTS), Path(sys.argv[1]), 2)
