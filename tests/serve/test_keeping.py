"""A server that keeps what its solver answered."""

import numpy as np

from hybridworld.data.deferred import files_of, read_log
from hybridworld.serve.catalogue import Catalogue
from tests.serve.asking import infer_request, send, unpacked
from tests.serve.served import question, running, save_model
from tests.surrogate.flows import Oscillator


def test_deferred_questions_are_in_the_log_once_the_server_has_drained(tmp_path):
    path = save_model(tmp_path / "swing.safetensors", Oscillator())
    known = Catalogue([str(path)], systems=[Oscillator()], keep=tmp_path / "log", most=100)
    states, params = question(known.find("swing"), 6)
    with running(known) as server:
        answers = []
        for q in (1.0, 0.0):  # never the solver, always the solver
            body, headers = infer_request(states, [4] * 6, params, q=q)
            answers.append(unpacked(send(server.port, "POST", "/v2/models/swing/infer", body, headers))[1])
    found = read_log(tmp_path / "log" / "swing", Oscillator().spec, Oscillator().identity)
    assert np.allclose(found.pairs.states, states) and np.allclose(found.pairs.futures, answers[1]["state"], atol=1e-6)


def test_without_the_option_nothing_is_written(tmp_path):
    path = save_model(tmp_path / "swing.safetensors", Oscillator())
    known = Catalogue([str(path)], systems=[Oscillator()])
    known.model("swing").model.predict(*question(known.find("swing"))[:1], 4, {"damping": 0.3}, q=0)
    known.model("swing").close()
    assert not list(files_of(tmp_path))
