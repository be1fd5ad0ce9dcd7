"""A model that follows a true world with its eyes closed, and opens them only when its error map says so.

belief -> forecast, error map -> ...          doubt = sum of the scores since the last look
doubt above the limit: look, so that the belief is the true state again

The rival looks as often, at even intervals.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hybridworld.deploy.backends import action_limits
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment, Sample

SECONDS = 60.0


@dataclass(frozen=True)
class Tracking:
    """Errors of the belief after each link, in deviations, before a look mends them, and after which links it looked."""

    errors: np.ndarray  # (links,)
    looks: np.ndarray  # bool (links,)
    seconds: float
    """Simulated time that was followed, in seconds."""

    @property
    def per_minute(self) -> float:
        """Looks per minute of the world."""
        return float(self.looks.sum() * SECONDS / self.seconds)


Look = Callable[[int, float], bool]
"""(number of the link, doubt since the last look) -> whether to look."""


def doubting(limit: float) -> Look:
    """Look whenever the doubt exceeds that limit."""
    return lambda link, doubt: not doubt <= limit


def evenly(looks: int, links: int) -> Look:
    """Look so many times over so many links, at even intervals, whatever the doubt."""
    return lambda link, doubt: (link + 1) * looks // links > link * looks // links


def track(
    environment: Environment,
    model: HybridModel,
    sample: Sample,
    rng: np.random.Generator,
    look: Look,
    links: int = 32,
    horizon: int = 8,
    hold: int = 4,
) -> Tracking:
    """Follow the true world over `links` times `horizon` frames; a random action is held over `hold` links."""
    spec = environment.spec
    if spec.time_unit != "s":
        raise InvalidInput(f"{spec.name} counts its time in '{spec.time_unit}': looks per minute need seconds.")
    columns, low, high = action_limits(environment)
    truth, belief, params, doubt = sample.state, sample.state, sample.params.copy(), 0.0
    errors, looks = np.zeros(links), np.zeros(links, bool)
    for link in range(links):
        if link % hold == 0 and link:
            params[columns] = rng.uniform(low, high)
        truth = environment.solve(truth, horizon, params)
        found = model.onward(belief, horizon, params, mode=1, error_map=True)
        belief, doubt = np.asarray(found.state, np.float64), doubt + float(found.score)  # type: ignore[arg-type]
        errors[link] = float(model.errors(belief, truth))
        if look(link, doubt):
            belief, doubt, looks[link] = truth, 0.0, True
    return Tracking(errors, looks, links * horizon * spec.frame_step)
