"""`hybridworld bench engines`: who runs the network of a model fastest here, and does it agree?"""

from dataclasses import asdict
from pathlib import Path

from hybridworld.app.loading import load_hybrid
from hybridworld.app.progress import stderr
from hybridworld.app.tables import publish
from hybridworld.bench.engines import SIZES, EngineTiming, time_engines
from hybridworld.deploy.engines import AMPLIFIED, EXACT, SHARE, in_words
from hybridworld.deploy.verdicts import version_of
from hybridworld.physics.arguments import checked_horizon
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.engines.registry import ENGINES, installed
from hybridworld.surrogate.horizons import listed

HEADERS = (
    "engine", *(f"ms, {count}" for count in SIZES), *(f"with map, {count}" for count in SIZES),
    *(f"cores, {count}" for count in SIZES), "states", "scores", "",
)  # fmt: skip


def report_engines(
    name: str, environment: Environment | None, horizon: float | None, rounds: int, quick: bool, signal: str | None,
    backbone: str | None, as_json: bool, out: Path | None,
) -> None:  # fmt: skip
    """Measure, remember and publish."""
    if horizon is not None:
        checked_horizon(horizon, 0)
    model = load_hybrid(name, environment, backbone, signal=signal)
    horizon = model.longest if horizon is None else horizon
    with stderr.status("trying engines, each in a process of its own"):
        timings, memory = time_engines(model, installed(quick), horizon, rounds)
    packages = {package: version_of(package) for engine in ENGINES.values() for package in engine.needs}
    publish(
        {
            "model": name,
            "horizon": horizon,
            "engines": [asdict(timing) for timing in timings],
            "choice": {rows: memory.best(rows) for rows in ("one", "many")},
            "packages": packages,
        },
        [HEADERS, *(cells_of(timing) for timing in timings)],
        f"{name}: engines",
        f"Milliseconds per state for a forecast of {listed([horizon])}, guide included, one state at a time and in batches of "
        f"{max(SIZES)}; mode 1, and with the error map by {model.signal.name}. Engines take turns; the least of {rounds} "
        "rounds. Cores: mode 1, time of the cores together, to which no other program adds. States and scores: largest "
        f"difference from eager torch, in deviations; allowed are {EXACT:g} in float32 and {SHARE:g} times the validation rmse "
        f"in bfloat16, for scores {AMPLIFIED:g} of themselves besides. The choice: {in_words(memory)}. "
        f"{', '.join(f'{package} {found}' for package, found in packages.items())}.",
        as_json,
        out,
        f"hybridworld bench engines {name}",
    )


def cells_of(timing: EngineTiming) -> list[str]:
    """The numbers of one row, as text."""
    times = [
        f"{found[count]:.3g}" if found else "-" for found in (timing.alone, timing.mapped, timing.cores) for count in SIZES
    ]
    verdict = timing.verdict
    off = [None, None] if verdict is None else [verdict.states, verdict.scores]
    why = verdict.failure if verdict is not None and verdict.failure else ""
    return [timing.engine, *times, *("-" if value is None else f"{value:.1e}" for value in off), why]
