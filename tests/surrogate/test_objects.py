"""Sets of objects through data, network, map and picture: any number, any order."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hybridworld as hw
from hybridworld.data.evidence import Solved
from hybridworld.data.format_check import format_faults
from hybridworld.data.pairs import Pairs
from hybridworld.data.stream import Stream
from hybridworld.data.well_file import WellFile
from hybridworld.figures.forecasts import ForecastRow, page_of_forecasts
from hybridworld.figures.scenes import bodies_of
from hybridworld.figures.trajectories import animate_trajectory, picture, trajectory_page
from hybridworld.physics.symmetry import Symmetry
from hybridworld.physics.tabletop import Tabletop
from hybridworld.physics.tabletop_bodies import KIND, POSITION
from hybridworld.physics.task import Mark
from hybridworld.surrogate.backbones import default_backbone, find_backbone
from hybridworld.surrogate.normalisation import free_motion, free_paths, measure
from hybridworld.surrogate.objects import Objects, approach
from hybridworld.trust.step_doubling import StepDoubling
from tests.surrogate.flows import surrogate

ENV = Tabletop(grid=(4,))


def network(channels=5, places=()):
    torch.manual_seed(0)
    return Objects(channels, ("objects",), 8, width=16, places=places).eval()


@given(count=st.integers(1, 12), seed=st.integers(0, 1000), moving=st.booleans())
@settings(max_examples=20, deadline=None)
def test_an_exchange_of_objects_exchanges_the_answers(count, seed, moving):
    net, rng = network(places=(1, 2) if moving else ()), torch.Generator().manual_seed(seed)
    x, condition = torch.randn(2, 5, count, generator=rng), torch.randn(2, 8, generator=rng)
    paths = (torch.randn(2, 4, 2, count, generator=rng),) if moving else ()
    order = torch.randperm(count, generator=rng)
    with torch.no_grad():
        here, there = net(x, condition, *paths), net(x[:, :, order], condition, *(each[..., order] for each in paths))
        torch.testing.assert_close(there, here[:, :, order], rtol=1e-4, atol=1e-5)


def test_the_nearest_approach_of_two_bodies():
    here, there = torch.tensor([[[0.0, 0.0], [-1.0, 3.0]]]), torch.tensor([[[0.0, 0.0], [1.0, 3.0]]])
    found = approach(here, there)
    torch.testing.assert_close(found[0, 0, 1], torch.tensor([1.0, 3.0, 0.0, 3.0, 10**0.5, 3.0]), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found[0, 1, 0, :4], -found[0, 0, 1, :4])


def test_free_paths_end_where_free_motion_does():
    net, sample = surrogate(ENV.spec), ENV.initial("train", 0)
    z, units = net.normalise(torch.from_numpy(np.float32(sample.state))[None]), (net.mean, net.std)
    paths = free_paths(ENV.spec, z, torch.tensor([16.0]), 4, *units)
    assert paths.shape == (1, 4, 3, 4)
    for part in range(4):
        later = free_motion(ENV.spec, z, torch.tensor([4.0 * (part + 1)]), *units)
        torch.testing.assert_close(paths[:, part], later[:, POSITION])


def test_objects_hear_from_each_other_and_from_the_condition():
    net, x, condition = network(), torch.randn(1, 5, 3), torch.randn(1, 8)
    with torch.no_grad():
        answer, other = net(x, condition), x.clone()
        other[0, :, 2] += 1
        assert not torch.allclose(net(other, condition)[0, :, 0], answer[0, :, 0])
        assert not torch.allclose(net(x, condition + 1), answer)


def test_the_backbone_follows_from_the_spec():
    assert default_backbone(ENV.spec) == "objects"
    with pytest.raises(hw.InvalidInput, match="are objects, for which the backbone is objects, not mlp"):
        find_backbone("mlp", ENV.spec)
    with pytest.raises(hw.InvalidInput, match="for which the backbone is mlp, not objects"):
        find_backbone("objects", hw.system("ball3d").spec)


def test_the_error_map_is_per_object_and_follows_an_exchange():
    net = surrogate(ENV.spec)
    sample = ENV.initial("test", 0)
    state, params = (torch.from_numpy(np.float32(each))[None] for each in (sample.state, sample.params))
    signal, horizons = StepDoubling(net, net.std), torch.tensor([4.0])
    order = [2, 0, 3, 1]
    with torch.no_grad():
        here, there = signal(state, horizons, params), signal(state[:, :, order], horizons, params)
    assert here.error_map.shape == (1, 4)
    torch.testing.assert_close(there.error_map, here.error_map[:, order], rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(there.score, here.score, rtol=1e-4, atol=1e-5)


def test_components_of_a_vector_share_a_unit_and_constants_never_change():
    found = measure(ENV.spec, Solved(ENV, "train"), (1, 8), most=16).scales
    by_name = dict(zip(ENV.spec.channels, found.std, strict=True))
    assert by_name["velocity_x"] == by_name["velocity_z"] and by_name["velocity_x"] > 0.01
    changes = dict(zip(ENV.spec.channels, found.changes.T, strict=True))
    assert (changes["mass"] == 0).all() and (changes["kind"] == 0).all() and (changes["position_x"] > 0).all()


def test_pairs_are_seen_through_symmetries_with_their_actions():
    """With a single map that is no identity, the pusher of each turned pair, alone, moves with its turned action."""
    turn = Symmetry((1, 0, 2), (1, -1, 1))
    with Stream(Tabletop(grid=(1,)), block=4, buffer=1) as stream:
        batch = Pairs(stream, batch=16, horizons=(1,), symmetries=(turn,)).batch(0)
    for state, future, params in zip(batch.states, batch.futures, batch.params, strict=True):
        if np.abs(state[:2]).max() < 0.25:
            np.testing.assert_allclose((future - state)[:2, 0], 0.02 * params[1:], atol=2e-3)


def test_the_wells_layout_holds_objects(tmp_path):
    path = tmp_path / "scene.hdf5"
    trajectory = hw.simulate(ENV, frames=3)
    trajectory.save(path)
    file = WellFile(path)
    assert format_faults(path) == [] and file.spec == replace(ENV.spec, frames=4, horizons=(1, 2))
    out = np.empty((4, *ENV.spec.shape), np.float32)
    file.fill(out, 0, slice(None))
    np.testing.assert_array_equal(out, trajectory.states.astype(np.float32))


def test_pictures_of_objects(tmp_path):
    states = hw.simulate(ENV, frames=4).states
    bodies = bodies_of(ENV.spec, states[0])
    np.testing.assert_array_equal(bodies.places, states[0][POSITION].T)
    assert (bodies.round == (np.round(states[0][KIND]) != 1)).all()
    assert len(trajectory_page(ENV.spec, states, "title").axes) == 8
    errors = np.linspace(0, 1, 4)
    assert page_of_forecasts(ENV.spec, [ForecastRow("", states[0], states[4], errors, states[3], errors)], "title").axes
    animate_trajectory(ENV.spec, states, "title", tmp_path / "film.gif", mark=Mark(np.zeros(3), 1))
    assert (tmp_path / "film.gif").read_bytes()[:3] == b"GIF"
    assert picture(ENV.spec, states[0], "title").shape[2] == 3


def test_a_new_network_predicts_free_motion_and_that_the_pusher_obeys():
    net = surrogate(ENV.spec)
    for weights in net.backbone.last.parameters():
        torch.nn.init.zeros_(weights)
    for seed in range(3):
        sample = ENV.initial("train", seed)
        sample.state[:2] *= 0.5  # away from the walls, which stop a body at its extent
        state, params = (torch.from_numpy(np.float32(each))[None] for each in (sample.state, sample.params))
        with torch.no_grad():
            found = net(state, 4.0, params)[0].numpy()
        expected = ENV.variants()["ballistic"].solve(sample.state, 4, sample.params)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_walls_stop_free_motion():
    net = surrogate(ENV.spec)
    for weights in net.backbone.last.parameters():
        torch.nn.init.zeros_(weights)
    sample = ENV.initial("train", 0)
    state = torch.from_numpy(np.float32(sample.state))[None]
    with torch.no_grad():
        later = net(state, 1000.0, torch.tensor([[0.5, 0.4, -0.4]]))[0].numpy()
    pusher = int(np.flatnonzero(np.round(sample.state[KIND]) == -1)[0])
    np.testing.assert_allclose(later[:2, pusher], [0.28, -0.28], atol=1e-5)
    assert np.abs(later[:2]).max() <= 0.3
