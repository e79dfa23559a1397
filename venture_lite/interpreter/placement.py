"""Whether every choice stands where it should: in bags, in `default`, in its blocks, each at a place of its own in the
order of sweeps. A part of the invariants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from venture_lite.interpreter.addresses import address, address_order, block_order
from venture_lite.trace.bags import Bag
from venture_lite.trace.scopes import SEVERAL, Scope
from venture_lite.trace.trace import Trace
from venture_lite.values import key_of


def misplaced(bag: Bag, what: str) -> list[str]:
    """Items whose kept position is not where they stand."""
    broken = []
    for position, item in enumerate(bag):
        column, row = bag.locate(item)
        if column.view[row] != position:
            broken.append(f"{what}: {item} stands at {position}, not at {column.view[row]}")
    return broken


def wrong_scopes(trace: Trace, free: list[int]) -> list[str]:
    """How the scopes differ from what the unobserved choices `free` and their tags say."""
    broken = [*_differing("scope default", Counter(free), Counter(trace.default.bag))]
    broken.extend(misplaced(trace.default.bag, "scope default"))
    expected: dict[Any, Counter[Any]] = {}
    for node in free:
        for name, key in trace.tags(*trace.decode(node)):
            if name != "default":
                expected.setdefault(name, Counter())[key_of(key), node] += 1
    for name, scope in trace.scopes.items():
        if scope.added is not None:
            broken.append(f"scope {name}: a sweep is still on")
        if isinstance(scope, Scope):
            broken.extend(_wrong_blocks(name, scope))
            standing = Counter((key_of(given), node) for given in scope.all_keys() for node in scope.members(given))
            broken.extend(_differing(f"scope {name}", expected.pop(name, Counter()), standing))
    for name, missing in expected.items():
        broken.extend(_differing(f"scope {name}", missing, Counter()))
    return broken


def _differing(what: str, expected: Counter[Any], found: Counter[Any]) -> list[str]:
    if expected == found:
        return []
    return [f"{what} lacks {dict(expected - found)} and has {dict(found - expected)} too much"]


def alike_in_order(trace: Trace, free: list[int]) -> list[str]:
    """Choices with one address, and choices or blocks with one place in the order of a sweep."""
    places = {node: address(trace, node) for node in free}
    broken = _shared("address", ((node, place) for node, place in places.items()))
    broken.extend(_shared("place in the order", ((node, address_order(place)) for node, place in places.items())))
    for name, scope in trace.scopes.items():
        if isinstance(scope, Scope):
            orders = ((key, block_order(trace, key)) for key in scope.all_keys())
            broken.extend(_shared(f"place in the order of scope {name}", orders))
    return broken


def _shared(what: str, places: Iterable[tuple[Any, Any]]) -> list[str]:
    """Things that share a place."""
    first: dict[Any, Any] = {}
    shared = [(first[place], thing) for thing, place in places if first.setdefault(place, thing) is not thing]
    return [f"{one} and {other} have one {what}" for one, other in shared]


def _wrong_blocks(name: Any, scope: Scope) -> list[str]:
    """How a scope's index and lists disagree."""
    broken = []
    index = {key_of(given): position for position, given in enumerate(scope.all_keys())}
    found_at = dict(scope.index.items())
    if index != found_at or len(index) != len(scope.all_keys()) or len(scope.blocks) != len(scope.all_keys()):
        broken.append(f"scope {name}: blocks {scope.all_keys()} are found at {found_at}")
    crowds = {position for position, node in enumerate(scope.blocks) if node == SEVERAL}
    if crowds != set(scope.crowds) or any(len(members) < 2 for members in scope.crowds.values()):
        broken.append(f"scope {name}: blocks {sorted(crowds)} have several choices, {scope.crowds} are kept")
    return broken
