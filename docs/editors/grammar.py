"""Writes `venture.tmLanguage.json`: `python docs/editors/grammar.py`.

The names come from the tables of the language, so that the grammar has every directive, special form, action and
procedure; a test compares the file with what this makes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from venture_lite.checker.inference import SELECTORS
from venture_lite.inference.actions import ACTIONS
from venture_lite.inference.measures import MEASURES
from venture_lite.language.directives import DIRECTIVES
from venture_lite.procedures import registry
from venture_lite.procedures.record import Deterministic
from venture_lite.program.compounds import USAGES as COMPOUNDS
from venture_lite.program.forms import SPECIAL_FORMS
from venture_lite.program.queries import USAGES as QUERIES
from venture_lite.session.standard import NAMES as STANDARD_NAMES

PATH = Path(__file__).with_name("venture.tmLanguage.json")

NAME = r"[^\s()\[\]{}'\"`;#:,]+"
BEFORE = r"(?<![^\s()\[\]{}'\"`;#:,])"
AFTER = r"(?=[\s()\[\]{}'\"`;#:,]|$)"
OPENED = r"(?<=[(\[])\s*"


def words(names: Iterable[str]) -> str:
    """A pattern of these names, longer ones first."""
    return "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))


def is_operator(name: str) -> bool:
    return not any(character.isalpha() for character in name)


def grammar() -> dict[str, Any]:
    """The grammar as TextMate reads it."""
    random = {name for name, record in registry.PROCEDURES.items() if not isinstance(record, Deterministic)}
    random |= {name for name in STANDARD_NAMES if name.startswith("make_")}
    deterministic = ({*registry.PROCEDURES} - random) | ({*STANDARD_NAMES} - random)
    operators = {name for name in deterministic if is_operator(name)}
    directives = words(DIRECTIVES)
    patterns: dict[str, Any] = {
        "comment": {"name": "comment.line.venture", "match": r"[;#].*$"},
        "string": {
            "name": "string.quoted.double.venture",
            "begin": '"',
            "end": '"|$',
            "patterns": [
                {"name": "constant.character.escape.venture", "match": r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)"}
            ],
        },
        "parameter": {
            "name": "variable.parameter.venture",
            "begin": r"\{",
            "end": r"\}|$",
            "patterns": [
                {"name": "constant.numeric.venture", "match": r"\b[0-9]+\b"},
                {"name": "keyword.operator.venture", "match": r"[-+*]"},
            ],
        },
        "loop": {
            "match": rf"(?i)^\s*(?:({NAME})\s*(:)\s*)?(for)\s+(\w+)\s+(in)\b",
            "captures": {
                "1": {"name": "entity.name.label.venture"},
                "3": {"name": "keyword.control.loop.venture"},
                "4": {"name": "variable.other.loop.venture"},
                "5": {"name": "keyword.control.loop.venture"},
            },
        },
        "label": {
            "match": rf"{BEFORE}(?![0-9]|[^\s:]*\.\.)({NAME})\s*(:)(?=\s*[(\[])",
            "captures": {"1": {"name": "entity.name.label.venture"}},
        },
        "binding": {
            "match": rf"(?i){OPENED}(assume|define)\s+\(?\s*({NAME})",
            "captures": {
                "1": {"name": "keyword.other.directive.venture"},
                "2": {"name": "entity.name.function.venture"},
            },
        },
        "directive": {
            "match": rf"(?i){OPENED}({directives}){AFTER}",
            "captures": {"1": {"name": "keyword.other.directive.venture"}},
        },
        "form": {
            "match": rf"{OPENED}({words([*SPECIAL_FORMS, *COMPOUNDS, *QUERIES.keys() - DIRECTIVES.keys()])}){AFTER}",
            "captures": {"1": {"name": "keyword.control.venture"}},
        },
        "action": {
            "match": rf"{OPENED}({words([*ACTIONS, *MEASURES])}){AFTER}",
            "captures": {"1": {"name": "support.function.action.venture"}},
        },
        "quoted": {"name": "constant.other.symbol.venture", "match": rf"'{NAME}"},
        "number": {
            "name": "constant.numeric.venture",
            "match": rf"{BEFORE}[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?{AFTER}",
        },
        "boolean": {
            "name": "constant.language.venture",
            "match": rf"{BEFORE}(true|false|True|False|{words(registry.CONSTANTS)}){AFTER}",
        },
        "selector": {"name": "constant.language.selector.venture", "match": rf"{BEFORE}({words(SELECTORS)}){AFTER}"},
        "random": {"name": "support.function.random.venture", "match": rf"{BEFORE}({words(random)}){AFTER}"},
        "deterministic": {
            "name": "support.function.deterministic.venture",
            "match": rf"{BEFORE}({words(deterministic - operators)}){AFTER}",
        },
        "operator": {"name": "keyword.operator.venture", "match": rf"{BEFORE}({words(operators)}){AFTER}"},
    }
    return {
        "name": "Venture",
        "scopeName": "source.venture",
        "fileTypes": ["vnt"],
        "patterns": [{"include": f"#{key}"} for key in patterns],
        "repository": patterns,
    }


def text() -> str:
    return json.dumps(grammar(), indent=2) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
