"""What was written comes back, from our files and from foreign ones, along every way of reading; what is wrong is refused."""

import multiprocessing
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import h5py
import numpy as np
import pytest

import hybridworld as hw
from hybridworld.data import dataset as module
from hybridworld.data import well_file
from hybridworld.data.dataset import Dataset
from hybridworld.data.well import SPEC, write_trajectories
from hybridworld.errors import InvalidInput
from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.oregonator import Oregonator
from hybridworld.physics.spec_text import spec_from_text, spec_to_text
from tests.data.on_disk import rewrite, write_dataset, write_foreign

ENVIRONMENTS = {"oregonator": Oregonator(grid=(16, 12)), "euler2d": Euler2D(grid=(16, 12)), "ball3d": hw.system("ball3d")}
WAYS = {
    "memory": {},
    "memmap": {},
    "compressed": dict(chunks=True, compression="gzip"),
    "chunked": dict(chunks=True),
    "big-endian": dict(dtype=">f4"),
    "double": dict(dtype="f8"),
}
FRAMES = 7


@pytest.fixture(params=ENVIRONMENTS)
def env(request):
    return ENVIRONMENTS[request.param]


def pairs_of(count, frames, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(count, size=40), rng.integers(frames, size=40)


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_reading_gives_what_was_written(env, way, tmp_path, monkeypatch):
    states, params = write_dataset(tmp_path, env, {"train": ("train", 5)}, FRAMES)["train"]
    if WAYS[way]:
        for path in tmp_path.rglob("*.hdf5"):
            rewrite(path, **WAYS[way])
    if way != "memory":
        monkeypatch.setattr(module, "IN_MEMORY", 0)
    dataset = Dataset(tmp_path)
    trajectories, frames = pairs_of(5, FRAMES)
    read = dataset.read("train", trajectories, frames)
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read, states[trajectories, frames])
    np.testing.assert_array_equal(dataset.trajectory("train", 3), states[3])
    np.testing.assert_array_equal(dataset.params("train"), params)
    assert dataset.nbytes("train") == states.nbytes


def test_contiguous_files_are_never_opened_again_by_hdf5(env, tmp_path, monkeypatch):
    write_dataset(tmp_path, env, {"train": ("train", 3)}, FRAMES)
    monkeypatch.setattr(module, "IN_MEMORY", 0)
    dataset = Dataset(tmp_path)
    monkeypatch.setattr(well_file.h5py, "File", None)
    assert dataset.read("train", *pairs_of(3, FRAMES)).shape == (40, *env.spec.shape)


def test_half_precision_comes_back_as_single(tmp_path):
    env = ENVIRONMENTS["oregonator"]
    samples = [env.initial("train", 0)]
    states = env.record(samples[0].state[None], 4, samples[0].params[None]).swapaxes(1, 2)
    (tmp_path / "data/train").mkdir(parents=True)
    write_trajectories(tmp_path / "data/train/a.h5", env, "train", [0], samples, states, "float16")
    np.testing.assert_array_equal(Dataset(tmp_path).trajectory("train", 0), states[0].astype(np.float16).astype(np.float32))


def test_our_files_hold_the_whole_spec(env, tmp_path):
    assert spec_from_text(spec_to_text(env.spec)) == env.spec
    write_dataset(tmp_path, env, {"train": ("train", 2), "valid": ("val", 1), "ood-far": ("ood-far", 1)}, FRAMES)
    dataset = Dataset(tmp_path)
    assert dataset.spec == replace(env.spec, frames=FRAMES, horizons=(1, 2, 4))
    assert dataset.splits == ("train", "val", "ood-far")
    assert [dataset.count(split) for split in dataset.splits] == [2, 1, 1]
    assert dataset.frames == FRAMES and dataset.ignored == ()


@pytest.mark.parametrize("name", ["oregonator", "euler2d"])
def test_the_layout_alone_tells_nearly_the_same(name, tmp_path):
    env = ENVIRONMENTS[name]
    states, params = write_dataset(tmp_path, env, {"train": ("train", 3)}, FRAMES)["train"]
    for path in tmp_path.rglob("*.hdf5"):
        with h5py.File(path, "r+") as file:
            del file.attrs[SPEC]
    dataset = Dataset(tmp_path)
    spec = dataset.spec
    assert (spec.name, spec.axes, spec.grid, spec.frame_step) == (name, env.spec.axes, env.spec.grid, env.spec.frame_step)
    assert [each.name for each in spec.params] == [each.name for each in env.spec.params]
    order = [env.spec.channels.index(channel) for channel in spec.channels]
    assert sorted(order) == list(range(len(order)))
    np.testing.assert_array_equal(dataset.trajectory("train", 2), states[2][:, order])
    np.testing.assert_array_equal(dataset.params("train"), params)


