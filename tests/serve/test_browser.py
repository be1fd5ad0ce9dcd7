"""The page in a real browser: Chromium without a window."""

import base64
import io
import os
import re
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from hybridworld.figures.scenes import bodies_of
from hybridworld.serve.catalogue import Catalogue
from tests.serve.served import SYSTEMS, question, running, save_model

CHROMIUM = os.environ.get("HYBRIDWORLD_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (apt-get install chromium)")

PATIENCE = 300_000  # milliseconds: cores are shared
playwright.expect.set_options(timeout=PATIENCE)
SIZES = {"desktop": (1400, 900), "phone": (390, 844)}
KNOWN = "#panel-map[aria-label*='mean']"
TRUE = "#panel-error[aria-label*='mean']"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as found:
        started = found.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder in which bundles may appear."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def table(runs, tmp_path_factory):
    """A server of a set of objects, and of a model `raw` that is not calibrated."""
    pytest.importorskip("mujoco", reason="the package mujoco is not installed")
    raw = save_model(tmp_path_factory.mktemp("raw") / "raw.safetensors", SYSTEMS["gas"], count=0)
    with running(Catalogue(["tabletop", f"raw={raw}"], runs)) as found:
        yield found


@pytest.fixture
def visit(browser, server):
    """visit(size, colours) -> the page, loaded; at the end there must have been no error in its console."""
    problems, contexts, expected = [], [], []

    def opened(size="desktop", colours="light", refusals=False, server=server):
        expected.append("Failed to load resource" if refusals else "nothing")
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=colours, has_touch=size == "phone"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: message.type in ("error", "warning") and problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("requestfailed", lambda request: "ABORTED" in request.failure or problems.append(request.url))  # left: fine
        page.on(
            "request", lambda request: request.url.startswith((server.url, "blob:", "data:")) or problems.append(request.url)
        )
        page.goto(server.url)
        page.wait_for_selector(KNOWN)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not [problem for problem in problems if not problem.startswith(tuple(expected))]


def numbers(page):
    """Name -> value of what is known about the forecast."""
    return dict(zip(page.locator("#facts dt").all_inner_texts(), page.locator("#facts dd").all_inner_texts(), strict=True))


def pixels(page, panel):
    """What a panel shows, as bytes to compare."""
    return page.locator(f"#panel-{panel}").screenshot()


def picture(page, canvas):
    """The pixels of a canvas (height, width, 3)."""
    address = page.evaluate("id => document.getElementById(id).toDataURL()", canvas)
    return np.array(Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))).convert("RGB"), float)


def decoded(page, colours):
    """The errors that colours (..., 3) stand for by the colour bar, and how far they are from all of its colours."""
    bar = picture(page, "bar-errors")[8, 2:-2]
    highest = float(re.search(r"from 0 to (.*)\.$", page.get_attribute("#bar-errors", "aria-label"))[1])
    away = np.abs(colours[..., None, :] - bar).max(axis=-1)
    return highest * away.argmin(axis=-1) / (len(bar) - 1), away.min(axis=-1), highest


def choose(page, name):
    """Another model, until its forecast is there."""
    page.select_option("#model", name)
    page.wait_for_selector(KNOWN)


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_loads_everywhere_and_nothing_sticks_out(visit, size, colours, known, tmp_path):
    page = visit(size, colours)
    assert page.locator("#model option").all_inner_texts()[0] == "ball3d – Ball 3D: a bouncing ball"
    assert page.locator("#model option").count() == len(known.all)
    for served in known.all[:3]:
        choose(page, served.name)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert size == "desktop" or 0 < below(page, "#draw", "#panel-input") < 120  # brushes stand where they draw
        page.screenshot(path=tmp_path / f"{served.name}-{size}-{colours}.png", full_page=True)
    assert page.evaluate("document.documentElement.dataset.theme") == colours
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") != colours


def below(page, one, other):
    """How many pixels one ends above the other."""
    upper, lower = (page.locator(each).bounding_box() for each in (one, other))
    return lower["y"] - upper["y"] - upper["height"]


def test_it_waits_for_a_server_that_is_starting(browser, server, monkeypatch):
    monkeypatch.setattr(server.service, "warm", False)
    page = browser.new_page()
    page.goto(server.url)
    page.wait_for_selector("#status:not(.error):has-text('is starting')", timeout=PATIENCE)
    assert not page.is_visible("main")
    monkeypatch.setattr(server.service, "warm", True)
    page.wait_for_selector(KNOWN, timeout=PATIENCE)
    assert page.inner_text("#status") == ""
    page.close()


