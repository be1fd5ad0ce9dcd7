"""Any model as a surrogate:   f(states, horizon[, params]) -> states, a torch module or any callable, NumPy or torch.

f gets a batch of states (batch, channels, *grid), the horizon in frames as a number, and where it takes them the parameters of
the dynamics (batch, number of spec.params). Torch modules work in float32, NumPy functions in float64.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hybridworld.errors import CodeFailure, HybridWorldError, InvalidInput, raised
from hybridworld.physics.arguments import shown
from hybridworld.physics.registry import module_from_file
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.config import PRESETS, Config, SurrogateConfig, checked
from hybridworld.surrogate.horizons import listed
from hybridworld.surrogate.normalisation import Normalisation
from hybridworld.surrogate.surrogate import Surrogate

SAME = 1e-2
"""Deviations by which two answers to one question may differ, on another machine or with another version of a library."""


class _Raised(CodeFailure):
    """The user's model raised something; `told` says what, and where."""

    def __init__(self, told: str) -> None:
        super().__init__(f"The model raised {told}.")
        self.told = told


class Wrapped(Surrogate):
    """A surrogate whose answers are those of a model `f`; `made` says if code without arguments made it.

    `answered` are the horizons that it answers, None: all up to the longest of the scales. `example` is a state with its
    parameters: the answer to it travels with the model and tells whether code that is found later is still the same.
    """

    example_state: Tensor
    example_params: Tensor
    example_answer: Tensor

    def __init__(
        self,
        f: Callable[..., Any],
        spec: StateSpec,
        config: SurrogateConfig,
        scales: Normalisation,
        made: bool,
        answered: Sequence[int] | None = None,
        example: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        nn.Module.__init__(self)
        self._keep(spec, config, scales)
        self.f, self.made = f, made
        self.guide = self.engine = None  # it has its own ways
        self.answered = None if answered is None else tuple(answered)
        self.takes_arrays = False
        """Whether f works on NumPy arrays instead of tensors."""
        state, params = example or (np.zeros(spec.shape), np.zeros(len(spec.params)))
        for name, values in (("state", state), ("params", params), ("answer", state)):
            self.register_buffer(f"example_{name}", torch.from_numpy(np.array(values, np.float32)))
        weights = next(f.parameters(), None) if isinstance(f, nn.Module) else None
        if weights is not None:
            self.to(weights.device)
        if example is not None:
            self.eval()
            self.example_answer = self.answer_example()

    def forward(
        self, states: Tensor, horizons: Tensor | float, params: Tensor | None = None, then: Tensor | None = None
    ) -> Tensor:
        """States (batch, channels, *grid) `horizons` frames later: f is called once for each horizon among them."""
        horizons = self._horizons(horizons, states)
        rows = params if params is not None and self.config.params else states.new_zeros(len(states), 0)
        asked = torch.unique(horizons).tolist()
        if len(asked) == 1:
            return self._ask(states, asked[0], rows)
        answer = torch.empty_like(states)
        for horizon in asked:
            here = horizons == horizon
            answer[here] = self._ask(states[here], horizon, rows[here])
        return answer

    def advance(self, z: Tensor, horizons: Tensor, params: Tensor | None = None, then: Tensor | None = None) -> Tensor:
        """Normalised states `horizons` frames later."""
        return self.normalise(self(self.denormalise(z), horizons, params))

    def answer_example(self) -> Tensor:
        """What f says about the example at the longest horizon; finds out if it works on arrays or on tensors."""
        horizon, failures = float(self.horizons.max()), []
        for takes_arrays in (False,) if isinstance(self.f, nn.Module) else (True, False):
            self.takes_arrays = takes_arrays
            try:
                with torch.inference_mode():
                    return self(self.example_state[None], horizon, self.example_params[None])[0].clone()
            except _Raised as error:
                failures.append(f"with {'NumPy arrays' if self.takes_arrays else 'torch tensors'} {error.told}")
        raise CodeFailure(
            f"The model cannot answer a state of shape {self.spec.shape} at {listed([horizon])}: {'; '.join(failures)}."
        )

    def check_same(self) -> None:
        """Raise unless f gives the answer that it gave when the model was calibrated."""
        before, now = self.example_answer, self.answer_example()
        off = float(((now - before) / self._column(self.std)).abs().max())
        if not off <= SAME:
            raise InvalidInput(
                f"{self.config.backbone} is not the model that was calibrated: an answer that was kept differs from its own by "
                f"{off:.2g} deviations. Calibrate it again."
            )

    def check_savable(self) -> None:
        """Raise unless another process can find the code and make the model from it."""
        name = self.config.backbone
        if ":" not in name:
            raise InvalidInput(
                f"The model ({name}) stands in no file under a name of its own, so another program could not find it: give it "
                "to `wrap` as 'path/to/file.py:name', the name of a class or of a function that returns it."
            )
        if not (self.made or inspect.isfunction(self.f)):  # an object, of which a file has but the class
            try:
                again: Any = type(self.f)()  # type: ignore[misc]
                if isinstance(self.f, nn.Module):
                    again.load_state_dict(self.f.state_dict())
            except Exception as error:
                raise InvalidInput(
                    f"{name} cannot be made without arguments ({raised(error)}): write a function that returns it, and give "
                    "that to `wrap` as 'path/to/file.py:function'."
                ) from error

    def _ask(self, states: Tensor, horizon: float, params: Tensor) -> Tensor:
        if self.answered is not None and horizon not in self.answered:
            raise InvalidInput(f"The model answers {listed(self.answered)}, and it was asked for {horizon:g}.")
        given: list[Any] = [each.detach().clone() for each in ((states, params) if self.config.params else (states,))]
        if self.takes_arrays:
            given = [each.cpu().double().numpy() for each in given]
        try:
            answer = self.f(given[0], number(horizon), *given[1:])
        except HybridWorldError:
            raise
        except (Exception, SystemExit) as error:
            raise _Raised(raised(error)) from error
        found = answer if isinstance(answer, Tensor) else np.asarray(answer)
        real = not found.is_complex() if isinstance(found, Tensor) else found.dtype.kind in "fiu"
        if not real or found.shape != states.shape:
            raise CodeFailure(
                f"The model answered states of shape {tuple(states.shape)} with {answered(found)}: "
                "it must return as many states of the same shape."
            )
        return torch.as_tensor(found).to(states, copy=True)


def answered(found: Any) -> str:
    """What a model returned, as a message names it."""
    return f"{shown(found) if found.shape else repr(found.tolist())} of type {found.dtype}"


def number(horizon: float) -> int | float:
    """A whole horizon as an int."""
    return int(horizon) if horizon == int(horizon) else horizon


def takes_params(f: Callable[..., Any]) -> bool:
    """Whether f takes params: it has a third argument that must be given, or one called `params`."""
    try:
        found = inspect.signature(f.forward if isinstance(f, nn.Module) else f).parameters.values()
    except (TypeError, ValueError):
        raise InvalidInput(
            "The model does not tell its arguments: say with params=True or False if it takes parameters."
        ) from None
    places = [each for each in found if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if len(places) < 3:
        return any(each.kind == each.VAR_POSITIONAL for each in found)
    return places[2].default is inspect.Parameter.empty or places[2].name in ("params", "parameters")


# Where its code is.


def model_from(code: Any) -> Callable[..., Any]:
    """The model that `path/to/file.py:name` names, or that is given: what takes no arguments is called to make it."""
    if isinstance(code, str):
        path, _, name = code.partition(":")
        if not path.endswith(".py") or not name:
            raise InvalidInput(f"The model is '{code}': name it as path/to/file.py:name.")
        module = module_from_file(Path(path))
        if not hasattr(module, name):
            raise InvalidInput(f"{path} has no '{name}'.")
        code = getattr(module, name)
    if not callable(code):
        raise InvalidInput(f"The model is {shown(code)}: it must be a function, a torch module, or path/to/file.py:name.")
    if not (inspect.isclass(code) or (not isinstance(code, nn.Module) and makes_a_model(code))):
        return code
    try:
        made = code()
    except (Exception, SystemExit) as error:
        raise CodeFailure(f"{name_of(code)} makes no model: without arguments it raised {raised(error)}.") from error
    if not callable(made):
        raise CodeFailure(f"{name_of(code)} makes {shown(made)}: it must return a model, a function or a torch module.")
    return made


def makes_a_model(code: Callable[..., Any]) -> bool:
    """Whether it is a function without arguments that must be given."""
    try:
        found = inspect.signature(code).parameters.values()
    except (TypeError, ValueError):
        return False
    return not any(each.default is each.empty and each.kind is not each.VAR_KEYWORD for each in found)


def name_of(code: Any) -> str:
    """`file.py:name` under which another process finds the code; without a colon where it has no such place."""
    if isinstance(code, str):
        path, _, name = code.partition(":")
        return f"{Path(path).name}:{name}"
    named = code if inspect.isfunction(code) or inspect.isclass(code) else type(code)
    name = named.__qualname__
    try:
        file = Path(inspect.getsourcefile(named) or "")
    except (TypeError, OSError):
        return name
    return f"{file.name}:{name}" if file.is_file() and name.isidentifier() else name


def wrapped_config(spec: StateSpec, backbone: str, params: bool, horizons: Sequence[int]) -> Config:
    """The settings of a model that was not trained here: its horizons, and how many trajectories calibrate it."""
    usual: Mapping[str, Any] = PRESETS["laptop"][spec.is_field]["training"]
    return checked({"surrogate": {"backbone": backbone, "params": params}, "training": {**usual, "horizons": tuple(horizons)}})
