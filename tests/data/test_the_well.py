"""The package the_well, in an environment of its own, reads from our files what we wrote, bit for bit."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml

import hybridworld as hw
from hybridworld.data.well import write_trajectories
from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.oregonator import Oregonator

PYTHON = os.environ.get("HYBRIDWORLD_WELL_PYTHON")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="HYBRIDWORLD_WELL_PYTHON names no python that has the_well; `make test-slow` does"),
]

ENVIRONMENTS = {
    "oregonator": Oregonator(grid=(16, 12)),
    "euler2d": Euler2D(grid=(16, 12)),
    "ball3d": hw.system("ball3d"),
    "tabletop": hw.system("tabletop"),
}
SHARDS = [(0, 1, 2), (3, 4)]  # seeds
SPLITS = {"train": "float32", "ood-far": "float32", "test": "float16"}  # dtypes
FRAMES = 7
CODES = {"wall": 0, "open": 1, "periodic": 2}

REQUESTS = {
    "plain": {},
    "two in, two out": {"n_steps_input": 2, "n_steps_output": 2},
    "stride 2": {"min_dt_stride": 2, "max_dt_stride": 2},
    "stride 3, two in": {"min_dt_stride": 3, "max_dt_stride": 3, "n_steps_input": 2},
    "random stride": {"max_dt_stride": 5},
    "whole": {"full_trajectory_mode": True},
    "whole, stride 2": {"full_trajectory_mode": True, "min_dt_stride": 2, "max_dt_stride": 2},
    "absolute time": {"normalize_time_grid": False},
    "shifted split": {"well_split_name": "ood-far"},
    "half precision": {"well_split_name": "test"},
    "z-score": {"normalization": "ZScoreNormalization", "n_steps_output": 2},
    "rms": {"normalization": "RMSNormalization", "n_steps_output": 2},
    "changes": {"class": "DeltaWellDataset", "n_steps_input": 2, "n_steps_output": 2},
    "changes, z-score": {"class": "DeltaWellDataset", "normalization": "ZScoreNormalization", "n_steps_output": 2},
    "changes, rms": {"class": "DeltaWellDataset", "normalization": "RMSNormalization", "n_steps_output": 2},
}


def as_request(root, settings):
    options = {name: value for name, value in settings.items() if name not in ("class", "normalization")}
    usual = {"path": str(root), "well_split_name": "train", "return_grid": True, "boundary_return_type": "padding"}
    return {
        "class": settings.get("class", "WellDataset"),
        "normalization": settings.get("normalization"),
        "options": usual | {"use_normalization": "normalization" in settings} | options,
    }


def channels(env):
    """In the order of The Well: first all scalars, then all vectors."""
    spec = env.spec
    scalars = [field.name for field in spec.fields if field.kind == "scalar"]
    return scalars + [name for field in spec.fields if field.kind != "scalar" for name in spec.components(field)]


def channel_last(env, states):
    """(trajectory, time, *grid, channel); a state vector has a grid of one cell."""
    ordered = states[:, :, [env.spec.channels.index(name) for name in channels(env)]]
    return np.moveaxis(ordered if env.spec.grid else ordered[..., None], 2, -1)


def by_field(env, values):
    """Numbers per channel as stats.yaml has them: a list for a vector on a grid."""
    named = dict(zip(channels(env), values.tolist(), strict=True))
    if not env.spec.grid:
        return named
    return {
        field.name: named[field.name] if field.kind == "scalar" else [named[name] for name in env.spec.components(field)]
        for field in env.spec.fields
    }


class Written:
    """A dataset of two shards, and what the package read from it."""

    def __init__(self, env, root):
        self.env = env
        samples = {seed: env.initial("train", seed) for seeds in SHARDS for seed in seeds}
        self.params = np.stack([sample.params for sample in samples.values()])
        first = np.stack([sample.state for sample in samples.values()])
        states = np.stack(list(env.trajectory(first, FRAMES - 1, self.params)), axis=1).astype(np.float32)
        fields = channel_last(env, states)
        self.fields = {dtype: fields.astype(dtype) for dtype in SPLITS.values()}

        for split, dtype in SPLITS.items():
            folder = root / "data" / split
            folder.mkdir(parents=True)
            for number, seeds in enumerate(SHARDS):
                path, drawn = folder / f"{env.spec.name}-{number:05}.hdf5", [samples[seed] for seed in seeds]
                write_trajectories(path, env, split, seeds, drawn, states[list(seeds)], dtype)

        fields = fields.astype(np.float64)
        axes, change = tuple(range(fields.ndim - 1)), np.diff(fields, axis=1)
        stats = {
            "mean": fields.mean(axes), "std": fields.std(axes), "rms": np.sqrt((fields**2).mean(axes)),
            "mean_delta": change.mean(axes), "std_delta": change.std(axes), "rms_delta": np.sqrt((change**2).mean(axes)),
        }  # fmt: skip
        (root / "stats.yaml").write_text(yaml.safe_dump({name: by_field(env, values) for name, values in stats.items()}))
        self.stats = {name: values.astype(np.float32) for name, values in stats.items()}

        requests, answer = root / "requests.json", root / "answer.npz"
        requests.write_text(json.dumps([as_request(root, settings) for settings in REQUESTS.values()]))
        script = Path(__file__).with_name("read_with_the_well.py")
        run = subprocess.run([PYTHON, "-I", script, requests, answer], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        with np.load(answer) as arrays:
            self.arrays = dict(arrays)

    def samples(self, case):
        """What the package returned, sample by sample, each a dict of arrays."""
        number, samples = list(REQUESTS).index(case), {}
        for key, value in self.arrays.items():
            request, *rest = key.split("/")
            if int(request) == number and rest != ["metadata"]:
                samples.setdefault(int(rest[0]), {})[rest[1]] = value
        return [samples[index] for index in range(len(samples))]

    def metadata(self, case):
        return json.loads(str(self.arrays[f"{list(REQUESTS).index(case)}/metadata"]))


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def written(request, tmp_path_factory):
    return Written(ENVIRONMENTS[request.param], tmp_path_factory.mktemp(request.param))


def scaled(values, written, kind, suffix=""):
    """As the package normalises: in float32, with denominators of at least 1e-4."""
    denominator = {"ZScoreNormalization": "std", "RMSNormalization": "rms"}[kind] + suffix
    shift = written.stats["mean" + suffix] if kind == "ZScoreNormalization" else np.float32(0)
    return (values - shift) / np.maximum(written.stats[denominator], np.float32(1e-4))


@pytest.mark.parametrize("case", REQUESTS)
def test_every_sample_is_what_we_wrote(written, case):
    settings, spec = REQUESTS[case], written.env.spec
    found, written_fields = written.samples(case), written.fields[SPLITS[settings.get("well_split_name", "train")]]
    steps_in, steps_out = settings.get("n_steps_input", 1), settings.get("n_steps_output", 1)
    stride, whole = settings.get("min_dt_stride", 1), settings.get("full_trajectory_mode", False)
    if whole:
        steps_out = (FRAMES - steps_in * stride) // stride
    starts = 1 if whole else FRAMES - stride * (steps_in + steps_out - 1)
    assert len(found) == len(written_fields) * starts

    time = (np.arange(FRAMES) * spec.frame_step).astype(np.float32)
    strides = set()
    for index, sample in enumerate(found):
        trajectory, start = divmod(index, starts)
        if case == "random stride":
            stride = round(float(sample["output_time_grid"][0] / spec.frame_step))
            strides.add(stride)
        frames = start + stride * np.arange(steps_in + steps_out)
        fields, times = written_fields[trajectory, frames], time[frames]
        if settings.get("normalize_time_grid", True):
            times = times - times[0]
        before, after = fields[:steps_in], fields[steps_in:]
        if settings.get("class") == "DeltaWellDataset":
            after = np.diff(fields[steps_in - 1 :], axis=0)
        if kind := settings.get("normalization"):
            before = scaled(before, written, kind)
            after = scaled(after, written, kind, "_delta" if settings.get("class") == "DeltaWellDataset" else "")
        expected = {
            "input_fields": before,
            "output_fields": after,
            "constant_scalars": written.params[trajectory],
            "boundary_conditions": np.array([[CODES[axis.boundary]] * 2 for axis in spec.axes[: max(len(spec.grid), 1)]], "f4"),
            "space_grid": np.stack(np.meshgrid(*(spec.centres() or [np.zeros(1)]), indexing="ij"), -1).astype("f4"),
            "input_time_grid": times[:steps_in],
            "output_time_grid": times[steps_in:],
        }
        expected = {key: value for key, value in expected.items() if value.size}  # the package leaves out what is empty
        assert sample.keys() == expected.keys()
        for key, value in expected.items():
            assert sample[key].dtype == value.dtype, key
            np.testing.assert_array_equal(sample[key], value, err_msg=f"{key} of sample {index}")
    assert case != "random stride" or len(strides) > 2


def test_the_description_is_what_we_wrote(written):
    spec, metadata = written.env.spec, written.metadata("plain")
    assert metadata["dataset_name"] == spec.name and metadata["grid_type"] == "cartesian"
    assert metadata["spatial_resolution"] == list(spec.grid or (1,)) and metadata["n_spatial_dims"] == max(len(spec.grid), 1)
    assert metadata["n_trajectories_per_file"] == [3, 2] and metadata["n_steps_per_trajectory"] == [FRAMES] * 2
    assert metadata["constant_scalar_names"] == [parameter.name for parameter in spec.params]
    assert metadata["scalar_names"] == [] and not any(metadata["constant_field_names"].values())
    assert [name for names in metadata["field_names"].values() for name in names] == channels(written.env)
    assert len(metadata["field_names"]["1"]) == (2 if spec.name == "euler2d" else 0)
    assert metadata["boundary_condition_types"] == [spec.axes[0].boundary.upper()]
