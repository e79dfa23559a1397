"""The rooms of the package and their order.

A module may import from its own room and from those before it. An import inside a function counts, one for the type
checker alone does not.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "venture_lite"
GROUND = ("errors", "values", "__init__")
ROOMS = (
    "language",
    "procedures",
    "networks",
    "program",
    "draws",
    "trace",
    "interpreter",
    "kernels",
    "inference",
    "blocks",
    "engines",
    "session",
    "audit",
    "checker",
    "shell",
    "repl",
    "__main__",
)
FLOOR = {**dict.fromkeys(GROUND, 0), **{room: floor for floor, room in enumerate(ROOMS, 1)}}
# The command starts the prompt, whose room is the last, where it is asked to.
STARTS = {("shell/cli.py", "repl")}
ABOVE_THE_GROUND = {"__init__.py", "__main__.py"}


@functools.cache
def without_types(path: Path) -> ast.Module:
    """A file without what is imported for the type checker alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for guarded in [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    ]:
        guarded.body = []
    return tree


def imports(path: Path) -> Iterator[str]:
    """First parts, below the package, of what a file imports from the package."""
    for node in ast.walk(without_types(path)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "venture_lite" else [module]
        yield from (name.split(".")[1] for name in names if name.startswith("venture_lite."))


def room_of(path: Path, package: Path) -> str:
    return path.relative_to(package).parts[0].removesuffix(".py")


def offenders(package: Path) -> list[str]:
    """What stands in no room, and every import from a room that comes later."""
    found = []
    for path in sorted(package.rglob("*.py")):
        room, name = room_of(path, package), path.relative_to(package).as_posix()
        if room not in FLOOR:
            found.append(f"{name} stands in no room")
        elif name not in ABOVE_THE_GROUND:
            above = {other for other in imports(path) if FLOOR.get(other, 0) > FLOOR[room]}
            found += [f"{name} imports {other}" for other in sorted(above) if (name, other) not in STARTS]
    return found


@pytest.mark.thorough
def test_a_module_imports_nothing_from_a_later_room() -> None:
    assert not offenders(PACKAGE)


def test_an_import_from_a_later_room_is_found(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "table.py").write_text(
        "def f():\n    from venture_lite.engines.mh import MH\n    from venture_lite import errors\n"
    )
    (tmp_path / "loose.py").write_text("")
    assert offenders(tmp_path) == ["loose.py stands in no room", "trace/table.py imports engines"]


def imported(path: Path, package: Path) -> set[str]:
    """The modules of the package that a module imports, by path."""
    found = set()
    for node in ast.walk(without_types(path)):
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            found |= {"/".join(name.split(".")[1:]) + ".py" for name in names if name.startswith("venture_lite.")}
    return {name for name in found if (package / name).is_file()}


def in_circles(package: Path) -> list[str]:
    """Modules that import themselves by way of others."""
    beyond = {path.relative_to(package).as_posix(): imported(path, package) for path in package.rglob("*.py")}
    found = []
    for name in sorted(beyond):
        reached: set[str] = set()
        todo = [name]
        while todo:
            new = beyond[todo.pop()] - reached
            reached |= new
            todo.extend(new)
        if name in reached:
            found.append(name)
    return found


@pytest.mark.thorough
def test_no_modules_import_each_other_in_a_circle() -> None:
    assert not in_circles(PACKAGE)


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from venture_lite.b import x\n")
    (tmp_path / "b.py").write_text("def f():\n    from venture_lite import c\n")
    (tmp_path / "c.py").write_text("from venture_lite import a\nfrom venture_lite.d import x\n")
    (tmp_path / "d.py").write_text("import os\n")
    assert in_circles(tmp_path) == ["a.py", "b.py", "c.py"]


# Rooms for which a node is opaque, and what takes one apart or goes past the trace to its tables.
OUTSIDE = ("blocks", "inference", "engines", "session", "checker", "shell", "repl")
UNPACKS = re.compile(r"ROW_MASK|>> 32|<< 32|0x[Ff]{8}\b")
PAST_THE_TRACE = re.compile(r"from venture_lite\.(trace\.(table|journal)|interpreter\.machine) import")
COLUMNS = re.compile(r"\.(column\(|columns\b|tables\b|view\[)")
# What engines ask of the fast ways, and what compares them; how a way works they do not know. The particles' columns
# are a way of their own.
WAYS = re.compile(r"from venture_lite\.kernels\.(?!compiled|deferred)(\w+) import")
A_WAY = "engines/pgibbs/particle_columns.py"


def unpacking(package: Path) -> list[str]:
    """Modules that shift the bits of nodes, and engines that import what stands behind the trace's operations, read
    columns, or know how a fast way works."""
    found = []
    for path in sorted(package.rglob("*.py")):
        room, name, text = room_of(path, package), path.relative_to(package).as_posix(), path.read_text("utf-8")
        if room in OUTSIDE and UNPACKS.search(text):
            found.append(f"{name} unpacks nodes")
        if room == "engines" and (past := PAST_THE_TRACE.search(text)):
            found.append(f"{name} imports {past[1]}")
        if room == "engines" and COLUMNS.search(text):
            found.append(f"{name} reads columns")
        if room == "engines" and name != A_WAY and (way := WAYS.search(text)):
            found.append(f"{name} imports kernels.{way[1]}")
    return found


def test_nodes_are_opaque_outside_the_trace() -> None:
    assert not unpacking(PACKAGE)


def test_what_unpacks_nodes_is_found(tmp_path: Path) -> None:
    for room in ("engines", "kernels"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "mh.py").write_text(
            "from venture_lite.trace.journal import Journal\nfrom venture_lite.kernels.formed import Formed\n"
            "site = node >> 32\nvalue = table.columns[0].view[1]\n"
        )
    told = ["unpacks nodes", "imports trace.journal", "reads columns", "imports kernels.formed"]
    assert unpacking(tmp_path) == [f"engines/mh.py {what}" for what in told]


def test_only_the_parser_knows_lark() -> None:
    known = ("import lark", "from lark")
    users = {path.stem for path in PACKAGE.rglob("*.py") if any(words in path.read_text() for words in known)}
    assert users == {"parse"}
