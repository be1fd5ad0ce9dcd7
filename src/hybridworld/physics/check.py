"""`check_environment`: what a system gets wrong, in sentences.

Each check is a generator of sentences; all of them run, so that one look shows everything there is to mend.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from hybridworld.errors import CodeFailure, HybridWorldError, raised
from hybridworld.physics.environment import Environment, Sample, stacked
from hybridworld.physics.spec import REGIMES, SPLITS, Parameter, StateSpec

FRAMES = (2, 3)  # the semigroup is tried on a + b frames
SAME = 1e-9  # relative: equal up to rounding
TWIN = 1e-10  # relative: compiled and plain form of one scheme
SYMMETRIC = 1e-6  # relative: a mirrored solution, with sums in another order


def check_environment(environment: Environment) -> list[str]:
    """What this system gets wrong, one sentence per finding; an empty list if all is well.

    Checks the spec (units, ranges, horizons), the samples of every split (shape, finiteness, determinism per seed,
    parameters inside their ranges) and the solver (shape, purity, independence of the batch, semigroup), and whatever
    optional parts the system has (NumPy twin, symmetries, conserved quantities, coarser grids).
    """
    if not isinstance(environment, Environment):
        return [f"{environment!r} is not an instance of hybridworld.Environment (an instance is needed, not the class)."]
    try:
        spec = environment.spec
    except (Exception, SystemExit) as error:
        return [f"`spec` raised {raised(error)}."]
    findings = list(_check_spec(spec))
    if findings:
        return findings  # the rest reads the spec and would only repeat this
    if environment.lacks:
        return [environment.lacks]  # so would the rest, which solves
    findings += _run(_check_samples, environment)
    if findings:
        return findings
    samples = {split: environment.initial(split, 0) for split in SPLITS}
    try:
        environment.solve(samples["test"].state, 1, samples["test"].params)
    except CodeFailure as error:
        return [str(error)]  # the rest asks the solver too, and would only repeat this
    laws = (_check_semigroup, _check_twin, _check_symmetries, _check_objects, _check_conserved, _check_coarser)
    for check in (_check_solver, *laws):
        findings += _run(check, environment, samples["test"])
    for split, sample in samples.items():
        findings += _run(_check_finite, environment, sample, split)
    return findings


def _run(check: Callable[..., Iterator[str]], *arguments: object) -> list[str]:
    """The findings of one check; what it raises is a finding too."""
    try:
        return list(check(*arguments))
    except HybridWorldError as error:
        return [str(error)]
    except (Exception, SystemExit) as error:
        return [f"{check.__name__.removeprefix('_check_').capitalize()} could not be checked: {raised(error)}."]


def _check_spec(spec: StateSpec) -> Iterator[str]:
    if not spec.name.isidentifier():
        yield f"The name '{spec.name}' is not an identifier: use letters, digits and underscores."
    if not spec.fields:
        yield "The spec has no fields: a state needs at least one."
    if len(set(spec.channels)) < len(spec.channels):
        yield f"Channel names repeat: {', '.join(spec.channels)}."
    units = [(each.name, each.unit) for each in spec.fields] + [(each.name, each.unit) for each in spec.parameters]
    for name, unit in units:
        if not unit:
            yield f"'{name}' has no unit: give one, or '1' if it has no dimension."
    if spec.objects and len(spec.grid) != 1:
        yield f"The spec has objects, but its grid is {spec.grid}: give their number alone, as (count,)."
    elif spec.is_field and len(spec.grid) != len(spec.axes):
        yield f"The grid has {len(spec.grid)} axes, but `axes` names {len(spec.axes)}."
    if any(int(cells) != cells or cells < 1 for cells in spec.grid):
        yield f"The grid is {spec.grid}: it needs whole numbers of at least 1."
    for each in spec.fields:
        of = next((other for other in spec.fields if other.name == each.rate_of), None)
        if each.rate_of and (of is None or len(spec.components(of)) != len(spec.components(each))):
            yield f"Field '{each.name}' is the rate of '{each.rate_of}', which is no field with as many components."
    if not spec.frame_step > 0:
        yield f"frame_step is {spec.frame_step:g}: it must be above 0."
    if spec.frames < 2:
        yield f"frames is {spec.frames}: a trajectory needs at least 2."
    if spec.draw not in spec.channels:
        yield f"draw is '{spec.draw}', which is not a channel: choose one of {', '.join(spec.channels)}."
    if list(spec.horizons) != sorted(set(spec.horizons)) or not spec.horizons or min(spec.horizons) < 1:
        yield f"horizons are {spec.horizons}: give them in rising order, from 1 on."
    elif max(spec.horizons) >= spec.frames:
        yield f"The longest horizon is {max(spec.horizons)}, but a trajectory has only {spec.frames} frames."
    else:
        for horizon in spec.horizons:
            if horizon > 1 and horizon / 2 not in spec.horizons:
                yield f"Horizon {horizon} lacks its half {horizon / 2:g} among the horizons: the error map needs both."
    if len({parameter.name for parameter in spec.parameters}) < len(spec.parameters):
        yield "Two parameters share a name."
    for parameter in spec.parameters:
        yield from _check_parameter(parameter)
        yield from _check_component(spec, parameter)
    if set(spec.counts) != set(SPLITS) or min(spec.counts.values()) < 1:
        yield f"counts are {dict(spec.counts)}: give at least 1 trajectory for each of {', '.join(SPLITS)}."
    for regime, shares in spec.kinds.items():
        if regime not in REGIMES.values() or abs(sum(shares.values()) - 1) > 1e-12:
            yield f"The kinds of regime '{regime}' have shares that add up to {sum(shares.values()):g}, not to 1."


def _check_parameter(parameter: Parameter) -> Iterator[str]:
    name, (low, high) = parameter.name, parameter.allowed
    if "id" not in parameter.ranges:
        yield f"Parameter '{name}' has no range for the regime 'id', from which train, val and test are drawn."
    for regime, intervals in parameter.ranges.items():
        for start, end in intervals:
            if not start < end:
                yield f"Parameter '{name}', {regime}: the interval {start:g} to {end:g} is empty."
            elif not (low <= start and end <= high):
                yield f"Parameter '{name}', {regime}: {start:g} to {end:g} leaves the allowed {low:g} to {high:g}."
    for (one, intervals), (other, others) in combinations(parameter.ranges.items(), 2):
        for a, b in intervals:
            for c, d in others:
                if max(a, c) < min(b, d):
                    yield (
                        f"Parameter '{name}': the ranges of {one} ({a:g} to {b:g}) and {other} ({c:g} to {d:g}) overlap; "
                        "splits must be disjoint, or 'out of distribution' means nothing."
                    )


def _check_component(spec: StateSpec, parameter: Parameter) -> Iterator[str]:
    """A parameter along an axis needs that axis."""
    names = [axis.name for axis in spec.axes]
    if parameter.along and parameter.along not in names:
        yield f"Parameter '{parameter.name}' is along '{parameter.along}', but the axes are {', '.join(names) or 'none'}."
    if parameter.sets and (spec.driven is None or not {parameter.sets, spec.driven[0]} <= set(spec.channels)):
        yield f"Parameter '{parameter.name}' sets '{parameter.sets}' of driven objects: channel and `driven` must be there."


def _check_samples(environment: Environment) -> Iterator[str]:
    spec = environment.spec
    for split in SPLITS:
        try:
            one, again, other = (environment.initial(split, seed) for seed in (0, 0, 1))
        except CodeFailure as error:
            yield str(error)
            return  # the other splits would only repeat this
        except HybridWorldError as error:
            yield f"sample(rng, '{split}'): {error}"
            continue
        if not isinstance(one, Sample):
            yield f"sample(rng, '{split}') returned {type(one).__name__}, not a hybridworld.Sample."
            continue
        if np.shape(one.state) != spec.shape:
            yield f"sample(rng, '{split}') gives a state of shape {np.shape(one.state)}; the spec says {spec.shape}."
        elif not np.isfinite(one.state).all():
            yield f"sample(rng, '{split}') gives a state with values that are not finite."
        elif not np.array_equal(one.state, again.state) or not np.array_equal(one.params, again.params):
            yield f"sample(rng, '{split}') gives two different samples for one seed: draw from `rng` alone."
        elif np.array_equal(one.state, other.state) and np.array_equal(one.params, other.params):
            yield f"sample(rng, '{split}') gives the same sample for two seeds: every trajectory must be unique."
        if np.shape(one.params) != (len(spec.params),):
            yield (
                f"sample(rng, '{split}') gives params of shape {np.shape(one.params)}; the spec has {len(spec.params)} "
                f"parameters of the dynamics."
            )
            continue
        yield from _check_drawn(spec, split, one)


def _check_drawn(spec: StateSpec, split: str, sample: Sample) -> Iterator[str]:
    """Is each drawn parameter inside its ranges, and at least one of them shifted where the split says so?"""
    regime = spec.regime(split)
    drawn = {parameter.name: float(value) for parameter, value in zip(spec.params, sample.params, strict=True)}
    for name, value in drawn.items():
        parameter = spec.parameter(name)
        if not (parameter.within(value, regime) or parameter.within(value, "id")):
            yield f"sample(rng, '{split}') draws {name} = {value:g}, outside of its range for {regime}."
    if regime != "id" and drawn and all(spec.parameter(name).within(value, "id") for name, value in drawn.items()):
        yield f"sample(rng, '{split}') leaves every parameter in the range of training: nothing is out of distribution."


def _check_solver(environment: Environment, sample: Sample) -> Iterator[str]:
    spec = environment.spec
    before, params = stacked([sample, environment.initial("train", 0)])
    states = before.copy()
    answer = environment.advance(states, FRAMES[0], params)
    if np.shape(answer) != before.shape:
        yield f"advance maps states of shape {before.shape} to {np.shape(answer)}; the shape must stay."
        return
    if not np.array_equal(states, before):
        yield "advance changes its input in place: work on a copy."
    if not np.array_equal(answer, environment.advance(before, FRAMES[0], params)):
        yield "advance gives two different answers for one state: it must not draw random numbers."
    if not np.array_equal(answer[1:], environment.advance(before[1:], FRAMES[0], params[1:])):
        yield "advance answers differently when a state comes alone: trajectories of a batch must not meet."
    if not _close(environment.advance(before, 0, params), before, SAME):
        yield "advance over 0 frames changes the state."
    if _close(environment.advance(before, spec.frames - 1, params), before, SAME):
        yield "advance over a whole trajectory changes nothing: is this the dynamics?"


def _check_semigroup(environment: Environment, sample: Sample) -> Iterator[str]:
    """solve(a + b) = solve(b) after solve(a): a frame's answer may depend on nothing but the state."""
    if not environment.semigroup:
        return
    a, b = FRAMES
    at_once = environment.solve(sample.state, a + b, sample.params)
    in_turn = environment.solve(environment.solve(sample.state, a, sample.params), b, sample.params)
    if not _close(at_once, in_turn, SAME):
        gap = np.abs(at_once - in_turn).max()
        yield (
            f"solve over {a + b} frames differs from {a} frames and then {b} by {gap:.3g}: "
            "the answer may depend on the state alone, not on where a run began."
        )


