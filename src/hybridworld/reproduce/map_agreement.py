"""The error map beside the true error: how well they agree over cells, and the pictures of both."""

from functools import partial

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from hybridworld.bench.intervals import Interval, mean_interval
from hybridworld.data.pairs import Batch
from hybridworld.figures.forecasts import ForecastRow
from hybridworld.reproduce.experiment import Experiment
from hybridworld.reproduce.intervals import bare, correlation_of
from hybridworld.reproduce.rows import Quantity, Row
from hybridworld.reproduce.rules import MAP, STEEPNESS
from hybridworld.trust.judge import judge
from hybridworld.trust.signal import Estimate
from hybridworld.trust.step_doubling import StepDoubling

SHOWN = 16  # fields of which the agreement is measured
BALLS = 6
SWEPT: dict[bool, tuple[int, ...]] = {True: (2, 8, 32, 64), False: (8, 16, 32, 64)}  # on a grid, and for state vectors
PICTURED: dict[bool, tuple[int, ...]] = {True: (64,), False: (32,)}


def pictured_agreement(experiment: Experiment) -> list[Row]:
    """The agreement of map and error at the paper's horizon."""
    return agreement(experiment, PICTURED[experiment.environment.spec.is_field])


def horizon_sweep(experiment: Experiment) -> list[Row]:
    """The agreement of map and error at four horizons."""
    return agreement(experiment, SWEPT[experiment.environment.spec.is_field])


def agreement(experiment: Experiment, horizons: tuple[int, ...]) -> list[Row]:
    """Rank correlation of map and error: over the cells of each field (mean over fields), or over state vectors."""
    rows = []
    for h in horizons:
        found = experiment.remember(("agreement of maps", h), partial(correlations, experiment, h))
        rows += [Row(quantity, name, experiment.system, "test", h, Interval(*interval)) for quantity, name, interval in found]
    return rows


def correlations(experiment: Experiment, horizon: int) -> list[tuple[Quantity, str, Interval]]:
    """Rank correlations of the true error with the error map, and on a grid with the steepness of the prediction."""
    field = experiment.environment.spec.is_field
    maps = maps_of(experiment, horizon, SHOWN if field else experiment.setting.pairs)
    if not field:
        value = float(spearmanr(maps["error_map"], maps["error"]).statistic)
        return [("rank correlation", MAP, correlation_of(value, len(maps["error"])))]
    steep = steepness(experiment.surrogate().normalise(torch.from_numpy(maps["prediction"])).numpy())
    own, edges = (over_fields(each, maps["error"]) for each in (maps["error_map"], steep))
    return [
        ("rank correlation", MAP, mean_over(own)),
        ("rank correlation", STEEPNESS, mean_over(edges)),
        ("rank correlation lead", STEEPNESS, mean_over(own - edges)),
    ]


def over_fields(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The rank correlation over the cells of each field; nan where one of the two is constant."""
    return np.array([float(spearmanr(a.ravel(), b.ravel()).statistic) for a, b in zip(one, other, strict=True)])


def mean_over(values: np.ndarray) -> Interval:
    """The mean over fields that have a number, with its interval."""
    finite = values[np.isfinite(values)]
    return mean_interval(finite) if len(finite) else bare(float("nan"))


def steepness(fields: np.ndarray) -> np.ndarray:
    """(batch, channels, *grid) -> (batch, *grid): the length of the gradient, over channels."""
    slopes = np.gradient(fields, axis=tuple(range(2, fields.ndim)))
    return np.sqrt(sum((slope**2).sum(axis=1) for slope in slopes))


def maps_of(experiment: Experiment, horizon: int, count: int) -> dict[str, np.ndarray]:
    """States, predictions, truth, error maps and true errors of the first test pairs."""
    batch = experiment.pairs("test", experiment.horizons)[horizon]
    some = Batch(batch.states[:count], batch.horizons[:count], batch.params[:count], batch.futures[:count])
    surrogate, found = experiment.surrogate(), list[list[np.ndarray]]()

    def look(states: Tensor, estimate: Estimate, futures: Tensor, error: Tensor) -> None:
        parts = (states, estimate.prediction, futures, estimate.error_map, error)
        found.append([part.cpu().numpy() for part in parts])

    judge(surrogate, StepDoubling(surrogate, surrogate.std), some, look=look)
    names = ("state", "prediction", "truth", "error_map", "error")
    return {name: np.concatenate(parts) for name, parts in zip(names, zip(*found, strict=True), strict=True)}


def forecast_rows(experiment: Experiment, horizons: tuple[int, ...]) -> list[ForecastRow]:
    """One row per horizon: a field, or six state vectors."""
    rows, count = (0, 1) if experiment.environment.spec.is_field else (slice(BALLS), BALLS)
    found = []
    for h in horizons:
        maps = maps_of(experiment, h, count)
        found.append(ForecastRow(f"h = {h}", **{name: values[rows] for name, values in maps.items()}))
    return found
