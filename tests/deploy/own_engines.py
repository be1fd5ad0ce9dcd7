"""Engines of a user's own: one that dies, one that is wrong, one that is right, and one that answers with another shape."""

import os
import signal
import time

from hybridworld.surrogate.engines.engine import Engine


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


DYING = Engine("dying", (), written, dying)
WRONG = Engine("wrong", (), written, wrong)
COARSE = Engine("coarse", (), written, wrong, exact=False)
FINE = Engine("fine", (), written, slightly_wrong)
CUT = Engine("cut", (), written, cut)
SLOW = Engine("slow", (), written, slow)
MISSING = Engine("missing", ("no_such_package",), written, slightly_wrong)
