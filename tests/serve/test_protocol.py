"""The Open Inference Protocol, as its own clients speak it: tritonclient, with JSON and with bytes."""

import http.client
import json
import re

import numpy as np
import pytest

from hybridworld.deploy.load import shipped
from hybridworld.serve.catalogue import Catalogue
from tests.serve.served import SYSTEMS, question, running

tritonclient = pytest.importorskip("tritonclient.http")
MODELS = ["ball3d", *SYSTEMS]
OUTPUTS = ("state", "error_map", "score", "used_solver", "bound")


@pytest.fixture(scope="module")
def client(server):
    with tritonclient.InferenceServerClient(
        f"127.0.0.1:{server.port}", network_timeout=300.0, connection_timeout=300.0
    ) as found:
        yield found


def tensor(name, values, binary=True):
    kind = {"f8": "FP64", "f4": "FP32", "i8": "INT64", "i4": "INT32"}[values.dtype.str[1:]]
    found = tritonclient.InferInput(name, list(values.shape), kind)
    found.set_data_from_numpy(values, binary_data=binary)
    return found


def ask(client, name, states, horizons, params, binary=True, outputs=OUTPUTS, **parameters):
    given = {"state": states, "horizon": np.reshape(horizons, (-1, 1)), "params": params}
    inputs = [tensor(key, values, binary) for key, values in given.items() if key != "params" or values.shape[1]]
    wanted = [tritonclient.InferRequestedOutput(output, binary_data=binary) for output in outputs]
    return client.infer(name, inputs, outputs=wanted, request_id="q-1", parameters=parameters)


def refused(*arguments, **options):
    with pytest.raises(tritonclient.InferenceServerException) as told:
        ask(*arguments, **options)
    return int(told.value.status()), told.value.message()


