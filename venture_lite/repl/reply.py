"""What the prompt answers: each directive's value as a person wants to read it right after typing the directive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from venture_lite import syntax
from venture_lite.draws import Draws, KernelStatistics
from venture_lite.presentation import counted, cut, number, present
from venture_lite.report import Report, as_text, named_value
from venture_lite.syntax import Directive

KERNELS_SHOWN = 6
KERNEL_WIDTH = 48
DONE = {"forget": "forgotten", "freeze": "frozen", "clear": "cleared"}


def reply(report: Report, directive: Directive, alone: bool, width: int, plain: bool) -> Iterator[str]:
    """The lines that answer one directive.

    `alone`: the directive is all that was entered, and its value needs no name.
    """
    value = report.value
    if isinstance(value, Draws):
        if report.passes:
            yield f"{report.name()}:"
        yield from of_draws(value, width, plain)
        return
    match report.kind:
        case "assume" | "define" if isinstance(directive, (syntax.Assume, syntax.Define)):
            yield _named(directive.name, report, width)
        case "observe":
            yield _named("log density", report, width)
        case "loop" if value is not None:
            yield counted(value, "pass", "passes")
        case "load":
            yield counted(len(value), "directive") + " loaded"
        case kind if kind in DONE:
            yield DONE[kind]
        case "list_directives":
            yield as_text(report, width) or ""
        case _ if value is not None:
            bare = alone and not report.passes and not report.by_chain
            yield present(value, width) if bare else named_value(report, width)


def _named(name: str, report: Report, width: int) -> str:
    return named_value(Report(report.kind, name, None, report.value, None, report.by_chain, report.passes), width)


def of_draws(draws: Draws, width: int, plain: bool) -> Iterator[str]:
    """The table of the summary, the plots, what the kernels did, and what to beware of."""
    text = as_text(Report("infer", None, None, draws, None), width, "ascii" if plain else "utf-8")
    if text:
        yield text
    yield from _kernels(draws.statistics)
    for warning in draws.summary().warnings:
        yield f"warning: {warning}"


def _kernels(statistics: tuple[KernelStatistics, ...]) -> Iterator[str]:
    """A line for each kernel, its chains together."""
    kernels: dict[tuple[str, int], list[KernelStatistics]] = {}
    seen: dict[tuple[str, int], int] = {}
    for row in statistics:
        # the same text may stand in a program twice
        place = seen[row.kernel, row.chain] = seen.get((row.kernel, row.chain), 0) + 1
        kernels.setdefault((row.kernel, place), []).append(row)
    for (kernel, _), rows in list(kernels.items())[:KERNELS_SHOWN]:
        transitions = sum(row.transitions for row in rows)
        accepted = sum(row.accepted for row in rows)
        share = f", {100 * accepted / transitions:.0f}% accepted" if transitions else ""
        seconds = number(sum(row.seconds for row in rows), 2)
        name = cut(" ".join(kernel.split()), KERNEL_WIDTH)
        yield f"{name}: {counted(transitions, 'transition')}{share}, {seconds} s"
    if len(kernels) > KERNELS_SHOWN:
        yield f"and {counted(len(kernels) - KERNELS_SHOWN, 'more kernel')}"


def of_parameter(name: str, value: Any, width: int) -> str:
    """A parameter for the list of them."""
    return named_value(Report("define", name, None, value, None), width)
