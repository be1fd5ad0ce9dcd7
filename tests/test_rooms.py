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
BACKWARDS = {
    "physics.environment": {"physics.resolved"},
    "surrogate.config": {"surrogate.backbones"},
    "deploy.forecast": {"deploy.hybrid"},
    "deploy.chain": {"deploy.hybrid"},
}
"""Imports that close a circle inside a room, with the reasons in docs/design.md."""


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


def import_graph(nodes_of):
    """Module -> the modules that it imports, by those nodes of its tree."""
    modules = {".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in SOURCE.rglob("*.py")}
    graph = {}
    for name, path in modules.items():
        found = [node for node in nodes_of(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        named = {f"{node.module}.{alias.name}" for node in found for alias in node.names} | {node.module for node in found}
        graph[name] = modules.keys() & {each.removeprefix("hybridworld.") for each in named}
    assert sum(map(len, graph.values())) > 500
    return graph


def test_imports_run_in_no_circle():
    """Imports inside functions and for type checkers alone do not count: they run when all modules are there."""
    graph = import_graph(lambda tree: tree.body)
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)


def test_all_imports_but_the_stated_ones_run_in_no_circle():
    graph = import_graph(ast.walk)
    for name, others in BACKWARDS.items():
        assert others <= graph[name], "docs/design.md states an import that is no more"
        graph[name] -= others
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)
