"""The proposals of `engines/restricted_move.py` over columns: the same random numbers and labels, weights to rounding.

Nothing is moved until a proposal is accepted: labels are arrays, the parameters of the classes are lists, and what
members absorb is evaluated for all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from venture_lite.blocks.independent_draws import renew
from venture_lite.blocks.label_shares import BY_CLASS, Share, drawn_index, drawn_scans, shares_of
from venture_lite.interpreter.candidates import support_of
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import NEVER, Weight
from venture_lite.kernels.class_columns import ClassColumns, ClassParameter
from venture_lite.kernels.class_terms import ClassAtHand, Members
from venture_lite.kernels.label_rows import NotByColumns


class ColumnProposals:
    """Splits and merges of the labels of one site. Mutable: `proposed` has the last one."""

    def __init__(self, model: Model, node: int) -> None:
        """Of the site of a label."""
        self._model, self._rng = model, model.trace.rng
        # of the last proposal, without the decision; None where there is no second label
        self.log_ratio: float | None = None
        self._label = node
        self.proposed: ColumnProposal | None = None

    @cached_property
    def _columns(self) -> ClassColumns:
        """Raises NotByColumns where the labels have none."""
        return ClassColumns(self._model, self._label)

    def propose(self, nodes: list[int]) -> bool:
        """Propose a split or a merge of the labels among some choices, as `log_ratio` says; False where there are no
        columns, and nothing was drawn."""
        before = self._rng.bit_generator.state
        try:
            self.log_ratio = self._ratio(nodes)
        except NotByColumns:
            self._rng.bit_generator.state = before
            return False
        return True

    def _ratio(self, nodes: list[int]) -> float | None:
        """Raises NotByColumns."""
        self.proposed = None
        self._columns.look(nodes)
        values = self._columns.values()
        by_class, splits = self._rng.random() < BY_CLASS, self._rng.random() < 0.5
        first = self._first(values, by_class and not splits)
        if splits:
            others = np.flatnonzero(values == values[first])
            others = others[others != first]
        else:
            classes = [label for label in dict.fromkeys(values.tolist()) if label != values[first]]
            if not classes:
                return None
            shares = self._shares(first, values, classes)
            others = np.flatnonzero(values == classes[drawn_index(shares, self._rng.random())])
        if not len(others):
            return None
        second = int(others[int(self._rng.random() * len(others))])
        move = self.proposed = ColumnProposal(self._model, self._columns, values, first, second, by_class)
        if splits:
            log_ratio = move.split()
            log_back = math.log(self._share_after(move)) - math.log(len(move.members) + 1 - move.went)
            return log_ratio + log_back + math.log(len(others)) + self._log_first(move)
        log_pair = math.log(shares[classes.index(int(values[second]))]) - math.log(len(others))
        return move.merge() - math.log(len(move.members) + 1) - log_pair - self._log_first(move)

    def _first(self, values: np.ndarray, by_class: bool) -> int:
        """The position of the first label."""
        u = self._rng.random()
        if not by_class:
            return int(u * len(values))
        classes = list(dict.fromkeys(values.tolist()))
        members = np.flatnonzero(values == classes[int(u * len(classes))])
        return int(members[int(self._rng.random() * len(members))])

    def _log_first(self, move: ColumnProposal) -> float:
        """The log probability that the first label is drawn for the merge, over that for the split."""
        if not move.by_class:
            return 0.0
        tables = len(self._columns.state.tables) + move.splits
        return math.log(len(move.values)) - math.log(tables) - math.log(move.went + 1)

    def _shares(self, first: int, values: np.ndarray, classes: list[int]) -> list[float]:
        terms = self._terms_in(first, classes)
        counts = self._columns.state.counts
        weights = [self._weight(counts[label], term) for label, term in zip(classes, terms, strict=True)]
        return shares_of(weights)

    def _terms_in(self, position: int, classes: list[int]) -> list[float]:
        """What one label's rows would absorb in some classes, as these stand."""
        if not classes:
            return []
        columns, mask = self._columns, np.ones((len(classes), 1), bool)
        member, parameters = columns.members(np.array([position])), list(map(columns.values_of, classes))
        with columns.standing_for(classes[0]) as cells:
            found: list[float] = cells.terms_where(parameters, member, mask, columns.pairs(member, mask)).tolist()
        return found

    def _share_after(self, move: ColumnProposal) -> float:
        """The probability that the second label's class is drawn for the first, once these are split."""
        state, values = self._columns.state, move.values
        kept = int(values[move.second])
        classes = [kept, *(label for label in state.tables if label != kept)]
        terms = [move.term_of_first(), *self._terms_in(move.first, classes[1:])]
        sizes = [len(move.members) + 1 - move.went, *(state.counts[label] for label in classes[1:])]
        return shares_of([self._weight(*each) for each in zip(sizes, terms, strict=True)])[0]

    def _weight(self, size: int, term: float) -> Weight:
        if term == -math.inf:
            return Weight(1)
        return Weight(0, math.log(size - self._columns.state.discount) + term)

    def keep(self) -> None:
        """Let the last proposal stand."""
        assert self.proposed is not None
        self.proposed.keep()

    @property
    def splits(self) -> bool:
        """Whether the last proposal is a split."""
        return self.proposed is not None and self.proposed.splits

    @property
    def rows(self) -> int:
        """Evaluations of labels for the last proposal."""
        return 0 if self.proposed is None else self.proposed.rows


