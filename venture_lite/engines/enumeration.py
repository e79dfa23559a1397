"""The candidates of `gibbs`: every state of a block, enumerated by running regeneration again for each.

A candidate is a path of decisions: one for each choice of the block in the order in which regeneration meets them,
those that the candidate itself brings into being included. Fresh choices below a candidate come from their
distributions (Neal 2000, Algorithm 8 with one auxiliary component); the current state is a candidate as it is, its
families not drawn anew. The paths form a tree: what is drawn between two decisions belongs to the path up to there
and is the same for every candidate that shares it, so that the set of candidates does not depend on which of them is
current.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from venture_lite.blocks.distributions import name_of
from venture_lite.errors import KernelError
from venture_lite.interpreter.addresses import address
from venture_lite.interpreter.application import simulate
from venture_lite.interpreter.candidates import MOST_CANDIDATES, present_first, support_of
from venture_lite.interpreter.evidence import NO_EVIDENCE
from venture_lite.interpreter.handler import Handler
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import Weight, density_of
from venture_lite.procedures.distributions.categorical import confounded
from venture_lite.trace.trace import Trace
from venture_lite.values import equal, show


@dataclass(eq=False, slots=True)
class _Decision:
    """One choice on the way to a candidate."""

    # the current state's value first, where the path so far is the current state's; of a choice that is none of the
    # block's the value drawn
    support: list[Any]
    at: int = 0


MOST_DECIDED = 500
"""Choices on the way to one candidate, of which each has others in its place: as many candidates as these are at least,
and the longer a way the more likely that it has no end, as of a recursion that ends by a choice of the block."""


class Enumeration(Handler):
    """Walks the tree of candidates by running regeneration again for each; `tape` is the path now followed."""

    counts = True

    def __init__(self, model: Model, in_block: Any, current: dict[Any, Any]) -> None:
        super().__init__(model.trace)
        self.model = model
        # (Code, slot, row) -> whether a fresh choice belongs to the block
        self.in_block = in_block
        # address -> present value of every choice that the scaffold takes out
        self.current = current
        self.tape: list[_Decision] = []
        self.restart()

    def restart(self) -> None:
        """Begin at the root of the tree."""
        self.position = 0
        # whether all decisions so far are the current state's
        self.on_current = True
        self.fresh_weight = Weight()
        # the block's choices on the way to this candidate
        self.decided: list[int] = []

    def advance(self) -> bool:
        """Go to the next candidate; False where all have been."""
        while self.tape:
            last = self.tape[-1]
            if last.at + 1 < len(last.support):
                last.at += 1
                return True
            self.tape.pop()
        return False

    def path(self) -> list[tuple[_Decision, int]]:
        """What leads to the candidate at hand, to be followed again."""
        return [(decision, decision.at) for decision in self.tape]

    def follow(self, path: list[tuple[_Decision, int]]) -> None:
        for decision, at in path:
            decision.at = at
        self.tape = [decision for decision, _ in path]
        self.restart()

    # what regeneration calls: for principals, then for fresh choices

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """The old values were noted before."""

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        return self._decide(operator, arguments, old, node), 0.0

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        """A fresh choice: decided on if it belongs to the block, else drawn, once for each path."""
        trace = self.model.trace
        old = self.current.get(address(trace, node), NO_EVIDENCE) if self.on_current else NO_EVIDENCE
        if self.in_block(*trace.decode(node)):
            value = self._decide(operator, arguments, old, node)
            self.fresh_weight.add(density_of(trace, node, operator, arguments, value))
            return value
        if self.position == len(self.tape):
            drawn = simulate(trace, node, operator, arguments) if old is NO_EVIDENCE else old
            self.tape.append(_Decision([drawn]))
        return self._next()

    def _decide(self, operator: Any, arguments: tuple[Any, ...], old: Any, node: int) -> Any:
        if self.position == len(self.tape):
            self.tape.append(_Decision(self._support(operator, arguments, old, node)))
            if len(self.tape) > MOST_DECIDED and sum(len(each.support) > 1 for each in self.tape) > MOST_DECIDED:
                raise without_bound()
        value = self._next()
        self.decided.append(node)
        if self.on_current and (old is NO_EVIDENCE or not equal(value, old)):
            self.on_current = False
        return value

    def _next(self) -> Any:
        decision = self.tape[self.position]
        self.position += 1
        return decision.support[decision.at]

    def _support(self, operator: Any, arguments: tuple[Any, ...], old: Any, node: int) -> list[Any]:
        support = support_of(operator, arguments)
        if support is None:
            raise refuse_support(self.model, node, operator)
        if len(support) > MOST_CANDIDATES:
            raise too_many_candidates()
        return list(support) if not self.on_current or old is NO_EVIDENCE else present_first(operator, support, old)


def too_many_candidates() -> KernelError:
    return KernelError(f"the block has more than {MOST_CANDIDATES:,} candidates", None, "mh, or a smaller block")


def without_bound() -> KernelError:
    reason = f"the block may have no bound: its choices decide whether there are more of them, beyond {MOST_DECIDED:,}"
    return KernelError(reason, None, "mh, or a smaller block, as of (choices 'finite) each")


def refuse_confounded(model: Model, node: int, operator: Any, values: Sequence[Any]) -> None:
    """Raises KernelError for values that are equal and not the same: one of them would never be drawn."""
    if (found := confounded(values)) is not None:
        one, other = map(show, found)
        reason = (
            f"gibbs enumerates values that differ; of {name_of(operator)} {one} and {other} are equal and not the same"
        )
        raise KernelError(reason, hint="mh").at(*model.trace.place(*model.trace.decode(node)))


def refuse_support(model: Model, node: int, operator: Any) -> KernelError:
    reason = f"gibbs enumerates finite supports; {name_of(operator)} has none"
    return KernelError(reason, hint="mh, or mh with 'drift").at(*model.trace.place(*model.trace.decode(node)))
