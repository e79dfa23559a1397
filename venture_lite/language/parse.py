"""From a text to the syntax tree; the only module that knows the parser generator.

`grammar/venture.lark` cuts and nests the text; lark's LALR automaton calls the methods of `_Builder` bottom-up, so no
depth of nesting meets the host's recursion limit. Directives come out in one flat row, and loops take their bodies
from it by indentation (`nesting.py`). When a text is refused, its brackets and strings are looked at again on their
own: a message about the bracket that was left open is worth more than one about the token where that was noticed.
"""

from __future__ import annotations

import functools
import math
import re
import threading
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from venture_lite.errors import InternalError, ParseError, Source, Span
from venture_lite.language import syntax
from venture_lite.language.collector import collector_paused
from venture_lite.language.directives import directive
from venture_lite.language.nesting import Item, nested
from venture_lite.language.refusals import bad_parameter, balance_of, explain
from venture_lite.language.syntax import Directive, Expression, Form, Index, Literal, Name, Parameter, Quote
from venture_lite.values import Symbol

if TYPE_CHECKING:
    from lark import Lark
    from lark.exceptions import UnexpectedInput


MOST_CHARACTERS = 16 * 2**20
"""A text beyond this is refused: reading it would take minutes and gigabytes, and it is data that should be given."""


def parse_program(source: Source) -> tuple[Directive, ...]:
    """The directives of a text, in order. Raises ParseError."""
    return nested(source, parse_items(source))


def parse_items(source: Source, start: int = 0, end: int | None = None) -> list[Item]:
    """The directives and the heads of loops in a part of a text, in one flat row. Raises ParseError."""
    return cast(list[Item], _parse(source, "program", start, len(source.text) if end is None else end))


def parse_expression(source: Source) -> Expression:
    """The one expression that a text holds. Raises ParseError."""
    return cast(Expression, _parse(source, "lone_expression", 0, len(source.text)))


def is_complete(text: str) -> bool:
    """Whether a person has finished typing: no bracket, string, label or loop waits for more.

    A text that no continuation can mend is complete, so that its error is shown. The body of a loop that is indented
    below it ends, as in Python, with an empty line.
    """
    balance = balance_of(Source("", text))
    if balance.error is not None:
        return not balance.unfinished
    if balance.last_sign == ":":
        return False
    last_line = text[text.rfind("\n") + 1 :]
    return not (balance.indented_loop and last_line[:1].isspace() and last_line.strip())


def _parse(source: Source, rule: str, start: int, end: int) -> object:
    from lark import TextSlice
    from lark.exceptions import UnexpectedInput

    refuse_too_long(source)
    try:
        _BUILDER.source = source
        with collector_paused():
            return _automaton().parse(TextSlice(source.text, start, end), start=rule)
    except ParseError as refused:
        error = refused
    except UnexpectedInput as refused:
        error = _explained(source, refused, start, end)
    unbalanced = balance_of(source, start, end).error
    if unbalanced is not None and (_start(unbalanced) <= _start(error) or source.text.startswith('"', _start(error))):
        error = unbalanced
    raise error


def refuse_too_long(source: Source) -> None:
    """Raises ParseError for a text that is too long for a program."""
    if len(source.text) > MOST_CHARACTERS:
        message = f"a program has {MOST_CHARACTERS:,} characters at most, this one {len(source.text):,}"
        hint = "give data as parameters: {X[n]} in the text, X=... from Python, -d X=FILE on the command line"
        raise ParseError(message, Span(source, 0, 1), hint)


def _start(error: ParseError) -> int:
    return error.span.start if error.span else 0


def _explained(source: Source, refused: UnexpectedInput, first: int, end: int) -> ParseError:
    from lark import Token

    waiting = [
        (part.type, part.start_pos or 0)
        for part in refused.interactive_parser.parser_state.value_stack
        if isinstance(part, Token)
    ]
    token = getattr(refused, "token", None)
    if token is not None and token.type == "$END":
        text_end = first + len(source.text[first:end].rstrip())
        return explain(source, waiting, "end", Span(source, text_end, end))
    start = refused.pos_in_stream or 0
    return explain(source, waiting, token.type if token else "", Span(source, start, start + len(token or " ")))


@functools.cache
def _automaton() -> Lark:
    """The automaton that cuts and nests a text, from the tables that the build made if they are current."""
    import lark

    package = Path(__file__).parents[1]
    for folder in (package / "_grammar", package.parent / "grammar"):
        path = folder / "venture.lark"
        if path.is_file():
            grammar = path.read_text(encoding="utf-8")
            made = _tables(folder / "tables.json")
            if made.get("grammar") == grammar and made.get("lark") == lark.__version__:
                restored = lark.Lark._load_from_dict(made["data"], made["memo"], transformer=_BUILDER)  # type: ignore[no-untyped-call]
                return cast("Lark", restored)
            return lark.Lark(grammar, parser="lalr", start=["program", "lone_expression"], transformer=_BUILDER)
    raise InternalError(f"the grammar is neither beside nor inside {package}")


def _tables(path: Path) -> dict[Any, Any]:
    """What the build left of the automaton; nothing where it left nothing that can be read."""
    import json

    try:
        text = path.read_text(encoding="utf-8")
        # JSON's keys are text, the automaton's states are numbers
        made = json.loads(text, object_hook=lambda found: {int(k) if k.isdigit() else k: v for k, v in found.items()})
    except (OSError, ValueError):
        return {}
    return made if isinstance(made, dict) else {}


# ------------------------------------------------------------------------------------------------------ the tree


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "\\": "\\", "'": "'"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False}