class ColumnProposal:
    """One proposal: what `restricted_move.RestrictedMove` is on the trace."""

    def __init__(
        self, model: Model, columns: ClassColumns, values: np.ndarray, first: int, second: int, by_class: bool
    ) -> None:
        """Of the labels at two positions, of which the first was drawn by its class or not; `values` (n,) are those of
        all."""
        self._model, self._rng, self._columns = model, model.trace.rng, columns
        self.values, self.first, self.second = values, first, second
        self.splits, self.by_class = bool(values[first] == values[second]), by_class
        among = (values == values[first]) | (values == values[second])
        among[[first, second]] = False
        # positions of those that are shared out
        self.members = np.flatnonzero(among)
        # with the first and the second label behind them
        self._all = columns.members(np.append(self.members, [first, second]))
        # of the proposal: which members are in the first class, and the parameters of the first, the kept and the
        # merged class
        self._is_first = np.zeros(len(self.members), bool)
        self._first: list[Any] = []
        self._kept: list[Any] = []
        self._merged: list[Any] = []
        self._in_first = self._in_kept = self._all
        # what all absorb in the first and in the kept class, as of the last scan
        self._terms: tuple[np.ndarray, ...] = ()
        # of the launch states
        self._scans = drawn_scans(self._rng)
        # evaluations of labels
        self.rows = 0

    @property
    def went(self) -> int:
        """How many members are in the first class."""
        return int(self._is_first.sum())

    # ----------------------------------------------------------------------------------------------- proposals

    def split(self) -> float:
        """The log ratio of a split, the probability of the pair aside. Raises NotByColumns."""
        kept, columns = int(self.values[self.second]), self._columns
        columns.refuse_known(columns.state.fresh())
        self._merged = columns.parameters_of(kept, np.flatnonzero(self.values == kept))
        with columns.standing_for(kept) as cells:
            back = self._merged_scan(cells, self._merged)
            before = self._weight_merged(cells)
            for place in columns.drawing_order:
                # what the fresh label brings into being
                self._simulated(columns.parameters[place])
            share = Share.any(self._rng, self.by_class)
            self._launch(cells, share)
            there = self._scan(cells, share, None, None)
            return self._weight_split() - before + back - there + self._share_back(share)

    def merge(self) -> float:
        """The log ratio of a merge, the probability of the pair aside. Raises NotByColumns."""
        columns = self._columns
        first, kept = (int(self.values[place]) for place in (self.first, self.second))
        labels = self.values[self.members] == first
        present = [columns.parameters_of(label, np.flatnonzero(self.values == label)) for label in (first, kept)]
        with columns.standing_for(kept) as cells:
            went = int(labels.sum())
            share = Share.of(self._rng, went, len(labels) - went, self.by_class)
            self._launch(cells, share)
            back = self._scan(cells, share, labels, present)
            before = self._weight_split()
            there = self._merged_scan(cells, None)
            return self._weight_merged(cells) - before + back - there - self._share_back(share)

    def _share_back(self, share: Share) -> float:
        return share.log_ratio_of(self.went, len(self.members) - self.went)

    def _merged_scan(self, cells: ClassAtHand, values: list[Any] | None) -> float:
        if not self._columns.parameters:
            return 0.0
        drawn = self._from_prior()
        for _ in range(self._scans):
            self._parameters(cells, drawn, self._all, None)
        log_density = self._parameters(cells, drawn, self._all, values)
        self._merged = drawn
        return log_density

    def _launch(self, cells: ClassAtHand, share: Share) -> None:
        self._first, self._kept = self._from_prior(), self._from_prior()
        probability = share.first if self._scans else share.launched(self._rng, len(self.members))
        self._share_out(self._rng.random(len(self.members)) < probability)
        self.rows += len(self.members)
        for _ in range(self._scans):
            self._scan(cells, share, None, None)

    def _scan(
        self, cells: ClassAtHand, share: Share, labels: np.ndarray | None, values: Sequence[list[Any]] | None
    ) -> float:
        self._model.poll()
        count = len(self.members)
        self.rows += count
        first, kept = (None, None) if values is None else values
        if self._scans:
            log_probability = self._parameters(cells, self._first, self._in_first, first)
            log_probability += self._parameters(cells, self._kept, self._in_kept, kept)
        else:
            log_probability = self._in_turn(cells, share, first, kept)
        self._terms = tuple([cells.terms(each, self._all) for each in (self._first, self._kept)])
        in_first, in_kept = self._terms
        with np.errstate(invalid="ignore"):
            weight = in_first[:count] - in_kept[:count]
        # both impossible
        weight[np.isnan(weight)] = 0.0
        weight += share.log_odds
        log_sum = np.maximum(weight, 0.0) + np.log1p(np.exp(-np.abs(weight)))
        goes = self._rng.random(count) < np.exp(weight - log_sum) if labels is None else labels
        self._share_out(goes)
        return log_probability + float(np.where(goes, weight - log_sum, -log_sum).sum())

    def _in_turn(self, cells: ClassAtHand, share: Share, first: list[Any] | None, kept: list[Any] | None) -> float:
        """Draw the parameters of the smaller class given its members, and those of the other given these, with the
        labels summed out; or take those given: their log density."""
        small, large = (self._first, first, self._in_first), (self._kept, kept, self._in_kept)
        if not share.first_is_small:
            small, large = large, small
        log_density = self._parameters(cells, small[0], small[2], small[1])
        self._parameters(cells, large[0], large[2], None)
        fixed = cells.terms(small[0], self._all)[: len(self.members)]
        odds = -share.log_odds if share.first_is_small else share.log_odds
        # behind the members are the first and the second label
        anchor = -1 if share.first_is_small else -2
        for place in range(len(large[0])):
            at = SummedInClass(self._model, self._columns.parameters[place], cells, large[0], place, self._all)
            at.sum_out(fixed, odds, anchor)
            log_density += renew(at, self._rng, None if large[1] is None else large[1][place], large[1] is not None)
        return log_density

    def _share_out(self, is_first: np.ndarray) -> None:
        self._is_first = is_first
        self._in_first = self._columns.some(self._all, np.append(is_first, [True, False]))
        self._in_kept = self._columns.some(self._all, np.append(~is_first, [False, True]))

    # ---------------------------------------------------------------------------------------------- parameters

    def _simulated(self, parameter: ClassParameter) -> Any:
        return parameter.record.simulate(self._rng, *parameter.arguments)

    def _from_prior(self) -> list[Any]:
        return [self._simulated(parameter) for parameter in self._columns.parameters]

    def _parameters(self, cells: ClassAtHand, drawn: list[Any], members: Members, values: list[Any] | None) -> float:
        """Draw the parameters of a class in place, or take those given; their log density."""
        total = 0.0
        for place in range(len(drawn)):
            at = InClass(self._model, self._columns.parameters[place], cells, drawn, place, members)
            total += renew(at, self._rng, None if values is None else values[place], values is not None)
        return total

    # ------------------------------------------------------------------------------------------------- weights

    def _with_priors(self, total: float, *classes: list[Any]) -> float:
        """A log density of rows, with that of the parameters of some classes."""
        for values in classes:
            for parameter, value in zip(self._columns.parameters, values, strict=True):
                total += prior_of(self._model, parameter, value)
        if not math.isfinite(total):
            # the interpreter counts what is impossible
            raise NotByColumns
        return total

    def _weight_merged(self, cells: ClassAtHand) -> float:
        return self._with_priors(float(cells.terms(self._merged, self._all).sum()), self._merged)

    def _weight_split(self) -> float:
        """With what the maker gives to the labels, over that of the merged class; after a scan."""
        tables = len(self._columns.state.tables) - (not self.splits)
        labels = self._columns.state.log_split(self.went + 1, len(self.members) - self.went + 1, tables)
        in_first, in_kept = self._terms
        is_first = np.append(self._is_first, [True, False])
        rows = labels + float(np.where(is_first, in_first, in_kept).sum())
        return self._with_priors(rows, self._first, self._kept)

    def term_of_first(self) -> float:
        """What the first label's rows would absorb in the kept class."""
        member = self._columns.members(np.array([self.first]))
        with self._columns.standing_for(int(self.values[self.second])) as cells:
            return float(cells.terms(self._kept, member)[0])

    # ------------------------------------------------------------------------------------------------- keeping

    def keep(self) -> None:
        """Let the proposal stand."""
        model, columns = self._model, self._columns
        kept, node = int(self.values[self.second]), columns.node(self.first)
        with model.transaction() as change:
            if self.splits:
                label, generator = columns.state.fresh(), self._rng.bit_generator.state
                model.put_value(node, label)
                # its parameters are those of the proposal
                self._rng.bit_generator.state = generator
                columns.give(label, self._first)
                columns.move(self.members[self._is_first].tolist(), label)
                columns.give(kept, self._kept)
            else:
                columns.give(kept, self._merged)
                columns.move(self.members[self._is_first].tolist(), kept)
                model.put_value(node, kept)
            change.keep()


