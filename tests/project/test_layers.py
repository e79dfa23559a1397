"""Imports go one way.

The package's layers, lowest first; a module may import from its own layer and from those below. An import inside a
function counts, one for the type checker alone does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "venture_lite"
LAYERS = (
    ("errors", "escapes", "suggestions"),
    ("collector", "streams", "syntax", "values", "diagnostics", "presentation", "progress", "tables"),
    ("signals", "whole_files"),
    ("directives", "refusals", "nesting", "parse", "recovery", "source_files", "data"),
    ("procedures", "draws", "kernel_summary", "summary", "markup", "plots", "pictures", "datatree", "export"),
    ("code", "supplied", "parameters"),
    ("lift", "compiler", "analyze", "forms", "label_uses"),
    ("trace",),
    ("kernels",),
    ("inference",),
    ("standard",),
    ("session",),
    ("checker",),
    ("report", "chain_process", "workers", "printer", "cli", "repl", "notebook"),
    ("__main__", "__init__"),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def imports(path: Path) -> Iterator[str]:
    """First parts, below the package, of what a file imports from the package."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for guarded in [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    ]:
        guarded.body = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "venture_lite" else [module]
        yield from (name.split(".")[1] for name in names if name.startswith("venture_lite."))


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_nothing_from_above(path: Path) -> None:
    own = layer_of(path)
    assert own in RANK, f"{own} has no layer yet: give it one in LAYERS"
    above = {name for name in imports(path) if RANK.get(name, -1) > RANK[own]}
    assert not above, f"{own} imports from above: {sorted(above)}"


def test_an_arrow_that_points_back_is_found(tmp_path: Path) -> None:
    path = tmp_path / "errors.py"
    path.write_text("def f():\n    from venture_lite.trace.table import Table\n    from venture_lite import syntax\n")
    assert sorted(imports(path)) == ["syntax", "trace"]


def test_only_the_parser_knows_lark() -> None:
    users = {layer_of(path) for path in MODULES if "import lark" in (text := path.read_text()) or "from lark" in text}
    assert users <= {"parse"}
