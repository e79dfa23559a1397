"""Scaffolds: what a change of some choices touches (Mansinghka et al. 2014; Chen et al. 2014, definitions 2 to 5).

From the principal nodes the walk follows readers. What is computed from them is *renewed* (the target set D); a choice
that reads them *absorbs*; a predicate, an operator or a memo key that reads them changes structure, and what only it
keeps alive is *brush* (the transient set T). A group of absorbing choices that all read one global is kept as a site,
whatever its width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from venture_lite.errors import KernelError
from venture_lite.interpreter.constants import families_of_memo
from venture_lite.program.code import (
    KEY,
    OPERATOR,
    RESULT,
    Code,
    GlobalRef,
    Kind,
    Ref,
    SlotRef,
    is_constant_in_numbers,
    read_by_value,
)
from venture_lite.trace.bags import Bag
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.table import MAKER_EDGE, PRIMITIVE_EDGE, RANDOM_EDGE, ROW_MASK
from venture_lite.trace.trace import Trace

WIDE = 8
"""From this many rows on, the absorbing readers of a global, or of one family, are kept as one group."""


@dataclass(frozen=True, slots=True)
class UserGroup:
    """The choices of one site that absorb because they read the result of one memoized family, each in a row whose
    call leads to it."""

    site: int
    # slot of the call, in the same rows
    call: int
    # row of the family
    family: int
    rows: Bag


class Scaffold:
    """Ordered: dictionaries serve as ordered sets."""

    __slots__ = ("absorbing", "brush", "edges", "groups", "makers", "pending", "principals", "structural", "users")

    def __init__(self) -> None:
        self.principals: dict[int, None] = {}
        # D: nodes to be computed anew, principals not included
        self.pending: dict[int, None] = {}
        # those of D whose operator, predicate or key may change
        self.structural: dict[int, None] = {}
        # A, node by node
        self.absorbing: dict[int, None] = {}
        # A, sites all of whose live rows absorb
        self.groups: dict[int, None] = {}
        # A, those that read one family; only where asked for
        self.users: dict[UserGroup, None] = {}
        # makers whose parameters change; their statistics absorb
        self.makers: dict[int, None] = {}
        # T: (Code, row) of the families that go, outer ones first
        self.brush: dict[tuple[Code, int], None] = {}
        # nodes whose edge is taken away: the structural ones, and those inside the brush
        self.edges: dict[int, None] = {}

    def is_plain(self) -> bool:
        """Whether nothing but the principals changes, and all that absorbs is known by site."""
        return not (self.pending or self.structural or self.makers or self.brush)


class Builder:
    """Builds one scaffold. With `by_family` the users of a family may be kept as one group. With `by_value` numbers
    move and no type or size does, so that who asks for these alone, as `(is_empty xs)` does, reads nothing."""

    def __init__(self, trace: Trace, by_family: bool = False, by_value: bool = False) -> None:
        self.trace = trace
        self.by_family = by_family
        self.by_value = by_value
        self.scaffold = Scaffold()
        self._todo: list[int] = []
        # what readers read by value
        self._read: dict[tuple[Code, int, int], frozenset[Ref]] = {}
        # how each node was found: (node that it reads, hop, nodes); None where some hop depends on more than sites
        self.route: list[tuple[int, str, list[int]]] | None = []
        self._from = -1

    def build(self, principals: Iterable[int], with_brush: bool = True) -> Scaffold:
        """The scaffold of some choices. Who asks only whether structure may change needs no brush."""
        scaffold = self.scaffold
        for node in principals:
            scaffold.principals[node] = None
        self._todo.extend(reversed(list(scaffold.principals)))
        self._walk()
        if scaffold.users and not self._keep_groups_apart():
            for group in scaffold.users:
                for row in group.rows:
                    self._renew((self.trace.program.site_code[group.site].first_site + group.call) << 32 | row)
            scaffold.users.clear()
            self._walk()
        if scaffold.structural and with_brush:
            self.grow_brush()
            self._leave_brush_out()
            self._order_by_rows()
        if scaffold.groups:
            self._count_once()
        return scaffold

    def _order_by_rows(self) -> None:
        """What comes into being is drawn row by row, in the order in which rows were met, and in each as its text is
        evaluated: an order that who follows a value through rows can keep."""
        rows: dict[tuple[int, int], list[int]] = {}
        site_code = self.trace.program.site_code
        for node in self.scaffold.pending:
            rows.setdefault((site_code[node >> 32].index, node & ROW_MASK), []).append(node)
        self.scaffold.pending = {node: None for nodes in rows.values() for node in sorted(nodes)}

    # --------------------------------------------------------------------------------------------- following

    def _walk(self) -> None:
        while self._todo:
            self._visit(self._todo.pop())

    def _visit(self, node: int) -> None:
        code, slot, row = self.trace.decode(node)
        self._from = node
        for reader, role in code.readers.get(slot, ()):
            if self._counts(code, reader, role, SlotRef(0, slot)):
                self._read_by(code, reader, row, role)
        for path, reader, role in code.env_readers.get(slot, ()):
            self.route = None
            if not self._counts(path[-1], reader, role, SlotRef(len(path), slot)):
                continue
            for inner in self._rows_below(code, path, row):
                self._read_by(path[-1], reader, inner, role)
        if slot == code.result_slot:
            self._result_changed(code, row)

    def _counts(self, code: Code, slot: int, role: int, read: Ref) -> bool:
        """Whether a reader's numbers may change with those of what it reads."""
        if not self.by_value:
            return True
        reader = code, slot, role
        if reader not in self._read:
            self._read[reader] = read_by_value(*reader)
        return read in self._read[reader]

    def _rows_below(self, code: Code, path: tuple[Code, ...], row: int) -> list[int]:
        """Live rows of the innermost Code of the path whose environment, level by level, is `row`."""
        rows = [row]
        tables = self.trace.tables
        for inner in path:
            if inner.kind == "branch":
                edge = tables[code.index].edges[inner.if_slot]
                packed = [edge.view[at] for at in rows]
                rows = [target & ROW_MASK for target in packed if target >> 32 == inner.index]
            else:
                children = tables[inner.index].children
                rows = [child for at in rows if at in children for child in children[at]]
            code = inner
        return rows

    def _result_changed(self, code: Code, row: int) -> None:
        if code.kind == "directive":
            bound = self.trace.bindings.by_row.get((code.index, row))
            self.route = None
            if bound is not None:
                for reader_code, reader, role in bound.readers:
                    if self._counts(reader_code, reader, role, GlobalRef(bound)):
                        self._all_rows_read(reader_code, reader, role)
        elif code.kind == "branch":
            node = self.trace.if_of(code, row)
            if self.route is not None:
                self.route.append((self._from, "environment", [node]))
            self._renew(node)
        else:
            grouped = self._grouped_users(code, row) if self.by_family else set()
            users = self.trace.users.nodes(code, row, grouped)
            if self.route is not None:
                self.route.append((self._from, "users", users))
            for user in users:
                self._renew(user)

    def _grouped_users(self, code: Code, row: int) -> set[int]:
        """Sites of calls whose rows are kept as groups: nothing in them is renewed."""
        found: set[int] = set()
        for site, bag in self.trace.users.bags(code, row):
            readers = self._choices_that_read(site) if bag.count > WIDE else ()
            if readers:
                self.route = None
                found.add(site)
                slot = self.trace.program.site_slot[site]
                self.scaffold.users.update((UserGroup(reader, slot, row, bag), None) for reader in readers)
        return found

    def _choices_that_read(self, site: int) -> list[int]:
        """The sites of all that reads a call's value, where these are choices of the same rows and the value is
        borrowed; else none."""
        code, slot = self.trace.program.site_code[site], self.trace.program.site_slot[site]
        column = self.trace.tables[code.index].columns[slot]
        if not isinstance(column, BorrowedColumn) or code.env_readers.get(slot) or slot == code.result_slot:
            return []
        readers = code.readers.get(slot, [])
        if any(reader < 0 or role < 0 or code.slots[reader].kind is not Kind.RANDOM for reader, role in readers):
            return []
        return [code.first_site + reader for reader in dict.fromkeys(reader for reader, _ in readers)]

    def _keep_groups_apart(self) -> bool:
        """Whether no choice absorbs twice; groups of sites that absorb as a whole are left out."""
        scaffold = self.scaffold
        if scaffold.structural or scaffold.makers:
            return False
        scaffold.users = {group: None for group in scaffold.users if group.site not in scaffold.groups}
        self._join_groups()
        families: dict[int, set[int]] = {}
        for group in scaffold.users:
            families.setdefault(group.site, set()).add(group.family)
        calls = {group.site: group.call for group in scaffold.users}
        single = [*scaffold.absorbing, *scaffold.principals]
        return all(calls[group.site] == group.call for group in scaffold.users) and not any(
            node >> 32 in families and self._leads_to(node, calls[node >> 32], families[node >> 32]) for node in single
        )

    def _join_groups(self) -> None:
        """Rows that read several families, as (w 0) and (w 1), are one group: that of a family which all of them
        read."""
        joined: dict[tuple[int, int, int], UserGroup] = {}
        calls: dict[int, dict[int, None]] = {}
        for group in sorted(self.scaffold.users, key=lambda group: -group.rows.count):
            known = calls.setdefault(group.site, {})
            if not any(self._holds(joined, call, group) for call in known if call != group.call):
                known[group.call] = None
                joined[group.site, group.call, group.family] = group
        self.scaffold.users = dict.fromkeys(joined.values())

    def _holds(self, joined: dict[tuple[int, int, int], UserGroup], call: int, group: UserGroup) -> bool:
        """Whether by another call all rows of a group lead to one family, which has a group of its own."""
        edges = self.trace.tables[self.trace.program.site_code[group.site].index].edges[call]
        families = edges.gather(group.rows.array()) & ROW_MASK
        return (group.site, call, int(families[0])) in joined and bool((families == families[0]).all())

    def _leads_to(self, node: int, call: int, families: set[int]) -> bool:
        """Whether the call in a choice's row leads to one of some families."""
        code, _, row = self.trace.decode(node)
        return self.trace.tables[code.index].edges[call].view[row] & ROW_MASK in families

    def _all_rows_read(self, code: Code, slot: int, role: int) -> None:
        if code.index < 0 or code.index >= len(self.trace.tables):
            return
        table, scaffold = self.trace.tables[code.index], self.scaffold
        if slot >= 0 and role >= 0 and code.slots[slot].kind is Kind.RANDOM:
            site = code.first_site + slot
            if table.count - table.dead > WIDE:
                scaffold.groups[site] = None
                return
            for row in table.live_rows():
                if (node := site << 32 | row) not in scaffold.principals:
                    scaffold.absorbing[node] = None
            return
        for row in table.live_rows():
            self._read_by(code, slot, row, role)

    def _read_by(self, code: Code, slot: int, row: int, role: int) -> None:
        if role == RESULT:
            self._result_changed(code, row)
            return
        item = code.slots[slot]
        node = (code.first_site + slot) << 32 | row
        if role == KEY:
            raise KernelError("a block's key would change: it depends on a random choice", item.span)
        if self.route is not None and item.kind in (Kind.RANDOM, Kind.DETERMINISTIC):
            self.route.append((self._from, "row", [node]))
        match item.kind:
            case Kind.RANDOM:
                if node not in self.scaffold.principals:
                    self.scaffold.absorbing[node] = None
            case Kind.DETERMINISTIC:
                self._renew(node)
            case Kind.MAKER:
                if node not in self.scaffold.makers:
                    self.scaffold.makers[node] = None
                    self.scaffold.pending[node] = None
            case Kind.MEM | Kind.IF:
                self._restructure(node, code, slot, row)
            case Kind.CALL:
                self._call_reads(node, code, slot, row, role)

    def _call_reads(self, node: int, code: Code, slot: int, row: int, role: int) -> None:
        packed = self.trace.tables[code.index].edges[slot].view[row]
        self.route = None
        if role == OPERATOR:
            self._restructure(node, code, slot, row)
        elif packed in (RANDOM_EDGE, MAKER_EDGE):
            # an application whose operator changes is made anew: it does not absorb
            if node not in self.scaffold.principals and node not in self.scaffold.structural:
                self.scaffold.absorbing[node] = None
        elif packed == PRIMITIVE_EDGE:
            if not (self.by_value and is_constant_in_numbers(self.trace.read(node >> 32, row)[0])):
                self._renew(node)
        elif packed >= 0:
            inner = self.trace.program.codes[packed >> 32]
            if self.trace.is_memoized(inner, packed & ROW_MASK):
                self._restructure(node, code, slot, row)
            else:
                self._renew((inner.first_site + role) << 32 | packed & ROW_MASK)

    def _renew(self, node: int) -> None:
        """A node of D; what reads it is followed, unless evidence fixes its value."""
        if node not in self.scaffold.pending and node not in self.scaffold.principals:
            self.scaffold.pending[node] = None
            code, slot, row = self.trace.decode(node)
            if not self.trace.tables[code.index].is_observed(slot, row):
                self._todo.append(node)

    def _restructure(self, node: int, code: Code, slot: int, row: int) -> None:
        if node in self.scaffold.structural:
            return
        self.scaffold.structural[node] = None
        self.scaffold.principals.pop(node, None)
        self.scaffold.absorbing.pop(node, None)
        self._renew(node)

    # -------------------------------------------------------------------------------------------------- brush

    def grow_brush(self, *going: tuple[Code, int]) -> None:
        """Families that nothing outside keeps alive once the structural nodes and the families that are `going` let go
        of theirs."""
        trace, scaffold = self.trace, self.scaffold
        released: dict[tuple[Code, int], int] = {}
        todo = list(reversed(scaffold.structural))
        # memoized procedures that go: what stayed for their next call goes with them
        procedures = [trace.value(node) for node in todo if trace.is_memo(node)]

        def goes(family: tuple[Code, int]) -> None:
            scaffold.brush[family] = None
            first = family[0].first_site
            for step in reversed(family[0].steps):
                kind = family[0].slots[step].kind
                if kind in (Kind.CALL, Kind.IF):
                    todo.append((first + step) << 32 | family[1])
                elif kind is Kind.MEM:
                    procedures.append(trace.value((first + step) << 32 | family[1]))

        for family in going:
            goes(family)
        while todo or procedures:
            if not todo:
                for family in families_of_memo(procedures.pop()):
                    if family not in scaffold.brush and released.get(family, 0) == trace.users.count(*family):
                        goes(family)
                continue
            node = todo.pop()
            if node in scaffold.edges:
                continue
            scaffold.edges[node] = None
            code, slot, row = trace.decode(node)
            edges = trace.tables[code.index].edges
            if slot not in edges or (packed := edges[slot].view[row]) < 0:
                continue
            inner = trace.program.codes[packed >> 32]
            family = (inner, packed & ROW_MASK)
            if inner.kind != "branch":
                released[family] = released.get(family, 0) + 1
                if released[family] < trace.users.count(*family) or trace.constants.stays(*family):
                    continue
            goes(family)

    def _count_once(self) -> None:
        """A choice of a whole site is not weighed again as one that absorbs alone, nor at all where it is principal."""
        scaffold = self.scaffold
        for node in [node for node in scaffold.absorbing if node >> 32 in scaffold.groups]:
            del scaffold.absorbing[node]
        for site in {node >> 32 for node in scaffold.principals if node >> 32 in scaffold.groups}:
            self._take_apart(site, lambda node: node not in scaffold.principals)

    def _take_apart(self, site: int, absorbs: Callable[[int], bool]) -> None:
        """Rows of a group absorb one by one, those that do."""
        del self.scaffold.groups[site]
        self.scaffold.absorbing.update(dict.fromkeys(filter(absorbs, self.trace.nodes_of(site))))

    def _leave_brush_out(self) -> None:
        """Nodes in the brush go as a whole; they are no longer principal, renewed or absorbing."""
        scaffold = self.scaffold
        parts = (scaffold.principals, scaffold.pending, scaffold.structural, scaffold.absorbing, scaffold.makers)
        for code, row in scaffold.brush:
            for site in range(code.first_site, code.first_site + len(code.slots)):
                for nodes in parts:
                    nodes.pop(site << 32 | row, None)
        if not scaffold.groups:
            return
        gone, site_code = {code for code, _ in scaffold.brush}, self.trace.program.site_code
        for site in [site for site in scaffold.groups if site_code[site] in gone]:
            self._take_apart(site, lambda node: (site_code[node >> 32], node & ROW_MASK) not in scaffold.brush)


