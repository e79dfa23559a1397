"""The grammar for editors: it has every name of the language, and cuts lines as the language does."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from venture_lite.inference.actions import ACTIONS
from venture_lite.language.directives import DIRECTIVES
from venture_lite.procedures import registry
from venture_lite.program.compounds import USAGES as COMPOUNDS
from venture_lite.program.forms import SPECIAL_FORMS
from venture_lite.program.queries import USAGES as QUERIES
from venture_lite.session.standard import NAMES as STANDARD_NAMES

FOLDER = Path(__file__).parents[2] / "docs" / "editors"
GRAMMAR: dict[str, Any] = json.loads((FOLDER / "venture.tmLanguage.json").read_text(encoding="utf-8"))


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("grammar", FOLDER / "grammar.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_is_what_the_tables_of_the_language_give() -> None:
    assert maker().grammar() == GRAMMAR, "run python docs/editors/grammar.py"


def closed(rule: dict[str, Any], line: str, position: int) -> int:
    """Where a rule with a beginning and an end ends: what its inner patterns match does not end it."""
    inner = "|".join(f"(?:{pattern['match']})" for pattern in rule["patterns"])
    for match in re.compile(f"(?P<inner>{inner})|(?P<end>{rule['end']})").finditer(line, position):
        if match["inner"] is None:
            return match.end()
    return len(line)


def scopes(line: str) -> dict[str, str]:
    """The text of each token of a line by the first pattern that matches at its place, as an editor reads a line."""
    patterns = [GRAMMAR["repository"][entry["include"][1:]] for entry in GRAMMAR["patterns"]]
    found: dict[str, str] = {}
    position = 0
    while position < len(line):
        matches = [(re.compile(one.get("match") or one["begin"]).search(line, position), one) for one in patterns]
        hits = [(match.start(), order, match, one) for order, (match, one) in enumerate(matches) if match]
        if not hits:
            break
        _, _, match, one = min(hits, key=lambda hit: hit[:2])
        end = match.end()
        if "end" in one:
            end = closed(one, line, end)
        if "name" in one:
            found[line[match.start() : end]] = one["name"]
        for group, capture in one.get("captures", {}).items():
            if match[int(group)] is not None:
                found[match[int(group)]] = capture["name"]
        position = max(end, position + 1)
    return {text: name.removesuffix(".venture") for text, name in found.items()}


@pytest.mark.parametrize(
    ("names", "template", "scope"),
    [
        (DIRECTIVES.keys() - {"assume", "define"}, "[{} x]", "keyword.other.directive"),
        ([*SPECIAL_FORMS, *COMPOUNDS, *QUERIES.keys() - DIRECTIVES.keys()], "({} x)", "keyword.control"),
        (ACTIONS, "(do ({} x))", "support.function.action"),
        (
            # `all` is a block as well, and shown as one
            {name for name in [*registry.PROCEDURES, *STANDARD_NAMES] if name.replace("_", "").isalnum()} - {"all"},
            "(f {} y)",
            ("support.function.random", "support.function.deterministic"),
        ),
        ({name for name in registry.PROCEDURES if not name.replace("_", "").isalnum()}, "({} x)", "keyword.operator"),
    ],
)
def test_every_name_has_its_scope(names: Any, template: str, scope: str | tuple[str, ...]) -> None:
    for name in names:
        assert scopes(template.format(name)).get(name, "").startswith(scope), name


def test_a_line_is_cut_as_the_language_cuts_it() -> None:
    found = scopes("slope: [Assume (f a) (normal {X[n]} -1.5e3)] ; (normal")
    assert found == {
        "slope": "entity.name.label",
        "Assume": "keyword.other.directive",
        "f": "entity.name.function",
        "normal": "support.function.random",
        "{X[n]}": "variable.parameter",
        "-1.5e3": "constant.numeric",
        "; (normal": "comment.line",
    }
    assert scopes("data: for n in 1...N: [observe (normal2 'red) true]") == {
        "data": "entity.name.label",
        "for": "keyword.control.loop",
        "n": "variable.other.loop",
        "in": "keyword.control.loop",
        "observe": "keyword.other.directive",
        "'red": "constant.other.symbol",
        "true": "constant.language",
    }
    assert scopes('[load "a [assume \\" b"]')['"a [assume \\" b"'] == "string.quoted.double"


@pytest.mark.parametrize("name", ["package.json", "language-configuration.json"])
def test_what_stands_beside_the_grammar_is_json_that_points_to_it(name: str) -> None:
    content = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    if name == "package.json":
        (grammar,) = content["contributes"]["grammars"]
        assert (FOLDER / grammar["path"]).is_file()
        assert grammar["scopeName"] == GRAMMAR["scopeName"]
        assert content["contributes"]["languages"][0]["extensions"] == [".vnt"]
