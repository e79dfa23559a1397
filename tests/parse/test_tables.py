"""The automaton read from the build's tables is the one that the grammar gives; without them nothing changes."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from venture_lite.errors import ParseError, Source
from venture_lite.language import parse

GRAMMAR = Path(__file__).parents[2] / "grammar"
TEXTS = (
    "[assume x (normal 0 1)] for n in 1...{N - 1}: [observe (f x {X[n, 2]}) 'a] ; the end",
    'label: [predict (f "a\\n" -1.5e3 true)] (do (mh default one 1))',
)


def made_tables(grammar: str) -> dict[str, Any]:
    """What the build makes; its hook is read from its file, since it is no part of the package."""
    spec = importlib.util.spec_from_file_location("tables", GRAMMAR / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return json.loads(json.dumps(module.tables(grammar)))  # type: ignore[no-any-return]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of its own with the grammar inside, for whose automaton nothing is remembered."""
    folder = tmp_path / "package" / "_grammar"
    folder.mkdir(parents=True)
    folder.joinpath("venture.lark").write_text((GRAMMAR / "venture.lark").read_text())
    monkeypatch.setattr(parse, "__file__", str(folder.parent / "language" / "parse.py"))
    parse._automaton.cache_clear()
    monkeypatch.setattr(parse, "_automaton", parse._automaton.__wrapped__)
    return folder


def trees() -> list[object]:
    return [parse.parse_program(Source("", text)) for text in TEXTS]


def refusal() -> str:
    with pytest.raises(ParseError) as refused:
        parse.parse_program(Source("", "[assume x (normal 0 1]"))
    return str(refused.value)


@pytest.mark.thorough
@pytest.mark.skipif(not GRAMMAR.is_dir(), reason="the hook of the build lies in the checkout")
def test_tables_read_as_data_make_the_same_trees(package: Path) -> None:
    before, refused = trees(), refusal()
    made = made_tables((GRAMMAR / "venture.lark").read_text())
    package.joinpath("tables.json").write_text(json.dumps(made))
    assert parse._tables(package / "tables.json")["grammar"] == made["grammar"]
    assert (trees(), refusal()) == (before, refused)


@pytest.mark.thorough
@pytest.mark.skipif(not GRAMMAR.is_dir(), reason="the hook of the build lies in the checkout")
@pytest.mark.parametrize("change", [{"grammar": "start: x"}, {"lark": "0.0.1"}])
def test_tables_of_another_grammar_are_passed_over(package: Path, change: dict[str, str]) -> None:
    before = trees()
    made = {**made_tables((GRAMMAR / "venture.lark").read_text()), "data": {}, **change}
    package.joinpath("tables.json").write_text(json.dumps(made))
    assert trees() == before


@pytest.mark.parametrize("left", ["", "[]", "{", '{"grammar": 1}', "\x00\xff"])
@pytest.mark.thorough
def test_damaged_tables_are_passed_over(package: Path, left: str) -> None:
    before = trees()
    package.joinpath("tables.json").write_text(left, encoding="utf-8")
    assert trees() == before