@pytest.mark.parametrize("in_memory", [0, module.IN_MEMORY])
@pytest.mark.parametrize("grid", [(8,), (6, 4), (5, 4, 3), (1,)])
def test_a_foreign_dataset(grid, in_memory, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "IN_MEMORY", in_memory)
    written = [write_foreign(tmp_path / f"data/train/{seed}.h5", grid, seed=seed) for seed in range(2)]
    written.append(write_foreign(tmp_path / "data/valid/a.hdf5", grid, seed=2))
    write_foreign(tmp_path / "data/weird/a.hdf5", grid, seed=3)
    dataset, dims = Dataset(tmp_path), "xyz"[: len(grid)]
    spec = dataset.spec

    assert dataset.splits == ("train", "val", "weird") and dataset.count("train") == 6
    assert dataset.ignored == ("porosity", "forcing")
    tensor = [f"stress_{a}{b}" for a in dims for b in dims]
    assert spec.channels == ("pressure", "profile", "thin", "forced", *(f"velocity_{a}" for a in dims), *tensor)
    assert next(each.kind for each in spec.fields if each.name == "velocity") == "vector"
    assert (spec.name, spec.grid, spec.frames, spec.horizons, spec.draw) == ("soup", grid, 6, (1, 2, 4), "pressure")
    assert spec.frame_step == 0.25
    assert [axis.boundary for axis in spec.axes] == ["periodic", "wall", "wall"][: len(grid)]
    if min(grid) > 1:
        assert [(axis.low, axis.high) for axis in spec.axes] == [(0.0, 2.0)] * len(grid)
    assert [(each.name, each.unit, each.role) for each in spec.params] == [
        ("reynolds", "1", "dynamics"),
        ("mach", "1", "dynamics"),
    ]
    assert spec.parameter("reynolds").ranges == {"id": ((100.0, 103.0),)}

    states = np.concatenate(written[:2])
    trajectories, frames = pairs_of(6, 6)
    np.testing.assert_array_equal(dataset.read("train", trajectories, frames), states[trajectories, frames])
    np.testing.assert_array_equal(dataset.trajectory("train", 4), states[4])
    np.testing.assert_array_equal(dataset.trajectory("val", 1), written[2][1])
    np.testing.assert_array_equal(dataset.params("train")[:, 0], [100.0] * 3 + [101.0] * 3)
    with h5py.File(tmp_path / "data/train/1.h5") as file:
        np.testing.assert_array_equal(dataset.params("train")[3:, 1], file["scalars/mach"])


def test_many_threads_and_a_fork_read_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "IN_MEMORY", 0)
    written = write_foreign(tmp_path / "data/train/a.h5", (8, 4), count=5)
    source, numbers = Dataset(tmp_path).source("train"), [pairs_of(5, 6, seed) for seed in range(20)]
    with ThreadPoolExecutor(4) as pool:
        for (trajectories, frames), read in zip(numbers, pool.map(lambda each: source.read(*each), numbers), strict=True):
            np.testing.assert_array_equal(read, written[trajectories, frames])

    def child(end):
        end.send(source.read(*numbers[0]))

    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(there,))
    process.start()
    np.testing.assert_array_equal(here.recv(), written[numbers[0]])
    process.join()


def test_more_files_than_may_be_open(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "IN_MEMORY", 0)
    monkeypatch.setattr(well_file, "_mapped", well_file.lru_cache(2)(well_file._mapped.__wrapped__))
    states, _ = write_dataset(tmp_path, ENVIRONMENTS["ball3d"], {"train": ("train", 9)}, FRAMES, per_file=1)["train"]
    trajectories, frames = pairs_of(9, FRAMES)
    np.testing.assert_array_equal(Dataset(tmp_path).read("train", trajectories, frames), states[trajectories, frames])
    assert well_file._mapped.cache_info().currsize == 2


def drop_attribute(item, name):
    def spoil(file):
        del file[item].attrs[name]

    return spoil


def drop(name):
    def spoil(file):
        del file[name]

    return spoil


def put(name, values, **attributes):
    def spoil(file):
        kept = dict(file[name].attrs)
        del file[name]
        file[name] = values
        file[name].attrs.update(kept | attributes)

    return spoil


def set_attribute(item, name, value):
    def spoil(file):
        file[item].attrs[name] = value

    return spoil


