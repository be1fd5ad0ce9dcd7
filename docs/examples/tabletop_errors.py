"""How far off a model of the tabletop is, in millimetres, beside no change and ballistic motion, and what it costs.

    python docs/examples/tabletop_errors.py [MODEL]

Errors: mean over the spheres and boxes of 128 test scenes, from frame 8 on. Times: processor time of one thread, best of a few.
"""

import sys
import time

import numpy as np
import torch

import hybridworld as hw

torch.set_num_threads(1)
model = hw.load(sys.argv[1] if len(sys.argv) > 1 else "tabletop")
system = model.system
samples = [system.initial("test", seed) for seed in range(128)]
params = np.stack([sample.params for sample in samples])
whole = system.record(np.stack([sample.state for sample in samples]), 264, params).astype(float)
now = whole[:, :, 8]
moving = np.round(now[:, system.spec.channels.index("kind")]) >= 0
ballistic = system.variants()["ballistic"]


def millimetres(states, truth):
    """Mean distance of the spheres and boxes from where they are in truth."""
    return 1e3 * np.hypot(*(states[:, :2] - truth[:, :2]).transpose(1, 0, 2))[moving].mean()


def milliseconds(answer, repeats):
    """Processor time of one answer, the best of several."""
    spent = []
    for _ in range(repeats):
        began = time.process_time()
        answer()
        spent.append(time.process_time() - began)
    return 1e3 * min(spent)


print("| h | no change | ballistic | surrogate |\n| --- | --- | --- | --- |")
for horizon in (1, 2, 4, 8, 16, 32, 64, 128, 256):  # beyond 64 the surrogate answers in chains
    answers = now, ballistic.solve(now, horizon, params), model.onward(now, horizon, params, mode=1).state
    print(f"| {horizon} | " + " | ".join(f"{millimetres(each, whole[:, :, 8 + horizon]):.2f}" for each in answers) + " |")

print("\n| h | MuJoCo, one | surrogate, one | with map | MuJoCo, of 64 | surrogate, of 64 |")
print("| --- | --- | --- | --- | --- | --- |")
with hw.thread_limit(1):
    for horizon in (16, 64):
        asked = [(now[:count], horizon, params[:count]) for count in (1, 64)]
        times = (
            milliseconds(lambda: system.solve(*asked[0]), 5),  # noqa: B023
            milliseconds(lambda: model.onward(*asked[0], mode=1), 20),  # noqa: B023
            milliseconds(lambda: model.onward(*asked[0], mode=1, error_map=True), 20),  # noqa: B023
            milliseconds(lambda: system.solve(*asked[1]), 1) / 64,  # noqa: B023
            milliseconds(lambda: model.onward(*asked[1], mode=1), 10) / 64,  # noqa: B023
        )
        print(f"| {horizon} | " + " | ".join(f"{each:.2f} ms" for each in times) + " |")
