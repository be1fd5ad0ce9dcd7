"""What do worlds gain that move together? Steps per second of processor time, one thread, of 16 worlds of the tabletop.

    python docs/examples/tabletop_worlds.py [MODEL]

Apart: Gymnasium's SyncVectorEnv of single worlds. Together: `gymnasium.make_vec`, one question to the backend for all of them.
Both get the same random actions and take turns, 40 times; the median counts.
"""

import sys
import time

import gymnasium
import numpy as np
import torch

import hybridworld as hw

WORLDS, TURNS = 16, 40
torch.set_num_threads(1)
model = hw.load(sys.argv[1] if len(sys.argv) > 1 else "tabletop")

print("| backend | apart | together | gain |\n| --- | --- | --- | --- |")
with hw.thread_limit(1):
    for backend in ("solver", "surrogate", "hybrid"):
        ways = [
            gymnasium.make_vec("hybridworld/Tabletop-v0", WORLDS, mode, backend=backend, model=model)
            for mode in ("sync", "vector_entry_point")
        ]
        ways[0].action_space.seed(0)
        for worlds in ways:
            worlds.reset(seed=0)
        seconds = np.zeros((TURNS, 2))
        for turn in range(TURNS):
            actions = ways[0].action_space.sample()
            for way, worlds in enumerate(ways):
                began = time.process_time()
                worlds.step(actions)
                seconds[turn, way] = time.process_time() - began
        apart, together = WORLDS / np.median(seconds, axis=0)
        print(f"| {backend} | {apart:.0f} | {together:.0f} | {together / apart:.1f}x |", flush=True)
