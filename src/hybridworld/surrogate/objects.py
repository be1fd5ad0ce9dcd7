"""A network for sets of objects: each hears from all others, whatever their number and order.

    x_i and its free path --> stem --> h_i
    once per part of the horizon:  path of i during that part, bent by h_i;  nearest approach of each pair on the way
                                   h_i += out( sum over j of message(h_i, h_j, approach_ij, products_ij) ),  h_i += mlp(h_i)
    h_i --> head --> change_i

Rounds of messages follow time: the first knows where bodies would be after a part of the horizon if nothing stopped them, and
what it finds out about contacts bends the paths that the next one looks at. So a body that is hit can hit another. Products of
differences with channels of either body tell where on a body it is met, and closing speeds. FiLM steers messages and the mlp.

Every layer treats all objects alike and a sum has no order, so an exchange of objects exchanges the answers: exactly, by
construction. Messages are added up, not averaged: a far object that sends nothing leaves the others as they are.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.conditioning import FiLM
from hybridworld.surrogate.config import SurrogateConfig

TINY = 1e-6  # square of a distance in deviations: at zero a root has no gradient


class Objects(nn.Module):
    """channels -> `width` features per object, `depth` rounds of messages, -> channels.

    `places` are the channels that move freely, whose paths are given to it; it may have none.
    """

    states = "objects"

    @staticmethod
    def options(config: SurrogateConfig, spec: StateSpec) -> dict[str, Any]:
        """The channels whose rates of change the spec tells."""
        return {"places": tuple(place for place, _ in spec.rates)}

    def __init__(
        self,
        channels: int,
        boundaries: tuple[str, ...],
        condition: int,
        width: int = 96,
        depth: int = 4,
        places: tuple[int, ...] = (),
    ) -> None:
        super().__init__()
        half = max(width // 2, 1)  # features of pairs, of which there are many
        self.parts, self._places = depth if places else 0, list(places)
        """How many parts of the horizon it wants to know free paths of."""
        self.stem = nn.Sequential(nn.Linear(channels + depth * len(places), width), nn.SiLU(), nn.Linear(width, width))
        self.rounds = nn.ModuleList(Round(channels, width, half, condition, len(places)) for _ in range(depth))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.SiLU(), nn.Linear(width, channels))

    @property
    def last(self) -> nn.Module:
        """The layer whose answer is the change."""
        return self.head[-1]

    def forward(self, x: Tensor, condition: Tensor, paths: Tensor | None = None) -> Tensor:
        """x (batch, channels, objects), condition (batch, size), paths (batch, depth, places, objects) -> like x."""
        x = x.transpose(1, 2)
        here = x[:, :, self._places]
        stops = [here] * len(self.rounds) if paths is None else list(paths.transpose(2, 3).unbind(1))
        h = self.stem(torch.cat([x, *(stop - here for stop in stops)], dim=2))
        for each, stop in zip(self.rounds, stops, strict=True):
            h, here = each(h, x, here, stop, condition)
        return self.head(h).transpose(1, 2)


class Round(nn.Module):
    """h + out(sum of messages), and then h + mlp(h); it bends the paths."""

    def __init__(self, channels: int, width: int, half: int, condition: int, places: int) -> None:
        super().__init__()
        self.norm, self.norm_after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.moves = places > 0
        if self.moves:
            self.bend, self.approach = nn.Linear(width, places), nn.Linear(2 * places + 2, half)
            nn.init.zeros_(self.bend.weight)
            nn.init.zeros_(self.bend.bias)
        self.mine, self.others = nn.Linear(width, half), nn.Linear(width, half)
        self.between, self.at_mine, self.at_others = (nn.Linear(channels + places, half, bias=False) for _ in range(3))
        self.heard, self.steered = FiLM(condition, half), FiLM(condition, width)
        self.message, self.out = nn.Linear(half, half), nn.Linear(half, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, h: Tensor, x: Tensor, here: Tensor, there: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """h (batch, objects, width), x (batch, objects, channels), here and there (batch, objects, places) -> h, there."""
        n = self.norm(h)
        mine = _along_features(self.heard, self.mine(n), condition)
        pairs = mine[:, :, None] + self.others(n)[:, None]
        if self.moves:
            there = there + self.bend(n)
            pairs = pairs + self.approach(approach(here, there))
        body = torch.cat([x, there], dim=2)
        products = _differences(self.between(body)) * (self.at_mine(body)[:, :, None] + self.at_others(body)[:, None])
        h = h + self.out(silu(self.message(silu(pairs + products))).sum(dim=2))
        return h + self.mlp(_along_features(self.steered, self.norm_after(h), condition)), there


def approach(here: Tensor, there: Tensor) -> Tensor:
    """How pairs come near each other while bodies go straight from here to there, both (batch, objects, places).

    (batch, to, from, 2 places + 2): where the other one is at the end and when it is nearest, and how far.
    """
    before, after = _differences(here), _differences(there)
    way = after - before
    share = -(before * way).sum(dim=3, keepdim=True) / (_squares(way) + TINY)  # of the way at which they are nearest
    nearest = before + share.clamp(0, 1) * way
    return torch.cat([after, nearest, (_squares(after) + TINY).sqrt(), (_squares(nearest) + TINY).sqrt()], dim=3)


def _squares(vectors: Tensor) -> Tensor:
    return vectors.square().sum(dim=-1, keepdim=True)


def _differences(x: Tensor) -> Tensor:
    """x (batch, objects, features) of the one minus that of the other: (batch, to, from, features)."""
    return x[:, None] - x[:, :, None]


def _along_features(film: FiLM, x: Tensor, condition: Tensor) -> Tensor:
    """FiLM of x (batch, objects, features), whose features come last."""
    return film(x.transpose(1, 2), condition).transpose(1, 2)
