"""Which engine answers: tried in a process that may die, judged by agreement, remembered until something changes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import hybridworld as hw
from hybridworld.deploy import engines, verdicts
from hybridworld.deploy.engines import compare_engines, set_engine
from hybridworld.deploy.verdicts import MEMORY, Memory, Verdict, key_of
from hybridworld.errors import InvalidInput
from hybridworld.surrogate.bundle import Bundle, save_bundle
from hybridworld.surrogate.engines.registry import ENGINES
from tests.deploy.fakes import seeded, tried_here
from tests.surrogate.flows import Oscillator, tiny

OWN = Path(__file__).parent / "own_engines.py"
ENV = Oscillator()
VALIDATION = {"mse": 1e-2, "horizons": {str(h): {"mse": 1e-2, "no_change": {"mse": 1.0}} for h in (1, 2, 4, 8)}}


def own(name):
    return f"{OWN}:{name}"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A memory of its own for each test."""
    monkeypatch.setenv("HYBRIDWORLD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "engines"


@pytest.fixture
def file(tmp_path):
    """A small trained model."""
    path = tmp_path / "model.safetensors"
    save_bundle(path, Bundle(seeded(ENV.spec), tiny(ENV.spec), VALIDATION))
    return path


def load(file, engine="eager"):
    return hw.load(file, ENV, engine=engine)


# Trials.


def test_an_engine_that_dies_takes_nobody_with_it_and_the_others_are_judged(file):
    model = load(file)
    names = [own(name) for name in ("FINE", "DYING", "WRONG", "CUT", "COARSE")]
    known = compare_engines(model, names).verdicts
    assert known[own("DYING")].failure == "died with SIGILL"
    assert known[own("FINE")].failure is None and 0 < known[own("FINE")].states < 1e-5
    assert "differs from eager torch" in known[own("WRONG")].failure and known[own("WRONG")].states > 1e-5
    assert "shape" in known[own("CUT")].failure
    assert known[own("COARSE")].failure is None  # in bfloat16 a tenth of the model's own error is allowed
    with pytest.raises(InvalidInput, match="died with SIGILL"):
        set_engine(model, own("DYING"))
    assert model.engine == "eager"
    with pytest.raises(InvalidInput, match="differs from eager torch by"):
        set_engine(model, own("WRONG"))
    set_engine(model, own("FINE"))
    state, params = np.array([1.0, 0.0]), np.array([0.3])
    assert model.engine == own("FINE") and "engine: " + own("FINE") in repr(model)
    np.testing.assert_allclose(
        model.predict(state, 4, params, mode=1).state, load(file).predict(state, 4, params, mode=1).state, rtol=1e-5
    )


def test_a_model_whose_error_is_not_known_gets_no_bfloat16(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "try_engines", tried_here)
    save_bundle(tmp_path / "model.safetensors", Bundle(seeded(ENV.spec), tiny(ENV.spec)))
    model = load(tmp_path / "model.safetensors")
    assert "allowed is 0" in compare_engines(model, [own("COARSE")]).verdicts[own("COARSE")].failure


def test_bfloat16_may_err_by_a_tenth_of_the_models_error_at_each_horizon(tmp_path):
    known = {"mse": 0.05, "horizons": {"1": {"mse": 0.01}, "4": {"mse": 0.09}}}
    save_bundle(tmp_path / "model.safetensors", Bundle(seeded(ENV.spec), tiny(ENV.spec), known))
    model, horizons = load(tmp_path / "model.safetensors"), torch.tensor([0.5, 1.0, 2.0, 4.0, 8.0])
    found = engines.allowed(model, own("COARSE"), horizons)
    np.testing.assert_allclose(found, [0.01, 0.01, 0.02, 0.03, 0.03], rtol=1e-6)
    np.testing.assert_allclose(engines.allowed(model, own("FINE"), horizons), 1e-5, rtol=1e-6)


def test_bfloat16_agrees_from_some_horizon_on():
    limits = {64: 0.1, 8: 0.02, 2: 0.004, 4: 0.02, 1: 0.1}
    rows = torch.tensor([[0.01, 0.0, horizon, limit, 0.1] for horizon, limit in limits.items()])
    assert engines.agrees_since(rows) == 4
    assert engines.agrees_since(rows[:2]) == 0
    rows[0, 1] = torch.nan
    assert engines.agrees_since(rows) == np.inf


def test_an_engine_that_gives_no_answer_is_out(file, monkeypatch):
    monkeypatch.setattr(engines, "try_engines", lambda *given: list(tried(*given, patience=5.0)))
    assert "no answer in 5 s" in compare_engines(load(file), [own("SLOW")]).verdicts[own("SLOW")].failure


tried = engines.try_engines


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks for processes in /proc")
def test_a_trial_ends_with_the_process_that_began_it(file):
    names = f"engines.compare_engines(hw.load({str(file)!r}, Oscillator()), [{own('SLOW')!r}])"
    imports = "import hybridworld as hw; from hybridworld.deploy import engines; from tests.surrogate.flows import Oscillator"
    path = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    parent = subprocess.Popen([sys.executable, "-c", f"{imports}; {names}"], env=os.environ | {"PYTHONPATH": path})
    try:
        (child,) = eventually(lambda: children(parent.pid))
    finally:
        parent.terminate()
        parent.wait()
    try:
        assert eventually(lambda: not running(child), seconds=60)
    finally:
        if running(child):
            os.kill(child, signal.SIGKILL)


def children(pid):
    """The trials that this process began."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(each) for each in " ".join(path.read_text() for path in found).split() if "engines.trial" in command(each)]


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def running(pid):
    """Is that process a trial? One that nobody has waited for yet has no command any more."""
    return "engines.trial" in command(pid)


def eventually(condition, seconds=300.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.1)
    return found


def test_a_network_that_cannot_be_exported_stays_with_eager_torch(file, monkeypatch):
    def fails(*given):
        raise RuntimeError("data-dependent")

    monkeypatch.setattr(engines, "exported", fails)
    model, said = load(file), []
    set_engine(model, "auto", said.append)
    assert model.engine == "eager" and "data-dependent" in said[-1]


# What is remembered.


def remember(model, **found):
    """Write a memory by hand."""
    folder = Memory.of(model.surrogate).folder
    folder.mkdir(parents=True, exist_ok=True)
    known = {name: {"engine": name, **found.get(name.replace("-", "_"), {"failure": "is slow"})} for name in ENGINES}
    (folder / MEMORY).write_text(json.dumps(known))
    return folder


def no_trials(*given, **more):
    raise AssertionError("an engine was tried")


def test_nothing_is_tried_when_a_model_is_loaded(file, monkeypatch):
    monkeypatch.setattr(engines, "try_engines", no_trials)
    assert load(file, "auto").engine == "eager"


def test_a_choice_is_used_again_until_the_model_changes(file, monkeypatch):
    for module in (engines, verdicts):
        monkeypatch.setattr(module, "installed", lambda quick=False: ["eager-bf16"])
    monkeypatch.setattr(engines, "try_engines", tried_here)
    said = []
    model = load(file)
    set_engine(model, "auto", said.append)
    assert "looking for" in said[0] and len(said) == 2
    monkeypatch.setattr(engines, "try_engines", no_trials)
    set_engine(model, "auto", said.append)
    load(file, "auto")
    assert len(said) == 2  # nothing more was said
    with torch.no_grad():
        next(model.surrogate.parameters()).add_(1.0)
    assert not Memory.of(model.surrogate).verdicts
    with pytest.raises(AssertionError, match="was tried"):
        set_engine(model, "auto", said.append)


def test_the_fastest_that_agrees_answers_single_states_and_batches_by_themselves(file):
    model = load(file)
    remember(model, eager_bf16={"one": 3.0, "many": 0.5})
    again = load(file, "auto")
    assert again.engine == "eager-bf16 (batches: eager)"
    memory = Memory.of(model.surrogate)
    assert (memory.best("one"), memory.best("many")) == ("eager-bf16", "eager")
    assert Memory(memory.folder, {"compiled": Verdict("compiled", one=1.01, many=1.2)}).best("one") == "eager"  # hardly faster
    single, batch = np.array([1.0, 0.0]), np.tile([1.0, 0.0], (16, 1))
    expected = model.predict(single, 4, {"damping": 0.3}, mode=1).state
    bfloat16 = again.predict(single, 4, {"damping": 0.3}, mode=1).state
    assert 0 < np.abs(bfloat16 - expected).max() < 0.1
    np.testing.assert_allclose(again.predict(batch, 4, {"damping": 0.3}, mode=1).state[0], expected, rtol=1e-6)


def test_shorter_horizons_have_an_engine_that_agrees_there(file):
    remember(load(file), eager_bf16={"one": 3.0, "many": 3.0, "since": 3.0})
    state, params = np.array([1.0, 0.0]), {"damping": 0.3}

    def differs(model, horizon):
        found, exact = (each.predict(state, horizon, params, mode=1).state for each in (model, load(file)))
        return bool((found != exact).any())

    fastest, wished = load(file, "auto"), load(file, "eager-bf16")
    assert fastest.engine == wished.engine == "eager-bf16; below 3 frames eager"
    for model in (fastest, wished):
        assert differs(model, 4) and not differs(model, 2)


def test_an_engine_that_cannot_be_opened_is_told_and_eager_torch_answers(file):
    folder = remember(load(file), compiled={"one": 3.0, "many": 3.0})
    with pytest.warns(engines.NoEngine, match=str(folder)):
        model = load(file, "auto")
    assert model.engine == "eager" and np.isfinite(model.predict(np.array([1.0, 0.0]), 4, [0.3], mode=1).state).all()


def test_a_broken_memory_is_no_memory(file):
    folder = remember(load(file))
    (folder / MEMORY).write_text('{"openvino": {"gain"')
    assert not Memory.of(load(file).surrogate).verdicts


def test_what_changes_the_key(file, monkeypatch):
    net = load(file).surrogate
    keys = {key_of(net)}
    monkeypatch.setenv("HYBRIDWORLD_THREADS", "1")
    assert key_of(net) in keys  # state vectors use one thread anyway
    for name, value in (("cpu", "another"), ("version_of", "2"), ("instructions", "flags: avx")):
        monkeypatch.setattr(verdicts, name, lambda *given, value=value: value)
        keys.add(key_of(net))
    net.load_state_dict({name: values + 1 for name, values in net.state_dict().items()})
    keys.add(key_of(net))
    assert len(keys) == 5


def test_old_models_are_forgotten(cache, monkeypatch):
    monkeypatch.setattr(verdicts, "KEPT", 2)
    for name in "abcd":
        (cache / name).mkdir(parents=True)
    verdicts.forget()
    assert len(list(cache.iterdir())) == 2


def test_a_cache_that_cannot_be_written_leaves_eager_torch(file, monkeypatch, tmp_path):
    (tmp_path / "taken").write_text("a file")
    monkeypatch.setenv("HYBRIDWORLD_CACHE", str(tmp_path / "taken"))
    model = load(file)
    with pytest.warns(engines.NoEngine, match="cannot be tried or remembered"):
        set_engine(model, "auto", lambda sentence: None)
    assert model.engine == "eager"


# What a user says.


@pytest.mark.parametrize(("wish", "why"), [("fast", "There is no engine"), (own("MISSING"), "no_such_package")])
def test_what_there_is_not_is_refused_in_a_sentence(file, wish, why):
    with pytest.raises(InvalidInput, match=why):
        load(file, wish)


def test_somebodys_own_model_has_no_engine(tmp_path):
    model = hw.wrap(lambda states, horizon, params: states * 0.9, ENV, horizons=[1, 2, 4], count=12, signal="input amplitude")
    set_engine(model, "auto", no_trials)
    assert model.engine == "eager"
    with pytest.raises(InvalidInput, match="code of its own"):
        set_engine(model, "openvino")
