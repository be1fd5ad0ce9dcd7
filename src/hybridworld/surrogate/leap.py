"""A network for fields that works on a coarse grid: `patch` cells of the state along each axis become one latent cell.

    state --space to depth--> stem 3x3 -> 6 blocks -> head 1x1 --depth to space--> two 3x3 convolutions -> answer
      |                        (all of it on the latent grid)                       |
      |_____________________________________________________________________________|    the state itself, at full resolution

Most of the arithmetic is done on the latent grid, and the last two convolutions see the state cell by cell, so that fronts stay
sharp. Beyond the edge of the grid lies the other side of a periodic axis, and the same value once more at any other end.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hybridworld.errors import InvalidInput
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.conditioning import FiLM
from hybridworld.surrogate.config import SurrogateConfig
from hybridworld.surrogate.padding import features_last, padded

CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
FEATURES = 8
"""Features that each cell of the state receives from its latent cell."""
FINEST = 32
"""Latent cells along the shortest axis that the default patch leaves, if the grid has so many."""


class Leap(nn.Module):
    """channels -> answers; `latent` and `beside` count further inputs, on the latent grid and at the full resolution."""

    states = "fields"

    @staticmethod
    def options(config: SurrogateConfig, spec: StateSpec) -> dict[str, int]:
        """The patch, as configured or by the grid; and the answers, of which a gated residual wants two per channel."""
        answers = {"answers": 2 * len(spec.channels)} if config.residual == "gated" else {}
        return {"patch": config.patch or default_patch(spec.grid)} | answers

    def __init__(
        self,
        channels: int,
        boundaries: tuple[str, ...],
        condition: int,
        width: int = 96,
        patch: int = 4,
        answers: int | None = None,
        latent: int = 0,
        beside: int = 0,
        depth: int = 6,
    ) -> None:
        super().__init__()
        if len(boundaries) not in CONV:
            raise InvalidInput(f"The backbone leap works on grids of 1, 2 or 3 dimensions, not of {len(boundaries)}.")
        self.boundaries, self.patch = boundaries, patch
        cells, fine = patch ** len(boundaries), max(width // 4, 1)
        self.stem = Conv(channels * cells + latent, width, boundaries)
        self.blocks = nn.ModuleList(Block(width, boundaries, condition) for _ in range(depth))
        self.head = CONV[len(boundaries)](width, FEATURES * cells, 1)
        self.finish = nn.Sequential(
            Conv(FEATURES + channels + beside, fine, boundaries), nn.GELU(), Conv(fine, answers or channels, boundaries)
        )

    @property
    def last(self) -> nn.Module:
        """The layer that gives the answer."""
        return self.finish[-1]

    def forward(self, x: Tensor, condition: Tensor, latent: Tensor | None = None, beside: Tensor | None = None) -> Tensor:
        """x (batch, channels, *grid), condition (batch, size) -> (batch, answers, *grid)."""
        grid = x.shape[2:]
        x = completed(x, self.patch, self.boundaries)
        if min(x.shape[2:]) < 2 * self.patch:
            raise InvalidInput(f"leap with a patch of {self.patch} needs {2 * self.patch} cells per axis, not {tuple(grid)}.")
        y = gathered(x, self.patch)
        y = self.stem(features_last(y if latent is None else torch.cat([y, latent], dim=1)))
        for block in self.blocks:
            y = block(y, condition)
        fine = [spread(self.head(y), self.patch), x] if beside is None else [spread(self.head(y), self.patch), x, beside]
        y = self.finish(torch.cat([features_last(each) for each in fine], dim=1))
        for axis, cells in enumerate(grid, start=2):
            y = y.narrow(axis, 0, cells)
        return y


class Block(nn.Module):
    """x + [depthwise 5x5, GroupNorm(1), FiLM, 1x1 to 3 width, GELU, 1x1](x)."""

    def __init__(self, width: int, boundaries: tuple[str, ...], condition: int) -> None:
        super().__init__()
        pointwise = CONV[len(boundaries)]
        self.space = Conv(width, width, boundaries, size=5, groups=width)
        self.norm, self.film = nn.GroupNorm(1, width), FiLM(condition, width)
        self.mix = nn.Sequential(pointwise(width, 3 * width, 1), nn.GELU(), pointwise(3 * width, width, 1))

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """One block of the network: x (batch, width, *latent grid) in, the same shape out."""
        return x + self.mix(self.film(self.norm(self.space(x)), condition))


class Conv(nn.Module):
    """A convolution of odd `size` that knows the boundary; the grid keeps its shape."""

    def __init__(self, features: int, out: int, boundaries: tuple[str, ...], size: int = 3, groups: int = 1) -> None:
        super().__init__()
        self.boundaries, self.reach = boundaries, size // 2
        self.conv = CONV[len(boundaries)](features, out, size, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, features, *grid) -> (batch, out, *grid)."""
        return self.conv(framed(x, self.reach, self.boundaries))


