"""Do recent scores still look like those of the validation data? A two-sample Kolmogorov-Smirnov test of their ranks.

Validation answers come in two groups: beginnings of trajectories, and later frames. How these mix in use is not known, so drift
is what no mixture of the two explains.
"""

import numpy as np
from scipy.stats import ks_2samp

MIXTURES = np.linspace(0, 1, 11)


def drift_p_value(ranks: np.ndarray, sizes: tuple[int, ...]) -> float:
    """How likely such ranks are without any drift, for the mixture of groups that explains them best.

    `ranks` (answers, groups): the share of the validation scores of a group below each score; `sizes`: trajectories per group.
    """
    if len(sizes) == 1:
        return _p_value(ranks[:, 0], sizes[0])
    first, second = sizes
    found = []
    for share in MIXTURES:
        known = 1 / (share**2 / first + (1 - share) ** 2 / second)  # trajectories that know as much as this mixture
        found.append(_p_value(share * ranks[:, 0] + (1 - share) * ranks[:, 1], int(known)))
    return max(found)


def _p_value(ranks: np.ndarray, size: int) -> float:
    expected = (np.arange(size) + 0.5) / size
    return float(ks_2samp(ranks, expected, method="asymp").pvalue)
