"""Small datasets in The Well's layout: ours, and foreign ones by hand."""

import h5py
import numpy as np

from hybridworld.data.well import write_trajectories


def write_dataset(root, env, folders, frames=None, per_file=2):
    """Folder -> its trajectories (count, frames, channels, *grid) and params, as float32 and float64."""
    frames = frames or env.spec.frames
    written = {}
    for folder, (split, count) in folders.items():
        (root / "data" / folder).mkdir(parents=True)
        samples = [env.initial(split, seed) for seed in range(count)]
        params = np.stack([sample.params for sample in samples])
        states = env.record(np.stack([sample.state for sample in samples]), frames - 1, params).swapaxes(1, 2)
        for first in range(0, count, per_file):
            some = slice(first, first + per_file)
            path = root / "data" / folder / f"{first:03d}.hdf5"
            write_trajectories(path, env, split, range(count)[some], samples[some], states[some])
        written[folder] = states, params
    return written


def rewrite(path, **options):
    """Store all fields of a file in another way, for example compressed."""
    with h5py.File(path, "r+") as file:
        for group in (file[f"t{rank}_fields"] for rank in range(3)):
            for name in list(group):
                values, attributes = group[name][:], dict(group[name].attrs)
                del group[name]
                group.create_dataset(name, data=values.astype(options.get("dtype", values.dtype)), **options).attrs.update(
                    attributes
                )


def write_foreign(path, grid, count=3, frames=6, seed=0, length=2.0, step=0.25):
    """A file with everything the layout knows; returns its channels as (count, frames, channels, *grid)."""
    rng, dims = np.random.default_rng(seed), ["x", "y", "z"][: len(grid)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:

        def put(name, values, **attributes):
            file.create_dataset(name, data=values)
            file[name].attrs.update(attributes)

        def field(name, shape, sample=True, time=True, dims=None, **options):
            values = rng.normal(size=(*[count] * sample, *[frames] * time, *shape)).astype(np.float32)
            file.create_dataset(name, data=values, **options)
            file[name].attrs.update(sample_varying=sample, time_varying=time, dim_varying=dims or [True] * len(grid))
            return values

        file.attrs.update(dataset_name=np.bytes_("soup"), grid_type="cartesian", n_spatial_dims=len(grid), n_trajectories=count)
        file.attrs["simulation_parameters"] = ["reynolds"]
        file.attrs["reynolds"] = 100.0 + seed
        put("dimensions/time", np.arange(frames, dtype="f4") * step + 1.0, sample_varying=False, time_varying=True)
        for dim, cells in zip(dims, grid, strict=True):
            centres = (np.arange(cells, dtype="f4") + 0.5) * np.float32(length / cells)
            put(f"dimensions/{dim}", centres, sample_varying=False, time_varying=False)
            put(f"boundary_conditions/{dim}_edge/mask", np.arange(cells) % (cells - 1 or 1) == 0)
            kind = b"PERIODIC" if dim == "x" else b"WALL"
            file[f"boundary_conditions/{dim}_edge"].attrs.update(
                associated_dims=np.array([dim], "S1"), bc_type=kind, sample_varying=False, time_varying=False
            )
        file["dimensions"].attrs["spatial_dims"] = dims

        put("scalars/reynolds", 100.0 + seed, sample_varying=False, time_varying=False)
        put("scalars/mach", rng.uniform(size=count), sample_varying=True, time_varying=False)
        put("scalars/forcing", rng.uniform(size=frames), sample_varying=False, time_varying=True)
        file["scalars"].attrs["field_names"] = ["reynolds", "mach", "forcing"]

        packed = dict(chunks=True, compression="gzip", shuffle=True)
        D, dropped = len(grid), (*[True] * (len(grid) - 1), False)
        pressure = field("t0_fields/pressure", grid, **packed)
        field("t0_fields/porosity", grid, sample=False, time=False)
        profile = field("t0_fields/profile", grid[:-1], dims=dropped)
        thin = field("t0_fields/thin", (*grid[:-1], 1), dims=dropped)
        forced = field("t0_fields/forced", grid, sample=False)
        velocity = field("t1_fields/velocity", (*grid, D), **packed)
        stress = field("t2_fields/stress", (*grid, D, D))
        file["t0_fields"].attrs["field_names"] = ["pressure", "porosity", "profile", "thin", "forced"]
        file["t1_fields"].attrs["field_names"] = np.array(["velocity"], "S8")
        file["t2_fields"].attrs["field_names"] = ["stress"]

    whole = (count, frames, *grid)
    scalars = [pressure, profile[..., None], thin, forced]
    channels = [np.broadcast_to(values, whole) for values in scalars]
    channels += [velocity[..., a] for a in range(D)] + [stress[..., a, b] for a in range(D) for b in range(D)]
    return np.stack(channels, axis=2)
