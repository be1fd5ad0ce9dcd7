"""What lies beyond the edge of a grid.

It is the other side (`circular`), the same value once more (`replicate`), or nothing (`constant`).
"""

from collections.abc import Sequence
from typing import Any

import torch
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


LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
"""Dimensions of a tensor -> the layout in which the features of a cell lie together."""


def features_last(x: Tensor) -> Tensor:
    """The same values, the features of a cell together: convolutions of few features take half of the time, or less."""
    return x if x.dim() not in LAST or torch.compiler.is_exporting() else x.contiguous(memory_format=LAST[x.dim()])


def layout_of(x: Tensor) -> torch.memory_format:
    """How x lies in memory: the features of a cell together, or the cells of a feature."""
    last = LAST.get(x.dim())
    return last if last and not x.is_contiguous() and x.is_contiguous(memory_format=last) else torch.contiguous_format


class Padding(torch.autograd.Function):
    """Pads, and on the way back adds what came from the padding to the cells it was made of.

    Torch's own padding forgets that the features of a cell lie together, and its gradient fills an array per slice.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, ends: Ends, kinds: Sequence[str]) -> Tensor:
        """The padded x, laid out in memory like x; x has the shape (batch, features, *grid)."""
        ctx.ends, ctx.kinds = ends, kinds
        grid = x.shape[2:]
        shape = [*x.shape[:2], *(before + cells + after for cells, (before, after) in zip(grid, ends, strict=True))]
        wide = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=layout_of(x))
        within = wide
        for axis, (cells, (before, _)) in enumerate(zip(grid, ends, strict=True), start=2):
            within = within.narrow(axis, before, cells)
        within.copy_(x)
        for axis, (cells, (before, after), kind) in enumerate(zip(grid, ends, kinds, strict=True), start=2):
            ahead, behind = wide.narrow(axis, 0, before), wide.narrow(axis, before + cells, after)
            if kind == "circular":
                ahead.copy_(wide.narrow(axis, cells, before))
                behind.copy_(wide.narrow(axis, before, after))
            elif kind == "replicate":
                ahead.copy_(wide.narrow(axis, before, 1).expand_as(ahead))
                behind.copy_(wide.narrow(axis, before + cells - 1, 1).expand_as(behind))
            else:
                ahead.zero_()
                behind.zero_()
        return wide

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """The gradient of x: the transposed map."""
        layout, gradient = layout_of(gradient), gradient.clone()
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
        return gradient.contiguous(memory_format=layout), None, None
