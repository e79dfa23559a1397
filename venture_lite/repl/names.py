"""What stands behind a name at the prompt: one `Entry` for each, for help, completion and the line below the prompt.

Procedures and actions describe themselves by their records; directives, special forms and the words of inference are
described here, and the tests hold these tables to the language.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from venture_lite.inference.actions import ACTIONS
from venture_lite.inference.measures import MEASURES
from venture_lite.language.syntax import Expression, Form, Name
from venture_lite.procedures import registry
from venture_lite.procedures.record import REQUIRED, Deterministic, Maker, Procedure, Random
from venture_lite.program import compounds, queries
from venture_lite.session import Venture
from venture_lite.session.standard import NAMES as STANDARD_NAMES
from venture_lite.session.standard import prelude
from venture_lite.values import show

DIRECTIVES = {
    "assume": ("[assume NAME EXPR]", "Evaluates EXPR in the trace and binds NAME to it for all that follows."),
    "observe": ("[observe EXPR VALUE]", "Fixes the random choice that EXPR's value is; gives its log density."),
    "factor": ("[factor EXPR]", "Adds EXPR to the log density of the trace."),
    "condition": ("[condition EXPR]", "Gives states in which EXPR does not hold probability zero."),
    "predict": ("[predict EXPR]", "Evaluates EXPR in the trace and keeps it up to date."),
    "infer": ("[infer INFERENCE]", "Runs an inference program, such as (mh default one 1000)."),
    "sample": ("[sample EXPR]", "Evaluates EXPR against the present trace and keeps nothing of it."),
    "force": ("[force EXPR VALUE]", "Sets a random choice once, without fixing it."),
    "forget": ("[forget LABEL-OR-ID]", "Undoes an assume, an observe or a predict."),
    "freeze": ("[freeze LABEL-OR-ID]", "Makes the present value of an assume or predict a constant."),
    "report": ("[report LABEL-OR-ID]", "The present value of a directive."),
    "define": ("[define NAME EXPR]", "Binds NAME for inference programs only."),
    "list_directives": ("[list_directives]", "Every directive of the model, with its number and label."),
    "clear": ("[clear]", "Forgets the model; the random numbers start again from the seed."),
    "get_logscore": ("[get_logscore]", "The log joint density of the present trace."),
    "load": ('[load "FILE"]', "Runs the directives of another file."),
}
FORMS = {
    "lambda": ("(lambda (NAME ...) BODY)", "A procedure that closes over where it is made."),
    "if": ("(if PREDICATE THEN ELSE)", "Evaluates one of two branches; the other one does not exist."),
    "cond": ("(cond (PREDICATE EXPR) ... (else EXPR))", "The expression of the first predicate that holds."),
    "let": ("(let ((NAME EXPR) ...) BODY)", "Binds names one after the other."),
    "letrec": ("(letrec ((NAME EXPR) ...) BODY)", "Binds procedures that may refer to each other."),
    "begin": ("(begin EXPR ...)", "The value of the last expression."),
    "and": ("(and EXPR ...)", "True if all are, evaluated up to the first that is not."),
    "or": ("(or EXPR ...)", "True if one is, evaluated up to the first that is."),
    "quote": ("(quote DATUM), 'DATUM", "The text itself as a value: a symbol, or a list of them."),
    "mem": ("(mem PROCEDURE)", "A procedure that draws once for each of its arguments and remembers."),
    "scope_include": ("(scope_include SCOPE BLOCK EXPR)", "Tags the random choices of EXPR, for inference."),
    "tag": ("(tag SCOPE BLOCK EXPR)", "Short for scope_include."),
}
BLOCKS = {
    "one": "a block drawn at random",
    "all": "all blocks together",
    "each": "every block in turn",
    "ordered": "every block, in the order of keys",
}
DEFAULT_SCOPE = ("default", "every random choice that is not observed")


@dataclass(frozen=True, slots=True)
class NameEntry:
    """One meaning of a name."""

    name: str
    # directive, special form, random procedure, ...
    kind: str
    usage: tuple[str, ...]
    summary: str
    details: tuple[str, ...] = ()


def entries(session: Venture | None = None) -> dict[str, list[NameEntry]]:
    """Every name with its meanings: the language's, and what a session has bound."""
    found: defaultdict[str, list[NameEntry]] = defaultdict(list)
    for entry in chain(_language(), _bound(session) if session is not None else ()):
        found[entry.name].append(entry)
    return dict(found)


