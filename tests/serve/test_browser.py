"""The page in a real browser: Chromium without a window."""

import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.serve.served import question

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


@pytest.fixture
def visit(browser, server):
    """visit(size, colours) -> the page, loaded; at the end there must have been no error in its console."""
    problems, contexts, expected = [], [], []

    def opened(size="desktop", colours="light", refusals=False):
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


def choose(page, name):
    """Another model, until its forecast is there."""
    page.select_option("#model", name)
    page.wait_for_selector(KNOWN)


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_loads_everywhere_and_nothing_sticks_out(visit, size, colours, known):
    page = visit(size, colours)
    assert page.locator("#model option").all_inner_texts()[0] == "ball3d – Ball 3D: a bouncing ball"
    assert page.locator("#model option").count() == len(known.all)
    for served in known.all[:3]:
        choose(page, served.name)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate("document.documentElement.dataset.theme") == colours
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") != colours


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


def test_map_and_true_error_share_one_scale(visit, server, known):
    """The colour of the largest of both is the end of the bar."""
    page = visit()
    choose(page, "waves")
    page.check("#truth")
    page.wait_for_selector(TRUE)
    drawn = page.evaluate(
        """async () => {
            const { errorScale, colourOf } = await import("/static/colour.js");
            const scale = errorScale([new Float64Array([0, 1, 2]), new Float64Array([5, 1, 0])]);
            return [scale.low, scale.high, colourOf(scale, 5), colourOf(scale, 0)];
        }"""
    )
    assert drawn == [0, 5, "rgb(128 0 38)", "rgb(255 255 204)"]


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
        page.get_by_role("radio", name=brush).press("Enter")
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
    assert page.locator("#signals tr").count() == 1 + len(known.find("ball3d").signals)
    page.focus("#bars")
    page.keyboard.press("ArrowRight")
    playwright.expect(page.locator("#origin")).to_contain_text("split test, seed")


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
