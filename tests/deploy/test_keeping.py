"""What a model keeps of its deferred questions."""

import numpy as np
import pytest

from hybridworld.data.deferred import files_of, read_log
from hybridworld.deploy.gate import Gate
from hybridworld.errors import InvalidInput
from tests.deploy.fakes import DAMPING, told, with_scores
from tests.surrogate.flows import OSCILLATOR

SCORES = {1: np.linspace(0, 1, 101), 8: np.linspace(0, 1, 101)}


def kept(root):
    return read_log(root, OSCILLATOR)


def test_only_what_was_deferred_is_kept(tmp_path):
    model = told(SCORES).keeping(tmp_path)
    states = with_scores(np.array([0.1, 0.9, 0.5, 0.95]))
    forecast = model.predict(states, 8, {"damping": 0.3})
    model.log.flush()
    found = kept(tmp_path)
    assert np.allclose(found.pairs.states, states[[1, 3]]) and np.allclose(found.pairs.futures, forecast.state[[1, 3]])
    assert found.pairs.horizons.tolist() == [8, 8] and np.allclose(found.pairs.params, DAMPING)


def test_nothing_is_kept_unless_asked_for(tmp_path):
    model = told(SCORES)
    model.predict(with_scores(np.array([0.9])), 8, {"damping": 0.3})
    quiet = model.keeping(tmp_path)
    quiet.predict(with_scores(np.array([0.9])), 8, {"damping": 0.3}, mode=1)
    quiet.predict(with_scores(np.array([0.1])), 8, {"damping": 0.3})
    quiet.log.flush()
    assert model.log is None and not list(files_of(tmp_path))


@pytest.mark.parametrize("chained", (True, False))
def test_links_of_a_chain_belong_to_one_trajectory(tmp_path, chained):
    model, states = told(SCORES).keeping(tmp_path), with_scores(np.array([0.9, 0.95]))
    if chained:
        model.predict(states, 3 * model.longest, {"damping": 0.3}, q=0)
    else:
        list(model.rollout(states, model.longest, 3, {"damping": 0.3}, q=0))
    model.log.flush()
    found = kept(tmp_path)
    assert len(found) == 6 and len(set(found.trajectories)) == 2
    assert len({tuple(state) for state in found.pairs.states}) == 6  # though each link begins elsewhere


def test_a_gate_keeps_what_its_model_keeps(tmp_path):
    model = told(SCORES).keeping(tmp_path)
    gate = Gate(model, audit=1.0)
    gate.predict(with_scores(np.array([0.1, 0.9])), np.array([1.0, 8.0]), {"damping": 0.3})
    model.log.flush()
    assert kept(tmp_path).pairs.horizons.tolist() == [8]  # what was audited was not deferred


def test_the_number_of_answers_is_checked(tmp_path):
    with pytest.raises(InvalidInput, match="number of answers that are kept"):
        told(SCORES).keeping(tmp_path, 0)
