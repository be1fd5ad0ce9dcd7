"""HTTP: who may ask, how much, and how it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from starlette.routing import Route

from hybridworld.errors import InvalidInput
from hybridworld.physics.ball3d import Ball3D
from hybridworld.serve.catalogue import Catalogue, Served
from hybridworld.serve.limits import Limits
from hybridworld.serve.openapi import document
from hybridworld.serve.server import Access, create_app, listening
from tests.serve.asking import infer_request, send, sentence, unpacked
from tests.serve.moody import Moody
from tests.serve.served import question, running, save_model, wait_until

TOKEN = "open sesame"


@pytest.fixture(scope="module")
def moody(tmp_path_factory):
    """A model whose solver can be told to die or to sleep."""
    folder = tmp_path_factory.mktemp("moody")
    path = save_model(folder / "moody.safetensors", Moody())
    found = Catalogue([str(path)], systems=[Moody(mark=str(folder / "mark"))])
    assert found.find("moody").system is not None
    return found


@pytest.fixture(scope="module")
def strict(moody):
    """A server with tight limits and a token."""
    limits = Limits(queue=2, body=4000, seconds=30.0, horizon=64, patience=3.0)
    with running(moody, Access(token=TOKEN), limits=limits) as found:
        yield found


def infer(server, mood=1.0, headers=None, **parameters):
    body, own = infer_request(np.array([[mood, 0.5]]), [2], np.array([[0.3]]), **parameters)
    return send(server.port, "POST", "/v2/models/moody/infer", body, own | (headers or {}))


GRANTED = {"Authorization": f"Bearer {TOKEN}"}


# Who may ask.


@pytest.mark.parametrize("given", ["", "Bearer wrong", TOKEN, "Bearer ", f"Basic {TOKEN}"])
def test_without_the_token_there_is_no_answer(strict, given):
    given = {"Authorization": given}
    for method, path in (("GET", "/v2"), ("GET", "/metrics"), ("GET", "/page/models"), ("GET", "/openapi.json")):
        status, headers, _ = send(strict.port, method, path, headers=given)
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert infer(strict, headers=given)[0] == 401


def test_with_the_token_there_is_one_and_health_and_page_need_none(strict):
    assert send(strict.port, "GET", "/v2", headers=GRANTED)[0] == 200
    assert infer(strict, headers=GRANTED)[0] == 200
    for path in ("/v2/health/live", "/v2/health/ready", "/", "/docs", "/static/main.js"):
        assert send(strict.port, "GET", path)[0] == 200


def test_beyond_this_machine_a_token_is_required():
    with pytest.raises(InvalidInput, match=r"listen on 0\.0\.0\.0, beyond this machine: set a token"):
        Access("0.0.0.0")
    with pytest.raises(InvalidInput, match="at least 8 printable"):
        Access("0.0.0.0", "short")
    Access("0.0.0.0", "long enough")


def test_other_sites_in_the_users_browser_are_kept_out(server):
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        assert send(server.port, "GET", "/v2", headers=headers)[0] == 403
    own = {"Origin": f"http://127.0.0.1:{server.port}"}
    told = send(server.port, "GET", "/v2", headers=own)
    assert told[0] == 200 and not [name for name in told[1] if name.lower().startswith("access-control")]
    assert send(server.port, "OPTIONS", "/v2/models/ball3d/infer")[0] == 405


OUTSIDE = (
    "/static/../server.py", "/static/..%2fserver.py", "/static/%2e%2e/server.py", "/static//etc/passwd", "/static/",
    "/static/server.py", "/..%2f..%2fetc/passwd",
)  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out_of_the_page(server, path):
    assert send(server.port, "GET", path)[0] == 404


def test_every_response_carries_its_security_headers(server):
    for path in ("/", "/v2", "/nowhere"):
        headers = send(server.port, "GET", path)[1]
        assert "default-src 'self'" in headers["content-security-policy"] and headers["x-content-type-options"] == "nosniff"


# How much.

HEAD = f"POST /v2/models/moody/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"


def test_too_many_bytes_are_refused_before_they_are_read(strict):
    here = socket.create_connection(("127.0.0.1", strict.port), timeout=300)
    here.sendall(f"{HEAD}Content-Length: 4001\r\n\r\n".encode())  # and no body at all
    assert b" 413 " in here.recv(1000)
    here.close()
    here = socket.create_connection(("127.0.0.1", strict.port), timeout=300)
    here.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode() + b"3e8\r\n" + b"x" * 1000 + b"\r\n")
    for _ in range(4):
        here.sendall(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
    assert b" 413 " in here.recv(1000)
    here.close()


def test_bodies_that_do_not_arrive_take_no_place_and_are_given_up_soon(strict):
    """More sockets than the queue has places announce a body and send none of it."""
    slow = [socket.create_connection(("127.0.0.1", strict.port), timeout=300) for _ in range(5)]
    for here in slow:
        here.sendall(f"{HEAD}Content-Length: 4000\r\n\r\n".encode())
    wait_until(lambda: strict.service.admission.arriving == 5)
    assert infer(strict, headers=GRANTED)[0] == 200
    for here in slow:
        told = here.recv(1000)
        assert b" 408 " in told and b"did not arrive in time" in told and b"connection: close" in told.lower()
        assert here.recv(1000) == b""  # it hangs up
        here.close()
    assert strict.service.admission.arriving == strict.service.admission.bytes == 0


def test_a_full_queue_says_when_to_come_back(strict):
    """Two requests wait for a solver that sleeps; the third is refused at once, and health is not concerned."""
    threads = [threading.Thread(target=infer, args=(strict, 7.0, GRANTED), kwargs={"q": 0}) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_until(lambda: strict.service.admission.requests == 2)
    status, headers, _ = told = infer(strict, headers=GRANTED)
    assert (status, headers["retry-after"]) == (503, "1") and "queue is full" in sentence(told)
    assert send(strict.port, "GET", "/v2/health/live")[0] == 200
    for thread in threads:
        thread.join(300)


def test_a_solver_that_never_answers_is_given_up_in_time(strict):
    told = infer(strict, 7.0, GRANTED, q=0)
    assert told[0] == 504 and "no answer in time" in sentence(told)
    wait_until(lambda: strict.service.ready)
    assert infer(strict, 1.0, GRANTED, q=0)[0] == 200


def test_a_solver_that_dies_twice_is_told(strict):
    told = infer(strict, 8.0, GRANTED, q=0)
    assert told[0] == 503 and "killed 2 times" in sentence(told) and told[1]["retry-after"]
    wait_until(lambda: strict.service.ready)
    text = send(strict.port, "GET", "/metrics", headers=GRANTED)[2].decode()
    assert float(re.search(r"^hybridworld_lost_workers_total (\S+)", text, re.M)[1]) >= 2


def test_what_a_users_solver_raises_is_the_servers_mistake(strict, caplog):
    status, _, body = infer(strict, 9.0, GRANTED, q=0)
    assert status == 500 and "log tells more" in json.loads(body)["error"]


def test_horizons_are_limited(strict):
    body, own = infer_request(np.array([[1.0, 0.5]]), [65], np.array([[0.3]]))
    told = send(strict.port, "POST", "/v2/models/moody/infer", body, own | GRANTED)
    assert told[0] == 422 and "at most 64" in sentence(told)


NOWHERE = {
    "GET /nowhere": 404, "GET /v2/": 404, "GET /v2/models/ball3d/infer": 405, "POST /v2": 405,
    "GET /v2/models/ball3d/versions/2": 404, "GET /v2/models/none/ready": 404,
}  # fmt: skip


@pytest.mark.parametrize("asked", NOWHERE)
def test_unknown_places_are_told_in_json(server, asked):
    told = send(server.port, *asked.split())
    assert told[0] == NOWHERE[asked] and sentence(told)


def test_a_compressed_body_is_refused(server):
    told = send(server.port, "POST", "/v2/models/ball3d/infer", b"\x1f\x8b", {"Content-Encoding": "gzip"})
    assert told[0] == 415


# What is told.


def test_metrics_count_what_was_answered(server, known):
    states, params = question(known.find("ring"), 4)
    unpacked(send(server.port, "POST", "/v2/models/ring/infer", *infer_request(states, [4] * 4, params, q=0.5)))
    text = send(server.port, "GET", "/metrics")[2].decode()
    for name in (
        'infer_seconds_count{mode="2",model="ring"}', 'answers_total{by="solver",model="ring"}', "queue_limit 128.0",
        'drift_alarm{model="ring"} 0.0', 'deferral_ratio{model="ring"}', "workers_alive 1.0", "batch_rows_count",
        'solver_seconds_count{system="ring"}',
    ):  # fmt: skip
        assert f"hybridworld_{name}" in text
    assert "process_resident_memory_bytes" in text


def test_the_document_knows_every_route_and_no_other(known):
    app = create_app(None)  # the routes alone
    routes = {route.path: route.methods - {"HEAD"} for route in app._app.routes if isinstance(route, Route)}
    told = {path: {verb.upper() for verb in verbs} for path, verbs in document()["paths"].items()}
    for path in ("/", "/docs", "/static/{file}", "/openapi.json"):
        routes.pop(path)
    assert told == routes


def test_the_document_refers_to_schemas_that_it_has():
    text = json.dumps(document())
    names = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert names and names <= set(document()["components"]["schemas"])


# How it ends.


def test_a_port_in_use_is_told_in_a_sentence():
    with listening("127.0.0.1", 0) as here, pytest.raises(InvalidInput, match="Choose another one with --port"):
        listening("127.0.0.1", here.getsockname()[1])


def test_while_it_starts_it_is_not_ready(moody, monkeypatch):
    """And it says so, instead of letting a request wait."""
    cue = threading.Event()
    monkeypatch.setattr("tests.serve.served.wait_until", lambda condition: None)
    with running(moody, prepare=lambda model: cue.wait(60)) as found:
        wait_until(lambda: found.server.started)
        assert send(found.port, "GET", "/v2/health/live")[0] == 200
        assert send(found.port, "GET", "/v2/health/ready")[0] == 503
        status, headers, _ = told = infer(found)
        assert status == 503 and headers["retry-after"] and "is starting" in sentence(told)
        cue.set()
        wait_until(lambda: found.service.ready)
        assert send(found.port, "GET", "/v2/health/ready")[0] == 200


def test_bundles_come_and_go_while_it_runs(tmp_path):
    with running(Catalogue([], tmp_path, [Moody()])) as found:
        assert infer(found)[0] == 404
        path = save_model(tmp_path / "moody.safetensors", Moody())
        wait_until(lambda: infer(found, mode=1)[0] == 200)
        assert found.service.solvers._costs  # it was warm before it was served
        path.unlink()
        wait_until(lambda: infer(found)[0] == 404)
        assert found.service.ready


def test_a_bundle_that_was_named_is_not_served_once_more_for_being_in_runs(tmp_path):
    path = save_model(tmp_path / "moody.safetensors", Moody())
    found = Catalogue([f"mine={path}"], tmp_path, [Moody()])
    assert [served.name for served in found.all if served.model] == ["mine"]


def test_without_its_cluster_it_is_not_ready_and_the_surrogate_still_answers(moody, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("tests.serve.served.wait_until", lambda condition: None)
    with running(moody, dask="tcp://127.0.0.1:9") as found:  # nobody listens there
        wait_until(lambda: found.server.started and found.service.warm)
        assert send(found.port, "GET", "/v2/health/ready")[0] == 503
        status, headers, _ = told = infer(found, q=0)
        assert status == 503 and headers["retry-after"] and "No dask scheduler answers" in sentence(told)
        assert infer(found, mode=1)[0] == 200


def test_it_drains_when_it_is_told_to_stop(tmp_path):
    """SIGTERM while a request is at work: that one is answered, and the process and its workers end with code 0."""
    code = "from hybridworld.app.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--no-browser", "--port", "0", "--workers", "1", "--runs", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        port = int(re.search(r":(\d+)/", process.stdout.readline())[1])
        wait_until(lambda: ready(port))
        served = Served("ball3d", None, Ball3D())
        states, params = question(served, 1)
        body = infer_request(np.repeat(states, 2000, 0), np.full(2000, 64.0), np.repeat(params, 2000, 0))
        answer = []
        thread = threading.Thread(target=lambda: answer.append(send(port, "POST", "/v2/models/ball3d/infer", *body)))
        thread.start()
        wait_until(lambda: "queue_requests 1.0" in send(port, "GET", "/metrics")[2].decode() or answer)
        process.send_signal(signal.SIGTERM)
        thread.join(300)
        assert unpacked(answer[0])[1]["state"].shape == (2000, 9)
        assert process.wait(300) == 0
    finally:
        process.kill()


def ready(port):
    try:
        return send(port, "GET", "/v2/health/ready")[0] == 200
    except OSError:
        return False


def test_a_model_that_cannot_answer_is_not_called_ready(moody, monkeypatch):
    from hybridworld.serve.service import Service

    def fails(self, served):
        raise InvalidInput("It has no solver.")

    monkeypatch.setattr(Service, "warm_up", fails)
    monkeypatch.setattr("tests.serve.served.wait_until", lambda condition: None)
    with running(moody) as found:
        wait_until(lambda: found.server.started and found.service.warm)
        assert send(found.port, "GET", "/v2/health/ready")[0] == send(found.port, "GET", "/v2/models/moody/ready")[0] == 503
        assert found.service.broken == {"moody": "It has no solver."}
