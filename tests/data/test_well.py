"""The Well's layout, read back with plain h5py."""

import json

import h5py
import numpy as np
import pytest

import hybridworld as hw
from hybridworld.data.well import write_trajectories
from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.oregonator import Oregonator

ENVIRONMENTS = {
    "oregonator": Oregonator(grid=(16, 12)),
    "euler2d": Euler2D(grid=(16, 12)),
    "ball3d": hw.system("ball3d"),
    "tabletop": hw.system("tabletop"),
}


@pytest.fixture(params=ENVIRONMENTS)
def written(request, tmp_path):
    env = ENVIRONMENTS[request.param]
    samples = [env.initial("train", seed) for seed in (4, 7)]
    first = np.stack([s.state for s in samples])
    states = np.stack(list(env.trajectory(first, 3, np.stack([s.params for s in samples]))), axis=1)
    path = tmp_path / "data.hdf5"
    write_trajectories(path, env, "train", [4, 7], samples, states)
    return env, samples, states, path


def test_every_field_comes_back(written):
    env, _, states, path = written
    with h5py.File(path) as file:
        channel = 0
        for field in env.spec.fields:
            for index, name in enumerate(env.spec.components(field)):
                if field.kind == "scalar" or not env.spec.is_field:
                    found = file["t0_fields"][name][:]
                else:
                    found = file["t1_fields"][field.name][..., index]
                expected = states[:, :, channel] if env.spec.grid else states[:, :, channel, None]
                np.testing.assert_array_equal(found, expected.astype(np.float32))
                channel += 1
        assert channel == len(env.spec.channels)


def test_the_layout_has_what_loaders_ask_for(written):
    env, samples, states, path = written
    with h5py.File(path) as file:
        dims = list(file["dimensions"].attrs["spatial_dims"])
        assert file.attrs["grid_type"] == "cartesian" and file.attrs["n_trajectories"] == 2
        assert file.attrs["n_spatial_dims"] == len(dims) == max(len(env.spec.grid), 1)
        assert file["dimensions/time"].attrs["time_varying"] and len(file["dimensions/time"]) == states.shape[1]
        for rank in range(3):
            group = file[f"t{rank}_fields"]
            assert set(group.attrs["field_names"]) == set(group)
            for dataset in group.values():
                assert dataset.dtype == np.float32 and dataset.attrs["sample_varying"] and dataset.attrs["time_varying"]
                assert list(dataset.attrs["dim_varying"]) == [True] * len(dims)
        for condition in file["boundary_conditions"].values():
            assert condition.attrs["bc_type"] in ("WALL", "OPEN", "PERIODIC")
            assert condition["mask"][0] and condition["mask"][-1] and condition["mask"][:].sum() <= 2
        assert list(file.attrs["simulation_parameters"]) == [parameter.name for parameter in env.spec.params]
        for column, parameter in enumerate(env.spec.params):
            np.testing.assert_array_equal(file["scalars"][parameter.name], [s.params[column] for s in samples])


def test_the_origin_of_each_trajectory_is_told(written):
    env, samples, _, path = written
    with h5py.File(path) as file:
        assert list(file["origin/seed"]) == [4, 7]
        assert file.attrs["split"] == "train" and file.attrs["solver_version"] == env.version
        assert json.loads(file.attrs["hybridworld_identity"]) == env.identity
        for row, sample in enumerate(samples):
            for name, value in sample.origin.items():
                found = file["origin"][name][row]
                assert (found.decode() if isinstance(found, bytes) else found) == value
