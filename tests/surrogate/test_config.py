"""Settings: the paper's table, what a user writes, and what is said about a mistake."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybridworld as hw
from hybridworld.errors import InvalidInput
from hybridworld.physics.registry import BUILT_IN
from hybridworld.reproduce import paper
from hybridworld.surrogate.config import PRESETS, checked, configure, known_settings
from tests.surrogate.flows import OSCILLATOR, RING

TABLE = {
    "oregonator": {"lr": 2e-4, "warmup": 3, "batch": 8, "samples": 5_000, "epochs": 60},
    "euler2d": {"lr": 2e-4, "warmup": 0, "batch": 8, "samples": 2_000, "epochs": 40},
    "ball3d": {"lr": 3e-4, "warmup": 0, "batch": 128, "samples": 25_600, "epochs": 80},
}
SHARED = {"weight_decay": 1e-4, "clip": 1.0, "dagger": 0.1, "patience": 15}
BESIDE = {"objective": "supervised", "dagger_kind": "chain", "ema": 0.0, "augment": False, "horizons": paper.TRAINED}


# Presets.


@pytest.mark.parametrize("name", TABLE)
def test_the_preset_paper_is_the_papers_table(name):
    environment = hw.system(name)
    config = configure(environment.spec, "paper", presets=environment.presets)
    for key, value in (TABLE[name] | SHARED | BESIDE).items():
        assert getattr(config.training, key) == value, key
    assert config.surrogate.model_dump() == {
        "backbone": "mlp" if name == "ball3d" else "unet", "width": None, "params": False, "residual": "scaled",
            "patch": None, "guide": False, "guide_factor": None, "guide_scheme": None, "guide_steps": 1,
            "variables": "channels",
    }  # fmt: skip
    assert configure(environment.spec, presets=environment.presets) == config  # it is the default


@pytest.mark.parametrize(("name", "steps"), [("oregonator", 37_500), ("euler2d", 10_000), ("ball3d", 16_000)])
def test_a_training_of_the_paper_has_so_many_steps(name, steps):
    environment = hw.system(name)
    assert configure(environment.spec, "paper", presets=environment.presets).training.steps == steps


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", BUILT_IN)
def test_every_preset_fits_every_system(name, preset):
    environment = hw.system(name)
    config = configure(environment.spec, preset, presets=environment.presets)
    assert config.surrogate.params == (preset != "paper")
    assert max(config.training.horizons) < environment.spec.frames


def test_a_system_is_above_the_preset_and_the_user_above_the_system():
    presets = {"smoke": {"training": {"lr": 0.5, "epochs": 7}}, "paper": {"training": {"lr": 0.7}}}
    plain = configure(RING, "smoke").training
    found = configure(RING, "smoke", ["training.epochs=9"], presets).training
    assert (found.lr, found.epochs, found.batch) == (0.5, 9, plain.batch)


def test_a_system_may_have_horizons_of_its_own():
    assert configure(OSCILLATOR).training.horizons == OSCILLATOR.horizons != paper.TRAINED


# Wishes.


@pytest.mark.parametrize(
    ("wish", "value"),
    [
        ("training.lr=1e-4", 1e-4),
        ("training.lr = 0.25 ", 0.25),
        ("training.batch=16", 16),
        ("training.seed=7", 7),
        ("training.augment=true", True),
        ("training.augment=no", False),
        ("surrogate.params=1", True),
        ("surrogate.params=False", False),
        ("surrogate.residual=plain", "plain"),
        ("surrogate.width=64", 64),
        ("surrogate.backbone=my/net.py:Net", "my/net.py:Net"),
        ("training.objective=self-consistency", "self-consistency"),
        ("training.dagger=0", 0.0),
        ("training.warmup=0.5", 0.5),
        ("training.horizons=64", (64,)),
        ("training.horizons=1,2,4", (1, 2, 4)),
        ("training.horizons=[4, 1, 2, 2]", (1, 2, 4)),
        ("training.horizons=(8,)", (8,)),
    ],
)
def test_wishes_are_read_as_they_are_meant(wish, value):
    section, _, key = wish.partition("=")[0].strip().partition(".")
    found = getattr(getattr(configure(RING, "smoke", [wish]), section), key)
    assert found == value and type(found) is type(value)


def test_the_last_of_two_wishes_counts():
    assert configure(RING, "smoke", ["training.lr=1", "training.seed=3", "training.lr=2"]).training.lr == 2


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        ("training.lrr=1", "There is no setting 'training.lrr'. Did you mean 'training.lr'?"),
        ("trainig.batch=8", "There is no setting 'trainig.batch'. Did you mean 'training.batch'?"),
        ("lr=1e-4", "There is no setting 'lr'. Did you mean 'training.lr'?"),
        ("width=8", "There is no setting 'width'. Did you mean 'surrogate.width'?"),
        ("surrogate.lr=1", "There is no setting 'surrogate.lr'. Did you mean 'training.lr'?"),
        ("training.width=8", "There is no setting 'training.width'. Did you mean 'surrogate.width'?"),
        ("training.lr", "The setting 'training.lr' has no value: write it as training.lr=1e-4."),
        ("training.lr=", "The setting 'training.lr=' has no value: write it as training.lr=1e-4."),
        (
            "training.objective=consistency",
            "training.objective is 'consistency': it must be 'supervised' or 'self-consistency'.",
        ),
        ("training.dagger_kind=teacher", "training.dagger_kind is 'teacher': it must be 'chain' or 'solver'."),
        ("surrogate.residual=none", "surrogate.residual is 'none': it must be 'scaled', 'gated' or 'plain'."),
        ("training.dagger=1.5", "training.dagger is 1.5: it must be at most 1."),
        ("training.dagger=-1", "training.dagger is -1: it must be at least 0."),
        ("training.batch=0", "training.batch is 0: it must be at least 1."),
        ("training.lr=0", "training.lr is 0: it must be greater than 0."),
        ("training.ema=1", "training.ema is 1: it must be less than 1."),
        ("training.lr=fast", "training.lr is 'fast': it must be a finite number."),
        ("training.lr=inf", "training.lr is 'inf': it must be a finite number."),
        ("training.dagger=nan", "training.dagger is 'nan': it must be a finite number."),
        ("training.epochs=2.5", "training.epochs is '2.5': it must be a whole number."),
        ("training.augment=perhaps", "training.augment is 'perhaps': it must be true or false."),
        ("training.horizons=1,,2", "training.horizons is '': it must be a whole number."),
        ("training.horizons=1,x", "training.horizons is 'x': it must be a whole number."),
        ("training.horizons=0,1", "training.horizons: horizons are whole numbers of frames of at least 1."),
        ("training.warmup=3", "training.warmup is 3 of 3 epochs: it must be shorter than the training."),
        ("training.batch=65", "training.batch is 65 of 64 samples per epoch: it can be at most 64."),
    ],
)
def test_each_mistake_has_a_sentence(wish, sentence):
    with pytest.raises(InvalidInput) as caught:
        configure(RING, "smoke", ["training.seed=1", wish])
    assert str(caught.value) == sentence


def test_a_name_like_no_other_is_answered_with_all_there_are():
    with pytest.raises(InvalidInput, match=r"no setting 'zzz'\. There are: surrogate.backbone, .*training.calibration\.$"):
        configure(RING, "smoke", ["zzz=1"])


def test_an_unknown_preset_is_answered_with_the_known_ones():
    choices = ", ".join(PRESETS)
    with pytest.raises(InvalidInput, match=rf"^Unknown preset 'papr': choose {choices}\. Did you mean 'paper'\?$"):
        configure(RING, "papr")


@pytest.mark.parametrize(
    ("presets", "words"),
    [
        ({"smoke": {"trainin": {"lr": 1}}}, r"'trainin'\. There are: surrogate\.backbone"),
        ({"smoke": {"training": {"lrr": 1}}}, r"'training.lrr'\. Did you mean 'training.lr'\?"),
    ],
)
def test_a_mistake_in_a_systems_own_presets_is_named(presets, words):
    with pytest.raises(InvalidInput, match=f"There is no setting {words}"):
        configure(RING, "smoke", presets=presets)


# As a value.


def test_every_setting_says_what_it_means():
    assert len(known_settings()) >= 20 and all(known_settings().values())


def test_a_config_cannot_be_changed():
    config = configure(RING, "smoke")
    with pytest.raises(ValueError, match="frozen"):
        config.training.lr = 1.0


@settings(max_examples=100, deadline=None)
@given(
    lr=st.floats(1e-9, 1e3),
    horizons=st.lists(st.integers(1, 100), min_size=1, max_size=5),
    samples=st.integers(1, 10**6),
    epochs=st.integers(1, 1000),
    ema=st.floats(0, 1, exclude_max=True),
    augment=st.booleans(),
    data=st.data(),
)
def test_a_config_survives_being_written_down(lr, horizons, samples, epochs, ema, augment, data):
    """As JSON, and as wishes."""
    batch = data.draw(st.integers(1, samples))
    wishes = [
        f"training.lr={lr!r}", f"training.horizons={','.join(map(str, horizons))}", f"training.samples={samples}",
        f"training.epochs={epochs}", f"training.batch={batch}", f"training.ema={ema!r}", f"training.augment={augment}",
    ]  # fmt: skip
    config = configure(RING, "smoke", wishes)
    training = config.training
    assert checked(json.loads(json.dumps(config.model_dump(mode="json")))) == config
    assert (training.lr, training.ema, training.augment) == (lr, ema, augment)
    assert training.horizons == tuple(sorted(set(horizons)))
    assert (training.steps_per_epoch - 1) * batch < samples <= training.steps_per_epoch * batch
