"""The paper's network for fields: a U-Net whose blocks are steered by FiLM, on grids of one, two or three dimensions.

    stem 3x3 -> 48 -> 96 -> 192 -> 192 -> bottleneck 192 -> 192 -> 96 -> 48 -> head        (features, for width 48)
                |     |      |_________________________|      |     |
                |     |_______________________________________|     |       average pooling on the way down, linear
                |___________________________________________________|       interpolation and concatenation on the way up

What lies beyond the edge of the grid is what the boundary says: the other side of a periodic axis, the same value once more
at an open end, nothing at a wall.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hybridworld.errors import InvalidInput
from hybridworld.surrogate.conditioning import FiLM
from hybridworld.surrogate.padding import padded

CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
POOL = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
PADDING = {"periodic": "circular", "open": "replicate", "wall": "constant"}
GROUPS = 8
SMALLEST = 2**3  # cells: three halvings


class UNet(nn.Module):
    """Four levels with 1, 2, 4 and 4 times `width` features."""

    states = "fields"

    def __init__(self, channels: int, boundaries: tuple[str, ...], condition: int, width: int = 48) -> None:
        super().__init__()
        if len(boundaries) not in CONV:
            raise InvalidInput(f"The U-Net works on grids of 1, 2 or 3 dimensions, not of {len(boundaries)}.")
        if width % GROUPS:
            raise InvalidInput(f"The width of a U-Net is {width}: it must be a multiple of {GROUPS}.")
        self.boundaries = boundaries
        levels = [width, 2 * width, 4 * width, 4 * width]

        def block(features: int, out: int) -> Block:
            return Block(features, out, boundaries, condition)

        self.stem = Conv(channels, width, boundaries)
        self.down = nn.ModuleList(block(a, b) for a, b in zip([width, *levels], levels, strict=False))
        self.bottleneck = block(levels[-1], levels[-1])
        self.up = nn.ModuleList(block(a + b, b) for a, b in zip(levels[:0:-1], levels[-2::-1], strict=True))
        self.head = nn.Sequential(nn.GroupNorm(GROUPS, width), nn.SiLU(), Conv(width, channels, boundaries))

    @property
    def last(self) -> nn.Module:
        """The layer whose answer is the change."""
        return self.head[-1]

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """x (batch, channels, *grid), condition (batch, size) -> (batch, channels, *grid)."""
        if min(x.shape[2:]) < SMALLEST:
            raise InvalidInput(f"The U-Net needs at least {SMALLEST} cells along each axis; the grid is {tuple(x.shape[2:])}.")
        x = self.stem(x)
        skips: list[Tensor] = []
        for block in self.down:
            if skips:
                x = POOL[len(self.boundaries)](x, 2)
            x = block(x, condition)
            skips.append(x)
        x = self.bottleneck(x, condition)
        for block, skip in zip(self.up, skips[-2::-1], strict=True):
            x = block(torch.cat([doubled(x, skip.shape[2:], self.boundaries), skip], dim=1), condition)
        return self.head(x)


class Block(nn.Module):
    """Conv 3x3, GroupNorm, SiLU, FiLM, conv 3x3, GroupNorm, SiLU."""

    def __init__(self, features: int, out: int, boundaries: tuple[str, ...], condition: int) -> None:
        super().__init__()
        self.first = nn.Sequential(Conv(features, out, boundaries), nn.GroupNorm(GROUPS, out), nn.SiLU())
        self.film = FiLM(condition, out)
        self.second = nn.Sequential(Conv(out, out, boundaries), nn.GroupNorm(GROUPS, out), nn.SiLU())

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """x (batch, features, *grid) -> (batch, out, *grid)."""
        return self.second(self.film(self.first(x), condition))


class Conv(nn.Module):
    """A 3x3 convolution that knows the boundary; one cell of padding along each axis."""

    def __init__(self, features: int, out: int, boundaries: tuple[str, ...]) -> None:
        super().__init__()
        self.boundaries = boundaries
        self.walled = set(boundaries) == {"wall"}  # then the convolution pads with zeros itself, which is free
        self.conv = CONV[len(boundaries)](features, out, 3, padding=int(self.walled))

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, features, *grid) -> (batch, out, *grid)."""
        return self.conv(x if self.walled else framed(x, self.boundaries))


def framed(x: Tensor, boundaries: tuple[str, ...]) -> Tensor:
    """x with one more cell at both ends of each axis."""
    return padded(x, [(1, 1)] * len(boundaries), [PADDING[boundary] for boundary in boundaries])


def doubled(x: Tensor, grid: torch.Size, boundaries: tuple[str, ...]) -> Tensor:
    """Linear interpolation to the cell centres of a grid that is twice as fine; across the seam of a periodic axis as well."""
    seam = [int(boundary == "periodic" and fine == 2 * coarse)
            for boundary, fine, coarse in zip(boundaries, grid, x.shape[2:], strict=True)]  # fmt: skip
    for axis, wide in enumerate(seam):
        if wide:
            x = torch.cat([x.narrow(2 + axis, -1, 1), x, x.narrow(2 + axis, 0, 1)], dim=2 + axis)
    x = F.interpolate(x, [cells + 4 * wide for cells, wide in zip(grid, seam, strict=True)], mode=LINEAR[len(grid)])
    for axis, wide in enumerate(seam):
        if wide:
            x = x.narrow(2 + axis, 2, grid[axis])
    return x
