"""Signals from disagreement, on propagators whose answer is known."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import hybridworld as hw
from hybridworld.errors import InvalidInput
from hybridworld.trust.disagreement import (
    Combined,
    Ensemble,
    GradientMagnitude,
    ManySplits,
    RandomAugmentation,
    Symmetric,
    rms,
    spread,
)
from hybridworld.trust.signal import Cost
from hybridworld.trust.step_doubling import StepDoubling

UNIT = torch.tensor([2.0, 0.5], dtype=torch.float64)
ONE = torch.ones(2, dtype=torch.float64)
NONE = torch.zeros(4, 0)
MOVING = [each for each in hw.square_symmetries() if not each.is_identity]


def plane(*grid, boundary="open", kind="vector"):
    """A spec with two channels: one vector, or two scalars."""
    fields = (hw.Field("v", "1", "vector"),) if kind == "vector" else (hw.Field("a", "1"), hw.Field("b", "1"))
    axes = tuple(hw.Axis(name, 0, 1, boundary) for name in "xy")
    return hw.StateSpec("plane", "", fields, axes, grid, 1.0, "1", 2, fields[0].name)


def states(*grid, seed=0, batch=4):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(batch, 2, *grid)))


def horizons(value=3.0, batch=4):
    return torch.full((batch,), float(value), dtype=torch.float64)


def column(horizons, states):
    return horizons.reshape(-1, *[1] * (states.dim() - 1))


def exact(s, h, p):
    """Decay at a rate of its own per channel."""
    rate = torch.tensor([0.1, 0.3], dtype=s.dtype).reshape(-1, *[1] * (s.dim() - 2))
    return s * torch.exp(-rate * column(h, s))


def euler(s, h, p):
    return s * (1 - 0.1 * column(h, s))


def radial(s, h, p):
    """Commutes with every turn and mirror of a vector."""
    return s * torch.exp(-column(h, s) * s.square().sum(dim=1, keepdim=True))


def pushed(push):
    """s + h push: no symmetry of the plane leaves a direction alone for every push."""
    return lambda s, h, p: s + column(h, s) * push.reshape(-1, *[1] * (s.dim() - 2))


class Counted:
    """A propagator that counts its calls."""

    def __init__(self, f=euler):
        self.f, self.calls = f, 0

    def __call__(self, *inputs):
        self.calls += 1
        return self.f(*inputs)


# Many splits.


@given(st.integers(0, 2**31), st.floats(0.1, 50))
def test_many_splits_with_the_share_one_half_is_step_doubling(seed, horizon):
    inputs = states(5, seed=seed), horizons(horizon), NONE
    many, doubling = ManySplits(euler, UNIT, [0.5])(*inputs), StepDoubling(euler, UNIT)(*inputs)
    assert torch.equal(many.prediction, doubling.prediction)
    torch.testing.assert_close(many.error_map, doubling.error_map)


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4), st.floats(0.1, 20))
def test_an_exact_flow_has_no_error_for_any_split(shares, horizon):
    found = ManySplits(exact, UNIT, shares)(states(3, 2), horizons(horizon), NONE)
    assert found.error_map.shape == (4, 3, 2)
    assert found.error_map.max() < 1e-14


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4), st.sampled_from([2.5, 10.0]))
def test_forward_euler_gives_the_closed_form_of_each_split(shares, horizon):
    """(1 - rh) s against (1 - ra)(1 - rb) s with a + b = h: they differ by a b r² |s|; parts of 10 frames are whole frames."""
    now = states()
    found = ManySplits(euler, ONE, shares)(now, horizons(horizon), NONE)
    first = [max(1, np.floor(share * horizon)) if horizon == 10 else share * horizon for share in shares]
    factor = np.sqrt(np.mean([(a * (horizon - a) * 0.1**2) ** 2 for a in first]))
    torch.testing.assert_close(found.error_map, factor * now.norm(dim=1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shares", [[], [0.0], [1.0], [0.5, 1.5], [-0.5], [float("nan")]])
def test_a_share_must_lie_between_0_and_1(shares):
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        ManySplits(euler, UNIT, shares)


# Symmetries.


@pytest.mark.parametrize("grid", [(), (4, 4)])
def test_a_flow_with_the_symmetries_has_no_error(grid):
    found = Symmetric(radial, ONE, plane(*grid), hw.square_symmetries(), count=7)(states(*grid), horizons(), NONE)
    assert found.error_map.shape == (4, *grid)
    assert found.error_map.max() < 1e-15
    assert torch.equal(found.prediction, radial(states(*grid), horizons(), NONE))


@given(
    symmetry=st.sampled_from(MOVING), x=st.floats(-3, 3), y=st.floats(-3, 3), grid=st.sampled_from([(), (3, 3)])
)  # fmt: skip
def test_a_push_to_one_side_is_seen_as_far_as_the_symmetry_moves_it(symmetry, x, y, grid):
    """f(s) = s + h c differs from g⁻¹ f(g s) = s + h g⁻¹ c by h |c - g⁻¹ c|: 2 h |c_x| for the mirror of x."""
    push = torch.tensor([x, y], dtype=torch.float64)
    found = Symmetric(pushed(push), ONE, plane(*grid), [symmetry])(states(*grid), horizons(3), NONE)
    back = np.eye(2)[list(symmetry.axes)].T @ (np.array(symmetry.signs) * push.numpy())
    expected = 3 * np.linalg.norm(push.numpy() - back)
    torch.testing.assert_close(found.error_map, torch.full((4, *grid), expected, dtype=torch.float64), rtol=1e-9, atol=1e-12)
    if symmetry == hw.Symmetry((0, 1), (-1, 1)):
        assert expected == pytest.approx(6 * abs(x))


def test_a_field_that_is_forced_unevenly_is_seen_where_the_force_differs_from_its_mirror_image():
    ramp = torch.arange(4.0, dtype=torch.float64)[:, None].expand(4, 4)
    signal = Symmetric(lambda s, h, p: s + ramp, ONE, plane(4, 4, kind="scalar"), [hw.Symmetry((0, 1), (-1, 1))])
    expected = np.sqrt(2) * (ramp - ramp.flip(0)).abs()  # in both channels
    torch.testing.assert_close(signal(states(4, 4), horizons(), NONE).error_map[2], expected)


def test_symmetries_are_pooled_by_their_rms_and_chosen_by_the_seed():
    f, inputs = pushed(torch.tensor([1.0, 0.3], dtype=torch.float64)), (states(), horizons(), NONE)

    def of(symmetries, **options):
        return Symmetric(f, UNIT, plane(), symmetries, **options)(*inputs).error_map

    torch.testing.assert_close(of(hw.square_symmetries(), count=7), rms([of([each]) for each in MOVING]))
    assert torch.equal(of(MOVING, seed=1), of(MOVING, seed=1))
    assert len({float(of(MOVING, count=1, seed=seed)[0]) for seed in range(20)}) > 1


def test_nothing_to_compare_is_refused():
    for symmetries in [(), hw.square_symmetries()[:1]]:
        with pytest.raises(InvalidInput, match="plane declares no symmetries"):
            Symmetric(euler, UNIT, plane(), symmetries)
    for count in (0, -1):
        with pytest.raises(InvalidInput, match="at least 1"):
            Symmetric(euler, UNIT, plane(), MOVING, count=count)


# Combined.


def test_combined_is_the_rms_of_its_parts_about_the_prediction_of_the_first():
    inputs = states(4, 4), horizons(), NONE
    push = pushed(torch.tensor([1.0, 0.3], dtype=torch.float64))
    parts = StepDoubling(euler, UNIT), Symmetric(push, UNIT, plane(4, 4), MOVING)
    found = Combined(*parts)(*inputs)
    first, second = (part(*inputs) for part in parts)
    assert torch.equal(found.prediction, first.prediction)
    torch.testing.assert_close(found.error_map, ((first.error_map**2 + second.error_map**2) / 2).sqrt())
    torch.testing.assert_close(Combined(parts[0])(*inputs).error_map, first.error_map)


def test_combined_costs_what_its_parts_cost():
    class Fitted:
        name, cost = "fitted", Cost(passes=2, training="a network", labels=True)

    cost = Combined(Fitted(), Symmetric(euler, UNIT, plane(), MOVING), Ensemble([euler, exact], UNIT)).cost
    assert cost == Cost(8, "a network; 1 more surrogates", True, "its symmetries")


def test_there_must_be_something_to_combine():
    with pytest.raises(InvalidInput, match="at least 1"):
        Combined()


# Noise on the input.


@pytest.mark.parametrize(("size", "count"), [(0.01, 2), (0.1, 4), (1.0, 16)])
def test_noise_through_a_linear_map_has_its_closed_form(size, count):
    """Noise ε U n becomes ε A U n: in units U its mean square is ε² |U⁻¹ A U|², of which `count` draws show 1 - 1 / count."""
    matrix = torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.float64)
    signal = RandomAugmentation(lambda s, h, p: torch.einsum("ij,bj...->bi...", matrix, s), UNIT, size, count)
    found = signal(states(64, 64), horizons(), NONE)
    expected = size**2 * float((matrix * UNIT / UNIT[:, None]).square().sum()) * (1 - 1 / count)
    assert float(found.error_map[0].square().mean()) == pytest.approx(expected, rel=0.06)  # 4096 cells


def test_noise_is_the_same_at_each_call_and_whoever_else_is_in_the_batch():
    signal = RandomAugmentation(radial, UNIT)
    everyone = signal(states(5), horizons(), NONE)
    assert torch.equal(everyone.error_map, signal(states(5), horizons(), NONE).error_map)
    assert everyone.error_map.min() > 0
    for row in range(4):
        one = slice(row, row + 1)
        alone = signal(states(5)[one], horizons()[one], NONE[one])
        torch.testing.assert_close(alone.error_map, everyone.error_map[one], rtol=1e-9, atol=0)
    assert not torch.equal(RandomAugmentation(radial, UNIT, seed=1)(states(5), horizons(), NONE).error_map, everyone.error_map)


def test_the_prediction_itself_has_no_noise():
    found = RandomAugmentation(euler, UNIT, size=10.0)(states(), horizons(), NONE)
    assert torch.equal(found.prediction, euler(states(), horizons(), NONE))


@pytest.mark.parametrize("options", [{"count": 1}, {"count": 0}, {"size": 0}, {"size": -1}, {"size": float("nan")}])
def test_a_deviation_needs_two_draws_and_some_noise(options):
    with pytest.raises(InvalidInput, match=r"at least 2|positive"):
        RandomAugmentation(euler, UNIT, **options)


# Several networks.


@given(st.floats(-10, 10), st.floats(-10, 10))
def test_two_members_a_distance_apart_deviate_by_half_of_it(x, y):
    apart = torch.tensor([x, y], dtype=torch.float64).reshape(-1, 1)
    found = Ensemble([euler, lambda s, h, p: euler(s, h, p) + apart], UNIT)(states(3), horizons(), NONE)
    assert torch.equal(found.prediction, euler(states(3), horizons(), NONE))
    expected = float((apart[:, 0] / UNIT).norm()) / 2
    torch.testing.assert_close(found.error_map, torch.full((4, 3), expected, dtype=torch.float64), rtol=1e-9, atol=1e-12)


def test_members_that_agree_have_no_deviation_and_their_order_does_not_matter():
    inputs = states(3), horizons(), NONE
    assert Ensemble([exact, exact], UNIT)(*inputs).error_map.max() == 0
    one, other = (Ensemble(members, UNIT)(*inputs).error_map for members in ([euler, exact, radial], [radial, euler, exact]))
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(one, spread([f(*inputs) for f in (exact, radial, euler)], UNIT))


@pytest.mark.parametrize("members", [[], [euler]])
def test_an_ensemble_needs_two_members(members):
    with pytest.raises(InvalidInput, match=f"is {len(members)}: it needs at least 2"):
        Ensemble(members, UNIT)


# Steep places.


def ramp(x, y, grid=(6, 5)):
    """(1, 2, *grid): the first channel rises by x per cell along x, the second by y per cell along y."""
    along = torch.meshgrid(*(torch.arange(float(cells), dtype=torch.float64) for cells in grid), indexing="ij")
    return torch.stack([x * along[0], y * along[1]])[None]


def same(s, h, p):
    return s


@given(st.floats(-5, 5), st.floats(-5, 5))
def test_the_gradient_of_a_linear_field_is_its_slope_up_to_the_edge(x, y):
    for boundary in ("open", "wall"):
        signal = GradientMagnitude(same, UNIT, plane(6, 5, boundary=boundary, kind="scalar"))
        found = signal(ramp(x, y), horizons(batch=1), NONE[:1])
        expected = float((torch.tensor([x, y], dtype=torch.float64) / UNIT).norm())
        torch.testing.assert_close(found.error_map, torch.full((1, 6, 5), expected, dtype=torch.float64))


@given(st.floats(-5, 5))
def test_across_a_periodic_edge_the_gradient_sees_the_other_side(slope):
    """Within: the slope. At the edge, where a ramp of n cells falls back: slope (2 - n) / 2."""
    signal = GradientMagnitude(same, ONE, plane(6, 5, boundary="periodic", kind="scalar"))
    found = signal(ramp(slope, 0), horizons(batch=1), NONE[:1]).error_map[0]
    torch.testing.assert_close(found[1:-1], torch.full((4, 5), abs(slope), dtype=torch.float64))
    torch.testing.assert_close(found[[0, -1]], torch.full((2, 5), 2 * abs(slope), dtype=torch.float64))


def test_the_gradient_of_a_wave_moves_along_with_it_around_a_periodic_domain():
    signal = GradientMagnitude(same, UNIT, plane(8, 8, boundary="periodic", kind="scalar"))
    now = states(8, 8)
    before, after = (signal(each, horizons(), NONE).error_map for each in (now, now.roll((3, 5), (2, 3))))
    torch.testing.assert_close(before.roll((3, 5), (1, 2)), after)


def test_a_state_vector_has_no_gradient():
    with pytest.raises(InvalidInput, match="plane has no grid"):
        GradientMagnitude(euler, UNIT, plane())


# Costs.


@pytest.mark.parametrize(
    "make",
    [
        lambda f: StepDoubling(f, UNIT),
        lambda f: ManySplits(f, UNIT),
        lambda f: ManySplits(f, UNIT, [0.2]),
        lambda f: Symmetric(f, UNIT, plane(4, 4), MOVING),
        lambda f: Symmetric(f, UNIT, plane(4, 4), MOVING[:1]),
        lambda f: RandomAugmentation(f, UNIT, count=5),
        lambda f: Ensemble([f, f, f], UNIT),
        lambda f: GradientMagnitude(f, UNIT, plane(4, 4)),
        lambda f: Combined(StepDoubling(f, UNIT), Symmetric(f, UNIT, plane(4, 4), MOVING)),
    ],
)
def test_the_passes_of_the_cost_are_those_that_are_made(make):
    f = Counted()
    signal = make(f)
    found = signal(states(4, 4), horizons(), NONE)
    assert f.calls == signal.cost.passes
    assert found.prediction.shape == (4, 2, 4, 4) and found.error_map.shape == (4, 4, 4) and found.score.shape == (4,)
