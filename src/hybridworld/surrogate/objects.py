"""A network for sets of objects: each hears from all others, whatever their number and order.

    x_i --> stem --> h_i;   x_j - x_i --> relation --> r_ij
    4 times:  h_i += out( sum over j of message(h_i, h_j, r_ij) ),  h_i += mlp(h_i);   h_i --> head --> change_i

A relation sees products of differences, so that it can tell distances, closing speeds and hence whether two bodies will meet.
FiLM steers relations, messages and the mlp. Every layer treats all objects alike and a sum has no order, so an exchange of
objects exchanges the answers: exactly, by construction. Messages are added up, not averaged: a far object that sends nothing
leaves the others as they are.
"""

from torch import Tensor, nn
from torch.nn.functional import silu

from hybridworld.surrogate.conditioning import FiLM


class Objects(nn.Module):
    """channels -> `width` features per object, `depth` rounds of messages, -> channels."""

    states = "objects"

    def __init__(self, channels: int, boundaries: tuple[str, ...], condition: int, width: int = 96, depth: int = 4) -> None:
        super().__init__()
        half = max(width // 2, 1)  # features of pairs, of which there are many
        self.stem = nn.Sequential(nn.Linear(channels, width), nn.SiLU(), nn.Linear(width, width))
        self.relation = Relation(channels, half, condition)
        self.rounds = nn.ModuleList(Round(width, half, condition) for _ in range(depth))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.SiLU(), nn.Linear(width, channels))

    @property
    def last(self) -> nn.Module:
        """The layer whose answer is the change."""
        return self.head[-1]

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """x (batch, channels, objects), condition (batch, size) -> (batch, channels, objects)."""
        x = x.transpose(1, 2)
        h, relations = self.stem(x), self.relation(x, condition)
        for each in self.rounds:
            h = each(h, relations, condition)
        return self.head(h).transpose(1, 2)


class Relation(nn.Module):
    """Features of each pair of objects, from differences of their channels and products of differences."""

    def __init__(self, channels: int, features: int, condition: int) -> None:
        super().__init__()
        self.left, self.right = (nn.Linear(channels, features, bias=False) for _ in range(2))
        self.plain = nn.Linear(channels, features)
        self.norm, self.film = nn.LayerNorm(features), FiLM(condition, features)
        self.out = nn.Linear(features, features)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """x (batch, objects, channels) -> (batch, to, from, features)."""
        left, right, plain = (_differences(each(x)) for each in (self.left, self.right, self.plain))
        pairs = self.norm(left * right + plain).flatten(1, 2)
        return self.out(silu(_along_features(self.film, pairs, condition))).unflatten(1, (x.shape[1], x.shape[1]))


class Round(nn.Module):
    """h + out(sum of messages), and then h + mlp(h)."""

    def __init__(self, width: int, half: int, condition: int) -> None:
        super().__init__()
        self.norm, self.norm_after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mine, self.others, self.related = nn.Linear(width, half), nn.Linear(width, half), nn.Linear(half, half)
        self.heard, self.steered = FiLM(condition, half), FiLM(condition, width)
        self.message, self.out = nn.Linear(half, half), nn.Linear(half, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, h: Tensor, relations: Tensor, condition: Tensor) -> Tensor:
        """h (batch, objects, width), relations (batch, to, from, half)."""
        n = self.norm(h)
        mine = _along_features(self.heard, self.mine(n), condition)
        pairs = silu(mine[:, :, None] + self.others(n)[:, None] + self.related(relations))
        h = h + self.out(silu(self.message(pairs)).sum(dim=2))
        return h + self.mlp(_along_features(self.steered, self.norm_after(h), condition))


def _differences(x: Tensor) -> Tensor:
    """x (batch, objects, features) of the one minus that of the other: (batch, to, from, features)."""
    return x[:, None] - x[:, :, None]


def _along_features(film: FiLM, x: Tensor, condition: Tensor) -> Tensor:
    """FiLM of x (batch, objects, features), whose features come last."""
    return film(x.transpose(1, 2), condition).transpose(1, 2)
