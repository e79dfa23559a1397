"""Shapes: scaffolds without their rows, by which transitions of one kind are known to be one.

Where no structure changes, a scaffold is a few *places*, each at a site: principals and what is computed from them, in
an order in which each finds its parents done, and what absorbs. A shape says so, and how the places are found from one
principal; a binding says which nodes stand there. Blocks of one shape are prepared once: for the next one a few hops
from its principal give its binding, without a walk over readers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from venture_lite.errors import Span
from venture_lite.interpreter.runs import reads_of
from venture_lite.interpreter.scaffold import Builder, Scaffold, UserGroup, is_distribution, is_maker_application
from venture_lite.interpreter.sources import Circular, parents_first, parents_of, source_nodes
from venture_lite.program.code import Code, Program
from venture_lite.trace.trace import Trace

LONGEST = 64
"""More renewed nodes than this are left to the machine, which walks chains of any length."""

ELSEWHERE = -1
"""In `Shape.reads`: a row or a node that is at no place."""

STRUCTURE_CHANGES = "a branch, a call or a memoized procedure may change with the block, and with it what exists"
PARAMETERS_CHANGE = "the parameters of an exchangeable procedure depend on the block"
INPUTS_CHANGE = "what an exchangeable procedure is applied to depends on the block"
DRAWN_TOGETHER = "a draw of an exchangeable procedure has no density of its own"
TOO_MANY_ROWS = "what is computed from the block is stored in too many rows"


class Way(Enum):
    """How a place is found from another."""

    ROW = "in its row"
    ENVIRONMENT = "in the row around it"
    USERS = "in the rows of its family's calls"


@dataclass(frozen=True, slots=True)
class Hop:
    """From one place to those that read it: to one, or to as many as a family has calls."""

    source: int
    way: Way
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A scaffold that keeps its structure, without its rows."""

    # the site of each place
    sites: tuple[int, ...]
    # places
    principals: tuple[int, ...]
    # places of principals and of what is renewed, parents first
    order: tuple[int, ...]
    # places
    absorbing: tuple[int, ...]
    # whether evidence fixes the values of `order`
    fixed: tuple[bool, ...]
    # sites all of whose rows absorb, and (site, slot of the call) of what absorbs as user of one family
    groups: tuple[int, ...]
    users: tuple[tuple[int, int], ...]
    # how places are found from the first one; None where some hop depends on more than sites
    hops: tuple[Hop, ...] | None
    # without hops, what the value or the density at each place is computed from: the index of the Code that reads, the
    # first place in its row, and the place of each node that it reads; ELSEWHERE for what is at no place
    reads: tuple[tuple[int, ...], ...] = ()

    def touched(self, program: Program) -> list[tuple[str, int]]:
        """What moves, what is renewed and what absorbs, with the text of each and how often."""
        renewed = [place for place in self.order if place not in self.principals]
        parts = [("moves", self.principals), ("renews", renewed), ("weighs", self.absorbing)]
        counts = Counter((verb, self.sites[place]) for verb, places in parts for place in places)
        found = [(f"{verb} {text_of_site(program, site)}", count) for (verb, site), count in counts.items()]
        found += [(f"weighs {text_of_site(program, site)}, in all rows", 1) for site in self.groups]
        calls = "in all rows that call one family"
        return found + [(f"weighs {text_of_site(program, site)}, {calls}", 1) for site, _ in self.users]


class Binding(NamedTuple):
    """The nodes that stand at a shape's places, and the users of its families."""

    nodes: Sequence[int]
    users: Sequence[UserGroup] = ()


@dataclass(frozen=True, slots=True)
class NoShape:
    """Why a block's transition cannot be made from its rows alone, and the expression at which that shows."""

    reason: str
    place: Span | None


def text_of_site(program: Program, site: int) -> str:
    """A site's expression as written, on one line; the name of its body where it has no text."""
    span = program.site_code[site].slots[program.site_slot[site]].span
    return " ".join(span.text.split()) if span is not None else program.site_code[site].name


def shape_of(trace: Trace, block: Sequence[int]) -> tuple[Shape, Binding] | NoShape:
    """The shape of a block's scaffold as of this state, and what stands in it."""
    builder = Builder(trace, by_family=True)
    scaffold = builder.build(block, with_brush=False)
    found = _refusal(trace, scaffold)
    if found is not None:
        return found
    order = _order(trace, scaffold)
    if order is None:
        first = next(iter(scaffold.pending), None)
        return NoShape(TOO_MANY_ROWS, None if first is None else _text(trace, first))
    is_found = len(block) == 1 and not scaffold.groups and not scaffold.users
    places = dict.fromkeys(scaffold.principals)
    for _, _, nodes in (builder.route or ()) if is_found else ():
        places.update(dict.fromkeys(nodes))
    places.update(dict.fromkeys((*order, *scaffold.absorbing)))
    number = {node: place for place, node in enumerate(places)}
    hops = None
    if is_found and builder.route is not None:
        route = [(number[node], Way[hop.upper()], nodes) for node, hop, nodes in builder.route]
        hops = tuple(Hop(source, way, tuple(number[node] for node in nodes)) for source, way, nodes in route)
    reads = () if hops is not None else _reads(trace, number)
    shape = Shape(
        tuple(node >> 32 for node in places),
        tuple(number[node] for node in scaffold.principals),
        tuple(number[node] for node in order),
        tuple(number[node] for node in scaffold.absorbing),
        tuple(map(trace.is_observed, order)),
        tuple(scaffold.groups),
        tuple((group.site, group.call) for group in scaffold.users),
        hops,
        reads,
    )
    return shape, Binding(list(places), list(scaffold.users))


def _reads(trace: Trace, number: dict[int, int]) -> tuple[tuple[int, ...], ...]:
    """Of each place, what `Shape.reads` says."""
    rows: dict[tuple[Code, int], int] = {}
    for node, place in number.items():
        code, _, row = trace.decode(node)
        rows.setdefault((code, row), place)
    found = []
    for source in (reads_of(trace, node) for node in number):
        places = (number.get(node, ELSEWHERE) for node in source_nodes(trace, source))
        found.append((source.code.index, rows.get((source.code, source.row), ELSEWHERE), *places))
    return tuple(found)


def _refusal(trace: Trace, scaffold: Scaffold) -> NoShape | None:
    causes: tuple[tuple[str, Iterable[int]], ...] = (
        (STRUCTURE_CHANGES, scaffold.structural),
        (PARAMETERS_CHANGE, scaffold.makers),
        (INPUTS_CHANGE, (node for node in scaffold.absorbing if is_maker_application(trace, node))),
        (DRAWN_TOGETHER, (node for node in scaffold.principals if not is_distribution(trace, node))),
        (TOO_MANY_ROWS, scaffold.pending if len(scaffold.pending) > LONGEST else ()),
    )
    found = ((reason, node) for reason, nodes in causes for node in nodes)
    return next((NoShape(reason, _text(trace, node)) for reason, node in found), None)


def _text(trace: Trace, node: int) -> Span | None:
    code, slot, _ = trace.decode(node)
    return code.slots[slot].span


def _order(trace: Trace, scaffold: Scaffold) -> list[int] | None:
    """Principals and renewed nodes, parents first, in the order in which the machine would renew them."""
    waiting = {**scaffold.principals, **scaffold.pending}
    order: dict[int, None] = {}

    def needed(node: int) -> Iterator[int]:
        return (parent for parent in parents_of(trace, node) if parent in waiting and parent != node)

    try:
        for node in parents_first(waiting, needed, order, LONGEST):
            order[node] = None
    except Circular:
        return None
    return list(order)
