"""Files that we write keep every rule of The Well's layout, and `format_faults` names each rule that a file breaks."""

import shutil

import h5py
import numpy as np
import pytest

import hybridworld as hw
from hybridworld.data.format_check import format_faults
from hybridworld.data.well import write_trajectories
from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.oregonator import Oregonator

ENVIRONMENTS = {"oregonator": Oregonator(grid=(16, 12)), "euler2d": Euler2D(grid=(16, 12)), "ball3d": hw.system("ball3d")}
ROOT = ("dataset_name", "grid_type", "n_spatial_dims", "n_trajectories", "simulation_parameters")


def write(path, name, count=2, dtype="float32"):
    """Random states do: the layout does not depend on them."""
    env = ENVIRONMENTS[name]
    states = np.random.default_rng(0).random((count, 4, *env.spec.shape))
    write_trajectories(path, env, "train", range(count), [env.initial("train", 0)] * count, states, dtype)
    return path


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return {name: write(folder / f"{name}.hdf5", name) for name in ENVIRONMENTS}


def demands(path):
    """(owner, attribute) of all that the layout asks for; (item, None) for groups and datasets."""
    with h5py.File(path) as file:
        found = [("/", name) for name in (*ROOT, *file.attrs["simulation_parameters"])]

        def visit(name, item):
            if not name.startswith("origin"):
                if item.parent.name != "/boundary_conditions":  # an axis without a condition is open
                    found.append((item.name, None))
                found.extend((item.name, attribute) for attribute in item.attrs)

        file.visititems(visit)
    return found


def remove(path, owner, attribute):
    with h5py.File(path, "r+") as file:
        if attribute is None:
            del file[owner]
        else:
            del file[owner].attrs[attribute]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_what_we_write_has_no_faults(name, originals, tmp_path):
    assert format_faults(originals[name]) == []
    assert format_faults(write(tmp_path / "one.hdf5", name, count=1)) == []
    assert format_faults(write(tmp_path / "half.hdf5", name, dtype="float16")) == []


def test_a_file_holds_more_trajectories_than_an_attribute_has_room_for(tmp_path):
    path = write(tmp_path / "many.hdf5", "ball3d", count=9000)  # in float64 an attribute ends at 8192
    assert format_faults(path) == []


def test_the_root_has_the_range_of_each_parameter(tmp_path):
    env, path = ENVIRONMENTS["oregonator"], tmp_path / "data.hdf5"
    samples = [env.initial("train", seed) for seed in range(5)]
    write_trajectories(path, env, "train", range(5), samples, np.zeros((5, 2, *env.spec.shape)))
    with h5py.File(path) as file:
        for column, parameter in enumerate(env.spec.params):
            values = [sample.params[column] for sample in samples]
            np.testing.assert_array_equal(file.attrs[parameter.name], [[min(values), max(values)]])


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_numbers_are_stored_in_single_precision(name, originals):
    with h5py.File(originals[name]) as file:
        for group in ("dimensions", "t0_fields", "t1_fields"):
            assert all(dataset.dtype == "<f4" for dataset in file[group].values())
        assert all(dataset.dtype == "<f8" for dataset in file["scalars"].values())  # they are arguments of the solver


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_whatever_is_missing_is_named(name, originals, tmp_path):
    asked = demands(originals[name])
    assert len(asked) > 30
    for number, (owner, attribute) in enumerate(asked):
        path = tmp_path / f"{number}.hdf5"
        shutil.copy(originals[name], path)
        remove(path, owner, attribute)
        faults = format_faults(path)
        word = attribute or owner.rsplit("/", 1)[-1]
        assert any(word in fault for fault in faults), (owner, attribute, faults)
        assert attribute is None or len(faults) == 1, faults  # one lack is told once


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_file_that_lacks_much_is_still_told_about(name, originals, tmp_path):
    path = tmp_path / "data.hdf5"
    shutil.copy(originals[name], path)
    asked = demands(path)
    for number in np.random.default_rng(0).permutation(len(asked)):
        owner, attribute = asked[number]
        with h5py.File(path) as file:
            there = owner in file and (attribute is None or attribute in file[owner].attrs)
        if there:
            remove(path, owner, attribute)
        assert format_faults(path)


def attribute(owner, name, value):
    def change(file):
        file[owner].attrs[name] = value

    return change


