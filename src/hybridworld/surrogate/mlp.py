"""The paper's network for state vectors: a residual MLP whose blocks are steered by FiLM."""

from torch import Tensor, nn

from hybridworld.surrogate.conditioning import FiLM


class MLP(nn.Module):
    """channels -> 256, four residual blocks, LayerNorm, GELU, -> channels."""

    states = "state vectors"

    def __init__(self, channels: int, boundaries: tuple[str, ...], condition: int, width: int = 256) -> None:
        super().__init__()
        self.stem = nn.Linear(channels, width)
        self.blocks = nn.ModuleList(Block(width, condition) for _ in range(4))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.GELU(), nn.Linear(width, channels))

    @property
    def last(self) -> nn.Module:
        """The layer whose answer is the change."""
        return self.head[-1]

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """x (batch, channels), condition (batch, size) -> (batch, channels)."""
        x = self.stem(x)
        for block in self.blocks:
            x = block(x, condition)
        return self.head(x)


class Block(nn.Module):
    """x + [linear, LayerNorm, GELU, FiLM, linear, LayerNorm, GELU](x)."""

    def __init__(self, width: int, condition: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU())
        self.film = FiLM(condition, width)
        self.second = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU())

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """One block of the network: x (batch, width) in, the same shape out."""
        return x + self.second(self.film(self.first(x), condition))
