"""Engines of a user's own: one that dies, is wrong, is right, answers with another shape, or takes states of one shape."""

import os
import signal
import time

from hybridworld.surrogate.engines.engine import Engine, Running


def written(program, folder):
    with (folder / "calls.txt").open("a") as file:
        file.write("written\n")


def dying(folder, answer, threads):
    os.kill(os.getpid(), signal.SIGILL)


def wrong(folder, answer, threads):
    return lambda *inputs: answer(*inputs) * 1.001


def slightly_wrong(folder, answer, threads):
    return lambda *inputs: answer(*inputs) * (1 + 1e-6)


def cut(folder, answer, threads):
    return lambda *inputs: answer(*inputs)[:, :1]


def slow(folder, answer, threads):
    time.sleep(600)


def of_one_size(surrogate):
    """An engine at work that takes the states of this surrogate and no others, as OpenVINO does."""
    shape = surrogate.spec.shape

    def run(states, *more):
        if states.shape[1:] != shape:
            raise RuntimeError(f"the input has the shape [?,{','.join(map(str, shape))}]")
        return surrogate.answer(states, *more)

    return Running("of one size", run)


DYING = Engine("dying", (), written, dying)
WRONG = Engine("wrong", (), written, wrong)
COARSE = Engine("coarse", (), written, wrong, exact=False)
FINE = Engine("fine", (), written, slightly_wrong)
CUT = Engine("cut", (), written, cut)
SLOW = Engine("slow", (), written, slow)
MISSING = Engine("missing", ("no_such_package",), written, slightly_wrong)
