"""Values of several kinds in one column: truth values beside numbers, lists, vectors and dictionaries."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.posterior.case import Case
from tests.posterior.derive import Grid, normal_pdf, pushforward
from tests.posterior.fault import Fault
from tests.statistics import Expected, Floats, Mean
from venture_lite.procedures import columns
from venture_lite.program import selects
from venture_lite.trace.table import Column, NotColumnar

PARTICLES, STATES = "(pgibbs default ordered 4 1)", "(gibbs default all 'forward 1)"
SEEN = 1.5


def coins(count: int, means: Callable[..., Sequence[float]]) -> Mapping[str, Expected]:
    """The number that so many fair coins spell, if what is seen is normal about the means, with sd 1."""
    weights: dict[tuple[float, ...], float] = {}
    for state in itertools.product((0, 1), repeat=count):
        weights[state] = float(np.prod([normal_pdf(SEEN, mean, 1.0) for mean in means(*state)]))
    return {"state": pushforward(weights, lambda *state: sum(x << k for k, x in enumerate(state)))}


def coin(name: str, value: str, mean: str, expected: Callable[[int], float], *engines: str) -> Case:
    """A value `w` that one coin `z` decides, and what is seen about a mean that is computed from it."""
    return Case(
        name=name,
        program=f"[assume z (bernoulli 0.5)] [assume w {value}] [observe (normal {mean} 1) {SEEN}]",
        query={"state": "z"},
        exact=lambda: coins(1, lambda z: [expected(z)]),
        engines=engines or (PARTICLES, STATES),
        derivation="enumeration of two states",
    )


# ------------------------------------------------------------------------------------- truth values beside numbers


def families_of_several_kinds(states: int) -> Case:
    """Families of which the second gives true, and the others a number: coin n agrees with what family n is."""
    return Case(
        name=f"families_true_beside_numbers_of_{states}_coins",
        program=f"""
