"""How often do 95 % intervals hold the true value? Simulated errors are lognormal, one or several answers per trajectory.

`python -m tests.bench.coverage_of_intervals` prints the table of docs/trust.md.
"""

from dataclasses import dataclass

import numpy as np

from hybridworld.bench.metrics import auroc, auroc_interval, cut_above, cut_interval, cut_matched, frozen_cut, mean_interval

SIZES = (24, 100, 1000)
MANY = 400_000


@dataclass(frozen=True)
class World:
    """Errors exp(spread * normal); log scores are log errors and `noise` times as much of something else (inf: all of it)."""

    spread: float = 1.0
    noise: float = 0.8
    answers: int = 1
    """Per trajectory; four fifths of the variance of several are the trajectory's own."""

    def draw(self, trajectories, rng):
        """(scores, errors, groups)"""

        def normal():
            shared, own = rng.normal(size=(trajectories, 1)), rng.normal(size=(trajectories, self.answers))
            return (np.sqrt(0.8) * shared + np.sqrt(0.2) * own).ravel()

        errors, other = self.spread * normal(), self.spread * normal()
        scores = other if np.isinf(self.noise) else errors + self.noise * other
        return np.exp(scores), np.exp(errors), np.repeat(np.arange(trajectories), self.answers)

    def truth(self, q=0.75, threshold=None):
        """The values of a very large sample, and its threshold."""
        scores, errors, _ = self.draw(MANY // self.answers, np.random.default_rng(1))
        threshold = np.quantile(scores, q) if threshold is None else threshold
        frozen = cut_above(scores, errors, threshold)
        return threshold, {
            "mean": errors.mean(),
            "AUROC": auroc(scores, errors),
            "cut, matched q": cut_matched(scores, errors, q).cut,
            "cut, frozen threshold": frozen.cut,
            "deferral, frozen threshold": frozen.deferral,
            "share of the oracle's cut": frozen.cut / cut_matched(errors, errors, 1 - frozen.deferral).cut,
        }


def intervals(scores, errors, groups, threshold):
    """Name -> interval, of all that `World.truth` knows."""
    frozen = frozen_cut(scores, errors, threshold, groups)
    return {
        "mean": mean_interval(errors, groups),
        "AUROC": auroc_interval(scores, errors, groups),
        "cut, matched q": cut_interval(scores, errors, 0.75, groups),
        "cut, frozen threshold": frozen.cut,
        "deferral, frozen threshold": frozen.deferral,
        "share of the oracle's cut": frozen.share,
    }


def coverage(world, trajectories, repeats, seed=0, find=intervals):
    """Name -> the share of repeats whose interval holds the truth."""
    rng = np.random.default_rng(seed)
    threshold, truth = world.truth()
    found = [find(*world.draw(trajectories, rng), threshold) for _ in range(repeats)]
    return {name: np.mean([each[name].low <= truth[name] <= each[name].high for each in found]) for name in found[0]}


WORLDS = {
    "scores at chance": World(noise=np.inf),
    "noise 1.5": World(noise=1.5),
    "noise 0.8": World(),
    "noise 0.25": World(noise=0.25),
    "noise 0.8, errors of spread 0.5": World(spread=0.5),
    "noise 0.8, errors of spread 1.5": World(spread=1.5),
    "noise 0.8, 5 answers per trajectory": World(answers=5),
}


def measured(repeats=(4000, 2000, 1000)):
    """(world, number of trajectories, coverages), for all of them: minutes."""
    return [
        (name, size, coverage(world, size, times))
        for name, world in WORLDS.items()
        for size, times in zip(SIZES, repeats, strict=True)
    ]


def table(rows):
    """Markdown: a row per world and number of trajectories."""
    names = list(rows[0][2])
    lines = [f"| simulated | n | {' | '.join(names)} |", f"| --- | --- {'| --- ' * len(names)}|"]
    for name, size, found in rows:
        truth = WORLDS[name].truth()[1]["AUROC"]
        shares = " | ".join(f"{100 * share:.1f} %" for share in found.values())
        lines.append(f"| {name} (AUROC {truth:.2f}) | {size:,} | {shares} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measured()))
