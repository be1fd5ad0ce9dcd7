"""A network of my own: residual convolutions whose reach doubles from block to block, for fields in one to three dimensions."""

from torch import Tensor, nn

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


class Net(nn.Module):
    """x (batch, channels, *grid), condition (batch, size) -> change (batch, channels, *grid)."""

    def __init__(self, channels: int, boundaries: tuple[str, ...], condition: int, width: int = 48) -> None:
        super().__init__()
        mode = "circular" if set(boundaries) == {"periodic"} else "replicate"

        def convolution(inputs: int, outputs: int, reach: int = 1) -> nn.Module:
            make = CONVOLUTIONS[len(boundaries)]
            return make(inputs, outputs, 5, padding=2 * reach, dilation=reach, padding_mode=mode)

        self.first = convolution(channels, width)
        self.blocks = nn.ModuleList(convolution(width, width, reach) for reach in (1, 2, 4, 8))
        self.steering = nn.ModuleList(nn.Linear(condition, 2 * width) for _ in self.blocks)
        self.last = convolution(width, channels)  # a layer of this name starts at zero: training begins with "no change"

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        x = self.first(x)
        for block, steer in zip(self.blocks, self.steering, strict=True):
            scale, shift = steer(condition).reshape(len(x), 2, -1, *[1] * (x.dim() - 2)).unbind(1)
            x = x + nn.functional.gelu(block(x) * (1 + scale) + shift)
        return self.last(x)
