"""The standard library written in the language: a definition of `stdlib/prelude.vnt` is loaded when first named."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from venture_lite.errors import Source
from venture_lite.interpreter.evidence import NO_EVIDENCE
from venture_lite.language.parse import parse_program
from venture_lite.language.syntax import Assume, Expression
from venture_lite.program.code import Global
from venture_lite.program.compiler import Analyzer, inlinable, of_lists

if TYPE_CHECKING:
    from venture_lite.interpreter.model import Model

NAMES = (
    "map",
    "filter",
    "fold",
    "find",
    "any",
    "all",
    "count",
    "apply",
    "expectation",
    "make_uc_beta_bernoulli",
    "make_uc_sym_dir_mult",
    "make_uc_dir_mult",
    "make_uc_gamma_poisson",
    "make_uc_normal_inv_chi_sq",
    "make_dp",
    "make_pitman_yor",
)
"""What the prelude defines; known without reading it."""


@cache
def prelude() -> dict[str, Expression]:
    """Name -> expression of every definition."""
    here = Path(__file__).resolve().parents[1]
    places = (here / "_stdlib" / "prelude.vnt", here.parent / "stdlib" / "prelude.vnt")
    path = next(place for place in places if place.is_file())
    directives = parse_program(Source("prelude.vnt", path.read_text(encoding="utf-8")))
    return {d.name: d.expression for d in directives if isinstance(d, Assume)}


def map_over(count: int) -> Expression:
    """`map` of a procedure and `count` lists; a call of `map` in it has as many."""
    lists = [f"xs_{i}" for i in range(count)]
    empty, first, rest = (" ".join(f"({word} {xs})" for xs in lists) for word in ("is_empty", "first", "rest"))
    body = f"(if (or {empty}) (list) (pair (f {first}) (map f {rest})))"
    (definition,) = parse_program(Source("prelude.vnt", f"[assume map (lambda (f {' '.join(lists)}) {body})]"))
    assert isinstance(definition, Assume)
    return definition.expression


class StandardLibrary:
    """Loads definitions into one model on demand."""

    names = NAMES

    def __init__(self) -> None:
        self.model: Model | None = None

    def anew(self) -> StandardLibrary:
        """The library for another model."""
        return StandardLibrary()

    def define(self, analyzer: Analyzer, name: str, lists: int = 1) -> Global:
        """Load one definition, of `map` that over as many lists. It sees the language's procedures, whatever the
        program has bound their names to."""
        model = self.model
        assert model is not None
        expression = prelude()[name] if lists == 1 else map_over(lists)
        target = analyzer.standard[of_lists(name, lists)] = Global(name, 0, expression.span)
        target.lambda_form = inlinable(expression, name)
        code = analyzer.directive(name, expression, 0, False, horizon=0)
        model.trace.grow_with_program()
        mark = model.trace.journal.mark()
        model.load(code, [], 1, NO_EVIDENCE, target)
        # a definition stays, whatever becomes of the directive that named it first
        del model.trace.journal.entries[mark:]
        return target
