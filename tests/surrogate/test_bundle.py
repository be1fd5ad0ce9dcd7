"""A model in one file: what goes in comes out, and nothing else does."""

import json
import os
import pickle
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load, load_file, save, save_file
from torch import nn

from hybridworld.data.provenance import STREAM
from hybridworld.errors import InvalidInput
from hybridworld.surrogate import bundle as bundles
from hybridworld.surrogate.bundle import Bundle, digest, load_bundle, save_bundle
from hybridworld.surrogate.normalisation import measure
from hybridworld.surrogate.surrogate import Surrogate
from tests.surrogate.flows import OSCILLATOR, Oscillator, Ring, ones, surrogate, table, tiny


def made(environment=None, seed=0):
    """A bundle with something in every part."""
    source = table(environment or Oscillator(), count=8)
    torch.manual_seed(seed)
    net = surrogate(source.spec, scales=measure(source.spec, source, (1, 2)).scales)
    validation = {"mse": 0.125, "horizons": {"1": {"mse": 1e-30, "nrmse": 1 / 3}}}
    arrays = {
        "calibration": np.linspace(0, 1, 5, dtype=np.float32),
        "empty": np.zeros((0, 2), np.float32),
        "table": np.eye(4, 2),
    }
    return Bundle(net, tiny(source.spec), validation, {"data": "näher", "seed": 3}, arrays)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.fixture
def good(path):
    """The bytes of a whole file, which is there."""
    save_bundle(path, made())
    return path.read_bytes()


def refusal(path, **options):
    """What is said about the file: one line that names it."""
    with pytest.raises(InvalidInput) as caught:
        load_bundle(path, **options)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message and message.endswith(".") and not message.endswith("..")
    return message


# There and back.


def test_what_older_files_tell_in_sentences_is_read_as_data(path):
    told = {"data": "a stream from the solver of ball3d, version 1", "from": "m.safetensors with the sha256 0"}
    save_bundle(path, replace(made(), provenance=told))
    assert load_bundle(path).provenance == {**told, "source": STREAM, "from name": "m.safetensors"}


@pytest.mark.parametrize("environment", [Oscillator(), Ring()], ids=["mlp", "unet"])
def test_what_goes_in_comes_out(environment, path, tmp_path):
    before = made(environment)
    save_bundle(path, before)
    after = load_bundle(path.rename(tmp_path / "elsewhere.safetensors"))  # this one file is all it takes
    assert not after.surrogate.training
    weights = after.surrogate.state_dict()
    assert list(weights) == list(before.surrogate.state_dict())
    assert all(torch.equal(weights[name], values) for name, values in before.surrogate.state_dict().items())
    assert after.config == before.config and after.surrogate.spec == before.surrogate.spec
    assert after.validation == before.validation and after.provenance == before.provenance
    assert after.arrays.keys() == before.arrays.keys()
    for name, values in before.arrays.items():
        np.testing.assert_array_equal(after.arrays[name], values)
    states, params = torch.randn(3, *environment.spec.shape), torch.rand(3, 1)
    with torch.no_grad():
        assert torch.equal(after.surrogate(states, 1.5, params), before.surrogate(states, 1.5, params))


def test_folders_are_made_on_the_way(tmp_path):
    save_bundle(tmp_path / "a" / "b" / "m.safetensors", made())
    assert load_bundle(tmp_path / "a" / "b" / "m.safetensors")


# One step.


def test_nothing_lies_beside_a_file_that_was_written(path, good):
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_writing_that_fails_leaves_the_old_file(broken, path, good, monkeypatch):
    def fail(*arguments):
        raise OSError("The disk is full.")

    where = os if broken == "fsync" else type(path)
    with monkeypatch.context() as patch:
        patch.setattr(where, broken, fail)
        with pytest.raises(OSError, match="full"):
            save_bundle(path, made(seed=1))
    assert path.read_bytes() == good
    save_bundle(path, made(seed=1))
    assert path.read_bytes() != good and list(path.parent.iterdir()) == [path]


