"""The networks: their size, the grids they take, and what they see beyond the edge."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hybridworld as hw
from hybridworld.errors import InvalidInput
from hybridworld.surrogate.backbones import default_backbone, find_backbone
from hybridworld.surrogate.conditioning import Conditioning, FiLM
from hybridworld.surrogate.config import configure
from hybridworld.surrogate.mlp import MLP
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.unet import Conv, UNet, doubled, framed
from tests.surrogate.flows import OSCILLATOR, RING, ones

BOUNDARIES = ("periodic", "open", "wall")
NUMPY = {"periodic": "wrap", "open": "edge", "wall": "constant"}


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def unet(boundaries, channels=2, condition=5, width=8):
    torch.manual_seed(0)
    return UNet(channels, boundaries, condition, width).eval()


# Size.


@pytest.mark.parametrize(
    ("name", "backbone", "count"),
    [("oregonator", "unet", 3_562_770), ("euler2d", "unet", 3_564_500), ("ball3d", "mlp", 685_513)],
)
def test_the_number_of_weights_is_that_of_the_paper(name, backbone, count):
    spec = hw.system(name).spec
    config = configure(spec, "paper").surrogate
    assert config.backbone == backbone and not config.params
    assert sum(weights.numel() for weights in Surrogate(spec, config, ones(spec)).parameters()) == count


@pytest.mark.parametrize(
    "boundaries", [("periodic", "open"), ("open", "periodic"), ("wall", "periodic"), ("open", "open"), ("wall", "wall")]
)
@pytest.mark.parametrize("grid", [(8, 8), (16, 24), (9, 13), (31, 8)])
def test_any_plane_grid_keeps_its_shape(grid, boundaries):
    with torch.no_grad():
        answer = unet(boundaries)(random(3, 2, *grid), random(3, 5))
    assert answer.shape == (3, 2, *grid) and answer.isfinite().all()


@pytest.mark.parametrize(
    ("grid", "boundaries"),
    [
        ((8,), ("periodic",)), ((17,), ("open",)), ((40,), ("wall",)),
        ((8, 9, 16), ("periodic", "open", "wall")), ((11, 8, 8), ("periodic",) * 3), ((8, 8, 10), ("wall",) * 3),
    ],
)  # fmt: skip
def test_lines_and_volumes_work_as_well(grid, boundaries):
    with torch.no_grad():
        answer = unet(boundaries)(random(2, 2, *grid), random(2, 5))
    assert answer.shape == (2, 2, *grid) and answer.isfinite().all()


@pytest.mark.parametrize("boundaries", [*product(BOUNDARIES, repeat=2)])
def test_an_empty_batch_has_an_empty_answer(boundaries):
    assert unet(boundaries)(random(0, 2, 9, 8), random(0, 5)).shape == (0, 2, 9, 8)


# Beyond the edge.


@settings(max_examples=150, deadline=None)
@given(
    axes=st.lists(st.tuples(st.sampled_from(BOUNDARIES), st.integers(1, 5)), min_size=1, max_size=3),
    seed=st.integers(0, 2**32 - 1),
)
def test_what_lies_beyond_the_edge_is_what_the_boundary_says(axes, seed):
    boundaries, grid = tuple(boundary for boundary, _ in axes), tuple(cells for _, cells in axes)
    x = np.random.default_rng(seed).normal(size=(2, 3, *grid))
    expected = x
    for axis, boundary in enumerate(boundaries):
        width = [(0, 0)] * x.ndim
        width[2 + axis] = (1, 1)
        expected = np.pad(expected, width, NUMPY[boundary])
    np.testing.assert_array_equal(framed(torch.from_numpy(x), boundaries).numpy(), expected)


@settings(max_examples=100, deadline=None)
@given(
    axes=st.lists(st.tuples(st.sampled_from(BOUNDARIES), st.integers(1, 5)), min_size=1, max_size=3),
    seed=st.integers(0, 2**32 - 1),
)
def test_gradients_come_back_from_beyond_the_edge(axes, seed):
    """Padding is linear, so its gradient is the transposed map: <pad(x), y> = <x, gradient of y>."""
    boundaries, grid = tuple(boundary for boundary, _ in axes), [cells for _, cells in axes]
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.normal(size=(2, 3, *grid))).requires_grad_()
    y = torch.from_numpy(rng.normal(size=(2, 3, *(cells + 2 for cells in grid))))
    before = y.clone()
    (framed(x, boundaries) * y).sum().backward()
    other = torch.from_numpy(rng.normal(size=x.shape))  # the gradient does not depend on x, so it must fit any other
    torch.testing.assert_close((framed(other, boundaries) * y).sum(), (other * x.grad).sum())
    assert torch.equal(y, before)


@pytest.mark.parametrize("boundaries", [*product(BOUNDARIES, repeat=2)])
def test_a_convolution_is_that_of_the_padded_grid(boundaries):
    conv, x = Conv(2, 3, boundaries), random(2, 2, 5, 7)
    expected = torch.conv2d(framed(x, boundaries), conv.conv.weight, conv.conv.bias)
    torch.testing.assert_close(conv(x), expected)


@pytest.mark.parametrize("grid", [(16,), (16, 24), (8, 16, 8)])
def test_a_periodic_net_commutes_with_shifts_by_eight_cells(grid):
    net, x, condition = unet(("periodic",) * len(grid)), random(2, 2, *grid), random(2, 5)
    with torch.no_grad():
        answer = net(x, condition)
        for axis, cells in enumerate(grid, start=2):
            for shift in range(8, cells, 8):
                moved = net(x.roll(shift, axis), condition)
                assert (moved - answer.roll(shift, axis)).abs().max() < 1e-4 * answer.abs().max()


def test_only_its_periodic_axis_has_no_ends():
    net, x, condition = unet(("periodic", "open")), random(1, 2, 16, 16), random(1, 5)
    with torch.no_grad():
        answer = net(x, condition)
        for axis, commutes in ((2, True), (3, False)):
            error = (net(x.roll(8, axis), condition) - answer.roll(8, axis)).abs().max() / answer.abs().max()
            assert (error < 1e-4) == commutes and (commutes or error > 1e-2)


# The way up.


@settings(max_examples=60, deadline=None)
@given(
    axes=st.lists(st.tuples(st.sampled_from(BOUNDARIES), st.integers(2, 5)), min_size=1, max_size=3),
    slopes=st.lists(st.integers(-9, 9), min_size=3, max_size=3),
)
def test_doubling_keeps_linear_functions_inside(axes, slopes):
    boundaries, grid = tuple(boundary for boundary, _ in axes), [cells for _, cells in axes]

    def linear(fine):
        """At the cell centres of a grid that is `fine` times as fine."""
        centres = [(torch.arange(cells * fine, dtype=torch.float64) + 0.5) / fine for cells in grid]
        return sum(slope * x for slope, x in zip(slopes, torch.meshgrid(centres, indexing="ij"), strict=False))[None, None]

    found = doubled(linear(1), torch.Size(2 * cells for cells in grid), boundaries)
    inside = (..., *[slice(1, -1)] * len(grid))
    torch.testing.assert_close(found[inside], linear(2)[inside])


@settings(max_examples=60, deadline=None)
@given(
    axes=st.lists(st.tuples(st.sampled_from(BOUNDARIES), st.integers(1, 5)), min_size=1, max_size=3),
    shift=st.integers(-5, 5),
)
def test_doubling_commutes_with_shifts_along_periodic_axes(axes, shift):
    boundaries, grid = tuple(boundary for boundary, _ in axes), [cells for _, cells in axes]
    x, fine = random(1, 2, *grid), torch.Size(2 * cells for cells in grid)
    for axis, boundary in enumerate(boundaries, start=2):
        if boundary == "periodic":
            moved = doubled(x.roll(shift, axis), fine, boundaries)
            torch.testing.assert_close(moved, doubled(x, fine, boundaries).roll(2 * shift, axis))


def test_doubling_reaches_odd_grids_too():
    x = torch.full((1, 1, 4, 5), 2.0)
    for boundaries in product(BOUNDARIES, repeat=2):
        found = doubled(x, torch.Size([9, 10]), boundaries)
        torch.testing.assert_close(found, torch.full((1, 1, 9, 10), 2.0))


# Conditioning.


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 5), (3, 4, 5, 6), (3, 4, 2, 3, 5)])
def test_film_without_weights_is_the_identity(shape):
    film, x = FiLM(7, 4), random(*shape)
    torch.nn.init.zeros_(film.linear.weight)
    torch.nn.init.zeros_(film.linear.bias)
    torch.testing.assert_close(film(x, random(3, 7)), x, rtol=0, atol=0)


def test_film_scales_and_shifts_each_feature_of_each_sample():
    film, x, condition = FiLM(7, 4), random(3, 4, 5), random(3, 7)
    a, b = film.linear(condition).chunk(2, dim=1)
    torch.testing.assert_close(film(x, condition), (1 + a)[..., None] * x + b[..., None])


@pytest.mark.parametrize("net", [unet(("periodic",)), MLP(2, (), 5, 8).eval()])
def test_horizon_and_parameters_reach_the_answer(net):
    x = random(1, 2, 8) if isinstance(net, UNet) else random(1, 2)
    assert not torch.allclose(net(x, random(1, 5, seed=1)), net(x, random(1, 5, seed=2)))


def test_nearby_horizons_have_nearby_conditions():
    """The fastest wave turns by two radians per doubling: what is learned at these horizons carries over to those between."""
    horizons = 2 ** torch.linspace(-1, 7, 801)
    waves = Conditioning(0).layers[0].in_features
    angles = torch.log2(horizons)[:, None] * Conditioning(0).rates
    inputs = torch.cat([angles.sin(), angles.cos()], dim=1)
    assert inputs.shape[1] == waves == 64
    steps = inputs.diff(dim=0).norm(dim=1)
    assert steps.max() < 0.01 * 2 * np.sqrt(32) and steps.min() > 0


# Refusals.


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: unet(("wall", "wall"))(random(1, 2, 7, 64), random(1, 5)), r"at least 8 cells along each axis; .* \(7, 64\)"),
        (lambda: unet(("wall",), width=12), "width of a U-Net is 12: it must be a multiple of 8"),
        (lambda: unet(("wall",) * 4), "grids of 1, 2 or 3 dimensions, not of 4"),
        (
            lambda: find_backbone("unet", OSCILLATOR),
            "The states of oscillator are state vectors, for which the backbone is mlp, not unet",
        ),
        (lambda: find_backbone("mlp", RING), "The states of ring are fields, for which the backbone is unet, not mlp"),
        (
            lambda: find_backbone("uunet", RING),
            r"Unknown backbone 'uunet': choose unet or leap or mlp or objects, .*\. Did you mean 'unet'\?",
        ),
        (lambda: find_backbone("nowhere.py:Net", RING), "There is no file nowhere.py"),
    ],
)
def test_networks_that_cannot_be(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_the_default_network_follows_the_shape_of_the_data():
    assert (default_backbone(RING), default_backbone(OSCILLATOR)) == ("unet", "mlp")
