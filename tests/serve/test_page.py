"""What the page asks for beyond the protocol."""

import io
import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from hybridworld.deploy.load import shipped
from hybridworld.deploy.question import from_file
from hybridworld.errors import InvalidInput
from hybridworld.serve.catalogue import Catalogue
from hybridworld.serve.limits import Refusal
from tests.serve.asking import infer_request, packed, send, sentence, unpacked
from tests.serve.served import SYSTEMS, question, running, save_model


def get(server, path):
    return send(server.port, "GET", path)


def post(server, path, body, headers):
    return send(server.port, "POST", path, body, headers)


@pytest.fixture(scope="module")
def told(server):
    return json.loads(get(server, "/page/models")[2])


def test_the_page_knows_every_model_and_every_system(told):
    models = {each["name"]: each for each in told["models"]}
    assert [name for name, each in models.items() if each["model"]] == ["ball3d", *SYSTEMS]
    assert models["ball3d"]["position"] == [0, 1, 2] and models["gas"]["position"] is None
    assert [brush["name"] for brush in models["waves"]["brushes"]] == ["paint u", "paint v"]
    assert [brush["gesture"] for brush in models["ball3d"]["brushes"]] == ["arrow"]
    assert models["gas"]["fields"][1] == {"name": "momentum", "unit": "1", "channels": [1, 2]}
    assert models["gas"]["model"]["signals"][0] == {"name": "step-doubling", "passes": 3}
    assert "Richardson, fixed-order" not in [each["name"] for each in models["gas"]["model"]["signals"]]
    assert models["ring"]["model"]["trajectories"] == 40


def test_a_bundle_that_appears_is_served_and_a_broken_one_disturbs_nothing(tmp_path):
    runs = tmp_path / "runs"
    found = Catalogue(["ball3d"], runs)
    assert [served.name for served in found.all] == ["ball3d", "oregonator", "euler2d", "tabletop"]
    save_model(runs / "mine" / "model.safetensors", SYSTEMS["gas"], count=0)
    (runs / "broken").mkdir()
    (runs / "broken" / "model.safetensors").write_bytes(b"no model")
    found.refresh()
    assert [served.name for served in found.all][:2] == ["ball3d", "mine"]
    assert list(found.problems) == ["broken"]
    assert found.find("mine").system.spec.grid == (16, 16)


def test_a_bundle_that_vanishes_is_no_longer_served_and_one_that_vanishes_meanwhile_disturbs_nothing(tmp_path, monkeypatch):
    save_model(tmp_path / "mine.safetensors", SYSTEMS["waves"], count=0)
    (tmp_path / "broken.safetensors").write_bytes(b"no model")
    found = Catalogue([], tmp_path)
    assert found.model("mine") and "broken" in found.problems
    assert "oregonator" in [served.name for served in found.all]
    for path in tmp_path.iterdir():
        path.unlink()
    monkeypatch.setattr(Path, "glob", lambda *_: [tmp_path / "gone.safetensors"])  # between the list and the look at it
    found.refresh()
    assert not found.problems and "oregonator" in [served.name for served in found.all]
    with pytest.raises(Refusal, match="no model 'mine'"):
        found.find("mine")


def test_a_bundle_is_served_once_it_is_warm_and_a_changed_one_in_place_of_the_old(tmp_path):
    found, warmed = Catalogue([], tmp_path), []
    path = save_model(tmp_path / "mine.safetensors", SYSTEMS["waves"], count=0)

    def warm_up(served):
        assert "mine" not in [each.name for each in found.all if each.model is not None]
        warmed.append(served)

    found.refresh(warm_up)
    found.refresh(warm_up)
    assert [found.model("mine")] == warmed
    os.utime(path, (1, 1))

    def fails(served):
        raise ZeroDivisionError("of all things")

    found.refresh(fails)
    assert found.problems == {"mine": "of all things"} and found.model("mine") is warmed[0]
    os.utime(path, (2, 2))
    found.refresh()
    assert not found.problems and found.model("mine") is not warmed[0]


