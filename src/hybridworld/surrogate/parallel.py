"""One process, or many that `torchrun` started: who am I, and on which device?"""

import atexit
import gc
import os
from dataclasses import dataclass
from math import prod

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hybridworld.errors import InvalidInput
from hybridworld.physics.spec import StateSpec
from hybridworld.physics.threads import thread_count

SMALL = 2**12
"""Cells of a field below which a second thread makes training slower."""


@dataclass(frozen=True)
class Team:
    """`rank` of `world` processes that share each batch."""

    rank: int
    world: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this process validates, writes and speaks: exactly one does."""
        return self.rank == 0

    def share(self, model: nn.Module) -> nn.Module:
        """The model, with gradients averaged over the team."""
        if self.world == 1:
            return model
        return DistributedDataParallel(model, device_ids=[self.device.index] if self.device.type == "cuda" else None)

    def agree(self, value: bool) -> bool:
        """The value that the leader has."""
        if self.world == 1:
            return value
        said = [value]
        dist.broadcast_object_list(said, src=0, device=self.device)
        return said[0]


def device_of(name: str | torch.device | None) -> torch.device:
    """The device of that name; without one, a GPU where there is one."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device).item()  # is it here, and can it compute?
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        raise InvalidInput(
            f"The device is '{name}', which this machine does not have: choose cpu, or cuda with a GPU."
        ) from error
    return device


def team(device: str | None = None) -> Team:
    """The team that torchrun's environment variables describe; without them, a team of one.

    Each process takes a GPU of its own where there are some, unless a device is named. A process joins once and leaves when it
    ends: gloo cannot meet again where it has met before.
    """
    rank, world, local = (int(os.environ.get(name, default)) for name, default in
                          (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0)))  # fmt: skip
    chosen = device_of(device)
    if chosen.type == "cuda" and chosen.index is None:
        chosen = torch.device("cuda", local % torch.cuda.device_count())
    if world > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
        atexit.register(_leave)
    return Team(rank, world, chosen)


def _leave() -> None:
    """Ends the threads of the process group while Python still runs.

    They free tensors, for which they need the interpreter. A model that shares gradients keeps the group alive, so it is
    collected first: else such a thread can find the interpreter gone, and the process aborts after its work is done.
    """
    gc.collect()
    dist.destroy_process_group()


def threads_for(spec: StateSpec) -> int:
    """Threads for torch: this process's share of the cores, but one for states so small that threads mostly wait."""
    here = int(os.environ.get("LOCAL_WORLD_SIZE", 1))  # torchrun's
    return max(thread_count() // here, 1) if prod(spec.grid) >= SMALL else 1
