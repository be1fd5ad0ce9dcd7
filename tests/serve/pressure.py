"""A server under pressure: load with answers that are known, requests that make no sense, and workers that are killed.

The tests run it small, `make pressure` at full size: 64 clients for a minute, 20,000 malformed requests. Each part that was
measured replaces its section of docs/benchmarks/serving.md:

    python -m tests.serve.pressure [load] [fuzz] [faults] [drag] [--tenth] [--out FILE]

By default all of them; `--tenth` asks for a tenth of everything and, without a file, only prints.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from hybridworld.app.tables import in_markdown
from hybridworld.data.provenance import footnote
from hybridworld.deploy.load import shipped
from hybridworld.serve.catalogue import Catalogue
from tests.serve.asking import HEADER, infer_request, send, unpacked
from tests.serve.served import wait_until

try:
    from uvloop import run
except ImportError:  # Windows has none
    from asyncio import run

# A client that is light on the cores that it shares with the server: all of them are one process with one thread.

LENGTH, CLOSES = re.compile(rb"(?i)\r\ncontent-length: *(\d+)"), re.compile(rb"(?i)\r\nconnection: *close")


@dataclass
class Told:
    status: int
    head: bytes
    body: bytes

    @cached_property
    def headers(self):
        return dict(re.findall(r"(?m)^([\w-]+): (.*?)\r?$", self.head.decode("latin-1").lower()))


class Connection:
    """HTTP/1.1 with keep-alive; it connects again when the server has closed."""

    def __init__(self, port):
        self._port, self._streams = port, None

    async def send(self, raw):
        """Send these bytes; the response, or None where the server hung up without one."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        try:
            writer.write(raw)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            status, length = int(head.split(b" ", 2)[1]), LENGTH.search(head)
            body = await reader.readexactly(int(length[1]) if length else 0)
        except (asyncio.IncompleteReadError, ConnectionError, ValueError, IndexError):
            self.close()
            return None
        if CLOSES.search(head):
            self.close()
        return Told(status, head, body)

    def close(self):
        if self._streams:
            self._streams[1].close()
        self._streams = None


def raw_request(method, path, body=b"", headers=None):
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body


# Load.


@dataclass
class Known:
    """A request, and what `HybridModel.predict` answers."""

    raw: bytes
    state: np.ndarray
    used_solver: np.ndarray
    close: bool  # a score next to its threshold may go either way: batches round differently


def known_requests(served, count=64, modes=(1, 2), q=0.75, seed=0):
    """Requests of one state each, at mixed horizons and modes, with their answers."""
    rng, found = np.random.default_rng(seed), []
    for number in range(count):
        sample = served.system.initial("test", number)
        horizon, mode = int(rng.integers(1, int(served.model.longest) + 1)), int(rng.choice(modes))
        gate = {"q": q} if mode == 2 else {}
        forecast = served.model.predict(sample.state[None], horizon, sample.params[None], mode=mode, **gate)
        body, headers = infer_request(sample.state[None], [horizon], sample.params[None], mode=mode, **gate)
        near = mode == 2 and np.isfinite(forecast.threshold) and abs(forecast.score[0] / forecast.threshold - 1) < 1e-4
        raw = raw_request("POST", f"/v2/models/{served.name}/infer", body, headers)
        found.append(Known(raw, forecast.state, forecast.used_solver, bool(near)))
    return found


@dataclass
class Report:
    """What a run of clients has seen."""

    seconds: float = 0.0
    statuses: Counter = field(default_factory=Counter)
    wrong: int = 0
    latencies: list = field(default_factory=list)
    processor: float = np.nan
    """Seconds of the server's processor per answer, where they were counted."""
    batch: float = np.nan
    """States per call of the network, likewise."""

    @property
    def per_second(self):
        return self.statuses[200] / self.seconds

    def __str__(self):
        times = np.percentile(self.latencies, (50, 95, 99)) * 1e3 if self.latencies else (np.nan,) * 3
        told = ", ".join(f"{status}: {count}" for status, count in sorted(self.statuses.items(), key=str))
        quantiles = ", ".join(f"{time:.1f}" for time in times)
        rate = f"{self.per_second:.0f} answers/s over {self.seconds:.0f} s"
        return f"{rate}; {told}; {self.wrong} wrong; p50, p95, p99 {quantiles} ms"

    @property
    def mistakes(self):
        """Statuses that no request may cause, whatever it is."""
        return [status for status in self.statuses if isinstance(status, int) and status >= 500 and status not in (503, 504)]


