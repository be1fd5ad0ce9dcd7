"""The pictures of docs/method.md, from the models that ship.

python docs/examples/method_pictures.py docs/pictures
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import hybridworld as hw

WARM, COOL, GREY = "#c4473a", "#2f7f9e", "#9aa3b0"


def one_pass_and_two(path: Path, name: str = "euler2d", seed: int = 7, horizon: int = 64) -> None:
    """A field forecast in one pass and in two, what lies between them, and the true error."""
    model = hw.load(name)
    start = model.system.initial("test", seed)

    def forecast(state, frames):
        return model.predict(state, frames, start.params, mode=1).state

    once, twice = forecast(start.state, horizon), forecast(forecast(start.state, horizon // 2), horizon // 2)
    truth = model.solve(start.state, horizon, start.params)
    error_map, error = (model.error_maps(once[None], other[None])[0] for other in (twice, truth))
    drawn = model.spec.channels.index(model.spec.draw)
    states = {"input": start.state, f"one pass: {horizon} frames": once, f"two passes: {horizon // 2} + {horizon // 2}": twice}
    errors = {"error map: |one - two|": error_map, "true error: |one - solver|": error}
    figure, panels = plt.subplots(1, 5, figsize=(13, 2.7), layout="constrained")
    low, high = (pick([state[drawn] for state in states.values()]) for pick in (np.min, np.max))
    for panel, (title, state) in zip(panels, states.items(), strict=False):
        image = panel.imshow(state[drawn].T, origin="lower", cmap="viridis", vmin=low, vmax=high)
        panel.set_title(title, fontsize=10)
    figure.colorbar(image, ax=panels[:3], shrink=0.75, pad=0.01, label=model.spec.draw)
    for panel, (title, values) in zip(panels[3:], errors.items(), strict=True):
        image = panel.imshow(values.T, origin="lower", cmap="YlOrRd", vmin=0, vmax=np.quantile(error, 0.998))
        panel.set_title(title, fontsize=10)
    figure.colorbar(image, ax=panels[3:], shrink=0.75, pad=0.01, extend="max", label="deviations")
    for panel in panels:
        panel.set(xticks=[], yticks=[])
    figure.savefig(path, dpi=110)


def score_and_gate(path: Path, name: str = "ball3d", horizon: int = 32, count: int = 2_000, q: float = 0.75) -> None:
    """Left: the score of each answer and its true error. Right: the error that is left when so many go to the solver."""
    model = hw.load(name)
    states, params = model.system.initials("test", range(count))
    forecast = model.predict(states, horizon, params, mode=1, error_map=True)
    errors = model.errors(forecast.state, model.solve(states, horizon, params))
    threshold = model.threshold(horizon, q)
    flagged = forecast.score > threshold
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for which, colour, label in ((~flagged, COOL, "kept on the surrogate"), (flagged, WARM, "handed to the solver")):
        left.scatter(forecast.score[which], errors[which], s=5, color=colour, alpha=0.6, label=f"{label}: {which.mean():.0%}")
    left.axvline(threshold, color="black", linewidth=1, linestyle="--")
    left.set(xscale="log", yscale="log", xlabel="score: what the network says of itself", ylabel="true error (deviations)")
    left.set_title(f"{model.spec.title}, {horizon} frames: {count:,} answers, q = {q}", fontsize=10)
    left.legend(loc="lower right", frameon=False)
    shares = np.arange(count) / count
    for label, order, colour in (("the error map", forecast.score, WARM), ("an oracle", errors, COOL)):
        left_over = np.cumsum(np.sort(errors) if order is errors else errors[np.argsort(order)])[::-1] / count
        right.plot(shares, left_over, color=colour, label=f"chosen by {label}")
    right.plot(shares, errors.mean() * (1 - shares), color=GREY, linestyle=":", label="chosen blindly")
    right.set(xlabel="share that goes to the solver", ylabel="mean error of all answers", ylim=(0, None), xlim=(0, 1))
    right.set_title("What is left", fontsize=10)
    right.legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    score_and_gate(folder / "score-and-gate.png")
    one_pass_and_two(folder / "one-pass-and-two.png")