def dataset(name, value):
    """Other numbers under the same name and with the same attributes."""

    def change(file):
        attributes = dict(file[name].attrs) if name in file else {}
        if name in file:
            del file[name]
        file[name] = value
        file[name].attrs.update(attributes)

    return change


# What is done to a file of two trajectories with four frames, and all that is to be said about it.
WRONG = {
    "name as bytes": (attribute("/", "dataset_name", np.bytes_("euler2d")),
        "the attribute 'dataset_name' of the root is np.bytes_(b'euler2d'): it must be a text"),
    "count in words": (attribute("/", "n_trajectories", "two"),
        "the attribute 'n_trajectories' of the root is 'two': it must be a whole number above 0"),
    "unknown parameter": (attribute("/", "simulation_parameters", ["heat"]),
        "the parameter 'heat' must be both a root attribute and a dataset in /scalars"),
    "dimension unlisted": (attribute("/", "n_spatial_dims", 3),
        "n_spatial_dims is 3, but spatial_dims lists x, y",
        "/t1_fields/momentum has shape (2, 4, 16, 12, 2): it must be (2, 4, 16, 12, 3), "
        "by (trajectories, time, x, y, components)"),
    "time does not vary": (attribute("/dimensions/time", "time_varying", False),
        "time_varying of /dimensions/time is false: it must be true"),
    "flag as number": (attribute("/dimensions/x", "sample_varying", 0),
        "the attribute 'sample_varying' of /dimensions/x is np.int64(0): it must be true or false"),
    "x of each trajectory": (attribute("/dimensions/x", "sample_varying", True),
        "/dimensions/x has shape (16,): it must be (2, 16), by (trajectories, x)"),
    "x in whole numbers": (dataset("/dimensions/x", np.arange(16)),
        "/dimensions has no dataset 'x' with a row of floating-point numbers"),
    "unknown condition": (attribute("/boundary_conditions/x_open", "bc_type", "MIRROR"),
        "bc_type of /boundary_conditions/x_open is 'MIRROR': allowed are WALL, OPEN, PERIODIC"),
    "condition elsewhere": (attribute("/boundary_conditions/x_open", "associated_dims", ["z"]),
        "/boundary_conditions/x_open is about 'z', which spatial_dims does not list"),
    "one name, no list": (attribute("/boundary_conditions/x_open", "associated_dims", "x"),
        "the attribute 'associated_dims' of /boundary_conditions/x_open is 'x': it must be a list of names"),
    "mask too short": (dataset("/boundary_conditions/x_open/mask", np.ones(12, bool)),
        "/boundary_conditions/x_open/mask has shape (12,): it must be (16,), by (x)"),
    "mask of numbers": (dataset("/boundary_conditions/x_open/mask", np.ones(16)),
        "/boundary_conditions/x_open has no dataset 'mask' of true and false"),
    "mask of nothing": (dataset("/boundary_conditions/x_open/mask", np.zeros(16, bool)),
        "/boundary_conditions/x_open/mask is true at neither end: the loader would take the axis as open"),
    "condition without a group": (dataset("/boundary_conditions/z", 1.0),
        "/boundary_conditions/z has no attribute 'bc_type'", "/boundary_conditions/z has no attribute 'associated_fields'",
        "/boundary_conditions/z has no attribute 'associated_dims'", "/boundary_conditions/z has no attribute 'sample_varying'",
        "/boundary_conditions/z has no attribute 'time_varying'",
        "/boundary_conditions/z has no dataset 'mask' of true and false"),
    "listed, not there": (attribute("/t0_fields", "field_names", ["density", "energy", "heat"]),
        "/t0_fields has no dataset 'heat', which field_names lists"),
    "there, not listed": (attribute("/t0_fields", "field_names", ["density"]),
        "/t0_fields has 'energy', which field_names does not list"),
    "no group but a dataset": (dataset("/t2_fields", 1.0),
        "the group /t2_fields is missing"),
    "time too short": (dataset("/t0_fields/density", np.zeros((2, 3, 16, 12))),
        "/t0_fields/density has shape (2, 3, 16, 12): it must be (2, 4, 16, 12), by (trajectories, time, x, y)"),
    "axes exchanged": (dataset("/t0_fields/density", np.zeros((2, 4, 12, 16))),
        "/t0_fields/density has shape (2, 4, 12, 16): it must be (2, 4, 16, 12), by (trajectories, time, x, y)"),
    "components first": (dataset("/t1_fields/momentum", np.zeros((2, 4, 2, 16, 12))),
        "/t1_fields/momentum has shape (2, 4, 2, 16, 12): it must be (2, 4, 16, 12, 2), "
        "by (trajectories, time, x, y, components)"),
    "constant after all": (attribute("/t0_fields/density", "time_varying", False),
        "/t0_fields/density has shape (2, 4, 16, 12): it must be (2, 16, 12), by (trajectories, x, y)"),
    "constant along y": (attribute("/t0_fields/density", "dim_varying", [True, False]),
        "/t0_fields/density has shape (2, 4, 16, 12): it must be (2, 4, 16), by (trajectories, time, x)"),
    "one flag for two axes": (attribute("/t0_fields/density", "dim_varying", [True]),
        "dim_varying of /t0_fields/density has 1 entries for 2 dimensions"),
    "flags as numbers": (attribute("/t0_fields/density", "dim_varying", [1, 1]),
        "the attribute 'dim_varying' of /t0_fields/density is array([1, 1]): it must be a list of true or false"),
    "field of whole numbers": (dataset("/t0_fields/density", np.zeros((2, 4, 16, 12), np.int32)),
        "/t0_fields/density holds int32: it must hold floating-point numbers"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_each_broken_rule_is_told_and_nothing_else(case, originals, tmp_path):
    change, *expected = WRONG[case]
    path = tmp_path / "data.hdf5"
    shutil.copy(originals["euler2d"], path)
    with h5py.File(path, "r+") as file:
        change(file)
    assert format_faults(path) == expected


def test_a_parameter_needs_one_value_per_trajectory(originals, tmp_path):
    path = tmp_path / "data.hdf5"
    shutil.copy(originals["oregonator"], path)
    with h5py.File(path, "r+") as file:
        dataset("/scalars/eps", np.zeros(3))(file)
    assert format_faults(path) == ["/scalars/eps has shape (3,): it must be (2,), by (trajectories)"]


def test_another_number_of_trajectories_shows_in_every_field(originals, tmp_path):
    path = tmp_path / "data.hdf5"
    shutil.copy(originals["ball3d"], path)
    with h5py.File(path, "r+") as file:
        file.attrs["n_trajectories"] = 3
    faults = format_faults(path)
    assert len(faults) == 11 and all("has shape (2," in fault and "it must be (3," in fault for fault in faults)


def test_constant_parts_of_foreign_files_are_fine(originals, tmp_path):
    path = tmp_path / "data.hdf5"
    shutil.copy(originals["euler2d"], path)
    with h5py.File(path, "r+") as file:
        dataset("/t0_fields/density", np.zeros(16))(file)  # the same for all trajectories, times and y
        file["t0_fields/density"].attrs.update(sample_varying=False, time_varying=False, dim_varying=[True, False])
        dataset("/dimensions/time", np.zeros((2, 4)))(file)
        file["dimensions/time"].attrs["sample_varying"] = True
        for name, value, varies in (("gamma", 1.4, False), ("heat", np.zeros((2, 4)), True)):
            file[f"scalars/{name}"] = value
            file[f"scalars/{name}"].attrs.update(sample_varying=varies, time_varying=varies)
        file["scalars"].attrs["field_names"] = ["gamma", "heat"]
        file["t2_fields/stress"] = np.zeros((2, 4, 16, 12, 2, 2))
        file["t2_fields/stress"].attrs.update(sample_varying=True, time_varying=True, dim_varying=[True, True])
        file["t2_fields"].attrs["field_names"] = ["stress"]
        file["boundary_conditions/x_open"].attrs["bc_type"] = "open"  # the loader takes both cases
    assert format_faults(path) == []


def test_what_is_no_hdf5_is_told(originals, tmp_path):
    text, cut = tmp_path / "text.hdf5", tmp_path / "cut.hdf5"
    text.write_text("density\n")
    cut.write_bytes(originals["euler2d"].read_bytes()[:5000])
    for path in (text, cut, tmp_path / "nowhere.hdf5"):
        [fault] = format_faults(path)
        assert fault.startswith("it cannot be read as HDF5")
