"""Is a surrogate worth it? The peers are what they claim to be, and the verdict says what the numbers say."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import hybridworld as hw
from hybridworld.app.cli import app
from hybridworld.bench.worth import comparison
from hybridworld.bench.worth.contenders import draw_starts as draw
from hybridworld.bench.worth.contenders import interpolated, interpolation, methods_for, rival_answer
from hybridworld.bench.worth.frontier import draw_frontier
from hybridworld.bench.worth.measure import Row, deviations, measure, refined, rmse
from hybridworld.bench.worth.verdict import break_even, gain_of, generation_seconds, price, rival_of, standing, verdict
from hybridworld.data.provenance import STREAM
from hybridworld.deploy.load import find_model
from hybridworld.physics.grids import coarsen, refine
from hybridworld.surrogate.bundle import load_bundle
from tests.surrogate.flows import Oscillator, Ring

SMALL = hw.system("euler2d").resized((16, 16))


def draw_starts(environment, split, count, longest, seed=0):
    return draw(environment, split, count, [longest], seed)[0]


MINE = "from tests.surrogate.flows import Oscillator\n\nclass Mine(Oscillator):\n    pass\n"


# The contenders.


@pytest.mark.parametrize("name", ["euler2d", "oregonator"])
@pytest.mark.parametrize("factor", [2, 4, 8])
def test_the_interpolation_is_that_of_the_grids(name, factor):
    spec = hw.system(name).resized((16, 32)).spec
    coarse = np.random.default_rng(0).normal(size=(3, len(spec.channels), 16 // factor, 32 // factor))
    found = interpolated(coarse, interpolation(spec, factor))
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, refine(spec, coarse, factor), rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["euler2d", "oregonator"])
def test_a_constant_is_interpolated_exactly(name):
    spec = hw.system(name).resized((16, 16)).spec
    constant = np.full((1, len(spec.channels), 4, 4), 0.7)
    np.testing.assert_allclose(interpolated(constant, interpolation(spec, 4)), 0.7, rtol=1e-15)


def test_a_linear_field_is_interpolated_exactly_between_the_outer_cell_centres():
    x, y = np.meshgrid(*SMALL.spec.centres(), indexing="ij")
    coarse_x, coarse_y = np.meshgrid(*SMALL.coarsened(4).spec.centres(), indexing="ij")
    found = interpolated(np.broadcast_to(2 * coarse_x - 3 * coarse_y, (1, 4, 4, 4)), interpolation(SMALL.spec, 4))
    inside = (slice(None), slice(None), slice(2, -2), slice(2, -2))
    np.testing.assert_allclose(found[inside], np.broadcast_to(2 * x - 3 * y, (1, 4, 16, 16))[inside], atol=1e-14)


def test_the_coarse_solver_comes_nearer_on_a_finer_grid_and_is_the_reference_on_the_same():
    env = hw.system("euler2d").resized((64, 64))
    starts = draw_starts(env, "test", 3, 16)
    truth = env.solve(starts.states, 16, starts.params)
    errors = [
        rmse(rival_answer(env, 1 / k)(starts.states, 16, starts.params)[0], truth, deviations(truth)) for k in (1, 2, 4, 8)
    ]
    assert errors[0] < 1e-12 < errors[1] < errors[2] < errors[3]


def test_a_finer_grid_and_a_shorter_step_come_nearer_to_the_resolved_truth():
    env = hw.system("oregonator").resized((64, 64)).in_precision("float32")
    starts, known = draw(env.resolved(4), "test", 6, [8])
    assert set(known.kinds) <= {"spiral", "target", "random"} and list(known.futures) == [8]

    def error(ratio, steps):
        return rmse(
            rival_answer(env, ratio, steps)(starts.states, 8, starts.params)[0], known.futures[8], deviations(starts.states)
        )

    assert error(3, 4) < error(2, 4) < error(1, 4) < error(1, 2) < error(1, 1) < error(1, 0.5)


@pytest.mark.parametrize(("ratio", "steps", "horizon"), [(1 / 3, 1, 4), (1, 0.25, 4), (1, 0.5, 3)])
def test_what_a_system_does_not_offer_is_refused(ratio, steps, horizon):
    with pytest.raises(hw.InvalidInput):
        rival_answer(SMALL, ratio, steps)(np.ones((1, *SMALL.spec.shape)), horizon, np.zeros((1, 0)))


def test_the_truth_of_a_resolved_system_is_its_recorded_trajectory():
    env = SMALL.resolved(2)
    starts, known = draw(env, "test", 3, [2, 5], seed=1)
    for row in range(3):
        path = env.record(env.initial("test", row).state[None], env.spec.frames - 1, np.zeros((1, 0)))[0].swapaxes(0, 1)
        frame = int(np.abs(path - starts.states[row]).max(axis=(1, 2, 3)).argmin())
        for ahead, expected in ((0, starts.states[row]), (2, known.futures[2][row]), (5, known.futures[5][row])):
            np.testing.assert_allclose(path[frame + ahead], expected, rtol=1e-6, atol=1e-12)
    rows, _ = measure(env, starts, 5, methods_for(env), known=known)
    by_name = {row.method: row for row in rows}
    reference, plain = by_name["reference, 2x finer"], by_name["compiled solver, float64"]
    assert rows[0] is reference and 0 < reference.rmse < plain.rmse < by_name["no change"].rmse
    assert plain.rmse == pytest.approx(rmse(SMALL.solve(starts.states, 5), known.futures[5], deviations(starts.states)))
    assert plain.interval[0] <= plain.rmse <= plain.interval[1] and plain.p95 >= plain.rmse * 0.9
    shares = [known.kinds.count(kind) / 3 for kind in plain.by_kind]
    assert sum(share * error for share, error in zip(shares, plain.by_kind.values(), strict=True)) == pytest.approx(plain.rmse)


def test_starts_lie_on_trajectories_and_leave_room_for_the_horizon():
    env = Oscillator()
    starts = draw_starts(env, "test", 40, 20, seed=3)
    frames = np.empty(40)
    for row, (state, params) in enumerate(zip(starts.states, starts.params, strict=True)):
        path = np.stack(list(env.trajectory(env.initial("test", row).state, 32, params)))
        frames[row] = np.abs(path - state).max(axis=1).argmin()
        np.testing.assert_allclose(path[int(frames[row])], state, atol=1e-12)
    assert frames.max() <= 12 and len(set(frames)) > 5
    np.testing.assert_array_equal(starts.states, draw_starts(env, "test", 40, 20, seed=3).states)


def test_what_does_not_apply_is_not_there():
    names = {kind: [method.name for method in methods_for(env)] for kind, env in (("field", SMALL), ("vector", Oscillator()))}
    assert names["field"][:3] == ["compiled solver, float64", "NumPy twin", "no change"]
    assert len(names["field"]) == len(set(names["field"])) == 3 + 2 * (3 * 4 + 2)
    resolved = [method.name for method in methods_for(SMALL.resolved(4))]
    assert resolved[:2] == ["reference, 4x finer", "compiled solver, float64"]
    assert len(resolved) == len(set(resolved)) == 4 + 2 * (6 * 4 - 1)  # but for 3x finer, step / 4
    for one in ("float32", "step x 2", "8x coarser, step / 4", "second order, 2x coarser"):
        assert f"compiled solver, {one}" in names["field"] and f"compiled solver, {one}" in resolved
    for one in ("step / 4", "3x finer, step / 2", "second order, 2x finer, step x 2"):
        assert f"compiled solver, {one}" not in names["field"] and f"compiled solver, {one}" in resolved
    assert names["vector"] == ["solver", "no change"]
    assert "2x coarser" not in "".join(method.name for method in methods_for(SMALL.resized((15, 16))))
    assert [method.kind for method in methods_for(hw.system("ball3d"), hw.load("ball3d"))] == [
        "reference", "twin", "no change", "solver", "solver", "solver", "mode 1", "mode 2", "mode 2", "mode 2",
    ]  # fmt: skip


def test_a_model_without_calibration_has_no_mode_2():
    model = hw.load("ball3d")
    model.calibration = None
    assert [method.kind for method in methods_for(hw.system("ball3d"), model)][-1] == "mode 1"


# The measurement.


@pytest.fixture(scope="module")
def ball():
    """Rows of the model that ships, and its states."""
    env, model = hw.system("ball3d"), hw.load("ball3d")
    starts = draw_starts(env, "test", 10, 16)
    rows, left_out = measure(env, starts, 16, methods_for(env, model), model.surrogate.std.numpy())
    assert not left_out
    return rows, starts, model


def test_errors_are_those_of_the_python_interface(ball):
    rows, starts, model = ball
    env = hw.system("ball3d")
    truth, exact = env.solve(*starts_for(starts, 16)), env.exact(*starts_for(starts, 16))
    by_name = {row.method: row for row in rows}
    said = model.predict(starts.states, 16, starts.params, mode=1).state
    normalised = (said - truth) / model.surrogate.std.numpy()
    assert by_name["mode 1"].rmse == pytest.approx(np.sqrt((normalised**2).mean(axis=1)).mean())
    assert by_name["mode 1"].rmse_refined == pytest.approx(rmse(said, exact, model.surrogate.std.numpy()))
    for q in (0.5, 0.75, 0.9):
        forecast = model.predict(starts.states, 16, starts.params, q=q)
        assert by_name[f"mode 2, q = {q:g}"].deferred == forecast.used_solver.mean()
        assert by_name[f"mode 2, q = {q:g}"].rmse == pytest.approx(rmse(forecast.state, truth, model.surrogate.std.numpy()))
    assert by_name["compiled solver, float64"].rmse == 0 < by_name["compiled solver, float64"].rmse_refined
    assert by_name["NumPy twin"].rmse < 1e-10


def starts_for(starts, horizon):
    return starts.states, horizon, starts.params


def test_times_and_gains_belong_together(ball):
    rows, *_ = ball
    for row in rows:
        assert row.ms > 0 and row.ms_batched > 0
        assert row.speedup_vs_compiled == pytest.approx(rows[0].ms / row.ms)
        assert (row.warmup_s is None) == (row.kind == "twin")


def test_a_method_that_fails_is_left_out_with_its_reason():
    def fails(states, horizon, params):
        raise hw.SolverFailure("It blew up.")

    env = Oscillator()
    solver = methods_for(env)[0]
    lost = solver._replace(name="lost", kind="solver", answer=fails)
    wild = solver._replace(name="wild", kind="solver", answer=lambda states, horizon, params: (states * np.nan, None))
    rows, left_out = measure(env, draw_starts(env, "test", 4, 4), 4, [solver, lost, wild])
    assert [row.method for row in rows] == ["solver"] and rows[0].rmse_refined is None
    assert left_out == ["lost is left out at h = 4: It blew up.", "wild is left out at h = 4: its answers are not finite."]
    with pytest.raises(hw.SolverFailure, match="blew up"):
        measure(env, draw_starts(env, "test", 4, 4), 4, [lost])


def test_slow_methods_are_measured_on_fewer_states(monkeypatch):
    for budget in ("BUDGET", "PATIENCE"):
        monkeypatch.setattr(f"hybridworld.bench.worth.measure.{budget}", 0.0)
    starts = draw_starts(SMALL, "test", 3, 4)
    rows, left_out = measure(SMALL, starts, 4, methods_for(SMALL))
    assert {row.states for row in rows} == {1} and len(rows) == 31 and not left_out


def test_the_finer_solution_is_the_exact_one_or_nearer_to_a_still_finer_one():
    starts = draw_starts(SMALL, "test", 2, 4)
    quarter = SMALL.resized(tuple(4 * cells for cells in SMALL.spec.grid))
    finest = coarsen(quarter.spec, quarter.solve(refine(SMALL.spec, starts.states, 4), 4, starts.params), 4)
    near, far = (np.abs(each - finest).mean() for each in (refined(SMALL, starts, 4), SMALL.solve(*starts_for(starts, 4))))
    assert near < 0.7 * far
    ball, some = hw.system("ball3d"), draw_starts(hw.system("ball3d"), "test", 2, 4)
    np.testing.assert_array_equal(refined(ball, some, 4), ball.exact(*starts_for(some, 4)))
    assert refined(Ring(), draw_starts(Ring(), "test", 2, 4), 4) is None


def test_a_channel_that_never_changes_has_a_unit():
    states = np.stack([np.ones(5), np.arange(5.0)], axis=1)
    np.testing.assert_allclose(deviations(states), [1, np.sqrt(2)])


# The verdict.


def row(kind, ms, error, name=None, batched=None):
    return Row(name or kind, kind, name or kind, 64, ms, ms if batched is None else batched, error)


SOLVERS = [
    row("reference", 40, 0, "compiled solver, float64"),
    row("twin", 900, 1e-14, "NumPy twin"),
    row("solver", 8, 0.1, "compiled solver, 2x coarser"),
    row("solver", 1.2, 0.2, "compiled solver, 4x coarser", batched=2.4),
]


PEER = "the best solver that is at least as accurate"


@pytest.mark.parametrize(
    ("surrogate", "stands", "peer"),
    [
        (row("mode 1", 4.08, 0.21), "3.4 times slower than", "compiled solver, 4x coarser: 0.2 deviations, 1.2 ms"),
        (row("mode 1", 0.1, 0.21), "12 times faster than", "compiled solver, 4x coarser: 0.2 deviations, 1.2 ms"),
        (row("mode 1", 8.1, 0.11), "about as fast as", "compiled solver, 2x coarser: 0.1 deviations, 8 ms"),
        (row("mode 1", 4, 0.01), "10 times faster than", "compiled solver, float64: 0 deviations, 40 ms"),
        (row("mode 1", 4, 0.0), "10 times faster than", "compiled solver, float64: 0 deviations, 40 ms"),
    ],
)
def test_the_verdict_against_the_best_solver_as_accurate(surrogate, stands, peer):
    gated = row("mode 2", 0.001, 0.0, "mode 2, q = 0.5")  # is no solver, however good
    assert verdict([*SOLVERS, surrogate, gated]) == (
        f"h = 64, one state at a time: at its error ({surrogate.rmse:.2g} deviations) the surrogate ({surrogate.ms:.3g} ms) is "
        f"{stands} {PEER} ({peer})."
    )


def test_an_error_near_that_of_no_change_is_no_answer():
    idle = row("no change", 0.001, 0.5)
    fast = verdict([*SOLVERS, idle, row("mode 1", 0.1, 0.45)])
    assert fast.endswith("the surrogate's error (0.45 deviations) is no better than no change (0.5 deviations).")
    assert "12 times faster" in verdict([*SOLVERS, idle, row("mode 1", 0.1, 0.21)])
    coarse = row("solver", 0.01, 0.49, "compiled solver, 8x coarser")
    assert "8x coarser" not in verdict([*SOLVERS, idle, coarse]) and "8x coarser" in verdict([*SOLVERS, coarse])


def test_the_verdict_on_batches():
    assert verdict([*SOLVERS, row("mode 1", 100, 0.21, batched=0.2)], "ms_batched") == (
        f"h = 64, in batches: at its error (0.21 deviations) the surrogate (0.2 ms) is 12 times faster than {PEER} "
        "(compiled solver, 4x coarser: 0.2 deviations, 2.4 ms)."
    )


def test_a_surrogate_that_wins_is_told_of_the_solver_that_nearly_has_its_error():
    rows = [*SOLVERS, row("mode 1", 4, 0.19)]
    assert verdict(rows).endswith("8 ms); the compiled solver, 4x coarser (1.2 ms) has 1.1 times its error.")
    assert verdict(rows[:3] + rows[4:]).endswith("8 ms).")


def test_the_verdict_where_no_solver_is_as_accurate():
    assert verdict([*SOLVERS[2:], row("mode 1", 3, 0.05)]) == (
        "h = 64, one state at a time: no solver here is as accurate as the surrogate (0.05 deviations, 3 ms); the nearest is "
        "compiled solver, 2x coarser: 0.1 deviations, 8 ms."
    )


def test_the_verdict_without_a_surrogate():
    assert verdict(SOLVERS, "ms_batched") == (
        "h = 64, in batches: there is no surrogate to judge; one would have to beat the compiled solver, float64 (40 ms), or "
        "where an error of 0.2 deviations will do, the compiled solver, 4x coarser (2.4 ms)."
    )
    assert verdict(SOLVERS[:2]).endswith("one would have to beat the compiled solver, float64 (40 ms).")


def test_gains_are_against_solvers_of_the_same_horizon():
    fast, slow = row("mode 1", 4, 0.15), row("mode 2", 16, 0.05)
    later = [replace(each, horizon=8, ms=each.ms / 100) for each in SOLVERS]
    rows = [*later, *SOLVERS, fast, slow]
    assert rival_of(fast, rows, "ms") is SOLVERS[2] and gain_of(fast, rows, "ms") == 2
    assert rival_of(slow, rows, "ms") is SOLVERS[0] and gain_of(slow, rows, "ms") == 2.5
    assert gain_of(SOLVERS[0], rows, "ms") is None
    assert standing(fast, SOLVERS[0], "ms") == "10 times faster than"


def test_break_even():
    assert break_even(900, solver_ms=40, surrogate_ms=10) == pytest.approx(30_000)
    assert break_even(900, 10, 40) is None and break_even(900, 10, 10) is None and break_even(None, 40, 10) is None


def test_the_price_of_a_surrogate():
    spec = SMALL.spec  # 500 training trajectories of 99 steps
    rows = [*SOLVERS, row("mode 1", 4, 0.15)]
    generation = generation_seconds(spec, SOLVERS[0])
    assert generation == pytest.approx(500 * 99 * 0.040 / 64)
    found = price(spec, {"seconds": 660.0, "data": "a dataset"}, rows)
    single, batched = found["queries"]
    assert found["generation_seconds"] == generation and found["training_seconds"] == 660 and batched["how"] == "in batches"
    assert single["compiled"] == pytest.approx((660 + generation) / 0.036)
    assert single["equal_error"] == pytest.approx((660 + generation) / 0.004)
    assert price(spec, {"seconds": 660.0, "source": STREAM}, rows)["generation_seconds"] == 0
    unknown = price(spec, {}, rows)
    assert unknown["training_seconds"] is None and unknown["queries"][0]["compiled"] is None


# The picture.


LEARNED = [row("mode 1", 4, 0.15), row("mode 2", 16, 0.05)]


@pytest.mark.parametrize("rows", [SOLVERS, SOLVERS[:1], [*SOLVERS, *LEARNED, row("no change", 0.001, 0.3)]])
def test_a_picture_of_any_rows(rows, tmp_path):
    draw_frontier([*rows, *(replace(each, horizon=8, rmse_refined=0.07) for each in rows)], tmp_path / "a.png", "Title\nmore")
    with Image.open(tmp_path / "a.png") as image:
        assert image.format == "PNG" and image.width > 1500 and image.height > 1500
        assert 0.005 < (np.asarray(image.convert("L")) < 200).mean() < 0.2


# The command.


def bench(*arguments):
    """What `hybridworld bench worth` prints."""
    result = CliRunner().invoke(app, ["bench", "worth", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_json_and_markdown_of_the_model_that_ships(tmp_path):
    arguments = ["--horizon", 2, "--horizon", 4, "--count", 3, "--out", tmp_path / "docs/worth.md"]
    told = json.loads(bench("ball3d", *arguments, "--json"))
    assert (told["system"], told["split"], told["count"], told["model"]) == ("ball3d", "test", 3, "ball3d")
    assert len(told["rows"]) == 20 and [each["horizon"] for each in told["rows"]] == [2] * 10 + [4] * 10
    assert len(told["unit"]) == 9 and told["identity"]["class"] == "Ball3D"
    for each in told["rows"]:
        keys = {"method", "horizon", "ms", "ms_batched", "rmse", "rmse_refined", "speedup_vs_compiled", "deferred"}
        assert keys <= set(each)
        assert (each["deferred"] is not None) == each["method"].startswith("mode 2")
    assert len(told["verdicts"]) == 4 and all("the surrogate" in said for said in told["verdicts"])
    assert (
        told["break_even"]["training_seconds"] == load_bundle(find_model("ball3d")).provenance["seconds"]
        and len(told["break_even"]["queries"]) == 4
    )
    assert told["provenance"]["cpu"] and told["left_out"] == []
    page = (tmp_path / "docs/worth.md").read_text()
    assert all(f"- {said}" in page for said in told["verdicts"]) and "## Break-even" in page
    assert re.search(r"!\[.*\]\(worth\.png\)", page) and (tmp_path / "docs/worth.png").exists()


def test_what_was_measured_before_an_interruption_is_kept(tmp_path, monkeypatch):
    def interrupted(environment, starts, horizon, *rest):
        if horizon == 4:
            raise KeyboardInterrupt
        return measure(environment, starts, horizon, *rest)

    monkeypatch.setattr(comparison, "measure", interrupted)
    page = tmp_path / "worth.md"
    command = ["bench", "worth", "ball3d", "--horizon", "2", "--horizon", "4", "--count", "3", "--out", str(page)]
    assert CliRunner().invoke(app, command).exit_code == 130
    assert "## Horizon: 2 frames" in page.read_text() and "4 frames" not in page.read_text()
    assert page.with_suffix(".png").exists()


def test_a_system_of_the_users_own_without_a_model(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    out = bench("--system", tmp_path / "mine.py:Mine", "--horizon", 4, "--count", 3)
    assert "no surrogate to judge" in out and "Break-even" not in out
    assert (tmp_path / "out/oscillator-worth.png").exists()
    told = json.loads(bench(f"{tmp_path}/mine.py", "--horizon", 4, "--count", 3, "--json"))
    assert [each["method"] for each in told["rows"]] == ["solver", "no change"]
    assert told["break_even"] is None and told["model"] is None


def test_a_model_for_another_system_is_refused():
    with pytest.raises(hw.InvalidInput, match="does not fit"):
        bench("oregonator", "--model", "ball3d", "--count", 1)
