"""A propagator that was learned: (state, horizon, params) -> state, in one forward pass, for any real horizon.

    z(t + h) = z(t) + change(h) * amplitude(z(t)) * network(z(t), log2 h, params)            z: the normalised state

The unit change(h) is measured on the training data (`normalisation`), interpolated between its horizons and linear in h below
them: as h goes to zero, so does the predicted change. Where the spec tells which channel is the rate of which other one, z(t)
stands for the state after free motion.

A guided surrogate corrects a coarse run of the system's own solver instead (`guided`). It therefore needs the system's code:
`attach_guide` gives it. With physical variables z are the variables of a gas (`variables`), or channels that are kept inside
the ranges that their fields allow: the answer is a state that can exist. A network may also see the signed logarithm of z while
it answers in z. With a gated residual it has a second answer per channel, of which min(change(h), 1) z(t) is added: a peak a
hundred deviations high can vanish by an answer of order one, where a change would have to meet its height exactly.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import asdict, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from hybridworld.errors import CodeFailure, InvalidInput, raised
from hybridworld.physics.arguments import shown
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.backbones import BACKBONES, Backbone, network_for
from hybridworld.surrogate.conditioning import Conditioning
from hybridworld.surrogate.config import SurrogateConfig
from hybridworld.surrogate.engines.engine import Running
from hybridworld.surrogate.guide import Guide
from hybridworld.surrogate.leap import averaged
from hybridworld.surrogate.normalisation import Normalisation, amplitude, driven, free_motion, free_paths
from hybridworld.surrogate.variables import gas_state, gas_variables, signed_log

CONDITION = 64

_watched: ContextVar[bool] = ContextVar("watched", default=False)  # see Surrogate.eager


class Surrogate(nn.Module):
    """The network, its scales, and what its states mean.

    `backbone` is the class behind `config.backbone`; it has to be given only for a user's own.
    """

    mean: Tensor
    std: Tensor
    param_mean: Tensor
    param_std: Tensor
    horizons: Tensor
    changes: Tensor
    low: Tensor
    high: Tensor
    answered: tuple[int, ...] | None = None
    """The whole horizons that it answers, where these are not all (`wrapped`)."""

    def __init__(
        self, spec: StateSpec, config: SurrogateConfig, scales: Normalisation, backbone: type[Backbone] | None = None
    ) -> None:
        super().__init__()
        self._keep(spec, config, scales)
        make, options = network_for(config, spec, backbone)
        self.conditioning = Conditioning(len(spec.params) if config.params else 0, CONDITION)
        self.guide: Guide | None = None
        self.engine: Running | None = None
        """What answers instead of the network where no gradient is wanted: called with `inputs`; a copy of the weights."""
        self.backbone: Any = self._made(make, options)
        if config.residual != "plain" and hasattr(self.backbone, "last"):  # begin with "no change", which is hard to beat
            for parameter in self.backbone.last.parameters():
                nn.init.zeros_(parameter)

    def _keep(self, spec: StateSpec, config: SurrogateConfig, scales: Normalisation) -> None:
        """Keep everything but the network: spec, settings, scales and the ranges that answers are kept in."""
        self.spec, self.config = spec, config
        self.trained_grid = spec.grid
        """The grid of its training and calibration: a set of objects can be of another number (`resized`)."""
        for name, values in asdict(scales).items():
            self.register_buffer(name, torch.tensor(np.asarray(values, np.float32)))  # not NumPy's memory: exports save it
        physical = config.variables == "physical"
        self.gamma = spec.gamma if physical else None
        allowed = torch.tensor(spec.allowed if physical else [(-torch.inf, torch.inf)] * len(spec.channels))
        for name, values in zip(("low", "high"), allowed.unbind(1), strict=True):
            self.register_buffer(name, values.clone(), persistent=False)

    def _made(self, make: Any, options: dict[str, Any]) -> Any:
        """The network; one of the user's own is tried at once, so that what it gets wrong is told with the user's line."""
        arguments = (len(self.spec.channels), self.spec.boundaries, CONDITION)
        if self.config.backbone in BACKBONES:
            return make(*arguments, **options)
        z, name = torch.zeros(2, *self.spec.shape), f"The network {self.config.backbone}"
        try:
            network = make(*arguments, **options)
            with torch.no_grad():
                answer = network.eval()(z, torch.zeros(2, CONDITION))
        except (Exception, SystemExit) as error:
            raise CodeFailure(f"{name} raised {raised(error)}.") from error
        if not isinstance(answer, Tensor) or answer.shape != z.shape:
            raise CodeFailure(f"{name} maps states of shape {tuple(z.shape)} to {shown(answer)}; the shape must stay.")
        return network.train()

    def attach_guide(self, environment: Environment) -> None:
        """Let a guided surrogate run the solver of its system on a coarse grid."""
        fitted = environment.fitted(self.spec, f"The guided model of {self.spec.name}")
        self.guide = Guide(fitted, self.backbone.factor, self.config.guide_steps, self.config.guide_scheme)

    def forward(
        self, states: Tensor, horizons: Tensor | float, params: Tensor | None = None, then: Tensor | None = None
    ) -> Tensor:
        """States (batch, channels, *grid) `horizons` frames later; params (batch, number of spec.params).

        `then` is what the guide makes of the states, if that is known already.
        """
        if states.dim() != 2 + len(self.spec.grid) or states.shape[1] != len(self.spec.channels):
            raise InvalidInput(
                f"{self.spec.name}: the states have shape {tuple(states.shape)}; expected (batch, {len(self.spec.channels)}"
                f"{', *grid' if self.spec.grid else ''}), with the channels {', '.join(self.spec.channels)}."
            )
        horizons = self._horizons(horizons, states)
        if self.config.guide and then is None:
            then = self.ask_guide(states, horizons, params)
        given = self.inputs(states, horizons, params, then)
        other_size = states.shape[1:] != self.spec.shape  # an engine was made for one
        if self.engine is None or torch.is_grad_enabled() or _watched.get() or other_size:
            return self.answer(**given)
        return self.engine(*given.values())

    def inputs(self, states: Tensor, horizons: Tensor, params: Tensor | None, then: Tensor | None) -> dict[str, Tensor]:
        """What `answer` takes, by name: parameters and guide only where the network sees them."""
        found = {"states": states, "horizons": horizons}
        if self.sees_params:
            found["params"] = self._checked(params, states.shape[0])
        return found if then is None else found | {"then": then}

    def answer(self, states: Tensor, horizons: Tensor, params: Tensor | None = None, then: Tensor | None = None) -> Tensor:
        """All of the arithmetic: tensors in, tensor out, nothing else is asked. An engine runs this."""
        z = self.normalise(states)
        if then is None:
            return self.denormalise(self.advance(z, horizons, params))
        return self.denormalise(self.correct(z, states, then, horizons, params))

    def resized(self, grid: tuple[int, ...]) -> Self:
        """The same weights for another number of objects."""
        if not self.spec.objects:
            raise InvalidInput(f"The model of {self.spec.name} has the grid {self.spec.grid}: only sets of objects can grow.")
        other = copy(self)
        other.spec = replace(self.spec, grid=tuple(grid))
        return other

    def train(self, mode: bool = True) -> Self:
        """In training the weights change: an engine, which has a copy of them, is dropped."""
        if mode:
            self.engine = None
        return super().train(mode)

    @contextmanager
    def eager(self) -> Iterator[None]:
        """A context in which the network itself, and no engine, answers in this thread, so that its layers can be observed."""
        before = _watched.set(True)
        try:
            yield
        finally:
            _watched.reset(before)

    def __getstate__(self) -> Any:
        """A copy has no engine, which belongs to this process."""
        return {**self.__dict__, "engine": None}

    def normalise(self, states: Tensor) -> Tensor:
        """The normalised states z of states in physical units."""
        return self.standardise(states) if self.gamma is None else gas_variables(states, self.gamma)

    def denormalise(self, z: Tensor) -> Tensor:
        """The states in physical units of normalised states z."""
        if self.gamma is not None:
            return gas_state(z, self.gamma)
        return (z * self._column(self.std) + self._column(self.mean)).clamp(self._column(self.low), self._column(self.high))

    def standardise(self, states: Tensor) -> Tensor:
        """Physical units -> deviations of each channel from its mean."""
        return (states - self._column(self.mean)) / self._column(self.std)

    def in_deviations(self, z: Tensor) -> Tensor:
        """z -> deviations of each channel from its mean, which is the same unless z are the variables of a gas."""
        return z if self.gamma is None else self.standardise(self.denormalise(z))

    def advance(self, z: Tensor, horizons: Tensor, params: Tensor | None = None, then: Tensor | None = None) -> Tensor:
        """Normalised states `horizons` frames later: z (batch, channels, *grid), horizons (batch,)."""
        if self.config.guide:
            states = self.denormalise(z)
            then = self.ask_guide(states, horizons, params) if then is None else then
            return self.correct(z, states, then, horizons, params)
        seen = driven(self.spec, z, self._checked(params, z.shape[0]), self.mean, self.std) if self.sees_params else z
        shown_to_it = signed_log(seen) if self.config.variables == "signed log" else seen
        paths = self._free_paths(seen, horizons)
        answer = self.backbone(shown_to_it, self.conditioning(horizons, self.conditions(z, params)), *paths)
        unit = usual = self.unit_of_change(horizons)
        if self.config.residual != "plain" and self.spec.is_field:
            unit = usual * amplitude(z)[:, None]
        if self.config.residual == "gated":
            gate, answer = answer.chunk(2, dim=1)
            z = torch.addcmul(z, self._beside(usual.clamp(max=1), z) * gate, z)
        if self.spec.rates and self.gamma is None:
            z = z + free_motion(self.spec, seen, horizons, self.mean, self.std) - seen
        return torch.addcmul(z, self._beside(unit, z), answer)

    def _free_paths(self, seen: Tensor, horizons: Tensor) -> tuple[Tensor, ...]:
        """What a network for moving objects sees besides: where free motion leads in so many parts of the horizon."""
        parts = getattr(self.backbone, "parts", 0)
        return (free_paths(self.spec, seen, horizons, parts, self.mean, self.std),) if parts else ()

    def correct(self, z: Tensor, states: Tensor, then: Tensor, horizons: Tensor, params: Tensor | None = None) -> Tensor:
        """What a guided network makes of the guide's answer `then`: tensors in, normalised states out, ready for export."""
        now = self.normalise(averaged(states, self.backbone.factor))
        condition = self.conditioning(horizons, self.conditions(z, params))
        return self.backbone(z, now, self.normalise(then), condition)

    def ask_guide(self, states: Tensor, horizons: Tensor, params: Tensor | None) -> Tensor:
        """The coarse futures; no gradient flows through them."""
        if self.guide is None:
            raise InvalidInput(
                f"The model of {self.spec.name} is guided by the solver of its system: give it, as load(..., solver=SYSTEM) "
                "or surrogate.attach_guide(SYSTEM)."
            )
        rows = None if params is None else params.detach().cpu().numpy()
        return torch.from_numpy(self.guide(states.detach().cpu().numpy(), horizons.cpu().numpy(), rows)).to(states)

    def unit_of_change(self, horizons: Tensor) -> Tensor:
        """change(h) for horizons (batch,) -> (batch, channels)."""
        if self.config.residual == "plain":
            return self.changes.new_ones(horizons.shape[0], self.changes.shape[1])
        known, place = torch.log2(self.horizons), torch.log2(horizons)
        above = (known < place[:, None]).sum(dim=1).clamp(1, max(len(known) - 1, 1)).clamp(max=len(known) - 1)
        below = (above - 1).clamp(min=0)
        share = ((place - known[below]) / (known[above] - known[below]).clamp(min=1e-6)).clamp(0, 1)[:, None]
        between = torch.lerp(self.changes[below], self.changes[above], share)
        return between * (horizons / self.horizons[0]).clamp(max=1)[:, None]

    def conditions(self, z: Tensor, params: Tensor | None) -> Tensor:
        """Normalised parameters (batch, n); n = 0 for a network that sees the state alone."""
        if not self.sees_params:
            return z.new_zeros(z.shape[0], 0)
        return (self._checked(params, z.shape[0]) - self.param_mean) / self.param_std

    @property
    def sees_params(self) -> bool:
        """Whether parameters of the dynamics reach the network."""
        return self.config.params and bool(self.spec.params)

    def _checked(self, params: Tensor | None, count: int) -> Tensor:
        """The params, after a look at whether there is one row per state."""
        if params is None or params.shape != (count, len(self.spec.params)):
            names = ", ".join(parameter.name for parameter in self.spec.params)
            found = "none" if params is None else tuple(params.shape)
            raise InvalidInput(
                f"{self.spec.name}: params have shape {found}; expected {(count, len(self.spec.params))}, "
                f"one row per state with the values of: {names}."
            )
        return params

    def _horizons(self, horizons: Tensor | float, states: Tensor) -> Tensor:
        """The horizons as a tensor with one positive number per state."""
        found = torch.as_tensor(horizons, dtype=torch.float32, device=states.device).expand(len(states))
        values = found.detach().cpu().numpy()  # a look at few numbers takes torch ten times as long
        right = (values > 0) & (values < np.inf)  # so that nan counts as wrong
        if not right.all():
            raise InvalidInput(f"The horizon is {values[~right][0]:g} frames: it must be a positive number.")
        return found

    @staticmethod
    def _beside(values: Tensor, z: Tensor) -> Tensor:
        """The values (batch, channels) in the shape that fits beside z (batch, channels, *grid)."""
        return values.reshape(*values.shape, *[1] * (z.dim() - 2))

    def _column(self, values: Tensor) -> Tensor:
        """The values (channels,) in the shape that fits beside (batch, channels, *grid)."""
        return values.reshape(-1, *[1] * len(self.spec.grid))
