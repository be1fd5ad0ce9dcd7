"""Does the error map of a model of the tabletop find the objects that it gets wrong, and are these the ones in contact?

    python docs/examples/tabletop_trust.py [MODEL]

For each split 128 scenes, from frame 8 on. AUROC: how well the map ranks the spheres and boxes whose error is in the worst
quarter, and how well scores rank the scenes. Contact: rank correlation, over spheres and boxes, of the true error and of the
map with the time that the object spends at another one or at a wall. Cut: what mode 2 at q = 0.75 takes off the mean error of
the scenes, with the threshold of later frames in the model's file, beside deferring as many at random and the worst ones.
"""

import sys

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import hybridworld as hw

SCENES, BEGIN = 128, 8
model = hw.load(sys.argv[1] if len(sys.argv) > 1 else "tabletop")
system = model.system


def scenes(system, split, count, frames):
    """States at frame 8 and `frames` later ones of each scene, with its parameters."""
    samples = [system.initial(split, seed) for seed in range(count)]
    params = np.stack([sample.params for sample in samples])
    whole = system.record(np.stack([sample.state for sample in samples]), BEGIN + frames, params)
    return whole[:, :, BEGIN:].astype(float), params


def worst(errors):
    """Which are in the worst quarter."""
    return errors > np.quantile(errors, 0.75)


heads = "split", "h", "error", "no change", "AUROC, objects", "AUROC, scenes", "contact and error", "contact and map"
heads += "deferred, and cut at random", "cut", "oracle"
print("| " + " | ".join(heads) + " |\n| " + " | ".join(["---"] * len(heads)) + " |")
for split in ("test", "ood-near", "ood-far"):
    whole, params = scenes(system, split, SCENES, 64)
    now = whole[:, :, 0]
    moving = np.round(now[:, system.spec.channels.index("kind")]) >= 0
    for horizon in (1, 2, 4, 8, 16, 32, 64):
        truth, touched = whole[:, :, horizon], system.contacts(now, horizon, params)[moving]
        forecast = model.onward(now, horizon, params, mode=1, error_map=True)
        answer, drawn = forecast.state.astype(float), forecast.error_map[moving]
        wrong, errors = model.error_maps(answer, truth)[moving], model.errors(answer, truth)
        deferred = forecast.score > model.threshold(horizon, 0.75, beginning=False)
        oracle = np.argsort(np.argsort(-errors)) < deferred.sum()
        contact = [spearmanr(touched, each).statistic if touched.any() else np.nan for each in (wrong, drawn)]
        aurocs = roc_auc_score(worst(wrong), drawn), roc_auc_score(worst(errors), forecast.score)
        cells = [f"{each:.3f}" for each in (errors.mean(), model.errors(now, truth).mean())]
        cells += [f"{each:.2f}" for each in (*aurocs, *contact)]
        cells += [
            f"{each:.0%}" for each in (deferred.mean(), *(errors[some].sum() / errors.sum() for some in (deferred, oracle)))
        ]
        print(f"| {split} | {horizon} | " + " | ".join(cells) + " |", flush=True)
