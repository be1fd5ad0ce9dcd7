"""Gymnasium environments: `gymnasium.make("hybridworld:hybridworld/Tabletop-v0", backend="hybrid")`.

Every registered system with an action parameter is there, under its name (`deploy.registration`). An action is held over
`horizon` frames. The solver, the surrogate, or both move the state, as `backend` says. `info` of a step always has these keys:

    missed              how far the goal is
    used_solver         did the solver answer?
    lost                has the surrogate led to a state that cannot exist? The episode is then cut off
    score, error_map    as the trust signal has them, per object or cell; zero for the backend `solver`, which is the truth
    solver_seconds      what the solver took
    saved_seconds       what it takes, less what the step took; below 0 where the step took longer

`gymnasium.make_vec` makes worlds that move together (`Worlds`).
"""

from typing import Any

import gymnasium
import numpy as np

from hybridworld.deploy.backends import action_limits, mover, solved
from hybridworld.deploy.deferral import KEEP
from hybridworld.deploy.forecast import Forecast
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.load import load
from hybridworld.deploy.registration import register
from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import whole
from hybridworld.physics.environment import Environment
from hybridworld.physics.registry import find_system
from hybridworld.physics.task import Task

PIXELS = (480, 640)
FPS = 10


class Seconds(np.float64):
    """Measured time. Two measurements count as equal, since an environment must be the same for the same seed."""

    def __eq__(self, other: object) -> Any:
        return isinstance(other, Seconds) or super().__eq__(other)

    __hash__ = np.float64.__hash__


NO_TASK = Task("", np.zeros(0), -np.inf, "", lambda states: np.zeros(len(states)), lambda states: np.zeros(len(states)))
"""Of a system that gives no task: no goal, and nothing to be rewarded for."""


class World(gymnasium.Env[dict[str, Any], np.ndarray]):
    """One scene and one task per episode; the reward is by how much a step brings the state nearer to the goal.

    A system without tasks has an empty goal, and the reward is 0.

    `model` is that of the backends `surrogate` and `hybrid` (by default the one that ships under the system's name), `q` the
    keep fraction of the hybrid. An episode ends at the goal, or after `steps` actions, or where a surrogate has led to a state
    that cannot exist, about which the solver could not be asked.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": FPS}  # noqa: RUF012
    over = False
    """Has the episode ended?"""

    def __init__(
        self,
        system: str | Environment,
        backend: str = "solver",
        model: str | HybridModel | None = None,
        horizon: int = 8,
        steps: int = 40,
        split: str = "train",
        q: float = KEEP,
        render_mode: str | None = None,
    ) -> None:
        self.environment = system if isinstance(system, Environment) else find_system(system)
        spec = self.environment.spec
        self.backend, self.render_mode, self._split = backend, render_mode, split
        self._horizon, self._steps = whole("The horizon", horizon, 1), whole("The number of steps", steps, 1)
        spec.regime(split)
        if backend != "solver" and not isinstance(model, HybridModel):
            model = load(model or spec.name, self.environment)
        self.model = model if isinstance(model, HybridModel) else None
        wishes: dict[str, Any] = {"q": q} if backend == "hybrid" else {}
        self._move = mover(backend, self.environment, self.model, **wishes)
        self._columns, low, high = action_limits(self.environment)
        self.action_space = gymnasium.spaces.Box(low.astype(np.float32), high.astype(np.float32))
        self._state, self._params, self._task = self._fresh(np.random.default_rng(0))
        self.observation_space: gymnasium.Space[dict[str, Any]] = gymnasium.spaces.Dict(
            {
                "state": gymnasium.spaces.Box(-np.inf, np.inf, spec.shape, np.float32),
                "goal": gymnasium.spaces.Box(-np.inf, np.inf, self._task.goal.shape, np.float32),
            }
        )
        self._taken, self._solver_seconds = 0, 0.0
        self._expected: tuple[Forecast, int] | None = None
        if backend != "solver":  # what is saved where it is not asked
            once = solved(self.environment, self._state[None], self._horizon, self._params[None])
            self._solver_seconds = once.seconds["solver"]

    def _fresh(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, Task]:
        sample = self.environment.sample(rng, self._split)
        return sample.state, sample.params.copy(), self.environment.task(rng, sample.state) or NO_TASK

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """A fresh scene with a task; `seed` decides about both."""
        super().reset(seed=seed)
        self._state, self._params, self._task = self._fresh(self.np_random)
        self._taken, self._expected, self.over = 0, None, False
        return self._observed(), {"missed": self._missed(), "task": self._task.text}

    def hold(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state (channels, *grid) and the parameters under that action: what the backend is asked about."""
        self._params[self._columns] = np.clip(action, self.action_space.low, self.action_space.high)  # type: ignore[attr-defined]
        return self._state, self._params

    def expect(self, found: Forecast, row: int) -> None:
        """The next step takes that row of a forecast for what it has just asked, and asks nobody."""
        self._expected = found, row

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Hold the action over `horizon` frames."""
        before = self._missed()
        if self._expected is None:
            state, params = self.hold(action)
            self._expected = self._move(state[None], self._horizon, params[None]), 0
        (found, row), self._expected = self._expected, None
        self._state, self._taken = np.array(found.state[row], np.float64), self._taken + 1
        used, solves = bool(found.used_solver[row]), max(int(np.sum(found.used_solver)), 1)
        spent = found.seconds.get("solver", 0.0) / solves if used else 0.0
        if used:
            self._solver_seconds = spent  # what a step of the solver takes here
        score, error_map = 0.0, np.zeros(self.environment.spec.grid)
        if found.score is not None and found.error_map is not None:
            score, error_map = found.score[row], found.error_map[row]
        info: dict[str, Any] = {
            "missed": self._missed(),
            "used_solver": used,
            "lost": not used and self._lost(),
            "score": float(score),
            "error_map": np.array(error_map, np.float32),
            "solver_seconds": Seconds(spent),
            "saved_seconds": Seconds(self._solver_seconds - sum(found.seconds.values()) / len(found.state)),
        }
        done = bool(info["missed"] <= self._task.near) and not info["lost"]
        late = (self._taken >= self._steps or info["lost"]) and not done
        self.over = done or late
        return self._observed(), before - info["missed"], done, late, info

    def _lost(self) -> bool:
        try:
            self.environment.checked(self._state)
        except InvalidInput:
            return True
        return False

    def render(self) -> np.ndarray | None:
        """The state as it is, (height, width, 3): by the system's own renderer where it has one, else by our figures."""
        if self.render_mode != "rgb_array":
            return None
        photograph = self.environment.photograph(self._state, self._params, *PIXELS)
        if photograph is not None:
            return photograph
        from hybridworld.figures.trajectories import picture

        return picture(self.environment.spec, self._state, self._task.text, self._task.mark)

    def _missed(self) -> float:
        return float(self._task.missed(self._state[None])[0])

    def _observed(self) -> dict[str, np.ndarray]:
        return {"state": self._state.astype(np.float32), "goal": self._task.goal.astype(np.float32)}


