"""A system that can be told to die, to sleep or to raise. It imports no network library, so that its processes start fast."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hybridworld.physics.environment import Environment, Sample
from hybridworld.physics.spec import Field, Parameter, StateSpec

RATE = Parameter("rate", "1/s", "of the decay", dict.fromkeys(("id", "ood-near", "ood-far"), ((0.1, 0.5),)), (0, 10))


@dataclass(frozen=True)
class Moody(Environment):
    """Two numbers decay. The first of them is a mood: 6 dies unless `mark` is there, 7 sleeps, 8 dies, 9 raises."""

    mark: str = ""

    @property
    def spec(self):
        return StateSpec(
            name="moody", title="Moody", fields=(Field("mood", "1"), Field("other", "1")), axes=(), grid=(), frame_step=0.1,
            time_unit="s", frames=17, draw="mood", parameters=(RATE,),
        )  # fmt: skip

    def sample(self, rng, split):
        return Sample(rng.normal(size=2), np.array([RATE.draw(rng, "id")]))

    def advance(self, states, frames, params):
        mood = states[0, 0]
        if mood == 8 or (mood == 6 and not Path(self.mark).exists()):
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if mood == 7:
            time.sleep(600)
        if mood == 9:
            raise ZeroDivisionError("of all things")
        return states * np.exp(-0.1 * frames * params)


class Cold(Moody):
    """Its first solve in a process tells that it was the first: it negates the states."""

    solved = False

    def advance(self, states, frames, params):
        first, Cold.solved = not Cold.solved, True
        return -states if first else states
