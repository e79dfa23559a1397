"""Transitions by forms, and values of several kinds in columns."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.posterior.case import Case
from tests.posterior.derive import gaussian_posterior, pushforward, table
from tests.posterior.fault import Fault
from tests.statistics import Expected, Mean
from venture_lite.interpreter import shape
from venture_lite.interpreter.references import row_given
from venture_lite.kernels.lower import Lowering, rows_of
from venture_lite.procedures.straight_line import needed
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.table import ROW_MASK

# ------------------------------------------------------------- rows of one loop that call families of which some move

LEVELS = (2.1, 1.2, 2.9, 1.8, 2.4, 1.5, 2.2, 0.9, 2.6, -1.2, -0.3, -1.9, -0.8, -1.5, -0.2, -1.1, -1.7, -0.6)
HALVES = (1,) * 9 + (2,) * 9


def levels_and_spread() -> Mapping[str, Expected]:
    # Given s, mu(1) and mu(2) are normal and apart; s has its density on a grid.
    s, y = np.linspace(0.05, 8.0, 4000), np.array(LEVELS)
    log_weight, means = stats.gamma.logpdf(s, 2, scale=0.5), []
    for group in (y[:9], y[9:]):
        precision = 9 / s**2 + 0.25
        means.append(group.sum() / s**2 / precision)
        log_weight -= 9 * np.log(s) + (group @ group / s**2 - precision * means[-1] ** 2) / 2 + np.log(precision) / 2
    weight = np.exp(log_weight - log_weight.max())
    one, two, spread = (float(weight @ x / weight.sum()) for x in (*means, s))
    return {"one": Mean(one), "two": Mean(two), "s": Mean(spread)}


ODD_FIRST = (1, *[2] * 10, *[1] * 8)
FAR = (-2.0, *[3.0] * 10, *[-2.0] * 8)


def level_and_effect() -> Mapping[str, Expected]:
    # (a, u(1), u(2)) is normal, with prior sds 1 and noise of sd 4.
    rows = np.array([[1.0, k == 1, k == 2] for k in ODD_FIRST])
    mean, _, _ = gaussian_posterior(np.zeros(3), np.eye(3), rows, np.full(len(FAR), 4.0), np.array(FAR))
    return {"a": Mean(mean[0]), "one": Mean(mean[1]), "two": Mean(mean[2])}


ODD_LAST = (*[1] * 11, 2)
ODD_INSIDE = (*[1] * 5, 2, *[1] * 4)
AROUND = (1.1, 0.9, 0.8, 1.3, 1.0, 2.2, 0.9, 1.2, 1.1, 0.8, 1.0, 2.1)


def switches(groups: Sequence[int], y: Sequence[float]) -> Mapping[str, Expected]:
    # All eight states of (a, f(1), f(2)); the rows are normal around the sum of two of them, with sd 1.
    weights: dict[tuple[float, ...], float] = {}
    for a, one, two in itertools.product((0, 1), repeat=3):
        means = [a + (one if k == 1 else two) for k in groups]
        weights[a, one, two] = float(np.exp(stats.norm.logpdf(y, means, 1.0).sum()))
    return {"state": pushforward(weights, lambda a, one, two: 4 * a + 2 * one + two)}


SWITCHES = """
[assume a (tag 'b 0 (bernoulli 0.5))]
[assume f (mem (lambda (k) (tag 'b (if (= k 1) 0 1) (bernoulli 0.5))))]
for n in 1...{ROWS}: [observe (normal (+ a (f {J[n]})) 1) {Y[n]}]"""
STATE = {"state": "(+ (* 4 a) (* 2 (f 1)) (f 2))"}


def read_in_the_first_row(patch: pytest.MonkeyPatch) -> None:
    """The family that the first row of a loop calls is taken for that of all its rows."""
    each_in_its_own = Lowering._in_each_row

    def in_the_first(self: Lowering, new: dict[int, Any], site: int, column: Any, at: Any) -> Any:
        (each,) = (node for node in needed([at]) if node.operation == "each")
        first = rows_of(self._trace, self._shape.groups[each.operands[0]])[0]
        row = row_given(self._operations, at, {each.place: first})
        if (
            isinstance(column, BorrowedColumn)
            and (lent := column.site << 32 | column.edges.view[row] & ROW_MASK) in new
        ):
            return new[lent]
        return each_in_its_own(self, {}, site, column, at)

    patch.setattr(Lowering, "_in_each_row", in_the_first)


GROUPS_IN_ONE_LOOP = Fault(
    "levels of two groups in one loop",
    (
        Case(
            name="levels_of_two_groups",
            program="""
[assume s (gamma 2 2)]
[assume mu (mem (lambda (k) (normal 0 2)))]
for n in 1...18: [observe (normal (mu {J[n]}) s) {Y[n]}]""",
            query={"one": "(mu 1)", "two": "(mu 2)", "s": "s"},
            exact=levels_and_spread,
            engines=("(mh default all 'drift 0.25 8)",),
            derivation="normal given s, which is summed over a grid",
            parameters={"J": HALVES, "Y": LEVELS},
        ),
        Case(
            name="level_and_effects_odd_row_first",
            program="""
[assume a (tag 'b 1 (normal 0 1))]
[assume u (mem (lambda (k) (tag 'b k (normal 0 1))))]
for n in 1...19: [observe (normal (+ a (u {J[n]})) 4) {Y[n]}]""",
            query={"a": "a", "one": "(u 1)", "two": "(u 2)"},
            exact=level_and_effect,
            engines=("(do (mh 'b 1 'drift 1 'precondition 2) (mh 'b 2 1))",),
            derivation="conjugate normals",
            parameters={"J": ODD_FIRST, "Y": FAR},
        ),
        Case(
            name="switches_odd_row_inside",
            program=SWITCHES.replace("{ROWS}", "10"),
            query=STATE,
            exact=lambda: switches(ODD_INSIDE, AROUND[:10]),
            engines=("(mh 'b one 4)",),
            derivation="enumeration of eight states",
            parameters={"J": ODD_INSIDE, "Y": AROUND[:10]},
        ),
        Case(
            name="switches_odd_row_last",
            program=SWITCHES.replace("{ROWS}", "12"),
            query=STATE,
            exact=lambda: switches(ODD_LAST, AROUND),
            engines=("(gibbs 'b one 2)",),
            derivation="enumeration of eight states",
            parameters={"J": ODD_LAST, "Y": AROUND},
        ),
    ),
    broken=read_in_the_first_row,
)

# ------------------------------------------------------------------- blocks of the same sites that read in another way

OTHERWISE = (0, 0, 1, 2, 3, 3)
SEEN = (1.4, 0.2, -0.3, 0.1, 1.3, 0.6)


def pairs(groups: Sequence[int], y: Sequence[float], sd: float) -> Mapping[str, Expected]:
    # The families are bernoulli(0.5), and read by normal rows.
    weights: dict[tuple[float, ...], float] = {}
    for states in itertools.product((0, 1), repeat=4):
        weights[states] = float(np.exp(stats.norm.logpdf(y, [states[k] for k in groups], sd).sum()))
    return {"state": pushforward(weights, lambda *states: sum(x << k for k, x in enumerate(states)))}


def normal_pairs() -> Mapping[str, Expected]:
    rows = np.eye(4)[list(OTHERWISE)]
    mean, _, _ = gaussian_posterior(np.zeros(4), np.eye(4), rows, np.full(6, 1.0), np.array(SEEN))
    return {name: Mean(mean[k]) for k, name in enumerate(("none", "one", "two", "three"))}


def labelled() -> Mapping[str, Expected]:
    # Four labels and two families, bernoulli(0.5) each; row n is normal around the family of its label, with sd 0.6.
    weights: dict[tuple[float, ...], float] = {}
    for *z, zero, one in itertools.product((0, 1), repeat=6):
        means = [(zero, one)[label] for label in z]
        weights[(*z, zero, one)] = float(np.exp(stats.norm.logpdf(SEEN[:4], means, 0.6).sum()))
    return {
        "together": pushforward(weights, lambda *state: state[0] == state[1]),
        "first": pushforward(weights, lambda *state: state[4 + state[0]]),
        "third": pushforward(weights, lambda *state: state[4 + state[2]]),
    }


PAIRS = """
[assume mu (mem (lambda (k) (tag 'b (floor (/ k 2)) (bernoulli 0.5))))]
for n in 1...{ROWS}: [observe (normal (mu {J[n]}) 0.6) {Y[n]}]"""
PAIR_STATE = {"state": "(+ (mu 0) (* 2 (mu 1)) (* 4 (mu 2)) (* 8 (mu 3)))"}
WIDE_PAIRS = (*[0] * 7, *[1] * 4, *[2] * 4, *[3] * 7)
WIDE_SEEN = (*[0.45] * 7, *[0.6] * 4, *[0.5] * 4, *[0.55] * 7)


def shapes_of_sites_alone(patch: pytest.MonkeyPatch) -> None:
    """Blocks have one shape where the same sites move and weigh, whatever reads what."""
    patch.setattr(shape, "_reads", lambda trace, number: ())


BLOCKS_THAT_READ_OTHERWISE = Fault(
    "blocks of the same sites that read in another way",
    (
        Case(
            name="pairs_that_read_otherwise",
            program=PAIRS.replace("{ROWS}", "6"),
            query=PAIR_STATE,
            exact=lambda: pairs(OTHERWISE, SEEN, 0.6),
            engines=("(gibbs 'b each 1)", "(mh 'b each 2)"),
            derivation="enumeration of 16 states",
            parameters={"J": OTHERWISE, "Y": SEEN},
        ),
        Case(
            name="pairs_of_22_rows",
            program=PAIRS.replace("{ROWS}", "22").replace("0.6", "2"),
            query=PAIR_STATE,
            exact=lambda: pairs(WIDE_PAIRS, WIDE_SEEN, 2.0),
            engines=("(mh 'b each 2)",),
            derivation="enumeration of 16 states",
            parameters={"J": WIDE_PAIRS, "Y": WIDE_SEEN},
        ),
        Case(
            name="pairs_of_normals",
            program=PAIRS.replace("{ROWS}", "6").replace("(bernoulli 0.5)", "(normal 0 1)").replace("0.6", "1"),
            query={"none": "(mu 0)", "one": "(mu 1)", "two": "(mu 2)", "three": "(mu 3)"},
            exact=normal_pairs,
            engines=("(mh 'b each 'drift 1 2)",),
            derivation="conjugate normals",
            parameters={"J": OTHERWISE, "Y": SEEN},
        ),
        Case(
            name="families_of_labels_that_move",
            program="""
[assume z (mem (lambda (n) (tag 'z n (bernoulli 0.5))))]
[assume mu (mem (lambda (k) (tag 'b 0 (bernoulli 0.5))))]
for n in 1...4: [observe (normal (mu (z n)) 0.6) {Y[n]}]""",
            query={"together": "(= (z 1) (z 2))", "first": "(mu (z 1))", "third": "(mu (z 3))"},
            exact=labelled,
            engines=("(do (mh 'z one 4) (gibbs 'b all 1))",),
            derivation="enumeration of 64 states",
            parameters={"Y": SEEN[:4]},
        ),
    ),
    broken=shapes_of_sites_alone,
)

# ----------------------------------------------------------------------------------- zeros of either sign in one loop


def seen(zeros: Sequence[float]) -> np.ndarray:
    """Angles halfway between 0 and pi with the sign of each zero."""
    angles: np.ndarray = np.copysign(1.5 + 0.02 * np.arange(len(zeros)) % 0.2, zeros)
    return angles


def signed(zeros: Sequence[float], sd: float) -> Mapping[str, Expected]:
    # The angle of (m, z) is 0 for m > 0, and pi with the sign of z for m < 0: there are two states, each of half the
    # prior's mass; and |m| keeps its prior.
    y = seen(zeros)
    right = stats.norm.logpdf(y, 0.0, sd).sum()
    left = stats.norm.logpdf(y, np.copysign(np.pi, zeros), sd).sum()
    p = float(1.0 / (1.0 + np.exp(left - right)))
    return {"m": Mean((2.0 * p - 1.0) * np.sqrt(2.0 / np.pi))}


def switched(zeros: Sequence[float], sd: float) -> Mapping[str, Expected]:
    # m is -1 or 0, and the angle of (0, z) is 0 with the sign of z.
    y = seen(zeros)
    log = [stats.norm.logpdf(y, np.arctan2(zeros, m), sd).sum() for m in (-1.0, 0.0)]
    return {"m": table({-1.0: float(np.exp(log[0] - log[1])), 0.0: 1.0})}


ZERO_LAST, ZERO_FIRST = (*[0.0] * 11, -0.0), (-0.0, *[0.0] * 8)
ZERO_INSIDE = (*[-0.0] * 6, 0.0, *[-0.0] * 13)
SIGNS = (0.0, -0.0) * 6
ZEROS = """
[assume m {PRIOR}]
for n in 1...{ROWS}: [observe (normal (atan2 {Z[n]} m) {SD}) {Y[n]}]"""


def zeros(name: str, prior: str, z: Sequence[float], sd: float, engines: tuple[str, ...]) -> Case:
    find = signed if "normal" in prior else switched
    program = ZEROS.replace("{PRIOR}", prior).replace("{ROWS}", str(len(z))).replace("{SD}", str(sd))
    derivation = "two states: the sign of m"
    data = {"Z": z, "Y": seen(z).tolist()}
    return Case(name, program, {"m": "m"}, lambda: find(z, sd), engines, derivation, data)


def equal_data_read_once(patch: pytest.MonkeyPatch) -> None:
    """A column whose numbers are equal by == in all rows of a loop is read in its first row."""
    each_in_its_own = Lowering._in_each_row

    def once(self: Lowering, new: dict[int, Any], site: int, column: Any, at: Any) -> Any:
        if at.operation == "each" and not isinstance(column, BorrowedColumn):
            found = [column.view[row] for row in rows_of(self._trace, self._shape.groups[at.operands[0]])]
            if found.count(found[0]) == len(found):
                return self._operations.constant(found[0])
        return each_in_its_own(self, new, site, column, at)

    patch.setattr(Lowering, "_in_each_row", once)


ZEROS_OF_EITHER_SIGN = Fault(
    "zeros of either sign in one loop",
    (
        zeros("signs_alternate", "(normal 0 1)", SIGNS, 2.0, ("(mh default one 3)", "(slice default one 2 100 1)")),
        zeros("negative_zero_first", "(normal 0 1)", ZERO_FIRST, 2.0, ("(mh default one 3)",)),
        zeros("negative_zero_last", "(normal 0 1)", ZERO_LAST, 2.0, ("(mh default one 3)",)),
        zeros("positive_zero_inside", "(uniform_discrete -1 1)", ZERO_INSIDE, 2.0, ("(gibbs default one 1)",)),
    ),
    broken=equal_data_read_once,
)

FAULTS: tuple[Fault, ...] = (GROUPS_IN_ONE_LOOP, BLOCKS_THAT_READ_OTHERWISE, ZEROS_OF_EITHER_SIGN)