def test_a_dragged_horizon_moves_the_panels(visit):
    page = visit()
    page.wait_for_selector("#facts dt >> nth=2")
    before, score = pixels(page, "prediction"), numbers(page)["Score"]
    page.focus("#horizon")
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector("#panel-prediction[aria-label*='28 frames']")
    playwright.expect(page.locator("#facts dd >> nth=1")).not_to_have_text(score)
    assert page.input_value("#horizon-number") == "28"
    assert pixels(page, "prediction") != before


def test_the_horizon_is_dragged_with_a_pointer(visit):
    page = visit()
    box = page.locator("#horizon").bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.25 * box["width"], height)
    page.mouse.down()
    for share in (0.4, 0.6, 0.8):
        page.mouse.move(box["x"] + share * box["width"], height)
    page.mouse.up()
    frames = int(page.input_value("#horizon-number"))
    assert frames > 16
    page.wait_for_selector(f"#panel-prediction[aria-label*='{frames} frames']")


@pytest.mark.parametrize("name", ["gas", "waves", "ring", "swing", "ball3d"])
def test_every_kind_of_state_has_its_five_panels(visit, name, known):
    page = visit()
    choose(page, name)
    empty = pixels(page, "truth")
    page.check("#truth")
    page.wait_for_selector(TRUE)
    assert pixels(page, "truth") != empty
    told = numbers(page)
    assert {"Surrogate and error map", "Solver", "Score", "Error bound", "True error"} <= set(told)
    sample = known.find(name).system.initial("test", 0)
    frames = int(page.input_value("#horizon-number"))
    model = known.find(name).model
    forecast = model.predict(sample.state, frames, sample.params, q=1)
    truth = model.system.solve(sample.state, frames, sample.params)
    assert float(told["Score"].split()[0]) == pytest.approx(float(forecast.score), rel=0.01)
    assert float(told["True error"].split()[0]) == pytest.approx(
        float(model.errors(forecast.state[None], truth[None])[0]), rel=0.01
    )


def test_map_and_true_error_share_one_scale(visit, known):
    """By the one colour bar, both panels show the numbers that they stand for."""
    page = visit()
    choose(page, "waves")
    page.check("#truth")
    page.wait_for_selector(TRUE)
    model, sample = known.find("waves").model, known.find("waves").system.initial("test", 0)
    frames = int(page.input_value("#horizon-number"))
    forecast = model.predict(sample.state, frames, sample.params, q=1)
    away = (forecast.state - model.system.solve(sample.state, frames, sample.params)).reshape(2, -1)
    error = np.linalg.norm(away / model.surrogate.std.numpy().reshape(2, 1), axis=0).reshape(16, 16)
    for panel, expected in (("map", forecast.error_map), ("error", error)):
        shown = picture(page, f"panel-{panel}")
        rows, columns = ((np.arange(16) + 0.5) / 16 * size for size in shown.shape[:2])
        cells = shown[rows.astype(int)[::-1]][:, columns.astype(int)].swapaxes(0, 1)  # x first, y upwards
        values, off, highest = decoded(page, cells)
        assert off.max() <= 4
        np.testing.assert_allclose(values, np.minimum(expected, highest), atol=0.015 * highest)


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_set_of_objects_is_seen_from_above(visit, table, size, colours, tmp_path):
    """Each object is where it is predicted, in the colour of its error."""
    page = visit(size, colours, server=table)
    page.check("#truth")
    page.wait_for_selector(TRUE)
    page.screenshot(path=tmp_path / f"tabletop-{size}-{colours}.png", full_page=True)
    assert "7 objects," in page.inner_text("#about") and "cells" not in page.inner_text("#about")
    assert not page.is_visible("#field-choice") and not page.is_visible("#bar-states")
    model = table.service.catalogue.find("tabletop").model
    sample, frames = model.system.initial("test", 0), int(page.input_value("#horizon-number"))
    forecast = model.predict(sample.state, frames, sample.params, q=1)
    away = (forecast.state - model.system.solve(sample.state, frames, sample.params)) / model.surrogate.std.numpy()[:, None]
    bodies, x = bodies_of(model.spec, forecast.state), model.spec.axes[0]
    for panel, expected in (("map", forecast.error_map), ("error", np.linalg.norm(away, axis=0))):
        shown = picture(page, f"panel-{panel}")
        values, off, highest = decoded(page, shown)
        height, width = off.shape
        unit = 0.94 * width / (x.high - x.low)
        rows, columns = np.mgrid[:height, :width] + 0.5
        for place, extent, value in zip(bodies.places, bodies.extents, expected, strict=True):
            across, up = (columns - width / 2) / unit - place[0], (height / 2 - rows) / unit - place[1]
            here = (np.hypot(across, up) < extent[:2].min()) & (off <= 4)
            assert np.abs(values[here] - value).min() < 0.015 * highest, (panel, value)
    told = numbers(page)
    truth = model.system.solve(sample.state, frames, sample.params)
    assert float(told["True error"].split()[0]) == pytest.approx(
        float(model.errors(forecast.state[None], truth[None])[0]), rel=0.01
    )


