"""Rounds: what was learned from draws of the prior is corrected on the data at hand, by chains that it drives itself.

A round runs four chains from draws of the prior, or from the modes next to these, in the session's trace and back: the
journal leaves no trace of them. If they have mixed, it first corrects the frame of a body without heads by the mean and
covariance of their states in it, under a t; then it fits networks to their states, with what was read of the observed
data, and to the densities of these states, where nothing but one block moves. And it trains anew on worlds in which
heads are drawn from their priors cut to a box that holds the chains' states, everything else forward from them: given
all else a choice inside has the density that it had but for a constant, so that what is learned there is right for any
data (Deistler, Goncalves and Macke 2022, Truncated proposals for scalable and hassle-free simulation-based inference).
Each candidate is tried in further transitions, and kept only if the chains' effective sample size rises by a fifth, or,
near its end, does not fall while refusals do: acceptance alone also rises where a mode is lost.

Never is anything fitted to states of a posterior with data drawn from them: that would count the data twice
(Greenberg, Nonnenmacher and Macke 2019, Automatic posterior transformation).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from venture_lite.blocks.cut_draws import can_be_cut
from venture_lite.blocks.worlds import Box, Features, all_above
from venture_lite.engines.compiled.chains import CHAINS, ChainDriver, ChainRun
from venture_lite.engines.compiled.frame import Position
from venture_lite.engines.compiled.proposer import KindProposer, Proposer, SiteTexts
from venture_lite.engines.compiled.report import KindReport
from venture_lite.errors import VentureError
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection, in_order

TRANSITIONS, TRIED = 2000, 1000
"""Of each chain of a round, of which the first half is left out, and of a trial."""
MIXED = 1.05
"""R-hat below which chains have mixed."""
GAIN = 1.2
"""The factor by which the effective sample size has to rise."""
LEAST_STATES = 100
"""Of a kind of block, for a network to be fitted to them."""
WIDENED = 0.5
"""Of the length of each side of the box: so much longer than what the chains' states take up."""

Train = Callable[[KindProposer, Sequence[Features], np.ndarray, np.ndarray | None], KindProposer]
"""(kind, what was read in each state, numbers of the states (N, H + D), their log densities (N,) where these are known)
-> the kind with a network fitted to these."""

TrainInBox = Callable[[Box], tuple[dict[SiteTexts, KindProposer], list[KindReport]]]
"""What is learned on worlds in which some choices are cut."""


