"""`hybridworld serve`: a page to play with, and the Open Inference Protocol for programs."""

from collections.abc import Sequence
from pathlib import Path

from hybridworld.app.loading import tell
from hybridworld.app.progress import stderr
from hybridworld.deploy.engines import set_engine
from hybridworld.errors import InvalidInput
from hybridworld.physics.registry import find_system
from hybridworld.serve.limits import Limits
from hybridworld.surrogate.engines.registry import EAGER


def serve_models(
    models: Sequence[str] | None,
    runs: Path,
    systems: Sequence[str],
    backbone: str | None,
    host: str,
    port: int,
    token: str | None,
    limits: Limits,
    workers: int | None,
    dask: str | None,
    browser: bool,
    engine: str = EAGER,
    keep: Path | None = None,
    keep_most: int | None = None,
) -> bool:
    """Serve until SIGTERM or Ctrl-C; was it Ctrl-C? Without `models`, all that ship and can be solved are served.

    With `keep`, what the solver answers in mode 2 is kept in keep/NAME, for each model `keep_most` answers.
    """
    try:
        from hybridworld.serve.server import Access, run
    except ImportError as error:
        raise InvalidInput(f"`serve` needs more packages ({error.name}): pip install 'hybrid-world-models[serve]'.") from error
    from hybridworld.serve.catalogue import Catalogue
    from hybridworld.serve.service import Service

    access = Access(host, token or None)
    with stderr.status("loading models"):
        own = [find_system(name) for name in systems]
        catalogue = Catalogue(models or None, runs, own, backbone, engine, keep, keep_most)
        service = Service(catalogue, limits, workers, dask, prepare=lambda model: set_engine(model, engine, tell))
    names = ", ".join(each.name for each in catalogue.all if each.model is not None) or "none"
    return run(service, access, port, browser, lambda url: print(f"{url}  models: {names}; Ctrl-C stops it", flush=True))
