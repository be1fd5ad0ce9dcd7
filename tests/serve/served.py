"""Small models of every kind of state, and a server of them that lives in this process."""

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
import uvicorn

from hybridworld.data.evidence import Recorded
from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.oregonator import Oregonator
from hybridworld.serve.catalogue import Catalogue
from hybridworld.serve.server import Access, Server, create_app, listening
from hybridworld.serve.service import Service
from hybridworld.surrogate.bundle import Bundle, save_bundle
from hybridworld.trust.calibrate import calibrate
from hybridworld.trust.step_doubling import StepDoubling
from tests.surrogate.flows import Oscillator, Ring, surrogate, table, tiny

COUNT = 40  # validation trajectories: enough for a coverage of 0.9
SYSTEMS = {
    "gas": Euler2D(grid=(16, 16)),
    "waves": Oregonator(grid=(16, 16)),
    "ring": Ring(),
    "swing": Oscillator(),
}


def save_model(path, environment, count=COUNT):
    """A network that nobody trained, calibrated against the solver, as a file."""
    torch.manual_seed(0)
    net = surrogate(environment.spec)
    for weights in net.backbone.last.parameters():
        weights.data *= 0.02  # close enough to no change to give states that can exist
    arrays = {}
    if count:
        horizons = tuple(h for h in (1, 4, 8) if h <= max(environment.spec.horizons))
        arrays = calibrate(net, StepDoubling(net, net.std), Recorded(table(environment, "val", count)), horizons, count)
    save_bundle(path, Bundle(net, tiny(environment.spec), arrays=arrays))
    return path


def models(folder):
    """NAME=FILE of each of them, and of the model of Ball 3D that ships."""
    return ["ball3d", *(f"{name}={save_model(folder / f'{name}.safetensors', system)}" for name, system in SYSTEMS.items())]


def catalogue(folder):
    return Catalogue(models(folder), systems=[SYSTEMS["ring"], SYSTEMS["swing"]])


@dataclass
class Running:
    """A server and where it is."""

    service: Service
    port: int
    server: Server

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def running(known, access=None, **options):
    """A server of that catalogue, ready."""
    service = Service(known, **{"workers": 1, **options})
    access = access or Access()
    with listening("127.0.0.1", 0) as here:
        config = uvicorn.Config(create_app(service, access), log_level="error", access_log=False, lifespan="on")
        server = Server(config, service)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [here]}, daemon=True)
        thread.start()
        try:
            wait_until(lambda: service.ready and server.started)
            yield Running(service, here.getsockname()[1], server)
        finally:
            server.handle_exit(15, None)
            thread.join(timeout=120)
            assert not thread.is_alive()


def wait_until(condition, seconds=300.0):
    """Cores are shared: whatever takes a moment may take minutes."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)


def question(served, count=3, split="test", first=0):
    """States and parameters of a model's system."""
    samples = [served.system.initial(split, seed) for seed in range(first, first + count)]
    return np.stack([sample.state for sample in samples]), np.stack([sample.params for sample in samples])
