"""Imports point from later rooms to earlier ones, in the order in which data flows."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import hybridworld

ROOMS = [
    "errors",
    "physics",
    "figures",
    "data",
    "surrogate",
    "trust",
    "deploy",
    "bench",
    "training",
    "reproduce",
    "serve",
    "app",
]
SOURCE = Path(hybridworld.__file__).parent


def imported_rooms(path):
    """Every room that a file imports from, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "hybridworld" and len(parts) > 1 and parts[1] in ROOMS:
                yield parts[1]


def test_one_file_imports_mujoco():
    found = {path.name for path in SOURCE.rglob("*.py") if re.search(r"^\s*(import|from) mujoco\b", path.read_text(), re.M)}
    assert found == {"tabletop_scene.py"}


def test_every_module_stands_in_a_room():
    found = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")}
    assert found <= {*ROOMS, "__init__", "__main__"}


def test_helpers_of_tests_stand_outside_of_test_files():
    for path in Path(__file__).parent.rglob("*.py"):
        assert not re.search(r"from tests\.[\w.]*\btest_|import tests\.[\w.]*\btest_", path.read_text()), path


def test_imports_only_point_to_earlier_rooms():
    seen = 0
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        for other in imported_rooms(path):
            seen += 1
            assert ROOMS.index(other) <= ROOMS.index(room), f"{path.relative_to(SOURCE)} imports from {other}"
    assert seen > 20


def test_imports_run_in_no_circle():
    """Imports inside functions and for type checkers alone do not count: they run when all modules are there."""
    modules = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path for path in SOURCE.rglob("*.py")}
    graph = {}
    for name, path in modules.items():
        body = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)]
        named = {f"{node.module}.{alias.name}" for node in body for alias in node.names}
        graph[name] = modules.keys() & (named | {node.module for node in body})
    assert len(list(TopologicalSorter(graph).static_order())) == len(modules)
    assert sum(map(len, graph.values())) > 500
