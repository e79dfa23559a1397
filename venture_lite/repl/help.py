"""`help`, `help NAME`: what the records say, for a person."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from venture_lite.draws.presentation import table
from venture_lite.errors import NameUnknown
from venture_lite.inference.actions import ACTIONS
from venture_lite.inference.measures import MEASURES
from venture_lite.language.suggestions import suggestion
from venture_lite.procedures import registry
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.repl.names import BLOCKS, DIRECTIVES, FORMS, NameEntry, entries
from venture_lite.session import Venture
from venture_lite.session.standard import NAMES as STANDARD_NAMES


def overview(commands: Iterable[tuple[str, str]], width: int) -> str:
    """The prompt's own commands, as (usage, what they do), and every name of the language by kind."""
    groups: list[tuple[str, Iterable[str]]] = [
        ("directives", DIRECTIVES),
        ("special forms", FORMS),
        ("inference", ACTIONS),
        ("measures of a chain, for collect", MEASURES),
        ("blocks", BLOCKS),
        ("random procedures", _of_kind(Random)),
        ("makers of random procedures", _of_kind(Maker)),
        ("procedures", (*_of_kind(Deterministic), *STANDARD_NAMES)),
        ("constants", registry.CONSTANTS),
    ]
    lines = ["At the prompt:", *(f"  {line}" for line in table(("", ""), list(commands)).split("\n")[1:])]
    for title, names in groups:
        lines += ["", f"{title}:", *_wrapped(names, width)]
    lines += ["", "help NAME says more: help normal, help mh, help observe"]
    return "\n".join(lines)


def _of_kind(kind: type) -> list[str]:
    return [name for name, record in registry.PROCEDURES.items() if isinstance(record, kind)]


def _wrapped(names: Iterable[str], width: int) -> list[str]:
    text = "  ".join(names)
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def about(name: str, session: Venture, width: int) -> str:
    """Every meaning of a name. Raises NameUnknown with the nearest spelling."""
    known = entries(session)
    wanted = name.strip("[]()':")
    found = known.get(wanted) or known.get(wanted.lower())
    if not found:
        raise NameUnknown(f"nothing is called {name}", hint=suggestion(wanted, known) or "help, for a list of names")
    return "\n\n".join(_told(entry, width) for entry in found)


def _told(entry: NameEntry, width: int) -> str:
    usage = "\n".join(entry.usage)
    is_one = len(entry.usage) == 1
    lines = [f"{usage}  ({entry.kind})" if is_one else f"{entry.name}  ({entry.kind})\n{textwrap.indent(usage, '  ')}"]
    if entry.summary:
        lines += textwrap.wrap(entry.summary, width, initial_indent="  ", subsequent_indent="  ")
    for detail in entry.details:
        lines += [f"  {line}" for line in detail.split("\n")]
    return "\n".join(lines)
