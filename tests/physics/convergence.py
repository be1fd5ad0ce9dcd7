"""Fit the order of a scheme from errors on finer and finer steps."""

import numpy as np


def fitted_order(steps, errors) -> float:
    """The slope of log(error) over log(step)."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])