def test_a_value_that_is_not_finite_is_not_written(path, good):
    for name in ("backbone.stem.weight", "std"):
        bad = made()
        bad.surrogate.state_dict()[name].view(-1)[0] = torch.nan
        with pytest.raises(InvalidInput, match=rf"model.safetensors: {name} holds values that are not finite\.$"):
            save_bundle(path, bad)
    assert path.read_bytes() == good


# Damage.


def test_no_damage_is_believed(path, good):
    """Flipped bits, changed bytes, missing ends and missing middles: refused in one line, or harmless."""
    chance, header = random.Random(11), 8 + int.from_bytes(good[:8], "little")
    wanted = load_bundle(path)
    wanted_digest = digest(wanted.config.model_dump_json(), wanted.surrogate.state_dict())

    def flipped(place):
        return good[:place] + bytes([good[place] ^ 1 << chance.randrange(8)]) + good[place + 1 :]

    def changed(place):
        return good[:place] + chance.randbytes(1) + good[place + 1 :]

    def without(place):
        return good[:place] + good[place + chance.randrange(1, 9) :]

    damaged = [flipped(place) for place in range(8)]
    damaged += [flipped(chance.randrange(header)) for _ in range(300)]
    damaged += [flipped(chance.randrange(header, len(good))) for _ in range(60)]
    damaged += [changed(chance.randrange(header)) for _ in range(100)]
    damaged += [good[: chance.randrange(len(good))] for _ in range(100)] + [good[:-1], good[:header], good[:8], good[:7]]
    damaged += [without(chance.randrange(len(good))) for _ in range(50)] + [good + b"\0", good + good]
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            found = load_bundle(path)
        except InvalidInput as error:
            message = str(error)
            assert str(path) in message and "\n" not in message
            refused += 1
        else:
            assert digest(found.config.model_dump_json(), found.surrogate.state_dict()) == wanted_digest
            assert found.validation == wanted.validation and found.provenance == wanted.provenance
    assert refused > 600


def test_the_same_numbers_in_another_shape_are_damage(path, good):
    assert good.count(b'"shape":[4,2]') == 1
    path.write_bytes(good.replace(b'"shape":[4,2]', b'"shape":[2,4]'))
    assert "is damaged: its content does not have the sha256" in refusal(path)


def test_files_that_are_something_else_are_refused_by_name(path, tmp_path):
    assert "There is no model" in refusal(path)
    path.mkdir()
    assert "There is no model" in refusal(path)
    for name, content in {
        "empty": b"",
        "text": b"hello\n" * 100,
        "pickle": pickle.dumps({"weights": [1.0, 2.0]}),
        "zip": b"PK\x03\x04" + bytes(200),
    }.items():
        (tmp_path / name).write_bytes(content)
        assert "is damaged, or no safetensors file" in refusal(tmp_path / name)
    save_file({"w": torch.zeros(3)}, tmp_path / "foreign", {"framework": "pt"})
    assert refusal(tmp_path / "foreign").endswith("is a safetensors file, but not a model of hybridworld.")
    save_file({"w": torch.zeros(3)}, tmp_path / "bare")
    assert refusal(tmp_path / "bare").endswith("is a safetensors file, but not a model of hybridworld.")


def test_a_pickle_is_not_executed(tmp_path):
    marker = tmp_path / "executed"

    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {marker}",)

    torch.save(Evil(), tmp_path / "evil")
    (tmp_path / "evil2").write_bytes(pickle.dumps(Evil()))
    refusal(tmp_path / "evil"), refusal(tmp_path / "evil2")
    assert not marker.exists()


# Whole files with a content that cannot be: their sha256 is right.


def forge(path, change_content=lambda content: None, change_tensors=lambda tensors: None):
    tensors = load_file(path)
    header = json.loads(path.read_bytes()[8 : 8 + int.from_bytes(path.read_bytes()[:8], "little")])
    content = json.loads(header["__metadata__"]["hybridworld"])
    changed = change_content(content)
    change_tensors(tensors)
    text = json.dumps(changed if isinstance(changed, list) else content)
    path.write_bytes(save(tensors, {"hybridworld": text, "sha256": digest(text, tensors)}))


def test_a_forgery_that_changes_nothing_is_read(path, good):
    forge(path)
    assert load_bundle(path).validation["mse"] == 0.125