class Rounds:
    """The rounds of one `compile`."""

    def __init__(
        self,
        model: Model,
        selection: Selection,
        chains: ChainDriver,
        train: Train,
        train_in_box: TrainInBox | None,
        in_box_alone: bool = False,
    ) -> None:
        """`train_in_box` is None where worlds are not drawn in columns. `in_box_alone` says that nothing is fitted to
        the data at hand."""
        self.model, self._chains, self._train, self._train_in_box = model, chains, train, train_in_box
        self._in_box_alone = in_box_alone
        # of one that structure depends on these are others in other states
        self.blocks = [in_order(model, nodes) for _, nodes in selection.present() if nodes]

    def after_round(self, proposer: Proposer) -> Proposer:
        """The proposer that is kept, and in its reports what the round came to."""
        better, told = self.round(proposer)
        reports = [report.after_round(told, better is not proposer) for report in better.reports]
        return replace(better, reports=tuple(reports))

    def round(self, proposer: Proposer) -> tuple[Proposer, str]:
        """The proposer that is kept, and what the round came to."""
        explorer = self._explorer(proposer)
        run = self._chains.run(explorer, None, TRANSITIONS, TRIED)
        run.quantities = run.quantities[:, -TRIED:]
        if (worst := run.worst_r_hat()) >= MIXED:
            return proposer, f"dropped: the four chains have not mixed, R-hat is {worst:.3g}"
        if explorer is not proposer:
            tried = self._chains.run(proposer, run.ends, TRIED, TRIED)
            run.quantities, run.refused = tried.quantities, tried.refused
        before, best, rate, told = run.least_ess(), proposer, 0.0, "dropped: there is nothing to correct"
        if self._in_box_alone:
            told = "dropped: nothing is learned in a box, which no choice can be cut to"
        fitted = () if self._in_box_alone else self._candidates(explorer, run)
        for what, candidate in itertools.chain(fitted, self._in_box(proposer, run)):
            trial = self._chains.run(candidate, run.ends, TRIED, TRIED)
            found = trial.least_ess()
            of = f"the least effective sample size of {CHAINS * TRIED:,} went from {before:.0f} to {found:.0f}"
            if is_better(trial, run) and found / trial.seconds > rate:
                best, rate, told = candidate, found / trial.seconds, f"kept: by {what} {of}"
            elif best is proposer:
                told = f"dropped: by {what} {of}"
        return best, told

    def _explorer(self, proposer: Proposer) -> Proposer:
        """What drives the chains that a round learns from: of bodies without heads the t in the frame of the mode, with
        heavier tails than what was learned has."""
        kinds = dict(proposer.kinds)
        for sites, kind in kinds.items():
            size = kind.frame.size
            if size and not kind.frame.heads and kind.network is not None:
                kinds[sites] = kind.corrected(np.zeros(size), np.eye(size))
        return proposer if kinds == proposer.kinds else replace(proposer, kinds=kinds)

    def _candidates(self, proposer: Proposer, run: ChainRun) -> Iterator[tuple[str, Proposer]]:
        """What might be better, by what it is made of."""
        numbers = {sites: np.array(states) for sites, states in run.numbers.items()}
        kinds = dict(proposer.kinds)
        for sites, states in numbers.items():
            # the body after heads is normal in its frame, where a t of many choices would accept less
            if kinds[sites].frame.body and not kinds[sites].frame.heads and len(states) >= LEAST_STATES:
                mean, root = moments_of(states)
                kinds[sites] = kinds[sites].corrected(mean, root)
                numbers[sites] = np.linalg.solve(root, (states - mean).T).T
        moved = [kinds[sites] for sites in numbers]
        if not any(kind.frame.heads for kind in moved):
            yield "the mean and covariance of their states", replace(proposer, kinds=dict(kinds))
        taught = [sites for sites, states in numbers.items() if kinds[sites].learns and len(states) >= LEAST_STATES]
        if taught:
            for sites in taught:
                targets = self._targets(kinds[sites], numbers[sites], run)
                kinds[sites] = self._train(kinds[sites], run.read[sites], numbers[sites], targets)
            yield "networks fitted to their states, for these data alone,", replace(proposer, kinds=kinds)

    def _in_box(self, proposer: Proposer, run: ChainRun) -> Iterator[tuple[str, Proposer]]:
        """What is learned on worlds in a box around the chains' states."""
        box = self._box(proposer, run) if self._train_in_box is not None else {}
        if not box or self._train_in_box is None:
            return
        try:
            kinds, reports = self._train_in_box(box)
        except VentureError:
            # what cannot be drawn or learned there is no candidate
            return
        if kinds.keys() != proposer.kinds.keys():
            return
        told = [before.trained_again(report) for before, report in zip(proposer.reports, reports, strict=True)]
        yield (
            "networks trained on priors cut to a box around their states, for all data in it,",
            replace(proposer, kinds=kinds, reports=tuple(told)),
        )

    def _box(self, proposer: Proposer, run: ChainRun) -> Box:
        """Of each head that can be cut: where the chains were, of all blocks of a kind together, each side widened."""
        states, at = run.quantities.reshape(-1, run.quantities.shape[2]), 0
        sides: dict[tuple[SiteTexts, int], tuple[float, float]] = {}
        of: dict[int, tuple[SiteTexts, int]] = {}
        uncut: set[tuple[SiteTexts, int]] = set()
        for block in self.blocks:
            kind = proposer.kind_of(self.model, block)
            for number, (node, position) in enumerate(zip(block, kind.frame.positions, strict=True)):
                of[node] = key = kind.sites, number
                if self._can_be_cut(node, position):
                    low, high = sides.get(key, (np.inf, -np.inf))
                    sides[key] = min(low, float(states[:, at].min())), max(high, float(states[:, at].max()))
                else:
                    uncut.add(key)
                at += position.width
        found = {}
        for node, key in of.items():
            low, high = sides.get(key, (0.0, 0.0))
            if key not in uncut and low < high:
                more = 0.5 * WIDENED * (high - low)
                found[node] = low - more, high + more
        return found

    def _can_be_cut(self, node: int, position: Position) -> bool:
        """Whether a node is a head whose distribution has a distribution function, and nothing that is moved stands
        above it: what is cut off would depend on that, whose conditional distribution would be another one."""
        is_number = position.is_head and position.is_number and not position.is_discrete
        if not is_number or not can_be_cut(self.model.trace.application(node)[0]):
            return False
        moved = {each for block in self.blocks for each in block}
        return all(each == node or each not in moved for each in all_above(self.model.trace, [node]))

    def _targets(self, kind: KindProposer, states: np.ndarray, run: ChainRun) -> np.ndarray | None:
        """Log densities (N,), but for a constant, of what a network learns of the states, where they are known."""
        if len(run.targets) != len(states):
            return None
        body = states[:, sum(kind.frame.widths) :] if kind.frame.heads else states[:, :0]
        found: np.ndarray = np.array(run.targets) + 0.5 * (body**2).sum(axis=1)
        return found


def is_better(trial: ChainRun, before: ChainRun) -> bool:
    """Whether the effective sample size rose by a fifth. Where it is near the number of transitions it cannot, and its
    own error is as large: there refusals have to fall by a third."""
    was, found = before.least_ess(), trial.least_ess()
    is_near = 2.0 * was > before.quantities.shape[0] * before.quantities.shape[1]
    return found >= GAIN * was or (is_near and found >= was and 3 * trial.refused < 2 * before.refused)


def moments_of(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean (D,), and the lower factor (D, D) of the covariance of numbers (N, D)."""
    covariance = np.atleast_2d(np.cov(numbers.T))
    # what never moves keeps the frame's own width
    covariance[np.diag_indices_from(covariance)] += np.where(np.diagonal(covariance) > 0.0, 1e-9, 1.0)
    return numbers.mean(axis=0), np.linalg.cholesky(covariance)
