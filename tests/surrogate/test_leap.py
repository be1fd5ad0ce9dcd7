"""The backbone leap: the grids it takes, what it sees beyond the edge, and how it moves between its two grids."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hybridworld as hw
from hybridworld.errors import InvalidInput
from hybridworld.physics.grids import coarsen, refine
from hybridworld.surrogate.guided import GuidedLeap
from hybridworld.surrogate.leap import Conv, Leap, averaged, default_patch, framed, gathered, interpolated, spread
from hybridworld.surrogate.padding import joined, padded

BOUNDARIES = ("periodic", "open", "wall")
AXES = st.lists(st.tuples(st.sampled_from(BOUNDARIES), st.integers(2, 4)), min_size=1, max_size=3)


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def leap(boundaries, patch=2, **options):
    torch.manual_seed(0)
    return Leap(2, boundaries, 5, width=8, patch=patch, depth=2, **options).eval()


def spec_of(boundaries, grid):
    axes = tuple(hw.Axis(name, 0, 1, boundary) for name, boundary in zip("xyz", boundaries, strict=False))
    return hw.StateSpec("any", "Any", (hw.Field("u", "1"), hw.Field("v", "1")), axes, grid, 1, "s", 2, "u")


# The network.


@torch.no_grad()
@pytest.mark.parametrize("patch", [1, 2, 4])
@pytest.mark.parametrize(
    ("grid", "boundaries"),
    [
        *(((12, 16), pair) for pair in product(BOUNDARIES, repeat=2)),
        ((9, 13), ("periodic", "open")), ((8,), ("periodic",)), ((17,), ("open",)), ((8, 9, 8), BOUNDARIES),
    ],
)  # fmt: skip
def test_any_grid_keeps_its_shape(grid, boundaries, patch):
    answer = leap(boundaries, patch)(random(3, 2, *grid), random(3, 5))
    assert answer.shape == (3, 2, *grid) and answer.isfinite().all()


@torch.no_grad()
@pytest.mark.parametrize("grid", [(16,), (8, 16), (8, 4, 8)])
def test_a_periodic_net_commutes_with_shifts_by_its_patch(grid):
    net, x, condition = leap(("periodic",) * len(grid)), random(2, 2, *grid), random(2, 5)
    answer = net(x, condition)
    for axis, cells in enumerate(grid, start=2):
        for shift in range(2, cells, 2):
            moved = net(x.roll(shift, axis), condition)
            torch.testing.assert_close(moved, answer.roll(shift, axis), rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_an_open_axis_has_ends():
    net, x, condition = leap(("periodic", "open")), random(1, 2, 16, 16), random(1, 5)
    error = (net(x.roll(4, 3), condition) - net(x, condition).roll(4, 3)).abs().max()
    assert error > 1e-2


@torch.no_grad()
def test_horizon_state_and_further_inputs_reach_every_answer():
    net = leap(("open", "periodic"), latent=3, beside=1)
    x, condition, latent, beside = inputs = random(1, 2, 8, 8), random(1, 5), random(1, 3, 4, 4), random(1, 1, 8, 8)
    answer = net(*inputs)
    for place, other in enumerate((x, condition, latent, beside)):
        changed = [*inputs]
        changed[place] = other + 0.1 * random(*other.shape, seed=9)
        assert (net(*changed) != answer).float().mean() > 0.99


@torch.no_grad()
def test_fine_structure_of_the_state_reaches_the_cell_it_is_in():
    """The finish works cell by cell: a change of one cell is seen most by that cell and its neighbours."""
    net, x, condition = leap(("open", "open"), 4), random(1, 2, 32, 32), random(1, 5)
    spiked = x.clone()
    spiked[0, 0, 13, 18] += 0.1
    seen = (net(spiked, condition) - net(x, condition)).abs().sum(dim=1)[0]
    assert seen[11:16, 16:21].mean() > 3 * seen.mean()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: leap(("wall",) * 4), "leap works on grids of 1, 2 or 3 dimensions, not of 4"),
        (lambda: leap(("wall",), 4)(random(1, 2, 4), random(1, 5)), r"a patch of 4 needs 8 cells per axis, not \(4,\)"),
    ],
)
def test_networks_that_cannot_be(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


@pytest.mark.parametrize(
    ("grid", "patch"), [((128, 128), 4), ((256, 256), 8), ((64,), 2), ((16,), 2), ((100, 300), 2), ((99,), 2), ((512, 128), 4)]
)
def test_the_default_patch_leaves_32_cells_where_it_can(grid, patch):
    assert default_patch(grid) == patch


# Between the two grids.


@settings(max_examples=100)
@given(axes=AXES, patch=st.integers(1, 3))
def test_depth_to_space_undoes_space_to_depth(axes, patch):
    x = random(2, 3, *(cells * patch for _, cells in axes))
    assert torch.equal(spread(gathered(x, patch), patch), x)


def test_a_latent_cell_holds_the_cells_of_its_patch():
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert gathered(x, 2)[0, :, 0, 1].tolist() == [2, 3, 6, 7]


@settings(max_examples=100)
@given(axes=AXES, patch=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_averages_and_interpolation_are_those_of_the_solvers(axes, patch, seed):
    boundaries, latent = tuple(boundary for boundary, _ in axes), tuple(cells for _, cells in axes)
    spec = spec_of(boundaries, latent)
    rng = np.random.default_rng(seed)
    fine, coarse = rng.normal(size=(2, 2, *(cells * patch for cells in latent))), rng.normal(size=(2, 2, *latent))
    np.testing.assert_allclose(averaged(torch.from_numpy(fine), patch).numpy(), coarsen(spec, fine, patch), atol=1e-12)
    found = interpolated(torch.from_numpy(coarse), patch, boundaries).numpy()
    np.testing.assert_allclose(found, refine(spec, coarse, patch), atol=1e-12)


@settings(max_examples=100)
@given(axes=AXES, cells=st.integers(0, 2))
def test_beyond_the_edge_is_the_other_side_or_the_same_value(axes, cells):
    boundaries, x = tuple(boundary for boundary, _ in axes), random(2, 2, *(size for _, size in axes))
    expected = x.numpy()
    for axis, boundary in enumerate(boundaries, start=2):
        width = [(cells, cells) if place == axis else (0, 0) for place in range(x.dim())]
        expected = np.pad(expected, width, "wrap" if boundary == "periodic" else "edge")
    np.testing.assert_array_equal(framed(x, cells, boundaries).numpy(), expected)


def test_a_depthwise_convolution_keeps_features_apart():
    conv, x = Conv(3, 3, ("open", "open"), size=5, groups=3), random(1, 3, 8, 8)
    other = x.clone()
    other[:, 1] += 1
    assert torch.equal((conv(other) != conv(x)).flatten(2).any(dim=2), torch.tensor([[False, True, False]]))


# Export.


@torch.no_grad()
@pytest.mark.parametrize("boundaries", [("open", "open"), ("periodic", "periodic"), ("periodic", "wall")])
def test_the_networks_can_be_exported(boundaries):
    condition = random(2, 5)
    guided = GuidedLeap(2, boundaries, 5, width=8, patch=4).eval()
    torch.nn.init.normal_(guided.last.conv.weight)
    for net, inputs in (
        (leap(boundaries, 4), (random(2, 2, 16, 16), condition)),
        (guided, (random(2, 2, 16, 16), random(2, 2, 4, 4, seed=1), random(2, 2, 4, 4, seed=2), condition)),
    ):
        program = torch.export.export(net, inputs).module()
        others = tuple(random(*each.shape, seed=seed) for seed, each in enumerate(inputs, start=7))
        torch.testing.assert_close(program(*others), net(*others), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@torch.no_grad()
def test_the_guided_network_can_be_compiled():
    net = GuidedLeap(2, ("periodic", "open"), 5, width=8, patch=4).eval()
    torch.nn.init.normal_(net.last.conv.weight)
    inputs = random(2, 2, 16, 16), random(2, 2, 4, 4, seed=1), random(2, 2, 4, 4, seed=2), random(2, 5)
    torch.testing.assert_close(torch.compile(net, fullgraph=True)(*inputs), net(*inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kinds", [*product(("circular", "replicate", "constant"), repeat=2)])
def test_padding_keeps_the_layout_in_memory_and_is_the_same_in_each(kinds):
    gradients = []
    for layout in (torch.contiguous_format, torch.channels_last):
        x = random(2, 3, 4, 5).contiguous(memory_format=layout).requires_grad_()
        wide = padded(x, [(2, 1), (0, 3)], kinds)
        assert wide.is_contiguous(memory_format=layout)
        torch.testing.assert_close(wide, joined(x, [(2, 1), (0, 3)], kinds), rtol=0, atol=0)
        (wide * random(*wide.shape, seed=1)).sum().backward()
        assert x.grad.is_contiguous(memory_format=layout)
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)
