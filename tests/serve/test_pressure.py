"""Load, malformed requests and killed workers, small; `make pressure` is the full size."""

import os
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from hybridworld.serve.limits import Limits
from tests.serve import pressure
from tests.serve.asking import send
from tests.serve.pressure import fuzz, kill_workers, known_requests, load, memory
from tests.serve.served import running


def test_many_clients_at_once_get_the_right_answers_in_batches(server, known):
    requests = known_requests(known.find("ball3d"), 32)
    before = server.service.metrics.batch._sum.get()
    calls = sum(bucket.get() for bucket in server.service.metrics.batch._buckets)
    report = load(server.port, requests, 16, 3)
    assert report.wrong == 0 and set(report.statuses) <= {200, 503} and report.statuses[200] > 16
    rows = server.service.metrics.batch._sum.get() - before
    assert rows / (sum(bucket.get() for bucket in server.service.metrics.batch._buckets) - calls) > 1.5


def test_a_crowd_is_refused_with_503_alone(known):
    with running(known, limits=Limits(queue=2)) as small:
        report = load(small.port, known_requests(known.find("ball3d"), 8), 12, 2)
    assert report.wrong == 0 and set(report.statuses) == {200, 503}


def test_requests_that_make_no_sense_are_refused_and_nothing_breaks(server, known):
    fuzz(server.port, 80, seed=1)
    before = memory(server.port)
    report = fuzz(server.port, 400)
    assert not report.mistakes, report
    assert {400, 404, 422} <= set(report.statuses)
    assert memory(server.port) < before + 50
    assert server.service.admission.requests == 0 and server.service.admission.bytes == 0
    assert load(server.port, known_requests(known.find("ball3d"), 4), 2, 1).wrong == 0


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks for processes in /proc")
def test_killed_workers_lose_no_request(server, known):
    requests = known_requests(known.find("ball3d"), 16, modes=(2,), q=0.3)
    killed = []
    killer = threading.Thread(target=lambda: killed.append(kill_workers(os.getpid(), 4, 0.7)))
    killer.start()
    report = load(server.port, requests, 6, 6)
    killer.join()
    assert killed[0] and report.wrong == 0 and set(report.statuses) <= {200, 503}
    assert send(server.port, "GET", "/v2/health/live")[0] == 200


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks for processes in /proc")
def test_the_published_tables(server, known, monkeypatch):
    """What `make pressure` writes, from a server in this process."""
    monkeypatch.setattr(pressure, "server_process", lambda *_: nullcontext((os.getpid(), server.port)))
    size = pressure.Size(load=1.5, alone=0.6, faults=3, malformed=80, known=8)
    for part in (pressure.load_table, pressure.fuzz_table, pressure.faults_table):
        heading, rows = part(known, size)
        assert len({len(row) for row in rows}) == 1 and "\n" in heading
    swing = next(served for served in known.all if served.name == "swing")
    name, horizons, *numbers = pressure.drag(server.port, swing)
    assert (name, horizons) == ("swing", f"1 to {int(swing.model.longest)}") and all(float(each) > 0 for each in numbers[:3])


def test_a_part_that_was_measured_anew_leaves_the_others_as_they_are():
    page = pressure.with_section("", "## Load\n\nfast\n\nhere")
    page = pressure.with_section(page, "## A dragged horizon\n\n| a |\n| --- |\n\nthere")
    assert page.index("## Load") < page.index("## A dragged horizon") and page.startswith(f"# {pressure.TITLE}\n\n")
    again = pressure.with_section(page, "## Load\n\nfaster\n\nelsewhere")
    assert again == page.replace("fast\n\nhere", "faster\n\nelsewhere")
