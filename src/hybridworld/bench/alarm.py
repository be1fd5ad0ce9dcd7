"""How often does the alarm of `deploy.gate` fire?"""

from collections.abc import Mapping

import numpy as np

from hybridworld.deploy.gate import FALSE_ALARMS, WINDOW
from hybridworld.trust.calibration import Calibration


def alarm_rate(
    calibration: Calibration,
    scores: Mapping[int, np.ndarray],
    windows: int,
    seed: int = 0,
    false_alarms: float = FALSE_ALARMS,
) -> float:
    """The share of windows that raise the alarm; each holds one answer per trajectory, at a random horizon.

    `scores`: horizon -> one score per trajectory, in the same order at every horizon. Where they are fewer than a window of the
    gate has answers, windows are shorter.
    """
    rng = np.random.default_rng(seed)
    ranks = np.stack([calibration.ranks(h, each) for h, each in scores.items()])  # (horizons, trajectories, groups)
    horizons, trajectories, _ = ranks.shape
    size = min(WINDOW, trajectories)
    alarms = []
    for _ in range(windows):
        some = rng.choice(trajectories, size, replace=False)
        alarms.append(calibration.drift_p_value(ranks[rng.integers(horizons, size=size), some]) < false_alarms)
    return float(np.mean(alarms))