def _language() -> Iterator[NameEntry]:
    for kind, table in (("directive", DIRECTIVES), ("special form", FORMS)):
        yield from (NameEntry(name, kind, (usage,), summary) for name, (usage, summary) in table.items())
    for usages, summaries in ((compounds.USAGES, compounds.SUMMARIES), (queries.USAGES, queries.SUMMARIES)):
        yield from (NameEntry(name, "special form", (usage,), summaries[name]) for name, usage in usages.items())
    yield from map(of_procedure, registry.PROCEDURES.values())
    yield from map(_of_standard, STANDARD_NAMES)
    for name, number in registry.CONSTANTS.items():
        yield NameEntry(name, "constant", (name,), f"The number {number}.")
    for action in ACTIONS.values():
        yield NameEntry(action.name, "inference action", action.usage, action.summary)
    for measure in MEASURES.values():
        yield NameEntry(measure.name, "inference measure", (measure.usage,), measure.summary)
    for name, text in BLOCKS.items():
        yield NameEntry(name, "block", (f"(mh SCOPE {name} T)",), f"{text[0].upper()}{text[1:]}.")


def of_procedure(record: Procedure) -> NameEntry:
    """What a record says of itself."""
    words, details = [], []
    for argument in record.arguments:
        is_optional = argument.default is not REQUIRED
        default = f", {show(argument.default)} if left out" if is_optional else ""
        words.append(f"[{argument.name}]" if is_optional else argument.name)
        details.append(f"{argument.name}: {argument.domain.phrase}{default}")
    if isinstance(record, Deterministic) and record.rest is not None:
        words.append("...")
    if isinstance(record, (Random, Maker)):
        if record.transform is not None:
            details.append("continuous: 'drift moves it")
        elif isinstance(record, Random) and record.support is not None:
            details.append("finite support: gibbs enumerates it")
        if record.source:
            details.append(f"source: {record.source}")
    return NameEntry(
        record.name, KINDS[type(record)], (f"({' '.join([record.name, *words])})",), record.summary, tuple(details)
    )


KINDS: Mapping[type, str] = {
    Deterministic: "procedure",
    Random: "random procedure",
    Maker: "maker of random procedures",
}


def _of_standard(name: str) -> NameEntry:
    """A procedure that the standard library defines in the language: its arguments, and its text."""
    expression: Expression = prelude()[name]
    words = [name]
    match expression:
        case Form((Name("lambda"), Form(items), *_)):
            words += [item.span.text for item in items]
    text = expression.span.text.replace("\n", "\n  ")
    return NameEntry(name, "procedure of the standard library", (f"({' '.join(words)})",), "", (text,))


def _bound(session: Venture) -> Iterator[NameEntry]:
    """What the session's assumes and defines have bound."""
    for directive in session.list_directives():
        if label := directive["label"]:
            yield NameEntry(label, "label", (f"[report {label}]",), " ".join(directive["text"].split()))
    analyzer = session.traces[0].trace.analyzer
    for name, target in analyzer.globals.items():
        if target.span is not None:
            yield NameEntry(name, "assumed", (name,), " ".join(target.span.text.split()))
    for name, value in analyzer.defined.items():
        yield NameEntry(name, "defined", (name,), f"= {show(value)}, for inference")


def scopes(session: Venture) -> list[str]:
    """The names of the scopes that have choices now."""
    return sorted(map(str, session.traces[0].trace.scopes))