[assume f (mem (lambda (k) (if (= k 2) true 1)))]
[assume z (mem (lambda (n) (bernoulli 0.5)))]
for n in 1...{states}: [observe (normal (if (= (z n) (is_boolean (f n))) 1 0) 1) {SEEN}]""",
        query={"state": f"(+ {' '.join(f'(* {1 << n} (z {n + 1}))' for n in range(states))})"},
        exact=lambda: coins(states, lambda *z: [float(each == (n == 1)) for n, each in enumerate(z)]),
        engines=(PARTICLES, STATES),
        derivation="enumeration of all states",
    )


def select_from_one_array(patch: pytest.MonkeyPatch) -> None:
    """A select makes one array of both values, of whatever kinds they are, lists and dictionaries among them."""
    patch.setattr(selects, "one_kind", lambda *values: None)
    patch.setattr(selects, "np", SimpleNamespace(**vars(np) | {"ndim": lambda value: getattr(value, "ndim", 0)}))


IS_BOOLEAN = "(if (is_boolean w) 1 0)"
LARGE = 2**53 + 1
"""The first integer that is no float."""

TRUTH_BESIDE_NUMBERS = Fault(
    name="truth values beside numbers",
    cases=(
        coin("true_or_a_number", "(if z true 2)", IS_BOOLEAN, lambda z: z),
        coin("the_greatest_of_a_coin_and_a_number", "(max z 0.5)", IS_BOOLEAN, lambda z: z),
        coin("the_least_of_a_coin_and_a_number", "(min 0.5 z)", IS_BOOLEAN, lambda z: 1 - z),
        families_of_several_kinds(2),
        coin("an_integer_or_a_float", f"(if z {LARGE} {2**53}.0)", f"(= w {2**53})", lambda z: 1 - z),
    ),
    siblings=(
        families_of_several_kinds(4),
        coin("a_number_or_false", "(if z 1.0 false)", IS_BOOLEAN, lambda z: 1 - z),
        coin("a_number_or_a_comparison", "(if z (+ z 1) (< z 1))", IS_BOOLEAN, lambda z: 1 - z),
        coin("an_extreme_within_a_choice", "(if z (max z 0) (* 1 z))", IS_BOOLEAN, lambda z: z),
    ),
    broken=select_from_one_array,
)

# -------------------------------------------------------------------------------------------- lists that are chosen

LISTS = Fault(
    name="a choice between lists",
    cases=(
        # silent where there are as many particles or states as entries
        coin(
            "lists_of_two", "(if z '(1 2) '(0 5))", "(= w '(1 2))", lambda z: z, "(pgibbs default ordered 2 2)", STATES
        ),
        coin("lists_of_four", "(if z '(1 2 3 4) '(0 5 6 7))", "(first w)", lambda z: z),
        coin("lists_of_several_lengths", "(if z '(1 2 3) '(0 5))", "(- (size w) 2)", lambda z: z),
        coin("a_list_or_a_number", "(if z '(1 0 1 0) 5)", "(if (= w 5) 0 1)", lambda z: z, STATES),
        coin("lists_of_lists", "(if z '((1 2) (3 4)) '((0 2) (3 4)))", "(first (first w))", lambda z: z),
    ),
    siblings=(
        coin("lists_of_texts", """(if z '("a" "b") '("b" "a"))""", '(= (first w) "a")', lambda z: z),
        coin("an_empty_list_or_another", "(if z '(1) '())", "(size w)", lambda z: z),
        coin("lists_within_a_choice", "(if z (if (< z 2) '(1 2) 3) '(0 2))", "(first w)", lambda z: z),
    ),
    broken=select_from_one_array,
)

# ------------------------------------------------------------------------------- rows that read values of several kinds


def of_rows(name: str, values: Sequence[str], row: str, numbers: Sequence[float], keys: Sequence[int]) -> Case:
    """Rows that read a value each, of which family k has number k, and are normal about m and a number of theirs."""
    chosen = values[-1]
    for key in range(len(values) - 1, 0, -1):
        chosen = f"(if (= k {key}) {values[key - 1]} {chosen})"
    seen = [1.5 + numbers[key - 1] + 0.01 * at for at, key in enumerate(keys)]

    def exact() -> Mapping[str, Expected]:
        total = sum(y - numbers[key - 1] for y, key in zip(seen, keys, strict=True))
        return {"m": Mean(total / (len(keys) + 1.0))}

    return Case(
        name=name,
        program=f"""