class InClass:
    """One parameter of a class, given its members and its other parameters."""

    def __init__(
        self, model: Model, parameter: ClassParameter, cells: ClassAtHand, drawn: list[Any], place: int,
        members: Members,
    ) -> None:  # fmt: skip
        """`drawn` are the values of all, of which that at `place` is this one's: `put` changes it."""
        self.operator, self.arguments, self.value = parameter.record, parameter.arguments, drawn[place]
        self._model, self._parameter, self._cells = model, parameter, cells
        self._drawn, self._place, self._members = drawn, place, members

    def weigh(self, value: Any) -> Weight:
        prior = self.log_prior(value)
        if prior == -math.inf:
            return Weight(NEVER)
        (total,) = self._totals(self._cells.terms(self._with(value), self._members)[None])
        return Weight(NEVER) if total == -math.inf else Weight(0, prior + total)

    def weigh_several(self, values: Sequence[Any]) -> list[Weight]:
        priors = [self.log_prior(value) for value in values]
        if -math.inf in priors:
            return [self.weigh(value) for value in values]
        totals = self._totals(self._cells.terms_of_lists([self._with(value) for value in values], self._members))
        return [
            Weight(NEVER) if total == -math.inf else Weight(0, prior + total)
            for prior, total in zip(priors, totals, strict=True)
        ]

    def _with(self, value: Any) -> list[Any]:
        """The values of all, were this one's another."""
        return [*self._drawn[: self._place], value, *self._drawn[self._place + 1 :]]

    def _totals(self, terms: np.ndarray) -> list[float]:
        """Of the log densities of all members under some values (P, m)."""
        found: list[float] = terms.sum(axis=1).tolist()
        return found

    def put(self, value: Any) -> None:
        self._drawn[self._place] = value

    def simulate(self) -> Any:
        return self.operator.simulate(self._model.trace.rng, *self.arguments)

    def log_prior(self, value: Any) -> float:
        return prior_of(self._model, self._parameter, value)

    def support(self) -> list[Any] | None:
        found = support_of(self.operator, self.arguments)
        return None if found is None else list(found)


class SummedInClass(InClass):
    """One parameter of a class, given those of another and the share of each, with the labels summed out."""

    def sum_out(self, fixed: np.ndarray, log_odds: float, anchor: int) -> None:
        """`fixed` are the log densities of all but the two anchors (m - 2,) in the other class, `log_odds` this one's,
        and `anchor` is the position of the member that stays here."""
        self._fixed, self._log_odds, self._anchor = fixed, log_odds, anchor

    def _totals(self, terms: np.ndarray) -> list[float]:
        count = len(self._fixed)
        summed = np.logaddexp(terms[:, :count] + self._log_odds, self._fixed).sum(axis=1)
        found: list[float] = (summed + terms[:, self._anchor]).tolist()
        return found


def prior_of(model: Model, parameter: ClassParameter, value: Any) -> float:
    """The log density of a parameter's value under its distribution, whose arguments were checked."""
    return float(parameter.record.log_density(value, *parameter.arguments))
