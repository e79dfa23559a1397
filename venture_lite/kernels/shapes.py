"""The shapes met so far, and for each a printed function that finds its places from the principal of another block.

A hop reads one number of a table: the row around another, or who uses a family. So a block that was not met yet has its
binding in a few reads, however many blocks there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from venture_lite.interpreter.readers import compiled_text
from venture_lite.interpreter.shape import Binding, Hop, NoShape, Shape, Way, shape_of
from venture_lite.trace.table import NONE, ROW_MASK
from venture_lite.trace.trace import Trace

Binder = Callable[[int], tuple[int, ...] | None]
"""The principal of a block -> the rows of all places of a shape, or None where what is around it differs."""


class Shapes:
    """The shapes met so far that are found from a principal, by its site."""

    MOST = 8
    MOST_KEPT = 1000

    def __init__(self) -> None:
        # by the principal's site
        self.by_site: dict[int, list[tuple[Shape, Binder]]] = {}
        # so that a shape is known by its identity
        self._same: dict[Shape, Shape] = {}
        self._version = -1

    def bound(self, principal: int) -> tuple[Shape, tuple[int, ...]] | None:
        """The known shape that fits a block of one choice, and the rows of its places; the program is as it was when
        the shapes were met."""
        for shape, bind in self.by_site.get(principal >> 32, ()):
            rows = bind(principal)
            if rows is not None:
                return shape, rows
        return None

    def shape_of(self, trace: Trace, block: Sequence[int]) -> tuple[Shape, Binding] | NoShape:
        """The shape of a block and what stands in it, from the hops of a shape that is known where one fits."""
        if self._version != trace.program.version:
            self.by_site.clear()
            self._same.clear()
            self._version = trace.program.version
        if len(block) == 1 and (bound := self.bound(block[0])) is not None:
            shape, rows = bound
            return shape, Binding([site << 32 | row for site, row in zip(shape.sites, rows, strict=True)])
        found = shape_of(trace, block)
        if isinstance(found, NoShape):
            return found
        if len(self._same) >= self.MOST_KEPT:
            self._same.clear()
        shape = self._same.setdefault(found[0], found[0])
        if shape.hops is not None:
            known = self.by_site.setdefault(block[0] >> 32, [])
            if len(known) < self.MOST and not any(shape is other for other, _ in known):
                known.append((shape, binder(trace, shape)))
        return shape, found[1]


def binder(trace: Trace, shape: Shape) -> Binder:
    """What follows the hops of a shape."""
    lines = [*_hops(trace, shape), *_flags(trace, shape), *_are_different(shape)]
    text = "\n    ".join(["def bind(n0):", f"r0 = n0 & {ROW_MASK}", *lines])
    rows = "".join(f"r{place}, " for place in range(len(shape.sites)))
    tables = [trace.tables[trace.program.site_code[site].index] for site in shape.sites]
    namespace: dict[str, Any] = {f"table{place}": table for place, table in enumerate(tables)}
    namespace |= {f"code{place}": table.code for place, table in enumerate(tables)}
    namespace |= {"users_of": trace.users.nodes}
    exec(compiled_text(f"{text}\n    return ({rows})\n"), namespace)
    found: Binder = namespace["bind"]
    return found


def _hops(trace: Trace, shape: Shape) -> list[str]:
    """The lines that find the places, each from one that is found."""
    found = {0}
    lines: list[str] = []
    for hop in shape.hops or ():
        rows = _targets(trace, shape, hop, lines)
        for place, row in zip(hop.targets, rows, strict=True):
            if place in found:
                lines.append(f"if {row} != r{place}: return None")
            else:
                found.add(place)
                lines.append(f"r{place} = {row}")
    return lines


def _targets(trace: Trace, shape: Shape, hop: Hop, lines: list[str]) -> list[str]:
    """The rows that a hop leads to, as expressions."""
    source, sites = hop.source, [shape.sites[place] for place in hop.targets]
    if hop.way is not Way.USERS:
        row = f"r{source}" if hop.way is Way.ROW else f"table{source}.environment.view[r{source}]"
        return [row]
    if trace.program.site_code[shape.sites[source]].kind == "directive":
        return []
    user = f"table{source}.user.view[r{source}]"
    if not sites:
        lines.append(f"if {user} != {NONE}: return None")
        return []
    if len(sites) == 1:
        # more than one user is a negative number, too
        lines += [f"u{source} = {user}", f"if u{source} >> 32 != {sites[0]}: return None"]
        return [f"u{source} & {ROW_MASK}"]
    lines += [f"u{source} = users_of(code{source}, r{source})", f"if len(u{source}) != {len(sites)}: return None"]
    lines += [f"if u{source}[{at}] >> 32 != {site}: return None" for at, site in enumerate(sites)]
    return [f"u{source}[{at}] & {ROW_MASK}" for at in range(len(sites))]


def _flags(trace: Trace, shape: Shape) -> list[str]:
    """The lines that see whether evidence fixes the same of what is renewed."""
    lines = []
    for place, fixed in zip(shape.order, shape.fixed, strict=True):
        flags = f"table{place}.observed.get({trace.program.site_slot[shape.sites[place]]})"
        lines += [f"f = {flags}", f"if (f is not None and f[r{place}] != 0) is not {fixed}: return None"]
    return lines


def _are_different(shape: Shape) -> list[str]:
    """The lines that see that no node stands at two places."""
    by_site: dict[int, list[int]] = {}
    for place, site in enumerate(shape.sites):
        by_site.setdefault(site, []).append(place)
    lines = []
    for places in by_site.values():
        if len(places) <= 3:
            lines += [f"if r{one} == r{other}: return None" for one, other in combinations(places, 2)]
        else:
            lines.append(f"if len({{{', '.join(f'r{place}' for place in places)}}}) != {len(places)}: return None")
    return lines
