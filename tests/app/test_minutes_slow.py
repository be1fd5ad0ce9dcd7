"""A user's own system and ten minutes: `train FILE --minutes N` gives a guided model that beats its guide."""

import re
from pathlib import Path

import numpy as np
import pytest

import hybridworld as hw
from hybridworld.data.evidence import fresh_pairs
from hybridworld.surrogate.bundle import load_bundle
from hybridworld.surrogate.validation import errors_of
from tests.app.commands import run

DOCS = Path(__file__).parents[2] / "docs"
TRAJECTORIES = 16


def file_of(name, folder):
    """The system's file; Gray-Scott stands in the text of the docs."""
    if name == "kuramoto_sivashinsky":
        return DOCS / "examples" / f"{name}.py"
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "adding-a-system.md").read_text(), flags=re.DOTALL)
    path = folder / f"{name}.py"
    path.write_text(code)
    return path


def errors(surrogate, batch, predict):
    """Root mean square error in deviations."""
    return np.sqrt(errors_of(surrogate, batch, predict).mse)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "minutes"), [("kuramoto_sivashinsky", 10), ("gray_scott", 10)])
def test_a_guided_model_beats_its_guide_by_command(name, minutes, tmp_path):
    system = file_of(name, tmp_path)
    code, out, err = run("train", system, "--minutes", minutes, "--out", tmp_path / "run")
    print(err, out)
    assert code == 0, err
    environment = hw.system(str(system))
    net = load_bundle(tmp_path / "run/model.safetensors", system=environment).surrogate
    assert net.config.guide

    def guide(states, horizons, params):
        return net.denormalise(net.backbone.base(net.normalise(net.ask_guide(states, horizons, params))))

    found = {}
    for horizon, batch in fresh_pairs(environment, "test", range(TRAJECTORIES), environment.spec.horizons).items():
        ways = {"model": net, "guide": guide, "no change": lambda states, *_: states}
        found[horizon] = {way: errors(net, batch, predict) for way, predict in ways.items()}
        print(f"h = {horizon}: " + ", ".join(f"{way} {value:.4f}" for way, value in found[horizon].items()))
    assert all(each["model"] < each["guide"] and each["model"] < each["no change"] for each in found.values())
    model, own = (np.mean([each[way] for each in found.values()]) for way in ("model", "guide"))
    assert model < 0.7 * own
    assert out.splitlines()[-1].startswith("Worth it? h = 64")
