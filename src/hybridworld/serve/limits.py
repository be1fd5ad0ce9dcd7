"""What the server refuses to do, and how it says so: a status and one sentence."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock

from hybridworld.errors import HybridWorldError

CLIENTS = 10_000
"""Clients whose budget is remembered: those that asked last."""


@dataclass(frozen=True)
class Limits:
    """Bounds on what clients may ask for, one by one and together."""

    queue: int = 128
    """Requests that are accepted and not answered yet."""
    body: int = 64 * 2**20
    """The largest body of a request, in bytes."""
    held: int = 512 * 2**20
    """Bytes of all requests that have arrived and are not answered yet."""
    arriving: int = 512
    """Requests whose body has not arrived yet: fewer than connections, so that others are still answered."""
    patience: float = 5.0
    """Seconds for a body to arrive, beside one for each 256 kB of it that have arrived."""
    horizon: int = 1024
    """The longest horizon that may be asked for, in frames."""
    points: int = 2_000
    """The largest number of points of a gesture on the page."""
    count: int = 256
    """Trajectories that the page may begin at once."""
    seconds: float = 60.0
    """Time from the first byte of a request to its answer, at most."""
    solver_seconds: float = 30.0
    """Time that a solver may spend on one request."""
    client_seconds: float = 60.0
    """Time that solvers may spend on one client, per minute."""


class Refusal(HybridWorldError):
    """A request that is not answered: the HTTP status, the sentence, and when to try again."""

    def __init__(self, status: int, sentence: str, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.status, self.retry_after = status, retry_after


@dataclass
class Request:
    """Who asks, until when an answer is of use, and what solvers may still spend on it."""

    client: str
    deadline: float  # of time.monotonic()
    solver_seconds: float
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def left(self) -> float:
        """Seconds until the deadline; raises once it has passed."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise late()
        return left

    def take(self, seconds: float, solver: str) -> None:
        """Reserve time of that solver; raises where less is left. Horizons of one request may ask at once."""
        with self._lock:
            if seconds > self.solver_seconds:
                raise Refusal(
                    422,
                    f"The solver of {solver} would work about {seconds:.1f} s on this request, and may work "
                    f"{max(0.0, self.solver_seconds):.1f} s: ask for fewer states, a shorter horizon, or a larger q.",
                )
            self.solver_seconds -= seconds

    def give(self, seconds: float) -> None:
        """Return what was reserved and not used; a negative number takes more."""
        with self._lock:
            self.solver_seconds += seconds


asking: ContextVar[Request] = ContextVar("asking")
"""The request that the current thread works for."""


def late() -> Refusal:
    """The refusal of a request whose deadline has passed."""
    return Refusal(504, "There was no answer in time: ask for fewer states or a shorter horizon, or try again later.")


class Admission:
    """A bounded queue. Its places are for requests that have arrived: a slow client takes none, only a place among its like."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._lock = limits, Lock()
        self.requests = self.arriving = self.bytes = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A place for a request whose body is awaited; raises if there is none, or if it could not be admitted anyway."""
        with self._lock:
            if self.requests >= self._limits.queue or self.arriving >= self._limits.arriving:
                raise busy()
            self.arriving += 1
        try:
            yield
        finally:
            with self._lock:
                self.arriving -= 1

    @contextmanager
    def holding(self) -> Iterator[Callable[[int], None]]:
        """A function that counts bytes as they arrive, and raises where they are too many for the server's memory."""
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            with self._lock:
                if self.bytes + size > self._limits.held:
                    raise busy()
                self.bytes, held = self.bytes + size, held + size

        try:
            yield hold
        finally:
            with self._lock:
                self.bytes -= held

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """A place for a request that has arrived; raises if there is none."""
        with self._lock:
            if self.requests >= self._limits.queue:
                raise busy()
            self.requests += 1
        try:
            yield
        finally:
            with self._lock:
                self.requests -= 1


def busy() -> Refusal:
    """There is no place."""
    return Refusal(503, "The server is busy: its queue is full. Try again later.", retry_after=1)


class Budgets:
    """Solver time per client: it refills with time, and a client that has used it up waits."""

    def __init__(self, seconds_per_minute: float) -> None:
        self._most, self._lock = seconds_per_minute, Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client -> (seconds left, when that was)

    def take(self, client: str, seconds: float) -> None:
        """Reserve solver time; raises where the client has none left. The last bit may be overdrawn."""
        with self._lock:
            left = self._now(client)
            if left <= 0:
                wait = max(1.0, -left * 60 / self._most)
                raise Refusal(
                    429,
                    f"The solver has worked {self._most:g} s for this client within a minute, which is the limit: "
                    f"try again in {wait:.0f} s, or keep more on the surrogate (a larger q, or mode 1).",
                    retry_after=wait,
                )
            self._set(client, left - seconds)

    def give(self, client: str, seconds: float) -> None:
        """Return what was reserved and not used; a negative number takes more."""
        with self._lock:
            self._set(client, self._now(client) + seconds)

    def _now(self, client: str) -> float:
        left, then = self._left.get(client, (self._most, time.monotonic()))
        return min(self._most, left + (time.monotonic() - then) * self._most / 60)

    def _set(self, client: str, left: float) -> None:
        self._left[client] = left, time.monotonic()
        self._left.move_to_end(client)
        while len(self._left) > CLIENTS:
            self._left.popitem(last=False)
