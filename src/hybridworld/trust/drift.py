"""Do recent scores still look like those of the validation data? A two-sample Kolmogorov-Smirnov test of their ranks."""

import numpy as np
from scipy.stats import ks_2samp


def drift_p_value(ranks: np.ndarray, size: int) -> float:
    """How likely ranks (from 0 to 1, among the scores of `size` validation trajectories) so uneven are without any drift."""
    expected = (np.arange(size) + 0.5) / size
    return float(ks_2samp(ranks, expected, method="asymp").pvalue)