def test_a_model_whose_system_lacks_a_package_is_left_out_and_named_it_is_an_error(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr("hybridworld.physics.tabletop_scene.find_spec", lambda name: None)
    found = Catalogue(None, tmp_path)
    assert {served.name for served in found.all} == {*shipped()} - {"tabletop"}
    assert [record.getMessage() for record in caplog.records] == [f"tabletop is not served: {found.problems['tabletop']}"]
    assert "tabletop needs MuJoCo" in found.problems["tabletop"]
    with pytest.raises(InvalidInput, match="tabletop needs MuJoCo"):
        Catalogue(["tabletop"])


def test_initial_states_are_those_of_the_split(server, known):
    content, tensors = unpacked(get(server, "/page/models/gas/start?split=ood-far&seed=3&count=2"))
    states, params = question(known.find("gas"), 2, "ood-far", 3)
    np.testing.assert_array_equal(tensors["state"], states)
    assert tensors["params"].shape == params.shape == (2, 0)
    assert [each["kind"] for each in content["origins"]] == [
        SYSTEMS["gas"].initial("ood-far", seed).origin["kind"] for seed in (3, 4)
    ]


def test_a_later_frame_is_the_solvers(server):
    _, tensors = unpacked(get(server, "/page/models/waves/start?seed=1&frame=3"))
    sample = SYSTEMS["waves"].initial("test", 1)
    np.testing.assert_allclose(
        tensors["state"][0], SYSTEMS["waves"].solve(sample.state, 3, sample.params), rtol=1e-5, atol=1e-7
    )


def test_a_drawn_state_is_the_one_that_the_brush_makes(server):
    _, tensors = unpacked(get(server, "/page/models/gas/start?split=blank"))
    system = SYSTEMS["gas"]
    np.testing.assert_array_equal(tensors["state"][0], system.blank())
    body = packed({"brush": "blast", "points": [[0.3, 0.6]], "settings": {"energy": 2.0}}, state=tensors["state"])
    _, drawn = unpacked(post(server, "/page/models/gas/draw", *body))
    np.testing.assert_array_equal(drawn["state"][0], system.blast(2.0, 1.0, (0.3, 0.6)))


def test_the_true_future_is_the_solvers_with_its_time(server):
    sample = SYSTEMS["waves"].initial("test", 0)
    given = {"state": sample.state[None], "params": sample.params[None]}
    content, tensors = unpacked(post(server, "/page/models/waves/future", *packed({"frames": 4, "every": 4}, **given)))
    np.testing.assert_array_equal(tensors["state"][1], SYSTEMS["waves"].solve(sample.state, 4, sample.params))
    assert content["parameters"]["seconds_solver"] > 0
    _, whole = unpacked(post(server, "/page/models/waves/future", *packed({"frames": 4, "every": 1}, **given)))
    assert whole["state"].shape == (5, 2, 16, 16)
    np.testing.assert_allclose(whole["state"][4], tensors["state"][1], rtol=1e-5, atol=1e-7)


def test_a_system_without_a_model_has_a_future(tmp_path):
    with running(Catalogue(["ball3d"], systems=[SYSTEMS["swing"]])) as other:
        _, start = unpacked(get(other, "/page/models/oscillator/start"))
        _, told = unpacked(post(other, "/page/models/oscillator/future", *packed({"frames": 2, "every": 1}, **start)))
        np.testing.assert_allclose(told["state"][2], SYSTEMS["swing"].solve(start["state"], 2, start["params"])[0], rtol=1e-6)
        assert send(other.port, "POST", "/v2/models/oscillator/infer", "{}")[0] == 404


def test_thresholds_are_those_of_the_model(server, known):
    told = json.loads(get(server, "/page/models/ball3d/thresholds?horizon=8")[2])
    model = known.find("ball3d").model
    assert told["q"][75] == 0.75 and told["threshold"][75] == pytest.approx(model.threshold(8, 0.75))
    assert told["threshold"][100] is None and told["threshold"][0] == -1


def test_a_state_is_downloaded_and_read_again(server, known, tmp_path):
    states, params = question(known.find("waves"), 2)
    body = infer_request(states, [4, 4], params)
    (tmp_path / "state.hdf5").write_bytes(post(server, "/page/models/waves/download?what=state", *body)[2])
    found = from_file(tmp_path / "state.hdf5", known.find("waves").spec, 0)
    np.testing.assert_array_equal(found.states, states)
    np.testing.assert_array_equal(found.params, params)


def test_a_forecast_is_downloaded_and_its_last_frame_is_read_again(server, known, tmp_path):
    served = known.find("waves")
    states, params = question(served, 2)
    content = post(server, "/page/models/waves/download?what=forecast", *infer_request(states, [4, 4], params, q=0))[2]
    (tmp_path / "forecast.hdf5").write_bytes(content)
    found = from_file(tmp_path / "forecast.hdf5", served.spec, -1)
    np.testing.assert_array_equal(found.states, served.system.solve(states, 4, params))
    with h5py.File(io.BytesIO(content)) as file:
        assert file["forecast/used_solver"][()].all() and file["forecast"].attrs["horizon"] == 4


BLANK, NO_GAS = np.zeros((1, 2, 16, 16)), np.zeros((1, 4, 16, 16))


def draw(brush="paint u", points=((1.0, 1.0),), state=BLANK, **more):
    return "POST", "waves/draw", packed({"brush": brush, "points": [list(point) for point in points], **more}, state=state)


def future(frames, name="waves", **tensors):
    return "POST", f"{name}/future", packed({"frames": frames, "every": 2}, **tensors)


WRONG = {
    "split": ("GET", "waves/start?split=mine", (), "Unknown split 'mine'"),
    "seed": ("GET", "waves/start?seed=-1", (), "seed is '-1': it must be a whole number"),
    "count": ("GET", "waves/start?count=257", (), "count is '257': it must be a whole number from 1 to 256"),
    "frame": ("GET", "waves/start?frame=999", (), "frame is '999'"),
    "horizon": ("GET", "waves/thresholds?horizon=1e3", (), "horizon is '1e3'"),
    "brush": (*draw("paint w"), "no brush 'paint w': choose paint u"),
    "points": (*draw(points=[(1.0,)]), "each with 2 coordinates"),
    "far": (*draw(points=[(1e9, 0.0)]), "far outside of x"),
    "setting": (*draw(settings={"value": 9.0}), "value of 'paint u' is 9"),
    "state": (*draw(state=BLANK[0]), "of shape [1, 2, 16, 16]"),
    "frames": (*future(5, state=BLANK, params=np.ones((1, 2))), "whole multiple"),
    "params": (*future(4, state=BLANK), "'params' must be numbers of shape [1, 2]"),
    "unphysical": (*future(4, "gas", state=NO_GAS), "density must be above 0"),
    "file": ("POST", "swing/download?what=all", infer_request(np.zeros((1, 2)), [1], np.ones((1, 1))), "no file 'all'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_makes_no_sense_is_refused_with_a_sentence(server, case):
    method, path, body, words = WRONG[case]
    told = send(server.port, method, f"/page/models/{path}", *body)
    assert told[0] == 422 and words in sentence(told), told


def test_an_answer_that_would_be_too_large_is_not_made(server, monkeypatch):
    monkeypatch.setattr("hybridworld.serve.page.BYTES", 1000)
    told = get(server, "/page/models/waves/start?count=4")
    assert told[0] == 413 and "ask for fewer states" in sentence(told)