class _Builder(threading.local):
    """Makes the tree's nodes, one method for each rule of the grammar; lark calls them with the rule's children.

    The automaton is made once and shared; the source of the parse in progress is each thread's own.
    """

    source = Source("")

    def _span(self, first: Any, last: Any) -> Span:
        """From the start of one token or node to the end of another."""
        start = first.span.start if hasattr(first, "span") else first.start_pos
        return Span(self.source, start, last.span.end if hasattr(last, "span") else last.end_pos)

    # expressions

    def number(self, children: list[Any]) -> Literal:
        (token,) = children
        span = self._span(token, token)
        value: int | float = float(token)
        if math.isinf(value):
            raise ParseError("this number is too large for floating point", span)
        if len(token) < 25 and token.lstrip("+-").isdigit() and -(2**63) <= int(token) < 2**63:
            value = int(token)
        return Literal(value, span)

    def string(self, children: list[Any]) -> Literal:
        (token,) = children

        def unescaped(match: re.Match[str]) -> str:
            four, two, one = match.groups()
            if one is None:
                return chr(int(four or two, 16))
            if one not in _ESCAPES:
                start = token.start_pos + 1 + match.start()
                place = Span(self.source, start, start + len(match[0]))
                raise ParseError(f"`{match[0]}` is no escape of a string", place, "`\\\\` for a backslash itself")
            return _ESCAPES[one]

        return Literal(_ESCAPE.sub(unescaped, token[1:-1]), self._span(token, token))

    def name(self, children: list[Any]) -> Name | Literal:
        (token,) = children
        span = self._span(token, token)
        if token in _BOOLEANS:
            return Literal(_BOOLEANS[token], span)
        return Name(spelling(token), span)

    def quote(self, children: list[Any]) -> Quote:
        mark, quoted = children
        return Quote(_datum(quoted), self._span(mark, quoted))

    def form(self, children: list[Any]) -> Form | Quote:
        span = self._span(children[0], children[-1])
        match children[1:-1]:
            case [Name("quote"), quoted] if children[0] == "(":
                return Quote(_datum(quoted), span)
        return Form(tuple(children[1:-1]), span)

    def parameter(self, children: list[Any]) -> Parameter:
        span = self._span(children[0], children[2])
        if "#" in span.text or ";" in span.text:
            raise bad_parameter(span)
        return Parameter(children[1], span)

    # inside the braces

    def index_number(self, children: list[Any]) -> syntax.IndexNumber:
        (token,) = children
        if len(token) > 18:
            raise ParseError("this number is too large for an index", self._span(token, token))
        return syntax.IndexNumber(int(token), self._span(token, token))

    def index_name(self, children: list[Any]) -> syntax.IndexName:
        return syntax.IndexName(spelling(children[0]), self._span(children[0], children[0]))

    def index_of(self, children: list[Any]) -> syntax.IndexOf:
        return syntax.IndexOf(children[0], tuple(children[2:-1:2]), self._span(children[0], children[-1]))

    def arithmetic(self, children: list[Any]) -> syntax.IndexArithmetic:
        left, operator, right = children
        return syntax.IndexArithmetic(str(operator), left, right, self._span(left, right))

    def negated(self, children: list[Any]) -> Index:
        minus, index = children
        if isinstance(index, syntax.IndexNumber):
            return syntax.IndexNumber(-index.value, self._span(minus, index))
        zero = syntax.IndexNumber(0, self._span(minus, minus))
        return syntax.IndexArithmetic("-", zero, index, self._span(minus, index))

    def bracketed(self, children: list[Any]) -> Index:
        return cast(Index, replace(children[1], span=self._span(children[0], children[2])))

    # directives

    def item(self, children: list[Any]) -> Item:
        (content,) = children
        if not isinstance(content, syntax.Loop):
            content = directive(content)
        return Item(content, content.span.start, content.span.end)

    def labelled_item(self, children: list[Any]) -> Item:
        name, _, content = children
        item = self.item([content])
        assert item.content is not None
        return Item(replace(item.content, label=spelling(name)), name.start_pos, item.end)

    def loop_head(self, children: list[Any]) -> syntax.Loop:
        mark, variable, _, first, _, last, colon = children
        return syntax.Loop(spelling(variable), first, last, span=self._span(mark, colon))

    def program(self, children: list[Any]) -> list[Item]:
        return children

    def lone_expression(self, children: list[Any]) -> Expression:
        return cast(Expression, children[0])


_BUILDER = _Builder()


def spelling(token: str) -> str:
    """A name as it is compared: normalised as Python normalises keywords, so that parameters are found."""
    if token.isascii():
        return str(token)
    normal = unicodedata.normalize("NFKC", token)
    return str(token) if re.search(r"[\s()\[\]{}'\";#:]", normal) else normal


def _datum(quoted: Expression) -> object:
    """The value of a quoted expression: symbols for names, tuples for forms."""
    finished: list[object] = []
    pending: list[Expression | int] = [quoted]
    while pending:
        match pending.pop():
            case int(count):
                items = tuple(finished[len(finished) - count :])
                del finished[len(finished) - count :]
                finished.append(items)
            case Form(items):
                pending.append(len(items))
                pending.extend(reversed(items))
            case Literal(value):
                finished.append(value)
            case Name(name):
                finished.append(Symbol(name))
            case Quote(value):
                finished.append((Symbol("quote"), value))
            case Parameter(_, span):
                raise ParseError("a parameter cannot be quoted", span, "(list ...) in place of the quoted list")
    return finished[0]