[assume m (normal 0 1)]
[assume f (mem (lambda (k) {chosen}))]
for n in 1...{len(keys)}: [observe (normal (+ m {row}) 1) {{Y[n]}}]""",
        query={"m": "m"},
        exact=exact,
        engines=("(mh default one 'drift 0.5 3)",),
        derivation="normal about the numbers of the rows",
        parameters={"J": list(keys), "Y": seen},
    )


def odd_at(place: int, count: int = 25) -> list[int]:
    return [2 if at == place else 1 for at in range(count)]


def gather_in_one_array(patch: pytest.MonkeyPatch) -> None:
    """A column of objects is made an array as NumPy can."""
    gather = Column.gather

    def gather_any(self: Column, rows: Any) -> np.ndarray:
        if self.array is not None:
            return gather(self, rows)
        chosen = self.view[rows] if isinstance(rows, slice) else [self.view[row] for row in rows.tolist()]
        try:
            found = np.array(chosen)
        except ValueError:
            raise NotColumnar from None
        if found.dtype.kind not in "fib":
            raise NotColumnar
        return found

    patch.setattr(Column, "gather", gather_any)


ENTRY = "(lookup (f {J[n]}) 1)"

SEVERAL_KINDS_IN_ROWS = Fault(
    name="rows that read vectors and dictionaries",
    cases=(
        of_rows("a_dictionary_last", ("(vector 1 2)", "(dict 1 9 2 8)"), ENTRY, (2, 9), odd_at(24)),
        of_rows("a_vector_first", ("(dict 1 9 2 8)", "(vector 1 2)"), ENTRY, (9, 2), odd_at(0)),
        of_rows("a_dictionary_inside", ("(vector 1 2 5)", "(dict 1 9 2 8 0 3)"), ENTRY, (2, 9), odd_at(12)),
        of_rows(
            "an_integer_that_is_no_float",
            (f"{2**53}.0", str(LARGE)),
            f"(* 5 (= (f {{J[n]}}) {2**53}))",
            (5, 0),
            odd_at(24),
        ),
    ),
    siblings=(
        of_rows("a_dictionary_in_few_rows", ("(vector 1 2)", "(dict 1 9 2 8)"), ENTRY, (2, 9), odd_at(5, 20)),
        of_rows("a_dictionary_in_many_rows", ("(vector 1 2)", "(dict 1 9 2 8)"), ENTRY, (2, 9), odd_at(40, 41)),
        of_rows("dictionaries_of_one_size", ("(dict 1 9 2 8)", "(dict 0 3 1 5)"), ENTRY, (9, 5), odd_at(24)),
    ),
    broken=gather_in_one_array,
)

# ------------------------------------------------------------------------------------- true as an argument of a density


def of_true(name: str, row: str, log_density: Callable[[Floats, float], Floats], rows: int, *engines: str) -> Case:
    """Rows about m, with the same argument in all of them, which is true."""
    seen = [round(-0.5 + 2.5 * (7 * n % 10) / 10, 2) for n in range(rows)]
    grid = Grid(-6.0, 6.0, 2_001)

    def exact() -> Mapping[str, Expected]:
        log_densities = [log_density(grid.points, value) for value in seen]
        return {"m": grid.cdf(stats.norm.logpdf(grid.points) + np.sum(log_densities, axis=0))}

    return Case(
        name=name,
        program=f"[assume m (normal 0 1)] for n in 1...{rows}: [observe {row} {{Y[n]}}]",
        query={"m": "m"},
        exact=exact,
        engines=engines,
        derivation="Quadrature over m.",
        parameters={"Y": seen, "B": [True] * rows},
    )


def normal(m: Floats, y: float) -> Floats:
    return np.asarray(stats.norm.logpdf(y, m, 1.0))


def cauchy(m: Floats, y: float) -> Floats:
    return np.asarray(stats.cauchy.logpdf(y, m, 1.0))


def student(m: Floats, y: float) -> Floats:
    return np.asarray(stats.t.logpdf(y, 3.0, m, 1.0))


def let_true_be(patch: pytest.MonkeyPatch) -> None:
    """NumPy's functions are given true as it is, of which they make numbers of three digits."""
    numeric = columns.numeric
    patch.setattr(columns, "numeric", lambda argument, up: True if argument is True else numeric(argument, up))


DRIFT, NUTS, FLIES = (
    "(mh default one 'drift 0.6 4)",
    "(nuts default all 'step 0.4 1)",
    "(flymc default all auto 'map 0.2 'drift 0.6 4)",
)

TRUE_IN_DENSITIES = Fault(
    name="true as an argument of a density",
    cases=(
        of_true("true_as_a_scale", "(normal m true)", normal, 25, DRIFT),
        of_true("true_as_a_scale_of_slopes", "(normal m true)", normal, 25, NUTS),
        of_true("true_as_a_scale_of_few_flies", "(cauchy m true)", cauchy, 5, FLIES),
        of_true("true_as_the_scale_of_each_fly", "(normal m {B[n]})", normal, 10, FLIES),
    ),
    siblings=(
        of_true("true_as_a_scale_in_a_loop", "(student_t 3 m true)", student, 45, NUTS, DRIFT),
        of_true("true_as_what_is_compared", "(cauchy (* 1 m) (= 1 1))", cauchy, 30, DRIFT, NUTS, FLIES),
    ),
    broken=let_true_be,
)

FAULTS: tuple[Fault, ...] = (TRUTH_BESIDE_NUMBERS, LISTS, SEVERAL_KINDS_IN_ROWS, TRUE_IN_DENSITIES)