def is_right(known, told):
    _, tensors = unpacked((told.status, told.headers, told.body))
    if known.close:
        return True
    same = np.array_equal(tensors["used_solver"], known.used_solver)
    return same and np.allclose(tensors["state"], known.state, rtol=1e-5, atol=1e-5)


def load(port, requests, clients, seconds):
    """So many clients ask one after the other, each as fast as it is answered; answers are compared when all is done."""
    report, answers = Report(), []

    async def client(number):
        here, k = Connection(port), number
        while time.monotonic() < end:
            began = time.monotonic()
            told = await here.send(requests[k % len(requests)].raw)
            report.statuses["lost" if told is None else told.status] += 1
            if told is not None and told.status == 200:
                report.latencies.append(time.monotonic() - began)
                answers.append((requests[k % len(requests)], told))
            elif told is not None:
                await asyncio.sleep(0.05)
            k += clients
        here.close()

    async def all_of_them():
        await asyncio.gather(*(client(number) for number in range(clients)))

    began = time.monotonic()
    end = began + seconds
    run(all_of_them())
    report.seconds = time.monotonic() - began
    report.wrong = sum(not is_right(*answer) for answer in answers)
    return report


# Malformed requests.

JUNK = [
    None, True, False, 0, -1, 1, 2, 1.5, 1e308, 10**30, -(2**63), "", "x", "NaN", "é\u0000", [], {}, [[]], [None], [[1], 2],
    {"a": {}}, "state", "FP64", "BOOL", ["1"], [1e308] * 9, [True] * 9, "9" * 300,
]  # fmt: skip
START = "/page/models/ball3d/start"
PATHS = [
    "/", "//", "*", "/%00", "/docs", "/metrics", "/openapi.json", "/static/x.js", "/static/../../etc/passwd",
    "/v2", "/v2/", "/v2/health/ready", "/v2/models/ball3d", "/v2/models/ball3d/infer", "/v2/models/nobody/infer",
    "/v2/models/ball3d/versions/9/infer", "/v2/models/%2e%2e/infer", "/v2/models/ball3d%00/infer", "/page/models",
    f"{START}?split=test&seed=1", f"{START}?seed=-1", f"{START}?count=1e9", f"{START}?seed={'9' * 20}", f"{START}?split=%ff",
    "/page/models/ball3d/thresholds?horizon=", "/page/models/ball3d/thresholds?horizon=0x10", "/page/models/ball3d/draw",
    "/page/models/ball3d/future", "/page/models/ball3d/download?what=..",
]  # fmt: skip
METHODS = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "get", "FOO"]


def valid(rng):
    """The parts of a request that makes sense: path, JSON content, bytes behind it."""
    state = [0.1, 0.0, 0.5, 1.0, 0.5, 2.0, 0.0, 0.0, 0.0]
    tensors = {"state": [state], "horizon": [[4]], "params": [[0.8, -9.8]]}
    inputs = [{"name": name, "shape": list(np.shape(data)), "datatype": "FP64", "data": data} for name, data in tensors.items()]
    path = rng.choice(["/v2/models/ball3d/infer"] * 4 + ["/page/models/ball3d/draw", "/page/models/ball3d/future"])
    if path.endswith("infer"):
        parameters = {"mode": 2, "q": 0.75, "coverage": 0.9, "signal": "step-doubling", "binary_data_output": False}
        content = {"id": "a", "parameters": parameters, "inputs": inputs, "outputs": [{"name": "state"}]}
    elif path.endswith("draw"):
        content = {"brush": "throw", "points": [[0, 0, 0.5], [0.1, 0, 0.6]], "settings": {"speed": 4.0}, "inputs": inputs[:1]}
    else:
        content = {"frames": 4, "every": 2, "inputs": [inputs[0], inputs[2]]}
    tail = b""
    if rng.random() < 0.5:
        for each in content["inputs"]:
            piece = np.array(each.pop("data"), float).tobytes()
            each["parameters"] = {"binary_data_size": len(piece)}
            tail += piece
    return path, content, tail


def places(value, found=()):
    """Every (container, key) of nested lists and dicts."""
    found = list(found)
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found.append((value, key))
        found += places(value[key])
    return found


