"""What the prompt answers: each directive's value as a person wants to read it right after typing the directive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from venture_lite.draws.draws import Draws
from venture_lite.draws.presentation import counted, present
from venture_lite.language import syntax
from venture_lite.language.syntax import Directive
from venture_lite.shell.report import RunReport, as_text, named_value

DONE = {"forget": "forgotten", "freeze": "frozen", "clear": "cleared"}


def reply(report: RunReport, directive: Directive, alone: bool, width: int, encoding: str) -> Iterator[str]:
    """The lines that answer one directive.

    `alone`: the directive is all that was entered, and its value needs no name.
    """
    value = report.value
    if isinstance(value, Draws):
        if report.passes:
            yield f"{report.name()}:"
        yield from of_draws(value, width, encoding)
        return
    match report.kind:
        case "assume" | "define" if isinstance(directive, (syntax.Assume, syntax.Define)):
            yield named_value(replace(report, label=directive.name), width)
        case "observe":
            yield named_value(replace(report, label="log density"), width)
        case "loop" if value is not None:
            yield counted(value, "pass", "passes")
        case "load":
            yield counted(value, "directive") + " loaded"
        case kind if kind in DONE:
            yield DONE[kind]
        case "list_directives":
            yield as_text(report, width) or ""
        case _ if value is not None:
            bare = alone and not report.passes and not report.by_chain
            yield present(value, width) if bare else named_value(report, width)


def of_draws(draws: Draws, width: int, encoding: str) -> Iterator[str]:
    """The table of the summary, the plots, what the kernels did, and what to beware of."""
    text = as_text(RunReport("infer", None, None, draws, None), width, encoding, at_prompt=True)
    if text:
        yield text
    for warning in draws.summary().warnings:
        yield f"warning: {warning}"


def of_parameter(name: str, value: Any, width: int) -> str:
    """A parameter for the list of them."""
    return named_value(RunReport("define", name, None, value, None), width)
