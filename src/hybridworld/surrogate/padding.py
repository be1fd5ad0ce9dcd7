"""What lies beyond the edge of a grid.

It is the other side (`circular`), the same value once more (`replicate`), or nothing (`constant`).
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

Ends = Sequence[tuple[int, int]]


def padded(x: Tensor, ends: Ends, kinds: Sequence[str]) -> Tensor:
    """x (batch, features, *grid) with that many more cells before and after each axis, each of its own kind."""
    if not any(map(any, ends)):
        return x
    return joined(x, ends, kinds) if torch.compiler.is_exporting() else Padding.apply(x, ends, kinds)


def joined(x: Tensor, ends: Ends, kinds: Sequence[str]) -> Tensor:
    """`padded` from slices: kinds may differ between axes, and engines have no padding of these kinds, or a slow one."""
    for axis, ((before, after), kind) in enumerate(zip(ends, kinds, strict=True), start=2):
        cells = x.shape[axis]
        if kind == "circular":
            parts = [x.narrow(axis, cells - before, before), x, x.narrow(axis, 0, after)]
        else:
            first, last = x.narrow(axis, 0, 1), x.narrow(axis, cells - 1, 1)
            if kind == "constant":
                first, last = torch.zeros_like(first), torch.zeros_like(last)
            parts = [*[first] * before, x, *[last] * after]
        parts = [part for part in parts if part.shape[axis]]
        x = torch.cat(parts, dim=axis) if len(parts) > 1 else x
    return x


class Padding(torch.autograd.Function):
    """Pads, and on the way back adds what came from the padding to the cells it was made of.

    Torch's own gradient of circular padding fills an array per slice: a fifth of the time of a training step.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, ends: Ends, kinds: Sequence[str]) -> Tensor:
        """The padded x; x has the shape (batch, features, *grid)."""
        ctx.ends, ctx.kinds = ends, kinds
        if len(set(kinds)) == 1:
            return F.pad(x, [cells for end in reversed(ends) for cells in end], kinds[0])
        return joined(x, ends, kinds)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """The gradient of x: the transposed map."""
        gradient = gradient.clone()
        for axis, ((before, after), kind) in enumerate(zip(ctx.ends, ctx.kinds, strict=True), start=2):
            cells = gradient.shape[axis] - before - after
            inner = gradient.narrow(axis, before, cells)
            ahead, behind = gradient.narrow(axis, 0, before), gradient.narrow(axis, before + cells, after)
            if kind == "circular":
                inner.narrow(axis, cells - before, before).add_(ahead)
                inner.narrow(axis, 0, after).add_(behind)
            elif kind == "replicate":
                inner.narrow(axis, 0, 1).add_(ahead.sum(axis, keepdim=True))
                inner.narrow(axis, cells - 1, 1).add_(behind.sum(axis, keepdim=True))
            gradient = inner
        return gradient.contiguous(), None, None
