"""Numbers that judge predictions, and signals about predictions."""

import numpy as np
from sklearn.metrics import roc_auc_score


def auroc(scores: np.ndarray, errors: np.ndarray, quantile: float = 0.75) -> float:
    """How well `scores` pick out the errors above their `quantile`: 1 is perfect, 0.5 chance; nan if all errors are equal."""
    large = errors > np.quantile(errors, quantile)
    return float(roc_auc_score(large, scores)) if large.any() else float("nan")
