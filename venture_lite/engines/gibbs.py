"""`gibbs`: enumerate a block's joint support and draw exactly from it."""

from __future__ import annotations

import math
from typing import Any

from venture_lite.engines.enumeration import Enumeration, refuse_confounded, refuse_support, too_many_candidates
from venture_lite.engines.forward import ForwardGibbs
from venture_lite.engines.least_candidates import least_candidates
from venture_lite.engines.weighted_labels import WeightedLabels
from venture_lite.errors import ArgumentError, VentureError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part
from venture_lite.interpreter.addresses import address
from venture_lite.interpreter.candidates import MOST_CANDIDATES, draw_candidate, support_of
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.kernel import Drawing
from venture_lite.interpreter.scaffold import Builder, Scaffold, absorbing_count
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.weights import NEVER, Weight, density_of
from venture_lite.kernels.compiled import drawing
from venture_lite.procedures.distributions.categorical import OF_VALUES
from venture_lite.trace.runtime import Exchangeable
from venture_lite.values import equal

FIRST_LOOK = 64
"""After so many candidates, and each time there are four times as many, it is asked how many there are at least: a
branch with many of its own may have been entered meanwhile, and a look takes the time of a few dozen candidates."""


class Gibbs(Drawing):
    """Draws of blocks on the trace."""

    rows = 0
    # how many candidates of the block at hand there were when it was last asked how many there are at least
    _bounded_at = 0

    def step(self, nodes: list[int], at: Selection) -> bool:
        """Draw the block from its conditional distribution; whether the state changed."""
        with self.model.transaction() as change:
            self.restructured = self._step(nodes, at)
            if self.restructured:
                change.keep()
        return self.restructured

    def _step(self, principals: list[int], at: Selection) -> bool:
        model = self.model
        self.refuse(principals)
        scaffold = Builder(model.trace).build(principals)
        enumeration = Enumeration(model, self._membership(at), self._current(scaffold, at))
        weighed = absorbing_count(model.trace, scaffold)
        current, alone = self._present_weight(scaffold, at)
        self.weights = weights = []
        self._bounded_at = FIRST_LOOK // 4
        paths: list[Any] = []
        while not paths or enumeration.advance():
            if len(paths) == MOST_CANDIDATES:
                raise too_many_candidates()
            weight = self._weigh(scaffold, enumeration, alone, at)
            self.rows += weighed
            # the path on which every decision is the current state's: the state as it is, nothing drawn anew
            weights.append(current if enumeration.on_current else weight)
            paths.append(None if enumeration.on_current else enumeration.path())
        chosen = draw_candidate(weights, model.trace.rng.random())
        if paths[chosen] is None:
            return False
        enumeration.follow(paths[chosen])
        self._regenerate(scaffold, enumeration)
        return True

    def _weigh(self, scaffold: Scaffold, enumeration: Enumeration, alone: bool, at: Selection) -> Weight:
        """The weight of the enumeration's candidate (of the present state it is known, and means nothing here); what
        it changed is taken back. `alone`: the present state can be enumerated without regenerating it."""
        model = self.model
        enumeration.restart()
        if alone and not enumeration.tape:
            (node,) = scaffold.principals
            application = model.trace.application(node)
            enumeration.propose(node, *application, model.trace.value(node))
            return Weight()
        try:
            with model.transaction():
                weight = self._regenerate(scaffold, enumeration)
                weight.total -= math.log(at.drawn_from())
                if len(self.weights) >= self._bounded_at * 4:
                    self._bounded_at = len(self.weights)
                    if least_candidates(model, enumeration.decided) > MOST_CANDIDATES:
                        raise too_many_candidates()
                return weight
        except VentureError as error:
            if not rejects(model, error, model.regenerator.touched(scaffold)):
                raise
            # a candidate of probability zero
            return Weight(NEVER)

    def _regenerate(self, scaffold: Scaffold, enumeration: Enumeration) -> Weight:
        """Regenerate along the enumeration's path."""
        with self.model.machine.handled_by(enumeration):
            weight = self.model.regenerator.regenerate(scaffold, enumeration)
        weight.plus(enumeration.fresh_weight)
        return weight

    def _present_weight(self, scaffold: Scaffold, at: Selection) -> tuple[Weight, bool]:
        """Detach, and the weight of the state that was: its principals, its block's choices in the brush, what
        absorbed. Whether the block is one choice, and none goes that regeneration would decide."""
        model, in_block, blocks = self.model, self._membership(at), at.drawn_from()
        going = reversed(model.regenerator.choices_that_go(scaffold))
        known = [(node, *model.trace.choice(node)) for node in going if not model.trace.is_observed(node)]
        decided = {node for node, *_ in known if in_block(*model.trace.decode(node))}
        weight = model.regenerator.detach(scaffold, counts=True)
        with model.aside():
            for node, operator, arguments, value in known:
                if node in decided:
                    weight.add(density_of(model.trace, node, operator, arguments, value))
                if isinstance(operator, Exchangeable):
                    model.trace.statistics.incorporate(operator, value, arguments)
        weight.total -= math.log(blocks)
        return weight, len(scaffold.principals) == 1 and not decided

    def _membership(self, at: Selection) -> Any:
        """Whether a choice has the tag of the block that is moved."""
        trace, scope, key = self.model.trace, at.scope, at.key
        # a block's own key may be an array
        is_all = isinstance(key, str) and key == "all"
        if scope == "default":
            return lambda *where: is_all
        return lambda *where: any(name == scope and (is_all or equal(block, key)) for name, block in trace.tags(*where))

    def refuse(self, nodes: list[int]) -> None:
        """Refuse a choice whose support cannot be enumerated."""
        for node in nodes:
            operator, arguments = self.model.trace.application(node)
            support = support_of(operator, arguments)
            if support is None:
                raise refuse_support(self.model, node, operator)
            if operator in OF_VALUES and arguments[-1] is not None and len(support) < len(arguments[-1]):
                refuse_confounded(self.model, node, operator, arguments[-1])

    def _current(self, scaffold: Scaffold, at: Selection) -> dict[Any, Any]:
        """Present values of the choices in the brush, by address; needed where a candidate meets more than one
        decision."""
        if not scaffold.structural or (len(scaffold.principals) == 1 and at.scope == "default"):
            return {}
        trace, nodes = self.model.trace, self.model.regenerator.choices_that_go(scaffold)
        return {address(trace, node): trace.value(node) for node in nodes}