def test_objects_are_moved_with_the_pointer_and_with_the_keyboard(visit, table):
    page = visit(server=table)
    spec, state = table.service.catalogue.find("tabletop").spec, saved_state(page)
    (x, y, _), place = spec.axes, state[:2, 3]
    box = page.locator("#panel-input").bounding_box()
    unit = 0.94 * box["width"] / (x.high - x.low)
    at = box["x"] + box["width"] / 2 + unit * place[0], box["y"] + box["height"] / 2 - unit * place[1]
    before = pixels(page, "input")
    page.mouse.move(*at)
    page.mouse.down()
    page.mouse.move(at[0] + 10, at[1] + 20, steps=3)
    page.mouse.up()
    playwright.expect(page.locator("#origin")).to_have_text("kind moved")
    moved = saved_state(page)
    np.testing.assert_allclose(moved[:2, 3] - place, [10 / unit, -20 / unit], atol=2 / unit)
    moved[:2, 3] = place
    np.testing.assert_array_equal(moved, state)
    assert pixels(page, "input") != before
    page.click("#undo")
    np.testing.assert_array_equal(saved_state(page), state)
    page.focus("#panel-input")
    page.keyboard.press("Enter")  # the object after the last one that was held
    page.keyboard.press("ArrowDown")
    assert saved_state(page)[1, 4] == pytest.approx(max(state[1, 4] - 0.02 * (x.high - x.low), y.low + state[16, 4]))


def test_objects_play_to_the_end(visit, table):
    page = visit(server=table)
    page.check("#truth")
    page.fill("#horizon-number", "60")
    page.press("#horizon-number", "Enter")
    page.wait_for_selector(TRUE)
    before = pixels(page, "map")
    page.click("#play")
    playwright.expect(page.locator("#play")).to_have_text("Play")
    assert page.input_value("#horizon-number") == "64" and pixels(page, "map") != before


def saved_state(page):
    with h5py.File(download(page, "#save-state")) as file:
        return file["state"][0]


def test_fields_are_drawn_with_a_pointer(visit, known):
    page = visit()
    choose(page, "waves")
    page.click("#blank")
    playwright.expect(page.locator("#origin")).to_have_text("kind blank")
    page.get_by_role("radio", name="paint u").click()
    before = pixels(page, "input")
    box = page.locator("#panel-input").bounding_box()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.down()
    for share in (0.3, 0.4, 0.5, 0.6):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.up()
    playwright.expect(page.locator("#origin")).to_have_text("kind drawn")
    page.mouse.move(5, 5)
    page.wait_for_selector(KNOWN)
    assert pixels(page, "input") != before
    assert page.is_enabled("#undo")
    saved = download(page, "#save-state")
    with h5py.File(saved) as file:
        u, v = file["state"][0]
    assert u.max() == pytest.approx(1.0) and v.max() == 0 and u[8, 8] > 0 and u[8, 2] == 0
    saved = download(page, "#save-forecast")
    with h5py.File(saved) as file:
        np.testing.assert_allclose(file["t0_fields/u"][0, 0], u)
        assert "score" in file["forecast"]


def test_blasts_and_quadrants_are_placed_with_the_keyboard(visit):
    page = visit()
    choose(page, "gas")
    for brush in ("quadrants SR6", "blast"):
        page.get_by_role("radio", name=brush).press(" ")
        page.focus("#panel-input")
        for _ in range(3):
            page.keyboard.press("ArrowLeft")
        before = pixels(page, "truth")
        page.keyboard.press("Enter")
        playwright.expect(page.locator("#origin")).to_have_text("kind drawn")
        assert pixels(page, "truth") == before  # the true future is computed on request alone
    with h5py.File(download(page, "#save-state")) as file:
        density, *_, energy = file["state"][0]
    assert density[0, 0] == 1.0 and density[-1, 0] == 3.0 and energy.max() > 20


