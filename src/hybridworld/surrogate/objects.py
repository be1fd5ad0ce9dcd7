"""A network for sets of objects: each hears from all others, whatever their number and order.

    x_i --> stem --> h_i;   4 times:  h_i += out( sum over j of message(h_i, h_j) ),  h_i += mlp(h_i)   --> head --> change_i

FiLM steers the messages and the mlp. Every layer treats all objects alike and a sum has no order, so an exchange of objects
exchanges the answers: exactly, by construction. Messages are added up, not averaged: a far object that sends nothing leaves the
others as they are.
"""

from torch import Tensor, nn
from torch.nn.functional import silu

from hybridworld.surrogate.conditioning import FiLM


class Objects(nn.Module):
    """channels -> `width` features per object, `depth` rounds of messages, -> channels."""

    states = "objects"

    def __init__(self, channels: int, boundaries: tuple[str, ...], condition: int, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(channels, width), nn.SiLU(), nn.Linear(width, width))
        self.rounds = nn.ModuleList(Round(width, condition) for _ in range(depth))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.SiLU(), nn.Linear(width, channels))

    @property
    def last(self) -> nn.Module:
        """The layer whose answer is the change."""
        return self.head[-1]

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """x (batch, channels, objects), condition (batch, size) -> (batch, channels, objects)."""
        h = self.stem(x.transpose(1, 2))
        for each in self.rounds:
            h = each(h, condition)
        return self.head(h).transpose(1, 2)


class Round(nn.Module):
    """h + out(sum of messages), and then h + mlp(h); a message has half as many features, since there are many of them."""

    def __init__(self, width: int, condition: int) -> None:
        super().__init__()
        half = max(width // 2, 1)
        self.norm, self.norm_after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mine, self.others = nn.Linear(width, half), nn.Linear(width, half, bias=False)
        self.heard, self.steered = FiLM(condition, half), FiLM(condition, width)
        self.message, self.out = nn.Linear(half, half), nn.Linear(half, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, h: Tensor, condition: Tensor) -> Tensor:
        """h (batch, objects, width)."""
        n = self.norm(h)
        mine = _along_features(self.heard, self.mine(n), condition)
        pairs = silu(mine[:, :, None] + self.others(n)[:, None])  # (batch, to, from, half)
        h = h + self.out(silu(self.message(pairs)).sum(dim=2))
        return h + self.mlp(_along_features(self.steered, self.norm_after(h), condition))


def _along_features(film: FiLM, x: Tensor, condition: Tensor) -> Tensor:
    """FiLM of x (batch, objects, features), whose features come last."""
    return film(x.transpose(1, 2), condition).transpose(1, 2)
