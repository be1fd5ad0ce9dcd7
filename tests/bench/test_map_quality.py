"""The probe: an error map that grows with the error is worth 1, one that shrinks with it 0."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hybridworld.bench import map_quality
from hybridworld.bench.map_quality import auroc_of_error_map
from hybridworld.data.pairs import Batch
from tests.surrogate.flows import Ring


class Growing:
    """f(s, h) = s + size h^2 where nothing changes: its error is size h^2, its error map half of that."""

    def __init__(self, size):
        self.size, self.mean, self.std = torch.from_numpy(size), torch.zeros(2), torch.ones(2)
        self.spec = replace(Ring().spec, grid=size.shape[2:])

    def __call__(self, states, horizons, params):
        return states + self.size * horizons.reshape(-1, *[1] * (states.dim() - 1)) ** 2


class Settled(Growing):
    """The larger its error, the more it agrees with itself."""

    def __call__(self, states, horizons, params):
        h = horizons.reshape(-1, *[1] * (states.dim() - 1))
        return states + torch.where(h == 4, self.size, (self.size + 1 / self.size) / 2)


def still(count, *grid):
    states = np.zeros((count, 2, *grid), np.float32)
    return {4: Batch(states, np.full(count, 4), np.zeros((count, 0), np.float32), states)}


@pytest.mark.parametrize(("count", "grid"), [(3, (8, 6)), (50, ())])
def test_it_is_about_cells_of_a_field_and_about_trajectories_of_a_vector(count, grid):
    size = np.random.default_rng(0).uniform(1, 2, size=(count if not grid else 1, 1, *grid)).astype(np.float32)
    assert auroc_of_error_map(Growing(size), still(count, *grid)) == {4: 1.0}
    assert auroc_of_error_map(Settled(size), still(count, *grid)) == {4: 0.0}


def test_a_sample_of_many_cells_is_enough(monkeypatch):
    monkeypatch.setattr(map_quality, "MOST", 20)
    size = np.random.default_rng(0).uniform(1, 2, size=(1, 1, 8, 8)).astype(np.float32)
    scores, errors = map_quality.scores_and_errors(Growing(size), still(1, 8, 8)[4])
    assert 5 < len(scores) < 40 and np.allclose(errors, 2 * scores)


def test_where_all_errors_are_equal_there_is_no_number():
    assert auroc_of_error_map(Growing(np.zeros((1, 1, 4, 4), np.float32)), still(2, 4, 4)) == {}