def test_a_ball_is_thrown(visit):
    page = visit()
    page.get_by_role("radio", name="throw").click()
    box = page.locator("#panel-input").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.4 * box["height"], steps=3)
    page.mouse.up()
    playwright.expect(page.locator("#origin")).to_have_text("kind drawn")
    with h5py.File(download(page, "#save-state")) as file:
        state = file["state"][0]
    np.testing.assert_allclose(state[:3], [0, 0, 0.5], atol=0.02)  # the middle of the box
    assert state[5] > 0.2  # upwards
    page.get_by_text("State by numbers").click()
    page.locator("#numbers input").nth(2).fill("0.9")
    page.locator("#numbers input").nth(2).press("Tab")
    playwright.expect(page.locator("#origin")).to_have_text("kind by numbers")
    page.click("#undo")
    playwright.expect(page.locator("#origin")).to_have_text("kind drawn")


def test_the_box_turns(visit):
    page = visit()
    page.wait_for_selector("#facts dt >> nth=2")
    before = pixels(page, "prediction")
    page.focus("#panel-prediction")
    page.keyboard.press("ArrowLeft")
    assert pixels(page, "prediction") != before


def test_the_trajectory_plays_to_its_end(visit):
    page = visit()
    choose(page, "gas")
    page.check("#truth")
    page.wait_for_selector(TRUE)
    page.fill("#horizon-number", "1")
    page.press("#horizon-number", "Enter")
    page.click("#play")
    playwright.expect(page.locator("#play")).to_have_text("Play")
    assert page.input_value("#horizon-number") == "8"
    page.wait_for_selector("#panel-error[aria-label*='mean']")


def test_the_gate_moves_with_q_and_with_the_tolerance(visit, known):
    page = visit()
    page.fill("#batch-count", "24")
    page.check("#batch-truth")
    page.click("#batch-ask")
    page.wait_for_selector("#batch:not([hidden])")

    def deferred():
        return page.locator("#table td.defer").count()

    model = known.find("ball3d").model
    states, params = question(known.find("ball3d"), 24)
    for q in (0.75, 0.25, 1.0, 0.0):
        page.fill("#q", str(q))
        assert deferred() == model.predict(states, 16, params, q=q).used_solver.sum()
    assert "24 of 24 go to the solver" in page.inner_text("#summary")
    page.get_by_label("keep to an error").check()
    bounds = model.error_bounds(model.predict(states, 16, params, q=1))
    page.fill("#tolerance", "-1")
    assert deferred() == int((bounds > 10 ** float(page.input_value("#tolerance"))).sum())
    page.click("#compare")
    page.wait_for_selector("#signals table")
    signals = len(known.find("ball3d").signals)
    assert page.locator("#signals tr").count() == 1 + signals
    assert page.locator("#legend li").count() == signals + 2  # the oracle and the gate
    looks = page.locator("#legend .swatch").evaluate_all("all => all.map(one => `${one.style.color} ${one.className}`)")
    assert len(set(looks)) == signals + 2
    page.focus("#bars")
    page.keyboard.press("ArrowRight")
    playwright.expect(page.locator("#origin")).to_contain_text("split test, seed")


@pytest.mark.parametrize("late", ["**/start?*count=24", "**/thresholds?*"])
def test_an_answer_about_another_model_is_dropped(visit, late):
    page, held = visit(), []
    page.route(late, lambda route: held.append(route), times=1)
    page.fill("#batch-count", "24")
    page.click("#batch-ask")
    wait_for(page, held)
    choose(page, "gas")
    with page.expect_response(late):
        held[0].continue_()
    page.fill("#batch-count", "4")
    page.click("#batch-ask")
    page.wait_for_selector("#batch:not([hidden])")
    assert page.locator("#table tr").count() == 1 + 4
    assert page.inner_text("#status") == ""