def set_names(file, *names):
    file["t0_fields"].attrs["field_names"] = names


FAULTS = {
    "no count": (drop_attribute("/", "n_trajectories"), r"b.h5: / has no attribute 'n_trajectories'\.$"),
    "no name": (drop_attribute("/", "dataset_name"), r"b.h5: / has no attribute 'dataset_name'\.$"),
    "no axes": (drop_attribute("dimensions", "spatial_dims"), r"b.h5: /dimensions has no attribute 'spatial_dims'\.$"),
    "no flag": (drop_attribute("t0_fields/thin", "time_varying"), r"/t0_fields/thin has no attribute 'time_varying'\.$"),
    "no flags": (drop_attribute("t0_fields/thin", "dim_varying"), r"/t0_fields/thin has no attribute 'dim_varying'\.$"),
    "no list": (drop_attribute("t2_fields", "field_names"), r"/t2_fields has no attribute 'field_names'\.$"),
    "no time": (drop("dimensions/time"), r"b.h5 has no 'dimensions/time'\.$"),
    "no group": (drop("t2_fields"), r"b.h5 has no 't2_fields'\.$"),
    "no field": (drop("t0_fields/thin"), r"b.h5 has no 't0_fields/thin'\.$"),
    "no scalar": (drop("scalars/mach"), r"b.h5 has no 'scalars/mach'\.$"),
    "no boundary": (drop("boundary_conditions/y_edge"), r"b.h5 has no boundary condition for the axis 'y'\.$"),
    "odd boundary": (
        set_attribute("boundary_conditions/y_edge", "bc_type", "STICKY"),
        r"bc_type of /boundary_conditions/y_edge is 'STICKY'; allowed are PERIODIC, OPEN, WALL\.$",
    ),
    "uneven time": (put("dimensions/time", [0, 1, 2, 3, 4, 9.0]), "b.h5: the frames are not evenly spaced in time"),
    "one frame": (put("dimensions/time", [0.0]), r"trajectories of 1 frame: at least 2 are needed\.$"),
    "no extent": (put("dimensions/x", np.zeros(6)), r"b.h5: the axis 'x' has no extent\.$"),
    "wrong shape": (
        put("t0_fields/thin", np.zeros((3, 6, 5))),
        r"'thin' is float64 of shape \(3, 6, 5\); expected .* \(3, 6, 6, 1\)",
    ),
    "wrong type": (
        put("t0_fields/thin", np.zeros((3, 6, 6), int)),
        r"'thin' is int64 of shape .*; expected floating-point numbers",
    ),
    "wrong count": (set_attribute("/", "n_trajectories", 4), r"the scalar 'mach' has 3 values; expected 1 or 4\.$"),
    "wrong frames": (
        put("dimensions/time", np.arange(5.0)),
        r"'pressure' is float32 of shape \(3, 6, 6, 4\); expected .* \(3, 5, 6, 4\)\.$",
    ),
    "no trajectory": (set_attribute("/", "n_trajectories", 0), r"b.h5 holds no trajectory: n_trajectories is 0\.$"),
    "odd scalar": (put("scalars/mach", np.zeros(2)), r"the scalar 'mach' has 2 values; expected 1 or 3\.$"),
    "nothing moves": (
        lambda file: [
            file[f"t{rank}_fields/{name}"].attrs.update(time_varying=False)
            for rank in range(3)
            for name in file[f"t{rank}_fields"]
        ],
        r"b.h5 has no field that varies in time\.$",
    ),
    "an axis twice": (
        lambda file: (file.move("t0_fields/thin", "t0_fields/velocity_x"), set_names(file, "velocity_x")),
        r"b.h5: its fields do not fill each of the channels velocity_x, velocity_x, velocity_y, .* once\.$",
    ),
    "a channel twice": (
        lambda file: (file.move("t0_fields/thin", "t0_fields/stress_xy"), set_names(file, "pressure", "stress_xy")),
        r"b.h5: its fields do not fill each of the channels pressure, stress_xy, velocity_x, .* once\.$",
    ),
    "another name": (set_attribute("/", "dataset_name", "broth"), r"b.h5: the name is broth, but soup in train/a.h5\.$"),
    "another spec": (set_attribute("/", SPEC, '{"colour": 1}'), rf"b.h5: the attribute {SPEC} is from another version"),
    "other fields": (set_attribute("t2_fields", "field_names", []), r"b.h5: the channels are pressure, .* in train/a.h5\.$"),
    "other step": (put("dimensions/time", np.arange(6.0)), r"b.h5: the frame step is 1, but 0.25 in train/a.h5\.$"),
    "other scalars": (set_attribute("scalars", "field_names", ["mach"]), r"the parameters are mach, but reynolds, mach in"),
    "other boundary": (
        set_attribute("boundary_conditions/y_edge", "bc_type", "OPEN"),
        r"the boundaries are periodic, open, but periodic, wall in",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_files_that_are_refused(fault, tmp_path):
    for name in "ab":
        write_foreign(tmp_path / f"data/train/{name}.h5", (6, 4))
    spoil, sentence = FAULTS[fault]
    with h5py.File(tmp_path / "data/train/b.h5", "r+") as file:
        spoil(file)
    with pytest.raises(InvalidInput, match=sentence) as refusal:
        Dataset(tmp_path)
    assert str(refusal.value).count(". ") == 0


@pytest.mark.parametrize(
    ("other", "sentence"), [({"grid": (4, 6)}, "the grid is 4, 6, but 6, 4"), ({"frames": 5}, "frames is 5, but 6")]
)
def test_files_that_do_not_belong_together(other, sentence, tmp_path):
    write_foreign(tmp_path / "data/train/a.h5", (6, 4))
    write_foreign(tmp_path / "data/valid/a.h5", **{"grid": (6, 4)} | other)
    with pytest.raises(InvalidInput, match=rf"valid/a.h5: .*{sentence} in train/a.h5\.$"):
        Dataset(tmp_path)


def test_a_file_of_ours_that_lost_a_channel(tmp_path):
    write_dataset(tmp_path, ENVIRONMENTS["ball3d"], {"train": ("train", 1)}, FRAMES)
    with h5py.File(tmp_path / "data/train/000.hdf5", "r+") as file:
        file["t0_fields"].attrs["field_names"] = ["position_x", "position_y"]
    with pytest.raises(InvalidInput, match=r"000.hdf5: its fields do not fill each of the channels position_x, .* once"):
        Dataset(tmp_path)


def test_folders_that_are_no_dataset(tmp_path):
    with pytest.raises(InvalidInput, match=r"There is no folder .*nowhere/data"):
        Dataset(tmp_path / "nowhere")
    (tmp_path / "data").mkdir()
    with pytest.raises(InvalidInput, match=r"data is empty"):
        Dataset(tmp_path)
    (tmp_path / "data/train").mkdir()
    with pytest.raises(InvalidInput, match=r"The folder .*train has no file that ends in .hdf5 or .h5\.$"):
        Dataset(tmp_path)
    (tmp_path / "data/train/a.hdf5").write_text("not a dataset")
    with pytest.raises(InvalidInput, match=r"a.hdf5 cannot be read as HDF5: "):
        Dataset(tmp_path)
    shutil.rmtree(tmp_path / "data/train")
    write_foreign(tmp_path / "data/train/a.hdf5", (4,))
    with (tmp_path / "data/train/a.hdf5").open("r+b") as file:
        file.truncate(3000)
    with pytest.raises(InvalidInput, match=r"a.hdf5 cannot be read as HDF5: "):
        Dataset(tmp_path)


@pytest.mark.parametrize("in_memory", [0, module.IN_MEMORY])
def test_values_that_are_not_finite(in_memory, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "IN_MEMORY", in_memory)
    write_foreign(tmp_path / "data/train/a.h5", (6, 4))
    with h5py.File(tmp_path / "data/train/a.h5", "r+") as file:
        file["t1_fields/velocity"][1, 2, 3, 0, 1] = np.nan
    with pytest.raises(InvalidInput, match=r"a.h5: velocity_y of trajectory 1 is not finite at frame 2\.$"):
        Dataset(tmp_path).read("train", np.array([0, 1]), np.array([2, 2]))


def test_requests_that_are_refused(tmp_path):
    write_foreign(tmp_path / "data/train/a.h5", (6, 4))
    dataset = Dataset(tmp_path)
    with pytest.raises(InvalidInput, match=r"no split 'valid': choose one of train\.$"):
        dataset.count("valid")
    with pytest.raises(InvalidInput, match=r"There is no trajectory 3: they are numbered 0 to 2\.$"):
        dataset.read("train", np.array([0, 3]), np.array([0, 0]))
    with pytest.raises(InvalidInput, match=r"There is no frame -1: they are numbered 0 to 5\.$"):
        dataset.read("train", np.array([0]), np.array([-1]))
    with pytest.raises(InvalidInput, match=r"There is no trajectory -1: they are numbered 0 to 2\.$"):
        dataset.trajectory("train", -1)
