"""`split_merge`: proposals that split a class of an exchangeable procedure's labels, or merge two of them.

Two labels i and j of one maker are drawn (`label_pairs.py`). For a split i takes a fresh label, and the other members
of its class are shared out; for a merge the members of i's class go over to j's. How a split shares out, and which
parameters the classes get (choices in families whose key is the label), is drawn from a *launch state* that forgets
what stands now: labels by coins of a share that is drawn itself, parameters from the prior and then given these
labels, then three restricted scans, in which each label is drawn among the two and each parameter from an
approximation of its conditional (`blocks/independent_draws.py`). One more scan gives the proposal, and its
probability; the way back has that of the scan that gives the present state from a launch state of its own. Launch
states do not look at what they propose, so that theirs cancel (Jain and Neal 2004, A split-merge Markov chain Monte
Carlo procedure for the Dirichlet process mixture model, equations 3.8 to 3.16, where parameters are summed out; Jain
and Neal 2007, section 3, where not).

Observed labels, and those outside SCOPE, are left out: they stay with their class, which keeps its label; a class that
holds some is never the one that is merged away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from venture_lite.blocks.label_classes import by_label, free_labels, is_label, labels_by_maker, parameters_of
from venture_lite.blocks.restricted_columns import ColumnProposals
from venture_lite.blocks.weighted_columns import has_columns
from venture_lite.engines.label_pairs import LabelPairs
from venture_lite.engines.restricted_move import RestrictedMove
from venture_lite.errors import KernelError, VentureError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part
from venture_lite.interpreter.comparison import Check, Witness
from venture_lite.interpreter.impossible import rejects
from venture_lite.interpreter.kernel import COLUMNS, ROWS, BlockKernel, Course, Metropolis
from venture_lite.interpreter.label_readers import refuse_unlike
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection, Selector
from venture_lite.interpreter.weights import Weight

MOST_MISSES = 3
"""In a row, after which columns are not tried again."""
ROUNDED = 1e-6
"""By so much parameters differ that are drawn by second differences of densities."""


class SplitMerge(BlockKernel):
    """Transitions of one `split_merge` action."""

    def __init__(self, model: Model, by_columns: bool = True) -> None:
        super().__init__(model)
        self._decide = Witness(Metropolis(model))
        self._check: Check | None = None
        if by_columns and model.kernels != "interpreted":
            on_trace = SplitMerge(model, by_columns=False)
            self._check = Check(on_trace, "split_merge", on_trace._decide.taken, ROUNDED)
        self._rows = 0
        # one of the labels; the proposals over columns of its site, and how often in a row there were none
        self._label = -1
        self._columns: ColumnProposals | None = None
        self._misses = 0
        # splits proposed and accepted, merges proposed and accepted
        self._counts = {"splits": 0, "splits accepted": 0, "merges": 0, "merges accepted": 0}

    @property
    def rows(self) -> int:
        return self._rows

    def details(self) -> Mapping[str, float]:
        return self._counts

    def refuse(self, nodes: list[int]) -> None:
        """Raises KernelError where no choice is a label, where one is read otherwise than as a key, and where labels of
        a maker differ in which choices their classes have."""
        labels = [node for node in nodes if is_label(self.model.trace, node)]
        if not labels:
            raise KernelError("split_merge moves labels, draws of make_crp, and there are none", hint="gibbs, or mh")
        for free in free_labels(labels_by_maker(self.model), nodes).values():
            refuse_unlike(self.model, free)
        self._label = labels[0]

    def inspect(self, selection: Selection) -> bool:
        found = selection.everything()
        if found:
            self.refuse(found)
        return bool(found)

    def course(self, nodes: list[int], at: Selection) -> Course:
        self.refuse(nodes)
        return Course(COLUMNS) if self._check is not None and has_columns(self.model, nodes) else Course(ROWS)

    def moves(self, selection: Selection) -> list[int]:
        """The labels of a selection, and the parameters of their classes."""
        every = labels_by_maker(self.model)
        found = dict[int, None]()
        for maker, labels in free_labels(every, selection.everything()).items():
            found.update(dict.fromkeys(labels))
            for members in by_label(self.model.trace, every[maker]).values():
                found.update(dict.fromkeys(parameters_of(self.model, members)))
        return list(found)

    # ------------------------------------------------------------------------------------------- a transition

    def step(self, nodes: list[int], at: Selection) -> bool:
        accepted = None
        if self._check is not None:
            # of this transition alone
            self._decide.taken()
            accepted = self._check.step_if_any(nodes, at, self._by_columns, self._decide.taken)
        return self._by_interpreter(nodes, at) if accepted is None else accepted

    def _by_columns(self, nodes: list[int]) -> bool | None:
        """Whether the proposal is accepted; None where the labels have no columns, and nothing was done."""
        model = self.model
        if self._misses >= MOST_MISSES or model.transactions or model.trace.journal.entries:
            return None
        if model.regenerator.power != 1.0 or self._label < 0:
            return None
        self._columns = self._columns or ColumnProposals(model, self._label)
        if not self._columns.propose(nodes):
            self._misses += 1
            return None
        log_ratio = self._columns.log_ratio
        self._misses = 0
        if log_ratio is None:
            return False
        accepted = log_ratio > -math.inf and self._decide(Weight(0, log_ratio))
        if accepted:
            self._columns.keep()
        self._rows += self._columns.rows
        self._count("splits" if self._columns.splits else "merges", accepted)
        return accepted

    def _count(self, what: str, accepted: bool) -> None:
        self._counts[what] += 1
        self._counts[f"{what} accepted"] += accepted

    def _by_interpreter(self, nodes: list[int], at: Selection) -> bool:
        model = self.model
        model.regenerator.regenerations += 1
        pairs = LabelPairs(model, nodes)
        pair = pairs.drawn()
        if pair is None:
            return False
        what = "splits" if pair.splits else "merges"
        try:
            with model.transaction() as change:
                move = RestrictedMove(model, pair, pairs.every[pair.maker], nodes)
                before = pairs.log_probability(pair, pair.splits)
                accepted = (pair.splits or not move.has_others(pair.first)) and self._propose(move, before, at)
                self._rows += move.rows
                if accepted:
                    change.keep()
        except VentureError as error:
            if not rejects(model, error, ()):
                raise
            accepted = False
        self._count(what, accepted)
        return accepted

    def _propose(self, move: RestrictedMove, log_pair: float, at: Selection) -> bool:
        """Whether the proposal is accepted; it stands then. `log_pair` is the log probability of the pair."""
        model, pair = self.model, move.pair
        before = model.log_score()
        forward, backward = move.split() if pair.splits else move.merge()
        weight = model.log_score().minus(before)
        weight.total += backward - forward
        # parameters may be labels themselves, and others of them there now
        now = LabelPairs(model, at.everything())
        weight.total += now.log_probability(pair, not pair.splits) - log_pair
        return weight.total > -math.inf and self._decide(weight)


def _compile_split_merge(program: InferenceProgram, given: ActionForm) -> Part:
    engine = SplitMerge(program.model)
    return given.kernel("splits and merges of classes", engine, Selector("all"), moves=engine.moves)


SPLIT_MERGE = Action(
    "split_merge",
    ("(split_merge SCOPE T)",),
    "T proposals that split a class of the labels in SCOPE, draws of `make_crp`, or merge two: from two labels of one "
    "maker drawn at random, with three restricted Gibbs scans of labels and parameters.",
    _compile_split_merge,
)