def test_a_comparison_ends_when_another_model_is_chosen(visit):
    page, held = visit(), []
    page.fill("#batch-count", "4")
    page.check("#batch-truth")
    page.click("#batch-ask")
    page.wait_for_selector("#batch:not([hidden])")
    page.route("**/ball3d/infer", lambda route: held.append(route), times=1)
    page.click("#compare")
    wait_for(page, held)
    choose(page, "gas")
    held[0].continue_()
    playwright.expect(page.locator("#compare")).to_be_enabled()
    assert page.inner_text("#signals") == "" and page.inner_text("#status") == ""
    assert not page.is_visible("#batch")


def wait_for(page, held):
    """Until a request is held back."""
    while not held:
        page.wait_for_timeout(20)


def test_without_a_calibration_there_is_no_gate(visit, table):
    page = visit(server=table)
    choose(page, "raw")
    page.click("#batch-ask")
    page.wait_for_selector("#batch:not([hidden])")
    assert page.is_visible("#ungated") and "not calibrated" in page.inner_text("#ungated")
    assert page.is_disabled("#q") and page.is_disabled("input[name=gate] >> nth=0") and page.is_disabled("#coverage")
    assert page.inner_text("#summary") == "All 8 answers are the surrogate's."
    with h5py.File(download(page, "#save-forecast")) as file:
        assert not file["forecast/used_solver"][()].any()
    choose(page, "tabletop")
    page.fill("#batch-count", "4")
    page.click("#batch-ask")
    page.wait_for_selector("#batch:not([hidden])")
    assert page.is_enabled("#q") and not page.is_visible("#ungated")


@pytest.mark.parametrize("kind", ["share", "error"])
def test_a_downloaded_forecast_is_the_one_that_is_shown(visit, known, kind):
    """Whatever the gate of the batch says: the panels show the surrogate's answer."""
    page = visit()
    page.fill("#batch-count", "4")
    page.click("#batch-ask")
    page.wait_for_selector("#batch:not([hidden])")
    page.get_by_label(f"keep {'a share' if kind == 'share' else 'to an error'}").check()
    slider = page.locator("#q" if kind == "share" else "#tolerance")
    slider.fill(slider.get_attribute("min"))
    assert "4 of 4 go to the solver" in page.inner_text("#summary")
    model, sample = known.find("ball3d").model, known.find("ball3d").system.initial("test", 0)
    forecast = model.predict(sample.state, 16, sample.params, q=1)
    with h5py.File(download(page, "#save-forecast")) as file:
        assert not file["forecast/used_solver"][0]
        np.testing.assert_allclose(file["forecast/score"][0], forecast.score, rtol=1e-5)
        assert float(numbers(page)["Error bound"].split()[0]) == pytest.approx(file["forecast/bound"][0], rel=0.01)


def test_every_control_has_a_name_and_brushes_are_chosen_with_arrow_keys(visit):
    page = visit()
    choose(page, "waves")
    for name in ("eps", "f"):
        assert page.get_by_role("slider", name=name, exact=True).count() == 1
    page.get_by_role("radio", name="off").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("radio", name="paint u").is_checked()
    assert page.get_by_role("slider", name="radius").count() == 1
    assert "Set u along a line" in page.inner_text("#meaning")
    wrong = "all => all.filter(label => !['INPUT', 'SELECT'].includes(label.control?.tagName)).map(label => label.textContent)"
    assert page.locator("label").evaluate_all(wrong) == []


def test_a_model_that_appears_is_in_the_menu_when_it_is_opened(visit, table, runs):
    page = visit(server=table)
    before = page.input_value("#model")
    save_model(runs / "late.safetensors", SYSTEMS["waves"], count=0)
    page.focus("#model")
    page.locator("#model option", has_text="late").wait_for(state="attached")
    assert page.input_value("#model") == before and page.get_attribute("#panel-map", "aria-label").startswith("The error map")


def test_a_refusal_is_told_on_the_page(visit):
    page = visit(refusals=True)
    page.get_by_text("State by numbers").click()
    page.locator("#numbers input").first.fill("1e300")
    page.locator("#numbers input").first.press("Tab")
    page.wait_for_selector("#status.error:has-text('beyond single precision')")


def test_the_documentation_of_the_api_is_a_page_as_well(visit, server):
    page = visit()
    page.goto(f"{server.url}/docs")
    page.wait_for_selector("section >> nth=5")
    assert "/v2/models/{model}/infer" in page.inner_text("#paths")


def download(page, button):
    with page.expect_download() as waiting:
        page.click(button)
    return Path(waiting.value.path())
