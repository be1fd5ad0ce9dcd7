"""Every installed engine answers as eager torch does, for any number of states."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hybridworld as hw
from hybridworld.errors import InvalidInput
from hybridworld.surrogate.engines.engine import Running, exported
from hybridworld.surrogate.engines.registry import ENGINES, find_engine, installed
from hybridworld.trust.step_doubling import StepDoubling
from tests.surrogate.flows import OSCILLATOR, RING, Drift, Oscillator, Ring, surrogate

LEAP = "surrogate.backbone=leap"
GUIDED = (LEAP, "surrogate.guide=true", "surrogate.patch=4")
EULER = hw.system("euler2d").resized((16, 16))
SCENES = hw.system("tabletop").resized((5,))
OPEN = replace(RING, axes=(replace(RING.axes[0], boundary="open"),))


def euler():
    net = surrogate(EULER.spec, *GUIDED, "surrogate.variables=physical")
    net.attach_guide(EULER)
    return net


def drift():
    net = surrogate(Drift().spec, *GUIDED)
    net.attach_guide(Drift())
    return net


def scenes(*settings):
    net = surrogate(SCENES.spec, "surrogate.width=20", *settings)
    with torch.no_grad():
        for weights in net.backbone.parameters():  # some of which begin as zero
            weights += 0.1 * torch.randn_like(weights)
    return net


NETWORKS = {
    "objects": (scenes, SCENES),
    "objects, without parameters": (lambda: scenes("surrogate.params=false"), SCENES),
    "leap, periodic": (lambda: surrogate(RING, LEAP, "surrogate.patch=2"), Ring()),
    "leap, open": (lambda: surrogate(OPEN, LEAP, "surrogate.patch=2"), Ring()),
    "leap, guided": (drift, Drift()),
    "leap, guided, gas, open": (euler, EULER),
    "unet, periodic": (lambda: surrogate(RING), Ring()),
    "unet, open": (lambda: surrogate(OPEN), Ring()),
    "mlp": (lambda: surrogate(OSCILLATOR), Oscillator()),
}
OFTEN = ("leap, guided", "leap, guided, gas, open", "unet, periodic", "mlp")  # every backbone, both kinds of boundary
DAILY = [("openvino", network) for network in OFTEN] + [("onnxruntime", "leap, guided, gas, open")]
DAILY += [("numba", network) for network in NETWORKS if network.startswith("objects")]
LONG = [
    pytest.param(engine, network, marks=pytest.mark.slow)
    for engine in ("openvino", "onnxruntime", "compiled")
    for network in NETWORKS
    if (engine, network) not in DAILY and not (engine == "compiled" and "objects" in network)  # it is wrong there, and refused
]


def asked(environment, count):
    samples = [environment.initial("test", seed) for seed in range(count)]
    states, params = (np.stack([getattr(each, part) for each in samples]) for part in ("state", "params"))
    horizons = torch.tensor([1.0, 4, 8, 2, 7])[:count]
    return torch.from_numpy(states.astype(np.float32)), horizons, torch.from_numpy(params.astype(np.float32))


def running(net, engine, environment, folder):
    """The network with that engine."""
    states, horizons, params = asked(environment, 2)
    with torch.no_grad():
        then = net.ask_guide(states, horizons, params) if net.config.guide else None
        program = exported(net, net.inputs(states, horizons, params, then))
    ENGINES[engine].write(program, folder)
    net.engine = Running(engine, ENGINES[engine].open(folder, program.module(), 1))
    return net


@pytest.mark.parametrize(("engine", "network"), [*DAILY, *LONG])
def test_it_agrees_on_states_and_scores_for_any_number_of_states(engine, network, tmp_path):
    if ENGINES[engine].missing:
        pytest.skip(f"{engine} is not installed")
    make, environment = NETWORKS[network]
    torch.manual_seed(0)
    net = running(make(), engine, environment, tmp_path)
    signal = StepDoubling(net, net.std)
    with torch.no_grad():
        for count in (1, 2, 5, 1):
            inputs = asked(environment, count)
            found = signal(*inputs)
            with net.eager():
                expected = signal(*inputs)
            assert not torch.equal(expected.prediction, inputs[0])  # it does something
            torch.testing.assert_close(found.prediction, expected.prediction, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(found.score, expected.score, rtol=1e-5, atol=1e-5)


def test_in_the_kernel_rows_do_not_depend_on_each_other_nor_objects_on_their_order(tmp_path):
    torch.manual_seed(0)
    net = running(scenes(), "numba", SCENES, tmp_path)
    states, horizons, params = (torch.cat([each] * 5) for each in asked(SCENES, 5))
    order = torch.tensor([3, 1, 4, 0, 2])
    with torch.no_grad():
        with hw.thread_limit(1):
            alone, turned = net(states, horizons, params), net(states[:, :, order], horizons, params)
        with hw.thread_limit(3):
            assert torch.equal(net(states, horizons, params), alone)
        assert torch.equal(net(states[7:8], horizons[7:8], params[7:8]), alone[7:8])
    torch.testing.assert_close(turned, alone[:, :, order], rtol=1e-5, atol=1e-5)


@given(rows=st.integers(1, 9), terms=st.integers(1, 40), columns=st.sampled_from([16, 48, 112]), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_products_in_registers_are_products(rows, terms, columns, seed):
    from hybridworld.surrogate.engines.products import ROWS, add_product

    draw, filled = np.random.default_rng(seed).standard_normal, -(-rows // ROWS) * ROWS
    a, w, out = (draw(size, np.float32) for size in ((filled, terms + 3), (terms, columns), (filled, columns)))
    expected = out + a[:, :terms] @ w
    add_product(a, w, out, rows)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_the_kernel_refuses_other_networks(tmp_path):
    with pytest.raises(InvalidInput, match="is made for networks of objects"):
        running(surrogate(RING, LEAP, "surrogate.patch=2"), "numba", Ring(), tmp_path)


def test_openvino_may_not_tell_its_makers_what_it_converts(tmp_path, monkeypatch):
    telemetry = pytest.importorskip("openvino.tools.ovc.telemetry_utils").init_ovc_telemetry()
    if not hasattr(telemetry, "sender"):
        pytest.skip("this OpenVINO tells nobody")
    sent = []
    monkeypatch.setattr(type(telemetry.sender), "send", lambda *given: sent.append(given))
    telemetry.consent = True
    telemetry.send_event("ovc", "version", "any")
    assert sent.pop() and not sent
    running(surrogate(OSCILLATOR), "openvino", Oscillator(), tmp_path)
    assert not sent


def counted(net):
    """The network with an engine that counts its calls."""
    calls = []
    net.engine = Running("counting", lambda *inputs: calls.append(len(inputs[0])) or inputs[0])
    return calls


def test_an_engine_is_asked_where_no_gradient_is_wanted_and_nobody_watches():
    net, (states, horizons, params) = surrogate(OSCILLATOR), asked(Oscillator(), 3)
    calls = counted(net)
    net(states, horizons, params)
    assert not calls
    with torch.no_grad():
        net(states, horizons, params)
        assert calls == [3]
        with net.eager():
            net(states, horizons, params)
        assert calls == [3]
        net.train().eval()(states, horizons, params)  # weights may have changed
        assert calls == [3]


def test_a_copy_of_a_network_has_no_engine():
    from copy import deepcopy

    net = surrogate(OSCILLATOR)
    counted(net)
    assert deepcopy(net).engine is None and net.engine is not None


def test_an_unknown_engine_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(InvalidInput, match="Did you mean 'openvino'"):
        find_engine("openvin")
    (tmp_path / "mine.py").write_text("ENGINE = 3\n")
    with pytest.raises(InvalidInput, match="There is no engine"):
        find_engine(f"{tmp_path}/mine.py:ENGINE")


def test_what_is_listed_is_what_can_be_tried():
    assert set(installed(quick=True)) <= set(installed()) <= set(ENGINES)
    assert "eager-bf16" in installed(quick=True) and "compiled" not in installed(quick=True)