def absorbing_count(trace: Trace, scaffold: Scaffold) -> int:
    """Choices that a transition on a scaffold weighs because they absorb."""
    count = len(scaffold.absorbing)
    for site in scaffold.groups:
        table = trace.tables[trace.program.site_code[site].index]
        count += table.count - table.dead
    for group in scaffold.users:
        count += group.rows.count
    return count


def absorbing_rows(trace: Trace, scaffold: Scaffold) -> list[int]:
    """Every choice that absorbs, one by one, those of groups last."""
    groups = (node for site in scaffold.groups for node in trace.nodes_of(site))
    return list(dict.fromkeys((*scaffold.absorbing, *groups)))


def is_maker_application(trace: Trace, node: int) -> bool:
    return trace.edge(node) == MAKER_EDGE


def is_distribution(trace: Trace, node: int) -> bool:
    """Whether a choice was made by a distribution, and no exchangeable procedure."""
    return trace.kind(node) is Kind.RANDOM or trace.edge(node) == RANDOM_EDGE


def going(trace: Trace, *families: tuple[Code, int]) -> Scaffold:
    """Rows of directives, or families that nobody uses, with the families that nothing else keeps alive: all of it
    brush."""
    builder = Builder(trace)
    builder.grow_brush(*families)
    return builder.scaffold
