"""How many candidates a block has at least, so that `gibbs` refuses a block of too many before it has weighed them.

Candidates are the leaves of a tree (`enumeration.py`) that is only known where it has been walked. But choices that
neither decide on one another's existence nor are read by one another's distribution have all combinations of their
values, whatever the others are: the product of their supports is a bound. Two such sets are looked at: the choices that
exist under every candidate, and those that decide on no other, given the present values of those that do.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from venture_lite.interpreter.candidates import MOST_CANDIDATES, support_of
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.sources import application_nodes
from venture_lite.procedures.exchangeable.crp import CrpState
from venture_lite.trace.runtime import Exchangeable


def least_candidates(model: Model, nodes: Sequence[int]) -> float:
    """At least so many candidates has the block that these choices are, in a state that stands; nothing is drawn."""
    standing = _untouched(model, nodes, nodes)
    least = _combinations(model, standing)
    if least <= MOST_CANDIDATES and len(standing) < len(nodes):
        # both lists stay in the order in which the choices were decided on
        undecisive = [node for node in nodes if len(_untouched(model, [node], nodes)) == len(nodes)]
        least = max(least, _combinations(model, _untouched(model, undecisive, undecisive)))
    return least


def _untouched(model: Model, moved: Sequence[int], nodes: Sequence[int]) -> list[int]:
    """Those of the nodes that are there, and have the support that they have, whatever values the moved ones take."""
    trace = model.trace
    scaffold = Builder(trace).build(moved)
    going = set(model.regenerator.choices_that_go(scaffold))
    found = []
    for node in nodes:
        read = application_nodes(trace, node)
        reads_moved = any(parent in scaffold.principals or parent in scaffold.pending for parent in read)
        # parameters of a maker may say how many outcomes there are
        by_maker = bool(scaffold.makers) and isinstance(trace.application(node)[0], Exchangeable)
        if node not in going and not reads_moved and not by_maker:
            found.append(node)
    return found


def _combinations(model: Model, nodes: Sequence[int]) -> float:
    """Of the values of choices that do not depend on one another but as draws of one procedure of tables."""
    count, seated = 1.0, defaultdict[CrpState, Counter[int]](Counter)
    for node in nodes:
        operator, arguments, value = model.trace.choice(node)
        if isinstance(operator, Exchangeable) and isinstance(operator.state, CrpState):
            seated[operator.state][value] += 1
        else:
            count *= len(support_of(operator, arguments) or ())
    for state, moved in seated.items():
        kept = sum(draws > moved[table] for table, draws in state.counts.items())
        count *= _seatings(moved.total(), kept)
    return count


def _seatings(draws: int, kept: int) -> float:
    """In how many ways draws sit at tables, some of which are there anyhow: each at one of those or at a fresh one."""
    # number of tables -> ways so far
    ways = {kept: 1.0}
    for _ in range(draws):
        following: defaultdict[int, float] = defaultdict(float)
        for tables, number in ways.items():
            following[tables] += number * tables
            following[tables + 1] += number
        ways = following
        if (total := math.fsum(ways.values())) > MOST_CANDIDATES:
            return total
    return math.fsum(ways.values())
