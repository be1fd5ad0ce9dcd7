"""States and forecasts as HDF5, for `hybridworld predict --input` and for anything else that reads it."""

import io
from dataclasses import replace

import h5py
import numpy as np

from hybridworld.data.well import file_image
from hybridworld.physics.environment import Sample
from hybridworld.serve.catalogue import Served


def state_file(states: np.ndarray, params: np.ndarray) -> bytes:
    """The datasets `state` (count, channels, *grid) and `params` (count, n)."""
    room = io.BytesIO()
    with h5py.File(room, "w") as file:
        file["state"], file["params"] = states, params
    return room.getvalue()


def forecast_file(
    served: Served, states: np.ndarray, params: np.ndarray, horizon: float, answers: np.ndarray, known: dict[str, np.ndarray]
) -> bytes:
    """Start and forecast as the two frames of trajectories in The Well's layout; all else in the group `forecast`."""
    leap = replace(served.spec, frame_step=served.spec.frame_step * horizon, frames=2)
    samples = [Sample(state, row, {"name": f"drawn {k}"}) for k, (state, row) in enumerate(zip(states, params, strict=True))]
    version = served.system.version if served.system else "none"
    frames = np.stack([states, answers], axis=1)
    room = io.BytesIO(file_image(leap, version, "forecast", range(len(samples)), samples, frames, "float64").data)
    with h5py.File(room, "a") as file:
        group = file.create_group("forecast")
        group.attrs.update(model=served.name, horizon=horizon)
        for name, values in known.items():
            group[name] = values
    return room.getvalue()
