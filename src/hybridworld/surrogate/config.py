"""Every setting of a surrogate and of its training, with the paper's values as the preset `paper`.

Settings are laid over each other: defaults, then the preset, then what the system itself adds to that preset
(`Environment.presets`), then the user's `section.key=value`.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hybridworld.errors import InvalidInput, nearest
from hybridworld.physics.arguments import checked_text
from hybridworld.physics.spec import StateSpec

Settings = Mapping[str, Mapping[str, Any]]  # section -> key -> value

RELATIVE = "relative to guide"
"""The mean square error over that of the guide, as records of a training call it."""


class Section(BaseModel):
    """Settings that cannot change, and whose names must be known."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SurrogateConfig(Section):
    """Settings of the network: its architecture, its guide, and what it sees."""

    backbone: str = Field(description="unet, leap, mlp, objects, or path/to/file.py:Class")
    width: int | None = Field(
        None, ge=1, le=8192, description="features of the network (unet 48, leap 96, mlp 256, objects 96)"
    )
    patch: int | None = Field(
        None, ge=1, description="leap: cells along each axis that make one latent cell (default: 8, 4 or 2, by the grid)"
    )
    guide: bool = Field(False, description="leap: correct a run of the system's own solver on a coarse grid")
    guide_factor: int | None = Field(
        None, ge=1, description="how many times coarser the guide's grid is than the state's; divides patch (default: patch)"
    )
    guide_scheme: str | None = Field(None, description="one of the system's variants that the guide runs (default: its own)")
    guide_steps: int = Field(1, ge=1, description="solver frames of the guide per frame, for systems with a frame_step")
    variables: Literal["channels", "signed log", "physical"] = Field(
        "channels",
        description="channels: as they are; signed log: the network sees their logarithms, for channels with long tails; "
        "physical: the answer is always a state that can exist",
    )
    params: bool = Field(True, description="does the network see the parameters of the dynamics?")
    residual: Literal["scaled", "gated", "plain"] = Field(
        "scaled",
        description="scaled: unit of the horizon, begins with no change; gated (leap): it also says how much of the state "
        "remains; plain: neither",
    )


