"""Does an agent on the tabletop reach more goals if it plans with the solver, the surrogate, or both, in the same time?

    python docs/examples/tabletop_planning.py [SECONDS [BACKEND [TASKS [MODEL]]]]

Each decision has SECONDS (0.05) of processor time on one thread, so that a busy machine changes nothing; at most 15 decisions
per task. BACKEND is one of solver, surrogate and hybrid (default: all). The interval is that of the share, at 95 % confidence.
"""

import sys
import time

import numpy as np
import torch

import hybridworld as hw
from hybridworld.bench.intervals import share_interval
from hybridworld.deploy.plan import Planner, act

torch.set_num_threads(1)
seconds, backends, count, name = [*sys.argv[1:], *("0.05", "all", "100", "tabletop")[len(sys.argv) - 1 :]]
model = None if backends == "solver" else hw.load(name)  # with the engine that is remembered for one thread
system = model.system if model else hw.system("tabletop")

print("| backend | ms per decision | reached | interval | decisions | candidates | checked |\n" + "| --- " * 7 + "|")
with hw.thread_limit(1):
    for backend in ("solver", "surrogate", "hybrid") if backends == "all" else (backends,):
        episodes = []
        for number in range(int(count)):
            sample = system.initial("test", number)
            task = system.task(np.random.default_rng([1, number]), sample.state)
            rng = np.random.default_rng([2, number])
            planner = Planner(system, task, backend, model, seconds=float(seconds), rng=rng, clock=time.process_time)
            episodes.append(act(planner, sample.state, sample.params))
        share, low, high = share_interval(np.array([each.success for each in episodes]))
        plans = [plan for each in episodes for plan in each.plans]
        means = (np.mean([getattr(plan, each) for plan in plans]) for each in ("seconds", "candidates", "checked"))
        spent, drawn, checked = means
        print(
            f"| {backend} | {1e3 * spent:.0f} | {share:.0%} | {low:.0%} to {high:.0%} | {len(plans) / len(episodes):.1f} | "
            f"{drawn:.0f} | {checked:.1f} |",
            flush=True,
        )