def _check_finite(environment: Environment, sample: Sample, split: str) -> Iterator[str]:
    """A whole trajectory of each split stays finite; solve says where it does not."""
    try:
        environment.solve(sample.state, environment.spec.frames - 1, sample.params)
    except HybridWorldError as error:
        yield f"Split '{split}', seed 0: {error}"


def _check_twin(environment: Environment, sample: Sample) -> Iterator[str]:
    twin = environment.advance_numpy(sample.state[None], FRAMES[0], sample.params[None])
    if twin is not None and not _close(environment.solve(sample.state, FRAMES[0], sample.params), twin[0], TWIN):
        yield "advance and advance_numpy disagree: they must be two forms of one scheme."


def _check_symmetries(environment: Environment, sample: Sample) -> Iterator[str]:
    spec = environment.spec
    later = environment.solve(sample.state, FRAMES[0], sample.params)
    for symmetry in environment.symmetries:
        turned = symmetry.apply_params(spec, sample.params)
        moved = environment.solve(symmetry.apply(spec, sample.state), FRAMES[0], turned)
        if not _close(moved, symmetry.apply(spec, later), SYMMETRIC):
            yield f"The symmetry {symmetry.name} is declared, but it does not carry solutions to solutions."


def _check_objects(environment: Environment, sample: Sample) -> Iterator[str]:
    """Objects have no order: solving must commute with their exchange, and a set of any size must be solved."""
    spec = environment.spec
    if not spec.objects:
        return
    order = np.arange(spec.grid[0])[::-1]
    later = environment.solve(sample.state, FRAMES[0], sample.params)
    if not _close(environment.solve(sample.state[:, order], FRAMES[0], sample.params), later[:, order], SYMMETRIC):
        yield "Objects that are listed in another order move differently: what sets them apart belongs in their channels."
    if environment.offers("grid"):
        more = environment.resized((spec.grid[0] + 1,))
        start = more.initial("test", 0)
        more.solve(start.state, 1, start.params)


def _check_conserved(environment: Environment, sample: Sample) -> Iterator[str]:
    for name, values in environment.conserved(sample.state[None], sample.params[None]).items():
        if len(np.atleast_1d(values)) != 1 or not np.isfinite(values).all():
            yield f"conserved()['{name}'] gives {values!r} for one state: one finite entry per state is needed."


def _check_coarser(environment: Environment, sample: Sample) -> Iterator[str]:
    """Only where the system has a field `grid`, and its grid can be halved."""
    grid = environment.spec.grid
    if not environment.spec.is_field or not environment.offers("grid") or any(cells % 2 for cells in grid):
        return
    coarse = environment.coarsened(2)
    wanted = replace(environment.spec, grid=tuple(cells // 2 for cells in grid)).shape
    if coarse.spec.shape != wanted:
        yield f"coarsened(2) has states of shape {coarse.spec.shape}; expected {wanted}: `spec` must use the field `grid`."
    else:
        start = coarse.initial("test", 0)
        coarse.solve(start.state, 1, start.params)


def _close(one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    return bool(np.abs(one - other).max() <= tolerance * max(float(np.abs(other).max()), 1e-300))