class Worlds(gymnasium.vector.SyncVectorEnv):
    """Many worlds that move together: per step one question to the backend about all of them.

    So there is one batched forward pass, and one call of the solver for what is deferred. All else is Gymnasium's
    SyncVectorEnv of the single worlds, with its observations, rewards, infos and resets, up to the rounding of a batch; the
    seconds in `info` are shares of those of the batch. `autoreset_mode` is Gymnasium's (from 1.1 on), by default `NextStep`;
    everything else is as for a `World`.
    """

    def __init__(self, num_envs: int = 1, autoreset_mode: Any = None, **settings: Any) -> None:
        count = whole("The number of worlds", num_envs, 1)
        first = World(**settings)
        if first.model is not None:
            settings["model"] = first.model  # one for all
        settings["system"] = first.environment
        modes = {} if autoreset_mode is None else {"autoreset_mode": autoreset_mode}
        super().__init__([lambda: first, *[lambda: World(**settings)] * (count - 1)], **modes)
        self._together = first._move, first._horizon
        self._waits = getattr(getattr(self, "autoreset_mode", None), "value", "NextStep") == "NextStep"

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Hold an action (a row) in each world; one whose episode has ended begins anew instead (`NextStep`)."""
        if np.shape(actions) != self.action_space.shape:
            raise InvalidInput(f"The actions have the shape {np.shape(actions)}, not {self.action_space.shape}.")
        worlds: list[tuple[World, np.ndarray]] = list(zip(self.envs, np.asarray(actions), strict=True))  # type: ignore[arg-type]
        moving = [(world, action) for world, action in worlds if not (self._waits and world.over)]
        if moving:
            asked = [world.hold(action) for world, action in moving]
            states, rows = (np.stack(each) for each in zip(*asked, strict=True))
            move, horizon = self._together
            found = move(states, horizon, rows)
            for row, (world, _) in enumerate(moving):
                world.expect(found, row)
        return super().step(actions)


register()
