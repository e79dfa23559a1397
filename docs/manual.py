"""The parts of the manual that are written by the records themselves, at every build of the site.

A page asks for one with a line `<!-- manual: random -->`; PARTS names them all. mkdocs calls `on_page_markdown`.
Nothing that this file writes is kept in the repository, so it cannot fall behind the code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from venture_lite.inference.actions import ACTIONS
from venture_lite.language.directives import DIRECTIVES
from venture_lite.language.syntax import Expression, Form, Name
from venture_lite.procedures import registry
from venture_lite.procedures.record import REQUIRED, Argument, Deterministic, Maker, Procedure, Random
from venture_lite.repl.commands import COMMANDS
from venture_lite.session.standard import NAMES, prelude
from venture_lite.values import show

PROGRAMS = Path(__file__).parents[1] / "programs"
PLACE = re.compile(r"^<!-- manual: (\w+) -->$", re.MULTILINE)
# how the languages of fenced blocks are called by the highlighter; `output` is nobody's language
HIGHLIGHTED = {"venture": "scheme", "output": "text", "prompt": "text", "cell": "text"}
FENCE = re.compile(rf"^```({'|'.join(HIGHLIGHTED)})\b", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page's text as the site shows it."""
    markdown = PLACE.sub(lambda place: PARTS[place[1]](), markdown)
    return re.sub(
        r"^```(venture|output|prompt)\b", lambda fence: "```" + HIGHLIGHTED[fence[1]], markdown, flags=re.MULTILINE
    )


# ------------------------------------------------------------------------------------------------- procedures

CAPABILITIES: dict[str, Callable[[Any], bool]] = {
    "gibbs": lambda record: record.support is not None,
    "drift": lambda record: record.transform is not None,
    "columns": lambda record: record.log_density_columns is not None,
    "derivative": lambda record: record.gradient is not None,
    "bound": lambda record: record.predictor is not None and bool(record.predictor.bounds),
}
"""What engines can do with a random procedure, by the fields of its record."""


def families(kind: type[Procedure]) -> Iterator[tuple[str, list[Any]]]:
    """Each family's heading, the first words of its module, and its records of one kind."""
    modules = {id(module.RECORDS): module for module in vars(registry).values() if _has_records(module)}
    for family in registry.FAMILIES:
        records = [record for record in family if isinstance(record, kind)]
        if records:
            yield re.split(r"[:.](?:\s|$)", modules[id(family)].__doc__ or "", maxsplit=1)[0], records


def _has_records(module: Any) -> bool:
    return isinstance(module, ModuleType) and hasattr(module, "RECORDS")


def random() -> str:
    parts = []
    for heading, records in families(Random):
        rows = [
            [f"[`{record.name}`](#{anchor(record.name)})", *(_yes(can(record)) for can in CAPABILITIES.values())]
            for record in records
        ]
        parts += [f"## {heading}", table(["procedure", *CAPABILITIES], rows)]
        parts += [
            entry(record, f"Density or mass: `{record.source}`", derivatives(record), predictor(record))
            for record in records
        ]
    return "\n\n".join(parts)


def derivatives(record: Random) -> str:
    if record.gradient is None:
        return ""
    names = ["the value", *(f"`{argument.name}`" for argument in record.arguments)]
    known = [name for name, exists in zip(names, record.gradient.exists, strict=True) if exists]
    return f"Its derivative is known with respect to {', '.join(known)}."


def predictor(record: Random) -> str:
    """What is known of a likelihood along its linear predictor."""
    if record.predictor is None:
        return ""
    name, link = record.arguments[record.predictor.argument].name, record.predictor.inverse_link
    parts = [f"Linear predictor: eta in `{name}` = `({link} eta)`." if link else f"Linear predictor: `{name}`."]
    parts += ["The log density is quadratic in it."] * record.predictor.is_quadratic
    parts += [f"Lower bound `{bound.name}`: {bound.source}." for bound in record.predictor.bounds]
    return " ".join(parts)


def makers() -> str:
    parts = []
    for heading, records in families(Maker):
        parts.append(f"## {heading}")
        for record in records:
            drift = "Its draws can be moved by `'drift`." if record.transform is not None else ""
            parts.append(entry(record, f"The next draw given those so far: {record.source}.", drift))
    return "\n\n".join(parts)


