"""Gymnasium environments: `gymnasium.make("hybridworld.deploy.gym:hybridworld/Tabletop-v0", backend="hybrid")`.

The part before the colon is this module: Gymnasium imports it, and it registers. (Up to 0.29 Gymnasium looked for entry points
of installed packages, and finds this one; 1.0 has dropped them.)

Every registered system with an action parameter is there, under its name. An action is held over `horizon` frames. What moves
the state is the backend: the solver, the surrogate, or both. `info` of a step has the same keys for all of them:

    missed              how far the goal is
    used_solver         did the solver answer?
    score, error_map    as the trust signal has them, per object or cell; zero for the backend `solver`, which is the truth
    solver_seconds      what the solver took
    saved_seconds       what it takes, less what the step took; below 0 where the step took longer
"""

from typing import Any

import gymnasium
import numpy as np

from hybridworld.deploy.backends import action_limits, mover, solved
from hybridworld.deploy.deferral import KEEP
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.load import load
from hybridworld.errors import HybridWorldError
from hybridworld.physics.arguments import whole
from hybridworld.physics.environment import Environment
from hybridworld.physics.registry import find_system, known_systems
from hybridworld.physics.task import Task

PIXELS = (480, 640)
FPS = 10


def register() -> None:
    """One environment for each system that can be acted on, by name."""
    for name in known_systems():
        try:
            acts = bool(find_system(name).spec.actions)
        except HybridWorldError:  # a plug-in that does not load must not break Gymnasium
            continue
        title = f"hybridworld/{''.join(part.capitalize() for part in name.split('_'))}-v0"
        if acts and title not in gymnasium.registry:
            gymnasium.register(title, entry_point="hybridworld.deploy.gym:World", kwargs={"system": name})


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
    keep fraction of the hybrid. An episode ends at the goal, or after `steps` actions.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": FPS}  # noqa: RUF012

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
        wishes: dict[str, Any] = {"q": q} if backend == "hybrid" else {}
        self._move = mover(backend, self.environment, model if isinstance(model, HybridModel) else None, **wishes)
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
        self._taken = 0
        return self._observed(), {"missed": self._missed(), "task": self._task.text}

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Hold the action over `horizon` frames."""
        before = self._missed()
        self._params[self._columns] = np.clip(action, self.action_space.low, self.action_space.high)  # type: ignore[attr-defined]
        found = self._move(self._state[None], self._horizon, self._params[None])
        self._state, self._taken = np.asarray(found.state[0], np.float64), self._taken + 1
        spent, used = found.seconds.get("solver", 0.0), bool(found.used_solver[0])
        if used:
            self._solver_seconds = spent  # what a step of the solver takes here
        score, error_map = 0.0, np.zeros(self.environment.spec.grid)
        if found.score is not None and found.error_map is not None:
            score, error_map = found.score[0], found.error_map[0]
        info: dict[str, Any] = {
            "missed": self._missed(),
            "used_solver": used,
            "score": float(score),
            "error_map": np.array(error_map, np.float32),
            "solver_seconds": Seconds(spent if used else 0.0),
            "saved_seconds": Seconds(self._solver_seconds - sum(found.seconds.values())),
        }
        done = info["missed"] <= self._task.near
        return self._observed(), before - info["missed"], bool(done), self._taken >= self._steps and not done, info

    def render(self) -> np.ndarray | None:
        """The state as it is, (height, width, 3): by the system's own renderer where it has one, else by our figures."""
        if self.render_mode != "rgb_array":
            return None
        photograph = self.environment.photograph(self._state, self._params, *PIXELS)
        if photograph is not None:
            return photograph
        from hybridworld.figures.trajectories import picture

        return picture(self.environment.spec, self._state, self._task.text, self._task.place)

    def _missed(self) -> float:
        return float(self._task.missed(self._state[None])[0])

    def _observed(self) -> dict[str, np.ndarray]:
        return {"state": self._state.astype(np.float32), "goal": self._task.goal.astype(np.float32)}


register()