def malformed(rng):
    """A request that is broken somewhere, as bytes: in its JSON, in its bytes, in its headers, or all over."""
    kind = rng.random()
    if kind < 0.1:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 300))) + b"\r\n\r\n"
    if kind < 0.25:
        body = bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
        return raw_request(rng.choice(METHODS), rng.choice(PATHS), body, {HEADER: rng.choice(["0", "5", "-1", "x", "999"])})
    path, content, tail = valid(rng)
    for _ in range(rng.randrange(1, 4)):
        (container, key), junk = rng.choice(places(content)), deepcopy(rng.choice(JUNK))
        try:
            if rng.random() < 0.25:
                del container[key]
            elif rng.random() < 0.15 and isinstance(container, dict):
                container[rng.choice(["extra", "data", "binary_data_size", "shared_memory_region"])] = junk
            else:
                container[key] = junk
        except (KeyError, IndexError):
            pass
    text = json.dumps(content).encode()
    if rng.random() < 0.15:
        text = text.replace(b"0.5", rng.choice([b"NaN", b"Infinity", b"1e999", b"0.5.5", b"[", b'"']), 1)
    if rng.random() < 0.2:
        cut = rng.randrange(len(text) + 1)
        text = text[:cut] + bytes([rng.randrange(256)]) * rng.randrange(3) + text[cut + rng.randrange(3) :]
    if tail and rng.random() < 0.4:
        wild = np.full(len(tail) // 8, rng.choice([np.nan, np.inf, 1e300])).tobytes()
        tail = rng.choice([tail[:-1], tail + b"x", tail[8:], b"", wild])
    length = str(len(text)) if tail or rng.random() < 0.9 else rng.choice(["-3", "1e3", str(len(text) + 1), "", "²"])
    headers = {HEADER: length} | ({"Content-Encoding": "gzip"} if rng.random() < 0.02 else {})
    raw = raw_request("POST", path, text + tail, headers)
    if rng.random() < 0.04:
        other = rng.choice([b"Content-Length: -", b"Content-Length: 9", b"Transfer-Encoding: chunked\r\nX: "])
        return raw.replace(b"Content-Length: ", other, 1)
    return raw


def fuzz(port, count, seed=0, clients=8):
    """Statuses of so many malformed requests; `None` where the server hung up, which is its right with what is no HTTP."""
    report = Report()

    async def client(number):
        rng, here = random.Random(f"{seed} {number}"), Connection(port)
        for _ in range(count // clients):
            try:
                async with asyncio.timeout(1.0 if rng.random() < 0.98 else 0.05):  # some announce more than they send
                    told = await here.send(malformed(rng))
            except TimeoutError:
                told = None
                here.close()
            report.statuses["hung up" if told is None else told.status] += 1
            if told is None or told.status >= 400 or told.headers.get("content-type") is None:
                here.close()  # whatever is left of that request must not become part of the next
        here.close()

    async def all_of_them():
        await asyncio.gather(*(client(number) for number in range(clients)))

    began = time.monotonic()
    run(all_of_them())
    report.seconds = time.monotonic() - began
    return report


# Faults.


def children(pid):
    """Worker processes of a server: its children that run `spawn_main`."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and "spawn_main" in (each / "cmdline").read_text():
                found.append(int(each.name))
        except (OSError, ValueError, IndexError):
            continue
    return found


def kill_workers(pid, seconds, every):
    """SIGKILL one of the workers of that process again and again; how often."""
    kills, end, rng = 0, time.monotonic() + seconds, random.Random(0)
    while time.monotonic() < end:
        time.sleep(every)
        found = children(pid)
        if found:
            os.kill(rng.choice(found), signal.SIGKILL)
            kills += 1
    return kills


# Full size.


@contextmanager
def server_process(*options):
    """`hybridworld serve` as a process of its own: its process id and its port."""
    code = "from hybridworld.app.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--no-browser", "--port", "0", "--runs", "nowhere", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+)/", process.stdout.readline())[1])
        wait_until(lambda: send(port, "GET", "/v2/health/ready")[0] == 200, 1200)
        yield process.pid, port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def metric(port, name):
    """One number of /metrics."""
    text = send(port, "GET", "/metrics")[2].decode()
    return float(re.search(rf"(?m)^{re.escape(name)} (\S+)", text)[1])


def memory(port):
    """Megabytes that the server holds."""
    return metric(port, "process_resident_memory_bytes") / 1e6


PAGE = Path("docs/benchmarks/serving.md")
TITLE = "The server under pressure"
HOW = (
    "Made by `make pressure`, or part by part by `python -m tests.serve.pressure PART` (load, fuzz, faults, drag). The server "
    "is a process of its own, with Ball 3D or, for the dragged horizon, all models that ship; all clients together are one "
    "more process, and share its cores. What a load average has beyond that of these two is other work, which makes every time "
    "longer. Processor time is that of the server's process alone: it does not count the wait for a core, but neighbours on "
    "the core make it longer as well. Any wrong answer would have ended the run, and so would any error but 503 (and 504 where "
    "requests are malformed)."
)


@dataclass(frozen=True)
class Size:
    """How much of everything: seconds of 64 clients, of one client, of faults; malformed requests; requests that are known."""

    load: float = 60
    alone: float = 15
    faults: float = 30
    malformed: int = 20_000
    known: int = 256


TENTH = Size(6, 3, 6, 2_000, 64)


def main():
    """Measure parts, print them, and put them into the page."""
    parts = {"load": load_table, "fuzz": fuzz_table, "faults": faults_table, "drag": drag_table}
    parser = argparse.ArgumentParser(prog="python -m tests.serve.pressure")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(parts)}; by default all")
    parser.add_argument("--tenth", action="store_true", help="a tenth of everything; the page stays as it is")
    parser.add_argument("--out", type=Path, help=f"the page (default: {PAGE})")
    asked = parser.parse_args()
    unknown = set(asked.parts) - set(parts)
    if unknown:
        parser.error(f"there is no part {min(unknown)!r}: choose {', '.join(parts)}")
    known, size, out = Catalogue(shipped()), TENTH if asked.tenth else Size(), asked.out or (None if asked.tenth else PAGE)
    for name in asked.parts or parts:
        before, began = os.getloadavg()[0], footnote()
        heading, rows = parts[name](known, size)
        busy = f"Load average: {before:.1f} before, {os.getloadavg()[0]:.1f} after; niceness {os.nice(0)}."
        section = f"{in_markdown(f'{heading} {busy}', rows)}\n\n{began}"
        print(f"\n{section}", flush=True)
        if out:
            out.write_text(with_section(out.read_text() if out.exists() else "", section))


def with_section(page, section):
    """The page with that section in place of the one with the same heading, or behind the others."""
    _, *others = re.split(r"(?m)^(?=## )", page)
    heading = section.partition("\n")[0]
    places = [each.partition("\n")[0] for each in others]
    at = places.index(heading) if heading in places else len(others)
    others[at : at + 1] = [section]
    return "\n\n".join([f"# {TITLE}", HOW, *(each.strip() for each in others)]) + "\n"


def load_table(known, size):
    """Ball 3D, one request at a time (before and after) against 64 clients."""
    requests = known_requests(known.find("ball3d"), size.known)
    with server_process("ball3d") as (_, port):
        load(port, requests, 1, size.alone / 3)
        first = load_in_batches(port, requests, 1, size.alone)
        load(port, requests, 64, size.alone / 3)
        before = memory(port)
        many = load_in_batches(port, requests, 64, size.load)
        after = memory(port)
        last = load_in_batches(port, requests, 1, size.alone)
    for report in (first, many, last):
        assert not report.wrong and set(report.statuses) <= {200, 503}, report
    gain = 2 * many.per_second / (first.per_second + last.per_second)
    saved = (first.processor + last.processor) / (2 * many.processor)
    rows = [["clients", "seconds", "answers", "per second", "503", "wrong", "p50 ms", "p95 ms", "p99 ms", "CPU ms", "batch"]]
    for clients, report in (("1, before", first), ("64", many), ("1, after", last)):
        times = [f"{1e3 * time:.1f}" for time in np.percentile(report.latencies, (50, 95, 99))]
        told, refused = (f"{report.statuses[status]:,}" for status in (200, 503))
        server = [f"{1e3 * report.processor:.2f}", f"{report.batch:.1f}"]
        rows.append(
            [clients, f"{report.seconds:.0f}", told, f"{report.per_second:.0f}", refused, str(report.wrong), *times, *server]
        )
    text = (
        "Ball 3D, requests of one state at mixed horizons and modes (q = 0.75), every answer compared with "
        f"`HybridModel.predict`. 64 clients get {gain:.1f} times the answers per second of one client that asks one request at "
        f"a time, and an answer takes the server 1/{saved:.1f} of the processor time. The last two columns: processor time of "
        "the server per answer, and states per call of the network. "
        f"Memory of the server: {before:.0f} MB after the first seconds of 64 clients, {after:.0f} MB at their end."
    )
    return f"Load\n{text}", rows


def load_in_batches(port, requests, clients, seconds):
    """The report of `load`, with what it took the server per answer."""
    names = ("process_cpu_seconds_total", "hybridworld_batch_rows_sum", "hybridworld_batch_rows_count")
    before = [metric(port, name) for name in names]
    report = load(port, requests, clients, seconds)
    processor, states, calls = (metric(port, name) - then for name, then in zip(names, before, strict=True))
    report.processor, report.batch = processor / report.statuses[200], states / calls
    return report


def fuzz_table(known, size):
    """Malformed requests, schema-aware and raw bytes."""
    with server_process("ball3d") as (_, port):
        fuzz(port, size.malformed // 10, seed=1)
        before = memory(port)
        report = fuzz(port, size.malformed)
        after = memory(port)
        assert not report.mistakes, report
        good = load(port, known_requests(known.find("ball3d"), 32), 4, 5)
        assert not good.wrong and set(good.statuses) == {200}, good
    text = (
        f"{size.malformed:,} requests in {report.seconds:.0f} s, from 8 clients: broken in their JSON, their bytes or their "
        "headers, or random bytes altogether; some are broken in ways that leave them valid (200). The server hangs up on what "
        f"is no HTTP, and clients on what announces more than it sends. Memory: {before:.0f} MB after a tenth as many others, "
        f"{after:.0f} MB after these. Afterwards {good.statuses[200]} good requests were answered rightly."
    )
    statuses = sorted(report.statuses.items(), key=lambda item: str(item[0]))
    return f"Malformed requests\n{text}", [[str(status) for status, _ in statuses], [f"{count:,}" for _, count in statuses]]


def faults_table(known, size):
    """SIGKILL of solver processes while requests need them."""
    with server_process("ball3d", "--workers", "2") as (pid, port):
        gated, killed = known_requests(known.find("ball3d"), size.known, modes=(2,), q=0.5), []
        killer = threading.Thread(target=lambda: killed.append(kill_workers(pid, size.faults, min(2.0, size.faults / 4))))
        killer.start()
        report = load(port, gated, 16, size.faults)
        killer.join()
    assert killed[0] and not report.wrong and set(report.statuses) <= {200, 503}, report
    text = (
        "16 clients whose requests go to the solver half of the time (q = 0.5), two solver processes, one of which is killed "
        "with SIGKILL every two seconds. Lost: requests without any answer."
    )
    rows = [["seconds", "killed", "answers", "503", "wrong", "lost"]]
    counts = [f"{report.statuses[status]:,}" for status in (200, 503)]
    return f"Killed solver processes\n{text}", [
        *rows, [f"{report.seconds:.0f}", str(killed[0]), *counts, str(report.wrong), str(report.statuses["lost"])]
    ]  # fmt: skip


def drag_table(known, _size):
    """Server time of a dragged horizon for every model that ships."""
    with server_process() as (_, port):
        rows = [drag(port, served) for served in known.all if served.model is not None]
    text = (
        "Milliseconds that the server takes for the surrogate's panels of one state (prediction, error map, score, bound), at "
        "every horizon in turn, as the page asks for them; the last column is processor time per horizon, which does not "
        "depend on what else runs."
    )
    return f"A dragged horizon\n{text}", [["model", "horizons", "p50", "p95", "longest", "processor"], *rows]


def drag(port, served):
    """The row of one model."""
    sample, times = served.system.initial("test", 0), []
    name = f'hybridworld_infer_seconds_sum{{mode="2",model="{served.name}"}}'

    def ask(horizon):
        body, headers = infer_request(sample.state[None], [horizon], sample.params[None], q=1)
        assert send(port, "POST", f"/v2/models/{served.name}/infer", body, headers)[0] == 200

    def processor():
        return metric(port, "process_cpu_seconds_total")

    horizons = range(1, int(served.model.longest) + 1)
    ask(1)
    for horizon in horizons:
        before = metric(port, name)
        ask(horizon)
        times.append(1e3 * (metric(port, name) - before))
    before = processor()
    for horizon in horizons:
        ask(horizon)
    spent = 1e3 * (processor() - before) / len(horizons)
    numbers = (*np.percentile(times, (50, 95, 100)), spent)
    return [served.name, f"1 to {horizons[-1]}", *(f"{value:.1f}" for value in numbers)]


if __name__ == "__main__":
    main()
