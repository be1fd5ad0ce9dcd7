"""What a solver process does: (environment, method, arguments) from a pipe -> the answer and its seconds back.

It imports no network library, so it starts fast and stays small.
"""

import importlib
import importlib.util
import pickle
import signal
import sys
import time
from functools import lru_cache
from multiprocessing.connection import Connection
from typing import Any

from hybridworld.errors import HybridWorldError
from hybridworld.physics.environment import Environment
from hybridworld.physics.threads import thread_limit

READY, BEGUN = "ready", "begun"
Packed = tuple[bytes, str, str | None]
FIRST = "first_solve"  # a task that loads or compiles kernels


def pack(environment: Environment) -> Packed:
    """An environment for another process: itself, and the module and file of its class, which may be a user's."""
    module = type(environment.unresolved).__module__
    return pickle.dumps(environment), module, getattr(sys.modules.get(module), "__file__", None)


@lru_cache(maxsize=64)
def unpack(packed: Packed) -> Environment:
    """Inverse of `pack`, in the other process."""
    content, module, file = packed
    try:
        importlib.import_module(module)
    except ImportError:
        spec = importlib.util.spec_from_file_location(module, file) if file else None
        if spec is None or spec.loader is None:
            raise
        sys.modules[module] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[module])
    return pickle.loads(content)


def work(pipe: Connection, threads: int) -> None:
    """Answer until the other end of the pipe is closed. The server decides when to end, so signals are left to it."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    pipe.send(READY)
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            pipe.send(BEGUN)
            pipe.send(_answer(threads, *task))
        except (BrokenPipeError, OSError):
            return


def _answer(threads: int, packed: Packed, method: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    began = time.perf_counter()
    try:
        with thread_limit(threads):
            environment = unpack(packed)
            if method == FIRST:
                sample = environment.initial("val", 0)
                method, arguments = "solve", (sample.state, 1, sample.params)
            began = time.perf_counter()
            answer = getattr(environment, method)(*arguments)
    except HybridWorldError as error:
        return type(error), str(error), 0.0
    except Exception as error:
        return HybridWorldError, f"The solver raised {type(error).__name__}: {error}.", 0.0
    return None, answer, time.perf_counter() - began
