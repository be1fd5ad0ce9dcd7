"""Learning curves: drawn for any number of epochs and horizons, and their names never touch."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hybridworld.figures.learning_curves import apart, draw_curves


def records(epochs, horizons=(1, 2, 4, 8, 16, 32, 64)):
    """As a training notes them, with an error that falls."""
    return [
        {
            "epoch": epoch,
            "loss": 0.5 / epoch,
            "mse": 0.7 / epoch,
            "horizons": {h: {"mse": 0.1 * h / epoch, "no_change": {"mse": 0.2 * h}} for h in horizons},
        }
        for epoch in range(1, epochs + 1)
    ]


@pytest.mark.parametrize("history", [records(80), records(3), records(1), records(2, horizons=(64,))])
def test_a_page_for_any_training(history, tmp_path):
    draw_curves(history, tmp_path / "curve.png", "ball3d\n3 epochs")
    with Image.open(tmp_path / "curve.png") as image:
        assert image.format == "PNG"
        assert image.width > 2 * image.height > 1000
        pixels = np.asarray(image.convert("L"))
    assert 0.005 < (pixels < 250).mean() < 0.2


def test_the_records_may_come_from_the_file(tmp_path):
    lines = [json.loads(json.dumps(record)) for record in records(3)]
    draw_curves(lines, tmp_path / "curve.png", "ball3d")
    assert (tmp_path / "curve.png").stat().st_size > 10_000


def test_a_state_that_never_changes_and_a_perfect_answer_are_drawn(tmp_path):
    history = records(2)
    history[-1]["horizons"][1] = {"mse": 0.0, "no_change": {"mse": 0.0}}
    draw_curves(history, tmp_path / "curve.png", "ball3d")
    assert (tmp_path / "curve.png").exists()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_names_are_moved_apart_in_their_order(heights):
    moved = apart(np.array(heights), 0.1)
    order = np.argsort(heights, kind="stable")
    assert (np.diff(moved[order]) > 0.1 - 1e-9).all()
    assert np.mean(moved) == pytest.approx(np.mean(heights))


def test_names_that_do_not_touch_stay():
    assert apart(np.array([0.9, 0.1, 0.5]), 0.1).tolist() == [0.9, 0.1, 0.5]