class TrainingConfig(Section):
    """Settings of the training: what is learned from, the loss, the optimiser, and how long."""

    seed: int = Field(0, ge=0, lt=2**63, description="of initial weights and batches")
    horizons: tuple[int, ...] = Field(description="horizons in frames: validated at, and the range that training draws from")
    draw: Literal["range", "long", "listed"] = Field(
        "range",
        description="range: every whole horizon from the shortest to the longest, log-uniform; long: likewise, with more of "
        "the long ones; listed: these alone",
    )
    objective: Literal["supervised", "self-consistency"] = Field(
        "supervised", description="supervised, or self-consistency: for the ablation only"
    )
    weighting: Literal["none", "horizon", "sample", "robust", "guide"] = Field(
        "none",
        description="square errors relative to nothing (none), to the usual change at their horizon, to the change of "
        "their own sample, or to the guide's error; robust: errors of objects or cells, not squared, each channel relative "
        "to its change",
    )
    dagger: float = Field(0.1, ge=0, le=1, description="weight of the loss on the surrogate's own mid states")
    dagger_kind: Literal["chain", "solver"] = Field(
        "chain", description="chain: towards the trajectory's future; solver: the solver's answer"
    )
    lr: float = Field(gt=0, description="highest learning rate")
    weight_decay: float = Field(1e-4, ge=0, description="of AdamW")
    clip: float = Field(1.0, gt=0, description="largest norm of a gradient")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="of convolutions and matrix products; bfloat16 is faster where the processor has it"
    )
    warmup: float = Field(0, ge=0, description="epochs in which the learning rate rises")
    epochs: int = Field(ge=1, description="after which the learning rate has fallen to 0, along a cosine")
    samples: int = Field(ge=1, description="pairs per epoch")
    batch: int = Field(ge=1, description="pairs per step, over all processes")
    patience: int = Field(15, ge=1, description="epochs without a better validation before training stops")
    ema: float = Field(0.0, ge=0, lt=1, description="decay of the moving average of the weights (0: none)")
    augment: bool = Field(False, description="see pairs through the system's symmetries, and shifted along periodic axes")
    validation: int = Field(ge=1, description="trajectories that choose the best epoch, one pair per horizon each")
    calibration: int = Field(
        200, ge=0, description="further trajectories that, at the end, set thresholds and bounds (0: no calibration)"
    )

    @field_validator("horizons", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        """`64` and `1,2,4` from the command line."""
        if isinstance(value, str):
            value = value.strip("[]() ,").split(",")
        return (value,) if isinstance(value, int) else value

    @field_validator("horizons")
    @classmethod
    def _sorted(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or min(value) < 1:
            raise ValueError("horizons are whole numbers of frames of at least 1")
        return tuple(sorted(set(value)))

    @model_validator(mode="after")
    def _consistent(self) -> "TrainingConfig":
        if self.warmup >= self.epochs:
            raise ValueError(f"warmup is {self.warmup:g} of {self.epochs} epochs: it must be shorter than the training")
        if self.batch > self.samples:
            raise ValueError(f"batch is {self.batch} of {self.samples} samples per epoch: it can be at most {self.samples}")
        return self

    @property
    def steps_per_epoch(self) -> int:
        """Updates of the weights in one epoch."""
        return -(-self.samples // self.batch)

    @property
    def steps(self) -> int:
        """Updates of the weights in the whole training."""
        return self.epochs * self.steps_per_epoch

    @property
    def measure(self) -> str:
        """What chooses the best epoch: the validation error that training makes small."""
        return RELATIVE if self.weighting == "guide" else "mse"


class Config(Section):
    """All that decides about a training, but for the data."""

    surrogate: SurrogateConfig
    training: TrainingConfig

    @model_validator(mode="after")
    def _guided(self) -> "Config":
        training = self.training
        if self.surrogate.residual == "gated" and (self.surrogate.guide or self.surrogate.backbone != "leap"):
            raise ValueError("surrogate.residual=gated is for the backbone leap without a guide")
        if self.surrogate.guide:
            from hybridworld.surrogate.backbones import GUIDED

            if self.surrogate.backbone not in GUIDED:
                raise ValueError(
                    f"surrogate.guide is for the backbone {' or '.join(GUIDED)}, not for {self.surrogate.backbone}"
                )
            if self.surrogate.variables == "signed log":
                raise ValueError("surrogate.variables=signed log is for networks without a guide")
        if training.weighting == "guide" and not self.surrogate.guide:
            raise ValueError("training.weighting=guide needs surrogate.guide=true")
        if training.weighting == "guide" and training.objective != "supervised":
            raise ValueError("training.weighting=guide needs training.objective=supervised")
        if training.weighting == "guide" and training.dagger and training.dagger_kind != "chain":
            raise ValueError("training.weighting=guide needs training.dagger_kind=chain, or training.dagger=0")
        return self


FIELDS = {"lr": 2e-4, "batch": 8, "samples": 2_000, "epochs": 40, "validation": 64, "calibration": 200}
SHORT = {"lr": 1e-3, "batch": 4, "samples": 200, "epochs": 6, "weighting": "horizon"}
VECTORS = {"lr": 3e-4, "batch": 128, "samples": 25_600, "epochs": 80, "validation": 2_000, "calibration": 2_000}
LISTED = {"draw": "listed"}
GUIDED = {
    "lr": 2e-3, "warmup": 0.5, "weighting": "guide", "dagger": 0, "ema": 0.99, "augment": True, "samples": 1_600, "epochs": 20,
}  # fmt: skip
PRESETS: dict[str, dict[bool, Settings]] = {  # name -> has the state a grid? -> settings
    "paper": {
        True: {"surrogate": {"params": False}, "training": FIELDS | LISTED},
        False: {"surrogate": {"params": False}, "training": VECTORS | LISTED},
    },
    "laptop": {
        True: {"training": FIELDS | SHORT | {"ema": 0.98, "augment": True}},
        False: {"training": VECTORS | {"ema": 0.999, "augment": True}},
    },
    "guided": {
        True: {
            "surrogate": {"backbone": "leap", "guide": True, "variables": "physical"},
            "training": FIELDS | GUIDED,
        },
        False: {"training": VECTORS | {"ema": 0.999, "augment": True}},
    },
    "pure": {
        True: {
            "surrogate": {"backbone": "leap", "variables": "signed log", "residual": "gated"},
            "training": FIELDS | GUIDED | {"weighting": "sample", "dagger": 0.1},
        },
        False: {"training": VECTORS | {"ema": 0.999, "augment": True}},
    },
    "smoke": {
        True: {
            "surrogate": {"width": 8},
            "training": FIELDS | {"lr": 1e-3, "samples": 64, "epochs": 3, "validation": 8, "calibration": 8},
        },
        False: {"surrogate": {"width": 32}, "training": VECTORS | {"lr": 3e-3, "samples": 2_560, "epochs": 3}},
    },
}
"""`paper`: Table 11 of the paper (systems may add to it), and the state alone. `laptop`: what two cores do in the time of a
coffee break; the network sees the parameters. `guided`: a network that corrects a coarse run of the system's own solver, for
Euler 2D 50 minutes on two cores; a state vector has no coarse grid, and is trained as by `laptop`. `pure`: the same network
without a guide, as the paper has it: it learns the dynamics from data alone. `smoke`: is everything connected?"""


def configure(
    spec: StateSpec, preset: str = "paper", wishes: Iterable[str] = (), presets: Mapping[str, Settings] | None = None
) -> Config:
    """The settings of that preset for such states, with `presets` of the system and wishes like `training.lr=1e-4`."""
    from hybridworld.surrogate.backbones import default_backbone

    if checked_text("The preset", preset) not in PRESETS:
        raise InvalidInput(f"Unknown preset '{preset}': choose {', '.join(PRESETS)}.{nearest(preset, PRESETS)}")
    layers: list[Settings] = [
        {"surrogate": {"backbone": default_backbone(spec)}, "training": {"horizons": spec.horizons}},
        PRESETS[preset][spec.is_field],
        (presets or {}).get(preset, {}),
        parse_wishes(wishes),
    ]
    merged: dict[str, dict[str, Any]] = {"surrogate": {}, "training": {}}
    for layer in layers:
        for section, settings in layer.items():
            merged.setdefault(section, {}).update(settings)
    return checked(merged)


def parse_wishes(wishes: Iterable[str]) -> Settings:
    """`training.lr=1e-4` -> {"training": {"lr": "1e-4"}}; pydantic reads the numbers."""
    known = known_settings()
    found: dict[str, dict[str, Any]] = {}
    for wish in wishes:
        name, equals, value = (part.strip() for part in wish.partition("="))
        if not equals or not value:
            raise InvalidInput(f"The setting '{wish}' has no value: write it as training.lr=1e-4.")
        if name not in known:
            raise InvalidInput(f"There is no setting '{name}'.{nearest_setting(name)}")
        section, _, key = name.partition(".")
        found.setdefault(section, {})[key] = value
    return found


def nearest_setting(name: str) -> str:
    """The end of a message about an unknown setting: names are compared without their section, which resembles any other."""
    known = known_settings()
    section, _, key = name.rpartition(".")
    keys = {each.partition(".")[2]: each for each in known}
    found = get_close_matches(key, keys, n=1)
    if found:
        return f" Did you mean '{keys[found[0]]}'?"
    return f" There are: {', '.join(each for each in known if each.startswith(f'{section}.')) or ', '.join(known)}."


def known_settings() -> dict[str, str]:
    """`section.key` -> what it means."""
    sections: dict[str, type[Section]] = {"surrogate": SurrogateConfig, "training": TrainingConfig}
    return {
        f"{name}.{key}": field.description or ""
        for name, section in sections.items()
        for key, field in section.model_fields.items()
    }


def checked(settings: Settings) -> Config:
    """The settings as a Config, or one sentence about the first that cannot be."""
    try:
        return Config.model_validate(settings)
    except ValidationError as error:
        raise InvalidInput(sentence(error)) from error


def sentence(error: ValidationError) -> str:
    """The first fault in words, with the nearest value that is allowed."""
    first = error.errors()[0]
    name, value, context = ".".join(map(str, first["loc"][:2])), first["input"], first.get("ctx", {})
    match first["type"]:
        case "extra_forbidden":
            return f"There is no setting '{name}'.{nearest_setting(name)}"
        case "missing":
            return f"The setting {name} has no value."
        case "literal_error":
            return f"{name} is '{value}': it must be {context['expected']}."
        case "value_error":
            return f"{name}{': ' if '.' in name else '.' if name else ''}{context['error']}."
        case "greater_than_equal":
            return f"{name} is {value}: it must be at least {context['ge']:g}."
        case "less_than_equal":
            return f"{name} is {value}: it must be at most {context['le']:g}."
        case "greater_than":
            return f"{name} is {value}: it must be greater than {context['gt']:g}."
        case "less_than":
            return f"{name} is {value}: it must be less than {context['lt']:g}."
        case "int_parsing" | "float_parsing" | "finite_number" | "bool_parsing" as kind:
            wanted = {"int": "a whole number", "bool": "true or false"}.get(kind.partition("_")[0], "a finite number")
            return f"{name} is '{value}': it must be {wanted}."
        case _:
            return f"{name} is '{value}': {first['msg'][0].lower()}{first['msg'][1:]}."
