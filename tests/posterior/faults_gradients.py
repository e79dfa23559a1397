"""Gradients and functions of blocks.

Each model has one number m, so that its posterior is that of a grid; the log likelihoods are written here once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, ndtr

from tests.posterior.case import Case
from tests.posterior.derive import Grid
from tests.posterior.fault import Fault
from tests.statistics import Expected, Floats
from venture_lite.procedures.straight_line import Node
from venture_lite.trace.table import Column

GRID = Grid(-6.0, 8.0, 4_001)
LOG_PRIOR = stats.norm.logpdf(GRID.points)
NUTS, HMC, MALA = "(nuts default all 'step 0.5 1)", "(hmc default all 0.4 3 1)", "(mala default all 0.8 1)"


def given(log_likelihood: Callable[[Floats], Any]) -> Mapping[str, Expected]:
    """Of m, which is normal before."""
    return {"m": GRID.cdf(LOG_PRIOR + log_likelihood(GRID.points))}


def regression(slopes: Sequence[float], offsets: Sequence[float], y: Sequence[float], sd: float, m: Floats) -> Any:
    """The log likelihood of y = slope m + offset + normal noise."""
    means = np.multiply.outer(m, np.asarray(slopes, float)) + np.asarray(offsets, float)
    return stats.norm.logpdf(np.asarray(y, float), means, sd).sum(axis=1)


def case(
    name: str, program: str, log_likelihood: Callable[[Floats], Any], *engines: str, **parameters: Sequence[Any]
) -> Case:
    return Case(
        name=name,
        program=f"[assume m (normal 0 1)] {program}",
        query={"m": "m"},
        exact=partial(given, log_likelihood),
        engines=engines,
        derivation="Quadrature over m.",
        parameters=parameters,
    )


def texts(count: int, odd: int) -> list[str]:
    """All one text but for the odd one."""
    return ["u" if at == odd else "t" for at in range(count)]


def data(count: int) -> dict[str, list[float]]:
    """Inputs and observations."""
    rng = np.random.default_rng(count)
    x = rng.uniform(-1.0, 1.0, count).round(2).tolist()
    return {"X": x, "Y": (np.array(x) + rng.normal(size=count)).round(2).tolist()}


# ------------------------------------------------------------------------------------------- predicates of texts

PREDICATES = "[observe (normal (* m (+ 1 (if (= {0} {1}) 3 0))) 4) {2}]"
SMALL, LARGE, MANY = data(10), data(26), data(45)


def slopes(inputs: Mapping[str, Sequence[float]], odd: int) -> list[float]:
    """Those of (+ 1 (if (= {S[n]} "t") 3 {X[n]})), where one text is odd."""
    return [1.0 + (x if at == odd else 3.0) for at, x in enumerate(inputs["X"])]


def take_none_for_a_value(patch: pytest.MonkeyPatch) -> None:
    """A select takes None for false."""
    patch.setattr("venture_lite.blocks.tape.values_of_rows", or_none(Column.gather))
    patch.setattr("venture_lite.blocks.tape.applied_to_rows", or_none(as_columns))


def as_columns(record: Any, lifted: tuple[bool, ...], arguments: Sequence[Any]) -> Any:
    if record.name == "if" and arguments[0] is None:
        return np.where(False, *arguments[1:])
    return record.columns(lifted, *arguments)


def or_none(function: Callable[..., Any]) -> Callable[..., Any]:
    def tried(*given: Any) -> Any:
        try:
            return function(*given)
        except Exception:
            return None

    return tried


PREDICATES_OF_TEXTS = Fault(
    name="a predicate that has no column form",
    cases=(
        case(
            "texts_compared_beside_a_column_of_many_rows",
            'for n in 1...45: [observe (normal (* m (+ 1 (if (= {S[n]} "t") 3 {X[n]}))) 9) {Y[n]}]',
            partial(regression, slopes(MANY, 22), [0] * 45, MANY["Y"], 9.0),
            NUTS,
            S=texts(45, 22),
            **MANY,
        ),
        case(
            "texts_compared_in_single_rows",
            " ".join(PREDICATES.format('"t"', f'"{text}"', y) for text, y in (("t", 2), ("u", 0.5), ("t", 1))),
            partial(regression, [4, 1, 4], [0, 0, 0], [2, 0.5, 1], 4.0),
            NUTS,
        ),
        case(
            "texts_compared_beside_a_column",
            'for n in 1...10: [observe (normal (* m (+ 1 (if (= {S[n]} "t") 3 {X[n]}))) 5) {Y[n]}]',
            partial(regression, slopes(SMALL, 0), [0] * 10, SMALL["Y"], 5.0),
            HMC,
            S=texts(10, 0),
            **SMALL,
        ),
        case(
            "the_last_value_is_true",
            "for n in 1...3: [observe (normal (* m (+ 1 (if (is_boolean {B[n]}) 3 0))) 1) {Y[n]}]",
            partial(regression, [1, 1, 4], [0, 0, 0], [0.5, 1, 2], 1.0),
            HMC,
            B=[0.5, 2, True],
            Y=[0.5, 1, 2],
        ),
        case(
            "a_long_text_in_the_middle",
            "for n in 1...26: [observe (normal (* m (+ 1 (if (> (size {S[n]}) 1) 3 {X[n]}))) 8) {Y[n]}]",
            partial(regression, slopes(LARGE, 12), [0] * 26, LARGE["Y"], 8.0),
            NUTS,
            S=["t" if at == 12 else "uu" for at in range(26)],
            **LARGE,
        ),
    ),
    broken=take_none_for_a_value,
)


# ------------------------------------------------------------------------------------- derivatives that are constant


def take_constants_for_nothing(patch: pytest.MonkeyPatch) -> None:
    for module in ("block_rows", "block_columns", "block_recursions"):
        patch.setattr(f"venture_lite.blocks.{module}.is_nothing", lambda cotangent: cotangent.__class__ is not Node)


CONSTANT_DERIVATIVES = Fault(
    name="a derivative that is a plain number",
    cases=(
        case("a_factor_of_a_computed_value", "[assume g (* 2 m)] [factor g]", lambda m: 2 * m, NUTS),
        case(
            "factors_of_many_computed_values",
            """[assume g (mem (lambda (n) (* (if (= n 1) 1 0.02) m)))] for n in 1...45: [factor (g n)]""",
            lambda m: 1.88 * m,
            HMC,
        ),
        case(
            "a_factor_at_the_end_of_a_recursion",
            "[assume h (mem (lambda (t) (if (= t 0) m (+ m (* 0.5 (h (- t 1)))))))] [factor (h 20)]",
            lambda m: (2 - 0.5**20) * m,
            MALA,
        ),
        case(
            "a_factor_at_the_end_of_a_short_recursion",
            "[assume h (mem (lambda (t) (if (= t 0) m (+ m (* 0.5 (h (- t 1)))))))] [factor (h 19)]",
            lambda m: (2 - 0.5**19) * m,
            NUTS,
        ),
    ),
    broken=take_constants_for_nothing,
)


def look_at_the_cotangent_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("venture_lite.procedures.pullbacks.is_recorded", lambda values: values[0].__class__ is Node)


def recursion_of_sines(m: Floats) -> Any:
    for _ in range(25):
        m = 0.9 * np.sin(m) + 0.5
    return 4 * m


CONSTANT_COTANGENTS = Fault(
    name="a constant cotangent of what is recorded",
    cases=(
        case("a_factor_of_a_sine", "[factor (sin m)]", np.sin, NUTS),
        case(
            "a_factor_of_a_probability",
            "[factor (normal_cdf m)] [factor (normal_cdf m)]",
            lambda m: 2 * ndtr(m),
            HMC,
        ),
        case("a_factor_of_a_power", "[factor (- (lgamma (+ 1 (pow m 2))))]", lambda m: -gammaln(1 + m * m), MALA),
        case(
            "factors_of_many_sines",
            "for n in 1...45: [factor (* 0.1 (sin (* {X[n]} m)))]",
            lambda m: 0.1 * np.sin(np.multiply.outer(m, MANY["X"])).sum(axis=1),
            MALA,
            X=MANY["X"],
        ),
        case(
            "a_recursion_of_sines_by_a_literal",
            """[assume h (mem (lambda (t) (if (= t 0) m (+ 0.5 (* 0.9 (sin (h (- t 1))))))))] [factor (* 4 (h 25))]""",
            recursion_of_sines,
            NUTS,
        ),
    ),
    broken=look_at_the_cotangent_alone,
)


# ----------------------------------------------------------------------------------------------- what is no number


def let_others_reach_arithmetic(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("venture_lite.blocks.block_columns.refuse_others", lambda operands: None)
    patch.setattr("venture_lite.blocks.tape.applied_to_rows", as_columns)


GROUPS = '(+ (* {X[n]} m) (if (= {S[n]} "t") 1 2))'


def of_groups(inputs: Mapping[str, Sequence[float]], odd: int) -> Callable[[Floats], Any]:
    offsets = [2 if at == odd else 1 for at in range(len(inputs["X"]))]
    return partial(regression, inputs["X"], offsets, inputs["Y"], 3.0)


EVEN, WIDE = data(42), data(66)

TEXTS_IN_ARITHMETIC = Fault(
    name="an object that is no number in arithmetic over columns",
    cases=(
        case(
            "groups_by_text",
            f"for n in 1...42: [observe (normal {GROUPS} 3) {{Y[n]}}]",
            of_groups(EVEN, 20),
            NUTS,
            S=texts(42, 20),
            **EVEN,
        ),
        case(
            "groups_by_text_of_which_the_first_is_odd",
            f"for n in 1...66: [observe (normal {GROUPS} 3) {{Y[n]}}]",
            of_groups(WIDE, 0),
            HMC,
            S=texts(66, 0),
            **WIDE,
        ),
        case(
            "groups_by_text_in_few_rows",
            f"for n in 1...26: [observe (normal {GROUPS} 3) {{Y[n]}}]",
            of_groups(LARGE, 25),
            MALA,
            S=texts(26, 25),
            **LARGE,
        ),
        case(
            "offsets_of_several_kinds_by_text",
            """for n in 1...42: [observe (normal (+ (* {X[n]} m) (lookup (dict "t" 1 "u" 2.0) {S[n]})) 3) {Y[n]}]""",
            of_groups(EVEN, 41),
            NUTS,
            S=texts(42, 41),
            **EVEN,
        ),
        case(
            "sizes_of_vectors_of_several_lengths",
            """for n in 1...42: [observe (normal (+ (* {X[n]} m)
                 (size (if (= {S[n]} "t") (vector 5) (vector 5 6)))) 3) {Y[n]}]""",
            of_groups(EVEN, 0),
            HMC,
            S=texts(42, 0),
            **EVEN,
        ),
    ),
    broken=let_others_reach_arithmetic,
)


def outputs_that_are_known(kind: Any, values: Mapping[int, Any]) -> list[Any]:
    """Arguments of a density, whatever they are."""
    return [values[each.place] if each.__class__ is Node else each for each in kind.tape.outputs]


def let_vectors_be_arguments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("venture_lite.blocks.block_columns.outputs_of", outputs_that_are_known)


def vectors(count: int) -> list[list[float]]:
    """(N, 3) normal about 0, 1 and -1."""
    found: list[list[float]] = np.random.default_rng(count).normal([0, 1, -1], 1.5, (count, 3)).round(2).tolist()
    return found


def of_vectors(distribution: Any, locations: Sequence[float], count: int, m: Floats) -> Any:
    """Of items with the scale exp(m / 10), at some locations."""
    values, total = np.array(vectors(count))[:, : len(locations)], np.zeros(len(m))
    for location, column in zip(locations, values.T, strict=True):
        for value in column:
            total += distribution.logpdf(value, location, np.exp(0.1 * m))
    return total


VECTORS_IN_ARITHMETIC = Fault(
    name="a vector as the argument of a density over columns",
    cases=(
        case(
            "vectors_with_one_scale",
            "for n in 1...41: [observe (normal (vector 0 1 -1) (exp (* 0.1 m))) {Y[n]}]",
            partial(of_vectors, stats.norm, (0, 1, -1), 41),
            MALA,
            Y=vectors(41),
        ),
        case(
            "fewer_vectors_with_one_scale",
            "for n in 1...40: [observe (normal (vector 0 1 -1) (exp (* 0.1 m))) {Y[n]}]",
            partial(of_vectors, stats.norm, (0, 1, -1), 40),
            "(mh default all 'drift 1 2)",
            Y=vectors(40),
        ),
        case(
            "twenty_one_vectors_with_one_scale",
            "for n in 1...21: [observe (laplace (vector 1 0) (exp (* 0.1 m))) {Y[n]}]",
            partial(of_vectors, stats.laplace, (1, 0), 21),
            MALA,
            Y=[each[:2] for each in vectors(21)],
        ),
        case(
            "single_vectors_with_one_scale",
            " ".join(
                f"[observe (cauchy (vector 0 1 -1) (exp (* 0.1 m))) (vector {' '.join(map(str, y))})]"
                for y in vectors(9)
            ),
            partial(of_vectors, stats.cauchy, (0, 1, -1), 9),
            MALA,
        ),
    ),
    broken=let_vectors_be_arguments,
)


# ----------------------------------------------------------------------------------------------- second derivatives


def let_jets_be_asked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("venture_lite.blocks.second.LOCALLY_CONSTANT", None)


def of_powers(slopes: Sequence[float], m: Floats) -> Any:
    return sum(stats.norm.logpdf(2.0, np.exp(slope * m), 1.0) for slope in slopes)


STEEP = "(mala default all 1 'precondition 1)"

PREDICATES_OF_JETS = Fault(
    name="a predicate that asks what a jet is",
    cases=(
        case(
            "a_branch_by_is_number",
            "[observe (normal (exp (* m (if (is_number m) 0.5 0))) 1) 2]",
            partial(of_powers, [0.5]),
            STEEP,
        ),
        case(
            "branches_by_is_number_in_many_rows",
            "for n in 1...3: [observe (normal (exp (* m (if (is_number (* {X[n]} m)) {X[n]} 0))) 1) 2]",
            partial(of_powers, [0.5, 1.0, 0.8]),
            STEEP,
            X=[0.5, 1.0, 0.8],
        ),
        case(
            "a_branch_by_the_size_of_a_vector",
            "[observe (normal (exp (* m (if (= (size (vector m 1)) 2) 0.8 0))) 1) 2]",
            partial(of_powers, [0.8]),
            NUTS,
        ),
        case(
            "a_branch_by_is_vector",
            "[observe (normal (exp (* m (if (is_vector (vector m 1)) 0.7 0))) 1) 2]",
            partial(of_powers, [0.7]),
            STEEP,
        ),
    ),
    broken=let_jets_be_asked,
)

FAULTS: tuple[Fault, ...] = (
    PREDICATES_OF_TEXTS,
    CONSTANT_DERIVATIVES,
    CONSTANT_COTANGENTS,
    TEXTS_IN_ARITHMETIC,
    VECTORS_IN_ARITHMETIC,
    PREDICATES_OF_JETS,
)
