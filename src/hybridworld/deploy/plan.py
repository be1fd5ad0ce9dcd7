"""A planner that knows when to ask: model-predictive control by the cross-entropy method.

    draw sequences of actions -> roll them out -> keep the cheapest, draw around them -> ...  -> act, look, plan again
                                 (solver or surrogate)                  hybrid: of the cheapest, those that the map doubts
                                                                        are rolled out by the solver before one is taken

An action is held over `horizon` frames; a plan has `links` of them, of which the first is carried out.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hybridworld.deploy.backends import Move, action_limits, mover
from hybridworld.deploy.deferral import KEEP
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.task import Task

FEWEST = 4
"""Candidates of a round, at least: fewer have no spread."""
TIMED = (1, 16)
"""Candidates of the two rollouts that tell, before the first decision, what a rollout takes."""


@dataclass
class Pace:
    """What a rollout of n candidates takes: `call + n each` seconds. A network has a large `call`, a solver a large `each`."""

    call: float
    each: float

    def seconds(self, count: int) -> float:
        """What so many candidates take together."""
        return self.call + count * self.each

    def count(self, seconds: float) -> int:
        """The candidates that fit into one call of that time; it may be none, or fewer."""
        return int((seconds - self.call) / self.each)

    def correct(self, count: int, seconds: float) -> None:
        """Learn from a rollout of so many candidates: what it took beyond a call was theirs."""
        self.each = max(seconds - self.call, 0.1 * seconds) / count


@dataclass(frozen=True)
class Plan:
    """Actions (links, number of action parameters), what they are expected to cost, and what it took to find them."""

    actions: np.ndarray
    cost: float
    candidates: int
    checked: int
    """Candidates that the hybrid handed to the solver before it chose."""
    seconds: float


@dataclass
class Planner:
    """Plans for one task; with `seconds` as many candidates per decision as fit into that time, else `rounds` full rounds.

    The hybrid searches for half of the time. The other half is for the map of the cheapest candidates and for the solver's
    checks of those that it doubts; where it is too short for the map and one check, the surrogate plans alone.
    """

    environment: Environment
    task: Task
    backend: str = "hybrid"
    model: HybridModel | None = None
    horizon: int = 8
    links: int = 4
    candidates: int = 64
    elites: int = 8
    rounds: int = 4
    seconds: float | None = None
    q: float = KEEP
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    clock: Callable[[], float] = time.perf_counter
    """What seconds are told by: wall time, or time.process_time on a busy machine."""
    _mean: np.ndarray | None = field(default=None, init=False)
    _paces: dict[str, Pace] = field(default_factory=dict, init=False)
    """What rollouts take: those of the search, of the error map (`map`) and of the solver's checks (`check`)."""

    def __post_init__(self) -> None:
        fast = "surrogate" if self.backend == "hybrid" else self.backend
        self._move = mover(fast, self.environment, self.model, mapped=False)
        self._truth = mover("solver", self.environment, None)
        self._columns, self._low, self._high = action_limits(self.environment)
        self._search_seconds = self.seconds
        if self.backend == "hybrid":
            self._map = mover("surrogate", self.environment, self.model)

    def decide(self, state: np.ndarray, params: np.ndarray) -> Plan:
        """The best sequence that was found from that state (channels, *grid)."""
        if self.seconds is not None and not self._paces:
            self._time(state, params)
        began, drawn, rounds = self.clock(), 0, 0
        mean = (self._low + self._high) / 2 + np.zeros((self.links, 1)) if self._mean is None else self._mean
        std = (self._high - self._low) / 2 + np.zeros((self.links, 1))
        best: list[tuple[float, np.ndarray]] = []
        while count := self._affordable(self.clock() - began, rounds):
            tried = self.rng.normal(mean, std, (count, *mean.shape)).clip(self._low, self._high)
            tried[0] = mean  # what was good a moment ago may still be
            started = self.clock()
            costs = self._costs(self._move, state, params, tried)
            if self._paces:
                self._paces["search"].correct(count, self.clock() - started)
            best = sorted([*best, *zip(costs.tolist(), tried, strict=True)], key=lambda each: each[0])[: self.elites]
            kept = np.stack([actions for _, actions in best])
            mean, std = kept.mean(axis=0), kept.std(axis=0) + 0.02 * (self._high - self._low)
            drawn, rounds = drawn + count, rounds + 1
        checked = 0
        if self.backend == "hybrid":
            best, checked = self._checked(state, params, best, began)
        cost, actions = best[0]
        self._mean = np.concatenate([actions[1:], actions[-1:]])
        return Plan(actions, cost, drawn, checked, self.clock() - began)

    def _time(self, state: np.ndarray, params: np.ndarray) -> None:
        """Time rollouts once; this is no part of a decision."""
        rollouts = {"search": self._move}
        if self.backend == "hybrid":
            rollouts |= {"map": self._map, "check": self._truth}
        for name, move in rollouts.items():
            taken = []
            for count in (TIMED[0], *TIMED):  # the first call of all is slower than later ones
                actions = self.rng.uniform(self._low, self._high, (count, self.links, len(self._columns)))
                started = self.clock()
                self._costs(move, state, params, actions)
                taken.append(self.clock() - started)
            few, many = taken[1:]
            each = max(many - few, 0.01 * many) / (TIMED[1] - TIMED[0])
            self._paces[name] = Pace(max(few - TIMED[0] * each, 0.0), each)
        assert self.seconds is not None
        if self.backend == "hybrid":
            enough = self._paces["map"].seconds(self.elites) + self._paces["check"].seconds(1) <= self.seconds / 2
            self._search_seconds = self.seconds / 2 if enough else self.seconds

    def _affordable(self, spent: float, rounds: int) -> int:
        """Candidates of the next round, 0 where there shall be none.

        The time that is left is divided among as many rounds as still have twice as many candidates as there are elites.
        """
        if self._search_seconds is None:
            return self.candidates if rounds < self.rounds else 0
        pace, left = self._paces["search"], self._search_seconds - spent
        most = 8 * self.candidates
        for more in range(max(self.rounds - rounds, 1), 0, -1):
            if (count := pace.count(left / more)) >= 2 * self.elites:
                return min(count, most)
        count = pace.count(left)
        return count if count >= FEWEST else 0 if rounds else FEWEST

    def _costs(self, move: Move, state: np.ndarray, params: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Mean over the links, for actions (count, links, n); a rollout that leaves finite numbers is never taken."""
        states, rows = np.repeat(state[None], len(actions), axis=0), np.repeat(params[None], len(actions), axis=0)
        total = np.zeros(len(actions))
        for link in range(self.links):
            rows[:, self._columns] = actions[:, link]
            states = move(states, self.horizon, rows).state
            total += self.task.cost(states)
        return np.where(np.isfinite(total), total / self.links, np.inf)

    def _checked(
        self, state: np.ndarray, params: np.ndarray, best: list[tuple[float, np.ndarray]], began: float
    ) -> tuple[list[tuple[float, np.ndarray]], int]:
        """The same candidates, those that the map doubts at some link with the cost that the solver finds, and how many.

        Doubted ones for which there is no time come last.
        """
        count = self._fitting("map", len(best), began)
        if not count:
            return best, 0
        actions = np.stack([each for _, each in best[:count]])
        costs, doubted = np.array([cost for cost, _ in best[:count]]), np.zeros(count, bool)
        states, rows = np.repeat(state[None], count, axis=0), np.repeat(params[None], count, axis=0)
        assert self.model is not None
        threshold = self.model.threshold(self.horizon, self.q)
        for link in range(self.links):
            rows[:, self._columns] = actions[:, link]
            found = self._map(states, self.horizon, rows)
            states, doubted = found.state, doubted | ~(np.asarray(found.score) <= threshold)
        asked = np.flatnonzero(doubted)
        asked = asked[: self._fitting("check", len(asked), began)]
        if len(asked):
            costs[doubted] = np.inf
            costs[asked] = self._costs(self._truth, state, params, actions[asked])
        return [(float(costs[k]), actions[k]) for k in np.argsort(costs, kind="stable")], len(asked)

    def _fitting(self, what: str, most: int, began: float) -> int:
        """Candidates, at most so many, for which the time of this decision is enough."""
        if self.seconds is None:
            return most
        return int(np.clip(self._paces[what].count(began + self.seconds - self.clock()), 0, most))


@dataclass(frozen=True)
class Episode:
    """What an agent did: all frames of the true world, its plans, and how far the goal was before and after each."""

    task: Task
    states: np.ndarray  # (frames + 1, channels, *grid)
    plans: tuple[Plan, ...]
    missed: np.ndarray  # (plans + 1,)

    @property
    def success(self) -> bool:
        """Was the goal reached?"""
        return bool(self.missed[-1] <= self.task.near)


def act(planner: Planner, state: np.ndarray, params: np.ndarray, decisions: int = 15) -> Episode:
    """Plan, carry out the first action in the true world, and plan again, until the goal or for so many decisions."""
    if decisions < 1:
        raise InvalidInput(f"The number of decisions is {decisions}: it must be at least 1.")
    states, plans, params = [state], list[Plan](), np.array(params)
    while len(plans) < decisions and planner.task.missed(states[-1][None])[0] > planner.task.near:
        plan = planner.decide(states[-1], params)
        plans.append(plan)
        params[planner._columns] = plan.actions[0]
        states += list(planner.environment.trajectory(states[-1], planner.horizon, params))[1:]
    whole = np.stack(states)
    return Episode(planner.task, whole, tuple(plans), planner.task.missed(whole[:: planner.horizon]))