def config(**settings):
    return lambda content: content["config"]["surrogate"].update(settings)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: content.update(format=2), "it has the format 2, and this version reads 1"),
        (lambda content: content.pop("format"), "is not a model that can be read: 'format'"),
        (config(depth=3), "There is no setting 'surrogate.depth'"),
        (lambda content: content["config"].pop("training"), "setting training has no value"),
        (lambda content: content["config"]["training"].update(lr=-1), "training.lr is -1: it must be greater than 0"),
        (lambda content: content.pop("config"), "'config'"),
        (lambda content: content.pop("validation"), "'validation'"),
        (lambda content: content.update(spec="{}"), "is not a model that can be read"),
        (lambda content: content.update(spec=7), "is not a model that can be read"),
        (lambda content: [content], "is not a model that can be read"),
        (config(width=16), "do not fit the network mlp: size mismatch for backbone"),
        (config(params=False), "do not fit the network mlp: size mismatch for conditioning"),
        (config(backbone="unet"), "state vectors, for which the backbone is mlp, not unet"),
    ],
)
def test_a_content_that_cannot_be_is_refused_by_name(change, words, path, good):
    forge(path, change)
    assert words in refusal(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensors: tensors["weights.backbone.stem.weight"][0].fill_(torch.nan), "backbone.stem.weight holds values"),
        (lambda tensors: tensors["weights.changes"].fill_(torch.inf), "changes holds values that are not finite"),
        (lambda tensors: tensors["arrays.calibration"].fill_(torch.inf), "calibration holds values that are not finite"),
        (lambda tensors: tensors.pop("weights.mean"), "do not fit the network mlp: 'mean'"),
        (lambda tensors: tensors.pop("weights.backbone.stem.bias"), "do not fit the network mlp: Missing key"),
        (lambda tensors: tensors.update({"weights.extra": torch.ones(2)}), "do not fit the network mlp: Unexpected key"),
    ],
)
def test_weights_that_cannot_be_are_refused_by_name(change, words, path, good):
    forge(path, change_tensors=change)
    assert words in refusal(path)


# A user's own network.


class Own(nn.Module):
    """Linear, with the same weights on the way in and out."""

    def __init__(self, channels, boundaries, condition, width=4):
        super().__init__()
        self.into, self.out = nn.Linear(channels, width), nn.Linear(width, channels)
        self.again = self.into

    def forward(self, x, condition):
        return self.out(self.again(x))


class Another(Own):
    """Something else of the same name on disk."""

    def __init__(self, channels, boundaries, condition, width=4):
        super().__init__(channels, boundaries, condition, 2 * width)


@pytest.fixture
def own(path, tmp_path):
    """A model whose backbone is in a file that leaves a mark when it is run."""
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w')\nraise SystemExit('You ran me.')\n")
    made_with = tiny(OSCILLATOR, f"surrogate.backbone={tmp_path / 'own.py'}:Own")
    save_bundle(path, Bundle(Surrogate(OSCILLATOR, made_with.surrogate, ones(OSCILLATOR), Own), made_with))
    return path


def test_a_users_network_is_not_run_by_itself(own, tmp_path):
    message = refusal(own)
    assert f"was trained with the backbone {tmp_path / 'own.py'}:Own" in message and "give its class as `backbone`" in message
    assert not (tmp_path / "marker").exists()


def test_a_users_network_works_with_its_class(own, tmp_path):
    found = load_bundle(own, backbone=Own)
    assert (
        isinstance(found.surrogate.backbone, Own) and found.surrogate(torch.ones(2, 2), 1.0, torch.ones(2, 1)).isfinite().all()
    )
    assert not (tmp_path / "marker").exists()


def test_another_class_than_it_was_trained_with_is_refused(own):
    assert f"do not fit the network {own.parent / 'own.py'}:Own: size mismatch" in refusal(own, backbone=Another)


def test_a_file_holds_no_more_than_its_parts(path, good):
    """Nothing of a model travels outside the digest."""
    names = load(good).keys()
    assert all(name.startswith((bundles.WEIGHTS, bundles.ARRAYS)) for name in names)
    header = json.loads(good[8 : 8 + int.from_bytes(good[:8], "little")])
    assert header["__metadata__"].keys() == {"hybridworld", "sha256"}
