"""How often does the alarm for drift fire on the table of the training, and on one with twice as many objects?

    python docs/examples/tabletop_alarm.py [MODEL]

1,500 test scenes of each table, each at a random frame, as in the calibration, and 16 frames ahead. Windows of 500 answers are
drawn from them as in `hybridworld bench trust`; the stated rate of false alarms is 0.001. Deferred is what mode 2 at q = 0.75
hands to the solver, with the threshold of later frames in the model's file.
"""

import sys

import numpy as np

import hybridworld as hw
from hybridworld.bench.alarm import alarm_rate

SCENES, HORIZON, WINDOWS = 1500, 16, 500
model = hw.load(sys.argv[1] if len(sys.argv) > 1 else "tabletop")
system, known = model.system, model.spec.grid[0]

print("| objects beside the pusher | deferred | windows with alarm |\n| --- | --- | --- |")
for objects in (known, 2 * known - 1):
    table, rng = system.resized((objects,)), np.random.default_rng(0)
    samples = [table.initial("test", seed) for seed in range(SCENES)]
    frames = rng.integers(0, table.spec.frames - HORIZON, SCENES).tolist()
    states = [table.solve(sample.state, frame, sample.params) for sample, frame in zip(samples, frames, strict=True)]
    params = np.stack([sample.params for sample in samples])
    asked = model.resized((objects,)) if objects != known else model
    scores = asked.onward(np.stack(states), HORIZON, params, mode=1, error_map=True).score
    deferred = np.mean(scores > model.threshold(HORIZON, 0.75, beginning=False))
    rate = alarm_rate(model.calibration, {HORIZON: scores}, WINDOWS)
    print(f"| {objects - 1} | {deferred:.1%} | {rate:.1%} |", flush=True)
