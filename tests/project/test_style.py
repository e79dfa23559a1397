"""Rules of style that a machine can check: names of modules, and that each says what it is."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BANNED_NAMES = ("utils", "helpers", "common", "misc")


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def offenders(root: Path) -> list[str]:
    """Modules that are named after nothing, or do not say what they are and why they exist."""
    found = []
    for path in sorted([*(root / "venture_lite").rglob("*.py"), *(root / "programs").rglob("*.py")]):
        name = path.relative_to(root).as_posix()
        if path.stem in BANNED_NAMES:
            found.append(f"{name} is named after nothing")
        if not ast.get_docstring(parsed(path)):
            found.append(f"{name} has no docstring")
    return found


# what the docstring of a package names in backticks that is an action or a module of Python's
WORDS = {"auto", "concurrent.futures", "infer"}


def missing(root: Path) -> list[str]:
    """Modules in backticks that are not there: in a package's docstring each lower-case name is one of its own modules;
    a file that is named anywhere is beside the one that names it, in the package or in the repository."""
    package, found = root / "venture_lite", []
    for path in sorted(package.rglob("*.py")):
        named = set(re.findall(r"`([a-z_0-9/]+\.[a-z]+)`", path.read_text(encoding="utf-8")))
        files = {name for name in named if name.endswith((".py", ".vnt", ".md"))}
        if path.name == "__init__.py":
            words = re.findall(r"`([a-z_0-9.]+)`", ast.get_docstring(parsed(path)) or "")
            files |= {word if word.endswith(".py") else f"{word.replace('.', '/')}.py" for word in {*words} - WORDS}
        for name in sorted(files):
            places = [folder / name for folder in (path.parent, package, root)]
            if not any(place.exists() or place.with_suffix("").is_dir() for place in places):
                found.append(f"{path.relative_to(root).as_posix()}: {name}")
    return found


def test_modules_in_backticks_are_there() -> None:
    assert not missing(ROOT)


def test_a_module_that_is_gone_is_found(tmp_path: Path) -> None:
    package = tmp_path / "venture_lite" / "part"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        '"""`there`, `gone`, `folder`, `infer` and `x.gone`; `there.py`, `lost.py`."""\n'
    )
    (package / "there.py").write_text('"""`part/there.py` and `gone.py`."""\n# `away.py`\n')
    (package / "folder").mkdir()
    assert missing(tmp_path) == [
        "venture_lite/part/__init__.py: gone.py",
        "venture_lite/part/__init__.py: lost.py",
        "venture_lite/part/__init__.py: x/gone.py",
        "venture_lite/part/there.py: away.py",
        "venture_lite/part/there.py: gone.py",
    ]


def ambiguous(package: Path) -> list[str]:
    """Classes of one name in two modules, apart from private ones: a name means one thing."""
    found: dict[str, list[str]] = {}
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path.relative_to(package).as_posix())
    return [f"{name}: {', '.join(paths)}" for name, paths in found.items() if len(paths) > 1]


@pytest.mark.thorough
def test_a_class_is_the_only_one_of_its_name() -> None:
    assert not ambiguous(ROOT / "venture_lite")


def test_a_second_class_of_a_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class X: ...\nclass _Y: ...\n")
    (tmp_path / "b.py").write_text("def f():\n    class X: ...\nclass _Y: ...\n")
    assert ambiguous(tmp_path) == ["X: a.py, b.py"]


@pytest.mark.thorough
def test_every_module_says_what_it_is() -> None:
    assert not offenders(ROOT)


def test_a_module_that_says_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "venture_lite").mkdir()
    (tmp_path / "venture_lite" / "utils.py").write_text("x = 1\n")
    assert offenders(tmp_path) == [
        "venture_lite/utils.py is named after nothing",
        "venture_lite/utils.py has no docstring",
    ]
