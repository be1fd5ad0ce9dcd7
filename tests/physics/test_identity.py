"""What tells one solver from another."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from hybridworld.physics.ball3d import Ball3D
from hybridworld.physics.environment import Environment
from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.oregonator import Oregonator
from hybridworld.physics.registry import BUILT_IN, find_system
from tests.data.decay import SPEC


@pytest.mark.parametrize("name", BUILT_IN)
def test_it_is_plain_json_and_the_same_at_each_call(name):
    identity = find_system(name).identity
    assert json.loads(json.dumps(identity)) == identity == find_system(name).identity
    assert identity["class"] == type(find_system(name)).__name__ and identity["version"] == find_system(name).version


@pytest.mark.parametrize(
    ("one", "change"),
    [
        (Ball3D(), {"substeps": 1}),
        (Ball3D(), {"frame_step": 0.02}),
        (Euler2D(), {"cfl": 0.2}),
        (Euler2D(), {"dtype": "float32"}),
        (Oregonator(), {"frame_step": 0.025}),
        (Oregonator(), {"grid": (128, 128)}),
    ],
)
def test_every_setting_is_part_of_it(one, change):
    other = replace(one, **change).identity
    (name,) = change
    assert {key for key in one.identity if one.identity[key] != other[key]} == {name}


class Still(Environment):
    """Not a dataclass."""

    spec = SPEC

    def sample(self, rng, split): ...

    def advance(self, states, frames, params):
        return states


def test_a_class_that_is_no_dataclass_tells_what_its_spec_knows():
    assert Still().identity == {"class": "Still", "version": "1", "frame_step": 0.1, "grid": [6, 4]}


@dataclass(frozen=True)
class Tabled(Still):
    """With fields that JSON does not know."""

    table: np.ndarray
    weight: np.float32


def test_numpy_values_become_plain_ones():
    tabled = Tabled(np.arange(3), np.float32(0.5))
    assert tabled.identity == {"class": "Tabled", "version": "1", "table": [0, 1, 2], "weight": 0.5}
