"""A team of threads inside one kernel call: `wait` holds each member until all have arrived.

Why not numba's `prange`: it forks and joins at every loop, its default threading layer must not be entered by two threads
at once, and a process that shares the cores slows it down a hundredfold. Here each call owns its barrier, so any number of
threads may solve at the same time, and a member that waits long gives its core away.
"""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

ARRIVED, ROUND = 0, 16  # places in the barrier array, on cache lines of their own
SPINS_BEFORE_YIELD = 2000
_YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"


def _place(context, builder, array_type, array, index):
    """Pointer to array[index]."""
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, view, [index])


@intrinsic
def _atomic_add(typing_context, array, index, value):
    """array[index] += value as one indivisible step; returns the value before."""

    def generate(context, builder, signature, arguments):
        place = _place(context, builder, signature.args[0], arguments[0], arguments[1])
        return builder.atomic_rmw("add", place, arguments[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), generate


@intrinsic
def _atomic_load(typing_context, array, index):
    """array[index] as the other threads last left it."""

    def generate(context, builder, signature, arguments):
        place = _place(context, builder, signature.args[0], arguments[0], arguments[1])
        return builder.load_atomic(place, "seq_cst", 8)

    return types.int64(array, types.intp), generate


@intrinsic
def _yield_core(typing_context):
    """Let another thread run on this core."""

    def generate(context, builder, signature, arguments):
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(32), []), _YIELD)
        return builder.sext(builder.call(function, []), ir.IntType(64))

    return types.int64(), generate


@njit(cache=True, nogil=True)
def wait(barrier, size):
    """Return once all `size` members have called `wait` for this round."""
    if size == 1:
        return
    this_round = _atomic_load(barrier, ROUND)
    if _atomic_add(barrier, ARRIVED, 1) == size - 1:
        _atomic_add(barrier, ARRIVED, -size)
        _atomic_add(barrier, ROUND, 1)
        return
    spins = 0
    while _atomic_load(barrier, ROUND) == this_round:
        spins += 1
        if spins > SPINS_BEFORE_YIELD:
            _yield_core()


def run_team(member: Callable[[int, int, np.ndarray], object], size: int) -> list:
    """Call member(rank, size, barrier) for each rank at the same time; the answers in rank order.

    The calling thread is rank 0. Members that wait for each other must all be running, so none begins before every thread has
    started; where the system refuses a thread, the team is as large as the number that it got.
    """
    barrier = np.zeros(32, dtype=np.int64)
    found: Future[int] = Future()  # the size of the team
    answers: list[Future] = [Future() for _ in range(size)]

    def take_part(rank: int) -> None:
        try:
            answers[rank].set_result(member(rank, found.result(), barrier))
        except BaseException as error:
            answers[rank].set_exception(error)

    started = 1
    try:
        while started < size:
            threading.Thread(target=take_part, args=(started,), daemon=True).start()
            started += 1
    except RuntimeError:  # can't start new thread
        pass
    found.set_result(started)
    take_part(0)
    return [answer.result() for answer in answers[:started]]
