"""In which precision a training step computes its convolutions and matrix products."""

import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch

from hybridworld.errors import InvalidInput
from hybridworld.surrogate.engines.trial import in_words

TRIAL = """
import torch
x = torch.randn(2, 16, 34, 34, requires_grad=True)
with torch.autocast("cpu", torch.bfloat16):
    loss = torch.nn.Linear(32, 1)(torch.nn.Conv2d(16, 16, 3)(x)).float().square().mean()
loss.backward()
"""


def computing_in(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Inside, products are computed in that precision; weights, sums over a field and the loss stay in float32."""
    return torch.autocast(device.type, torch.bfloat16) if precision == "bfloat16" else nullcontext()


def check_precision(precision: str, device: torch.device) -> None:
    """Refuse bfloat16 where the processor cannot; tried in a process of its own, which an unknown instruction would end."""
    if precision == "bfloat16" and device.type == "cpu" and (failure := failure_of_bfloat16()):
        raise InvalidInput(f"training.precision is bfloat16, with which a trial on this machine {failure}: take float32.")


@cache
def failure_of_bfloat16() -> str | None:
    """What became of a process that computed in bfloat16; None if all was well."""
    done = subprocess.run([sys.executable, "-c", TRIAL], capture_output=True, text=True, check=False)
    return in_words(done.returncode, done.stderr) if done.returncode else None