def default_patch(grid: tuple[int, ...]) -> int:
    """8, 4 or 2: the largest that divides the grid and leaves FINEST latent cells along every axis, else the smallest."""
    fitting = [patch for patch in (8, 4, 2) if not any(cells % patch for cells in grid)] or [2]
    return next((patch for patch in fitting if min(grid) >= FINEST * patch), fitting[-1])


def framed(x: Tensor, cells: int, boundaries: tuple[str, ...]) -> Tensor:
    """x (batch, features, *grid) with `cells` more cells at both ends of each axis."""
    return extended(x, [(cells, cells)] * len(boundaries), boundaries)


def completed(x: Tensor, patch: int, boundaries: tuple[str, ...]) -> Tensor:
    """x (batch, features, *grid) with as many more cells at the far ends as it takes to cut the grid into patches."""
    return extended(x, [(0, -cells % patch) for cells in x.shape[2:]], boundaries)


def extended(x: Tensor, ends: list[tuple[int, int]], boundaries: tuple[str, ...]) -> Tensor:
    """x with that many more cells before and after each axis: what lies beyond the edge."""
    return padded(x, ends, ["circular" if boundary == "periodic" else "replicate" for boundary in boundaries])


def gathered(x: Tensor, patch: int) -> Tensor:
    """Space to depth: (batch, c, *grid) -> (batch, c patch^d, *latent grid)."""
    dimensions = x.dim() - 2
    split = x.reshape(*x.shape[:2], *(part for cells in x.shape[2:] for part in (cells // patch, patch)))
    order = [0, 1, *range(3, 3 + 2 * dimensions, 2), *range(2, 2 + 2 * dimensions, 2)]
    return split.permute(order).flatten(1, 1 + dimensions)


def spread(x: Tensor, patch: int) -> Tensor:
    """Depth to space, the inverse of `gathered`: (batch, c patch^d, *latent grid) -> (batch, c, *grid)."""
    dimensions = x.dim() - 2
    split = x.unflatten(1, (-1, *[patch] * dimensions))
    order = [0, 1, *(axis for each in range(dimensions) for axis in (2 + dimensions + each, 2 + each))]
    return split.permute(order).reshape(x.shape[0], -1, *(cells * patch for cells in x.shape[2:]))


def averaged(x: Tensor, patch: int) -> Tensor:
    """Means over patches: (batch, c, *grid) -> (batch, c, *latent grid)."""
    return gathered(x, patch).unflatten(1, (x.shape[1], -1)).mean(dim=2)


def interpolated(x: Tensor, patch: int, boundaries: tuple[str, ...]) -> Tensor:
    """Linear interpolation between the centres of latent cells: (batch, c, *latent grid) -> (batch, c, *grid)."""
    grid = [cells * patch for cells in x.shape[2:]]
    wide = framed(x, 1, boundaries)
    fine = F.interpolate(wide, [cells + 2 * patch for cells in grid], mode=LINEAR[len(grid)], align_corners=False)
    for axis, cells in enumerate(grid, start=2):
        fine = fine.narrow(axis, patch, cells)
    return fine