def _compile_gibbs(program: InferenceProgram, given: ActionForm) -> Part:
    if "weights" in given:
        if given.selector.kind == "one":
            what = "'weights draws all labels of a block at once"
            raise ArgumentError(what, given["BLOCK"].span, "all, each, or a block's key")
        return given.kernel("labels given the weights of their classes", WeightedLabels(program.model))
    if "forward" not in given:
        return given.kernel("exact draws, by enumeration", drawing(program.model, Gibbs))
    if given.selector.kind == "one":
        what = "'forward draws chains of states as a whole, and families that states find may come and go with them"
        raise ArgumentError(what, given["BLOCK"].span, "all, each, or a block's key")
    return given.kernel("exact draws, forward filtering", ForwardGibbs(drawing(program.model, Gibbs)))


GIBBS = Action(
    "gibbs", ("(gibbs SCOPE BLOCK ['forward] T)", "(gibbs SCOPE BLOCK 'weights T)"),
    "T exact draws of a block from its conditional distribution, by enumerating the block's joint support. With "
    "'forward the block is a chain of states of finite support, or several: it is drawn as a whole by forward "
    "filtering and backward sampling, in a time that grows with its length. With 'weights the block is labels, draws "
    "of `make_crp`: the weights of their classes are drawn, and given these all labels.",
    _compile_gibbs,
)  # fmt: skip