def deterministic() -> str:
    parts = []
    for heading, records in families(Deterministic):
        parts += [f"## {heading}", *map(entry, records)]
    return "\n\n".join(parts)


def entry(record: Procedure, *facts: str) -> str:
    """One procedure: how it is called, what it is, its arguments."""
    parts = [f"### `{record.name}` {{ #{anchor(record.name)} }}", f"`{call(record)}`", record.summary]
    parts += [fact for fact in facts if fact]
    if taken := arguments(record):
        parts.append(taken)
    return "\n\n".join(parts)


def call(record: Procedure) -> str:
    """`(student_t df [loc] [scale])`."""
    names = [a.name if a.default is REQUIRED else f"[{a.name}]" for a in record.arguments]
    more = ["..."] if getattr(record, "rest", None) is not None else []
    text = f"({' '.join([record.name, *names, *more])})"
    applied: tuple[Argument, ...] = getattr(record, "applied", ())
    return f"({' '.join([text, *(a.name for a in applied)])})" if applied else text


def arguments(record: Procedure) -> str:
    applied: tuple[Argument, ...] = getattr(record, "applied", ())
    rows = [[f"`{a.name}`", a.domain.phrase, _default(a)] for a in (*record.arguments, *applied)]
    rest = getattr(record, "rest", None)
    if rest is not None:
        rows.append(["any further", rest.phrase, ""])
    return table(["argument", "must be", "default"], rows) if rows else ""


def _default(argument: Argument) -> str:
    if argument.default is REQUIRED:
        return ""
    return "none" if argument.default is None else f"`{show(argument.default)}`"


def standard() -> str:
    """The procedures that are written in the language itself, with their text."""
    parts = []
    for name in NAMES:
        text = prelude()[name].span.text
        parts += [
            f"### `{name}` {{ #{anchor(name)} }}",
            f"`({' '.join([name, *parameters(prelude()[name])])})`",
            *([said] if (said := comment_above(prelude()[name])) else []),
            f"```scheme\n{text}\n```",
        ]
    return "\n\n".join(parts)


def parameters(expression: Expression) -> list[str]:
    match expression:
        case Form(items=(Name(name="lambda"), Form(items=names), *_)):
            return [name.name for name in names if isinstance(name, Name)]
    return []


def comment_above(expression: Expression) -> str:
    """The comment that ends just above a definition, as one paragraph."""
    lines = expression.span.source.text[: expression.span.start].splitlines()[:-1]
    said: list[str] = []
    while lines and lines[-1].lstrip().startswith(";"):
        said.insert(0, lines.pop().lstrip("; "))
    return " ".join(said)


# ------------------------------------------------------------------------------------- actions and directives


def actions() -> str:
    parts = []
    for action in ACTIONS.values():
        usage = "\n".join(action.usage)
        parts += [f"### `{action.name}` {{ #{anchor(action.name)} }}", f"```scheme\n{usage}\n```", action.summary]
    return "\n\n".join(parts)


def directives() -> str:
    rows = [[f"`{name}`", parts.takes, f"`{parts.example}`"] for name, parts in DIRECTIVES.items()]
    return table(["directive", "takes", "for example"], rows)


def prompt() -> str:
    """The prompt's own commands."""
    return table(["command", ""], [[f"`{command.usage}`", command.summary] for command in COMMANDS])


def program(path: Path) -> str:
    return f"```scheme\n{path.read_text('utf-8')}```"


# -------------------------------------------------------------------------------------------------- Markdown


def anchor(name: str) -> str:
    """A place on a page for a name of the language, whatever its signs."""
    return "p-" + re.sub(r"[^a-z0-9_]", lambda sign: str(ord(sign[0])), name.lower())


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _yes(can: bool) -> str:
    return "yes" if can else ""


PARTS: dict[str, Callable[[], str]] = {
    "random": random,
    "makers": makers,
    "deterministic": deterministic,
    "standard": standard,
    "actions": actions,
    "directives": directives,
    "prompt": prompt,
} | {f"program_{path.stem}": partial(program, path) for path in sorted(PROGRAMS.glob("*.vnt"))}
