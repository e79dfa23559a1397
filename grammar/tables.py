"""Makes the parser's tables from the grammar when the package is built.

A process that reads them as data starts faster than one that works them out of the grammar. `tables.json` lies beside
the grammar in a checkout, inside the package in a wheel; it names the grammar and the parser generator that it was
made from, and is passed over where either has changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TABLES = "tables.json"


class TablesHook(BuildHookInterface):  # type: ignore[misc]
    """Called by the build of a wheel or of an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = Path(self.root, "grammar")
        path = folder / TABLES
        path.write_text(json.dumps(tables((folder / "venture.lark").read_text(encoding="utf-8"))), encoding="utf-8")
        if version != "editable":
            build_data["force_include"][str(path)] = f"venture_lite/_grammar/{TABLES}"


def tables(grammar: str) -> dict[str, Any]:
    """The LALR automaton of a grammar, as JSON can hold it, and what it was made from."""
    import lark
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    automaton = lark.Lark(grammar, parser="lalr", start=["program", "lone_expression"])
    data, memo = automaton.memo_serialize([TerminalDef, Rule])
    return {"grammar": grammar, "lark": lark.__version__, "data": data, "memo": memo}