def test_the_server_tells_what_it_is_and_that_it_is_ready(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_tells_what_it_takes_and_gives(client, known, name):
    spec, told = known.find(name).spec, client.get_model_metadata(name)
    assert client.is_model_ready(name) and client.is_model_ready(name, "1")
    assert told["inputs"][0] == {"name": "state", "datatype": "FP64", "shape": [-1, *spec.shape]}
    assert [each["name"] for each in told["inputs"]] == ["state", "horizon", *(["params"] if spec.params else [])]
    assert [each["name"] for each in told["outputs"]] == list(OUTPUTS)


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_gives_what_predict_gives(client, known, name, binary):
    told, expected = as_predicted(client, known.find(name), 6, 4, binary)
    assert 0 < expected.used_solver.sum() < 6
    response = told.get_response()
    assert (response["id"], response["model_name"], response["model_version"]) == ("q-1", name, "1")
    assert response["parameters"]["threshold"] == pytest.approx(expected.threshold)


CHEAP = ("ball3d", "euler2d")
ROUNDING = 1e-5
"""In deviations, as for engines: in another batch or on other threads a network sums in another order."""


@pytest.mark.parametrize(
    "names", [CHEAP, pytest.param([*{*shipped()} - {*CHEAP}], marks=pytest.mark.slow)], ids=["cheap", "others"]
)
def test_every_model_that_ships_gives_what_predict_gives(names):
    known = Catalogue(names, engine="eager")
    with running(known) as server:
        address = f"127.0.0.1:{server.port}"
        with tritonclient.InferenceServerClient(address, network_timeout=300.0, connection_timeout=300.0) as client:
            for name in names:
                for binary in (True, False):
                    as_predicted(client, known.find(name), 2, 16, binary)


def as_predicted(client, served, count, horizon, binary):
    """Ask about so many states, compare every output with `HybridModel.predict`, and return both answers."""
    states, params = question(served, count)
    expected = served.model.predict(states, horizon, params, q=0.5)
    told = ask(client, served.name, states, np.full(count, horizon), params, binary, q=0.5)
    np.testing.assert_array_equal(told.as_numpy("used_solver"), expected.used_solver)
    np.testing.assert_allclose(told.as_numpy("state"), expected.state, rtol=1e-6, atol=ROUNDING)
    np.testing.assert_array_equal(told.as_numpy("state")[expected.used_solver], expected.state[expected.used_solver])
    np.testing.assert_allclose(told.as_numpy("error_map"), expected.error_map, rtol=1e-5, atol=ROUNDING)
    np.testing.assert_allclose(told.as_numpy("score"), expected.score, rtol=1e-5, atol=ROUNDING)
    np.testing.assert_allclose(told.as_numpy("bound"), served.model.error_bounds(expected), rtol=1e-5, atol=ROUNDING)
    return told, expected


def test_each_state_has_its_own_horizon(client, known):
    served = known.find("ball3d")
    states, params = question(served, 5)
    horizons = np.array([8, 1, 64, 8, 3])
    told = ask(client, "ball3d", states, horizons, params, q=1)
    for row, horizon in enumerate(horizons):
        alone = served.model.predict(states[row], horizon, params[row], q=1)
        np.testing.assert_allclose(told.as_numpy("state")[row], alone.state, rtol=1e-5, atol=1e-6)
        assert told.as_numpy("score")[row] == pytest.approx(alone.score, rel=1e-4)


def test_mode_1_is_the_surrogate_alone(client, known):
    served = known.find("ball3d")
    states, params = question(served)
    told = ask(client, "ball3d", states, np.full(3, 2.5), params, outputs=("state", "used_solver"), mode=1)
    expected = served.model.predict(states, 2.5, params, mode=1)
    np.testing.assert_allclose(told.as_numpy("state"), expected.state, rtol=1e-5, atol=1e-6)
    assert not told.as_numpy("used_solver").any()
    given = {"state": states, "horizon": np.full((3, 1), 2), "params": params}
    everything = client.infer("ball3d", [tensor(*each) for each in given.items()], parameters={"mode": 1})
    assert [each["name"] for each in everything.get_response()["outputs"]] == ["state", "used_solver"]


def test_single_precision_is_answered_in_single_precision(client, known):
    served = known.find("waves")
    states, params = question(served)
    told = ask(client, "waves", states.astype(np.float32), np.full(3, 4), params.astype(np.float32), q=0)
    assert told.as_numpy("state").dtype == np.float32 and told.as_numpy("used_solver").all()
    expected = served.system.solve(states.astype(np.float32), 4, params.astype(np.float32))
    np.testing.assert_allclose(told.as_numpy("state"), expected, rtol=1e-5)


def test_a_chain_says_so_and_has_no_bound(client, known):
    states, params = question(known.find("ball3d"))
    told = ask(client, "ball3d", states, np.full(3, 100), params, outputs=("state", "score"))
    assert "chain of 50 + 50 frames" in told.get_response()["parameters"]["notes"]
    status, sentence = refused(client, "ball3d", states, np.full(3, 100), params, outputs=("bound",))
    assert status == 422 and "'bound' is not known here" in sentence


def test_another_signal_draws_another_map(client, known):
    served = known.find("gas")
    states, params = question(served)
    own, other = (ask(client, "gas", states, np.full(3, 4), params, outputs=("error_map", "score"), q=1, **more)
                  for more in ({}, {"signal": "many splits"}))  # fmt: skip
    signal = served.signals["many splits"]
    assert not np.allclose(own.as_numpy("score"), other.as_numpy("score"))
    assert signal.name == "many splits" and other.as_numpy("error_map").shape == (3, 16, 16)
    status, sentence = refused(client, "gas", states, np.full(3, 4), params, outputs=("state",), q=0.5, signal="many splits")
    assert status == 422 and "no validation scores" in sentence


def test_coverage_widens_the_bound(client, known):
    states, params = question(known.find("ball3d"))
    asked = (client, "ball3d", states, np.full(3, 8), params)
    narrow, wide = (ask(*asked, outputs=("bound",), q=1, coverage=share).as_numpy("bound") for share in (0.5, 0.95))
    assert (narrow < wide).all()


HOSTILE = {
    "shape": (dict(states=np.zeros((2, 8))), 422, r"shape \[2, 8\]; ball3d takes \[batch, 9\]"),
    "no states": (dict(states=np.zeros((0, 9)), horizons=np.zeros(0)), 422, r"shape \[0, 9\]"),
    "whole states": (dict(states=np.zeros((2, 9), np.int64)), 422, "must be FP32 or FP64"),
    "nan": (dict(states=np.full((2, 9), np.nan)), 422, "State 0 holds a value that is not finite"),
    "infinite": (dict(states=np.full((2, 9), np.inf)), 422, "not finite"),
    "horizons": (dict(horizons=np.ones(3)), 422, r"of shape \[2, 1\], one per state"),
    "horizon 0": (dict(horizons=np.zeros(2)), 422, "above 0 and at most 1024"),
    "horizon nan": (dict(horizons=np.full(2, np.nan)), 422, "The horizon is nan"),
    "horizon too far": (dict(horizons=np.full(2, 1025)), 422, "The horizon is 1025 frames"),
    "half a frame": (dict(horizons=np.full(2, 1.5)), 422, "takes whole frames"),
    "params": (dict(params=np.zeros((2, 3))), 422, r"of shape \[2, 2\]: restitution, gravity"),
    "params outside": (dict(params=np.array([[5.0, -9.8]] * 2)), 422, "'restitution' of state 0 is 5; allowed is 0 to 1"),
    "mode": (dict(mode=3), 422, "'mode' is '3': it must be 1 or 2"),
    "mode as text": (dict(mode="2"), 422, "it must be 1 or 2"),
    "q": (dict(q=1.5), 422, "'q' is '1.5': it must be a number from 0 to 1"),
    "q as bool": (dict(q=True), 422, "'q' is 'True'"),
    "coverage": (dict(coverage=1), 422, "'coverage' is '1.0'"),
    "too much coverage": (dict(coverage=0.9999999), 422, "The coverage is 1"),
    "tolerance": (dict(tolerance=-1.0), 422, "'tolerance' is '-1.0': it must be a number above 0"),
    "no tolerance": (dict(tolerance=0), 422, "'tolerance' is '0.0': it must be a number above 0"),
    "q and tolerance": (dict(tolerance=1.0, q=0.5), 422, "Give one of them"),
    "signal": (dict(signal="step doubling"), 422, "no trust signal 'step doubling'.* Did you mean 'step-doubling'"),
    "parameter": (dict(tolerence=1), 422, "no parameter 'tolerence'.* Did you mean 'tolerance'"),
    "output": (dict(outputs=("states",)), 422, "no output 'states'.* Did you mean 'state'"),
    "model": (dict(name="bal3d"), 404, "no model 'bal3d': there is ball3d.* Did you mean 'ball3d'"),
    "system": (dict(name="oregonator"), 404, "no model 'oregonator'"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_what_cannot_be_answered_is_refused_with_a_sentence(client, known, case):
    changes, status, sentence = HOSTILE[case]
    states, params = question(known.find("ball3d"), 2)
    given = dict(name="ball3d", states=states, horizons=np.full(2, 4), params=params) | changes
    told = refused(client, *(given.pop(key) for key in ("name", "states", "horizons", "params")), **given)
    assert told[0] == status
    assert re.search(sentence, told[1]), told[1]


def test_states_that_cannot_exist_are_refused(client, known):
    states, params = question(known.find("gas"))
    states[1, 0, 3, 3] = -1.0
    status, sentence = refused(client, "gas", states, np.full(3, 4), params, mode=1, outputs=("state",))
    assert status == 422 and "density of state 1 is -1 at cell (3, 3)" in sentence


def test_parameters_of_the_dynamics_are_asked_for(client, known):
    states, _ = question(known.find("ball3d"))
    status, sentence = refused(client, "ball3d", states, np.full(3, 4), np.zeros((3, 0)))
    assert status == 422 and "one row per state with the values of: restitution, gravity" in sentence


def test_a_tolerance_is_passed_on(client, known):
    served = known.find("ball3d")
    states, params = question(served, 8)
    bounds = served.model.error_bounds(served.model.predict(states, 4, params, q=1))
    for tolerance, deferred in ((1e-9, {8}), (float(np.median(bounds)), range(1, 8)), (1e6, {0})):
        told = ask(client, "ball3d", states, np.full(8, 4), params, tolerance=tolerance)
        expected = served.model.predict(states, 4, params, tolerance=tolerance, coverage=0.9)
        np.testing.assert_array_equal(told.as_numpy("used_solver"), expected.used_solver)
        assert expected.used_solver.sum() in deferred


def test_plain_json_is_enough(server, known):
    """What curl sends: nested lists, whole numbers, no id; and the answer is flat."""
    served = known.find("swing")
    states, params = question(served, 1)
    content = {"inputs": [{"name": "state", "shape": [1, 2], "datatype": "FP64", "data": states.tolist()},
                          {"name": "horizon", "shape": [1], "datatype": "INT32", "data": [2]},
                          {"name": "params", "shape": [1, 1], "datatype": "FP64", "data": params.tolist()}]}  # fmt: skip
    here = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    here.request("POST", "/v2/models/swing/versions/1/infer", json.dumps(content))
    response = here.getresponse()
    told = json.loads(response.read())
    assert (response.status, told["id"]) == (200, "")
    expected = served.model.predict(states, 2, params)
    found = {each["name"]: each for each in told["outputs"]}
    np.testing.assert_allclose(found["state"]["data"], expected.state.reshape(-1), rtol=1e-6)
    assert found["used_solver"]["data"] == expected.used_solver.tolist()
    assert found["error_map"]["shape"] == [1]
