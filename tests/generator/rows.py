"""Programs whose evidence stands in loops of rows, with columns of data of every kind.

A structure is a program without its data: choices, families, procedures and loops, of one of several themes. It is
given at any number of rows, with an odd row that differs from all others at any place, so that both sides of every
threshold of the fast ways are tried, and no row can stand for all. Expressions are those of `expressions.py`, with the
forms of this module; the only random choices are those that `[assume NAME ...]` makes, or one call of a memoized
procedure of that name, so that a choice is known by its name and its key.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.generator import naming
from tests.generator.catalogue import COMPUTED, SIMPLE, Forms
from tests.generator.expressions import Expressions
from tests.generator.loops import passes
from tests.generator.programs import PARAMETERS, Program
from tests.generator.steps import Made, Maker
from tests.generator.twins import Twin, both, twin

SIZES = (1, 2, 3, 8, 9, 10, 19, 20, 21, 22, 24, 25, 26, 40, 41, 42, 64, 65, 66)
"""Numbers of rows, on both sides of the thresholds on which fast ways are chosen."""

PLACES = ("first", "middle", "last")
"""Where the odd row stands."""

# ---------------------------------------------------------------------------------------------------------------- data

ORDINARY: Mapping[str, tuple[Sequence[Any], Any]] = {
    "XF": ((0.5, -0.3, 1.2, 0.8), -1.7),
    "XI": ((1, 2, 0), 0.5),
    "XZ": ((0.0,), -0.0),
    "XM": ((0.4, 2, 1), True),
    "XB": ((True,), False),
    "XC": ((0, 1, 2), 1),
    "XT": (("t",), "u"),
    "XS": (("t", "u"), "tu"),
    "XJ": ((0,), 1),
    "XP": ((np.array([1.0, 2.0]),), [1, 2]),
    "XD": ((np.array([1.0, 2.0]),), {1: 2, 3: 4}),
    "XK": ((1,), 2),
    "XW": (("a",), "b"),
    "YF": ((0.3, -1.1, 1.4, 0.2), 2.2),
    "YG": ((0.6, 1.3), 2.4),
    "YB": ((True, False), 1),
    "YC": ((0, 2, 1), 3),
    "YD": ((0, 1), 2),
    "YV": ((np.array([0.3, -1.1, 0.4]), np.array([1.0, 0.2, -0.5])), np.array([2.0, 0.0, 1.0])),
    "YQ": ((np.array([0.3, -1.1]),), np.array([1.0, 0.7])),
}
"""Of each column the values that its rows have, and the odd row's."""


def column(name: str, rows: int, odd: int, rng: np.random.Generator) -> list[Any]:
    """Values of a column: of several, in an order of their own, in two halves, or all alike but for the odd row."""
    ordinary, other = ORDINARY[name]
    match int(rng.integers(4)):
        case 0:
            found = [ordinary[0]] * rows
        case 1:
            half = [*ordinary, other][int(rng.integers(len(ordinary) + 1))]
            found = [ordinary[0]] * (rows // 2) + [half] * (rows - rows // 2)
        case 2:
            return [[*ordinary, other][i] for i in rng.integers(len(ordinary) + 1, size=rows).tolist()]
        case _:
            found = [ordinary[i % len(ordinary)] for i in range(rows)]
    found[odd] = other
    return found


def data(rows: int, odd: str, rng: np.random.Generator) -> dict[str, Any]:
    """Every column, and collections with as many items as there are rows, whose places are a column."""
    at = {"first": 0, "middle": rows // 2, "last": rows - 1}[odd]
    found: dict[str, Any] = {name: column(name, rows, at, rng) for name in ORDINARY}
    numbers = np.linspace(-1.0, 1.0, rows)
    return {
        **found,
        "RV": numbers,
        "RL": [0.3 if i % 2 else "t" for i in range(rows)],
        "RN": numbers[::-1].tolist(),
        "RD": {i: float(number) for i, number in enumerate(numbers)},
        "RI": rng.permutation(rows).tolist(),
    }


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "number": ("XF", "XF", "XI", "XZ", "XB", "XM"),
    "real": ("XF", "XI"),
    "mixed": ("XM", "XM", "XI", "XB"),
    "boolean": ("XB",),
    "count": ("XC",),
    "text": ("XT", "XT", "XS"),
    "key": ("XK", "XK", "XK"),
    "name": ("XW",),
}
"""What the columns are used for, by type."""

POOLS = {
    "procedures": "(list flip bernoulli)",
    "lists": "(list (list 1 2) (list 3))",
    "vectors": "(list (vector 1 2) (vector 0.5 -1 2))",
    "pairs": "(list (list 1 2) (vector 1 2))",
}
"""Collections of several lengths and kinds, in which rows look up theirs."""

SERIES = (
    *(f"(lookup {name} {{XJ[n]}})" for name in ("lists", "vectors", "pairs")),
    "{XP[n]}",
    "{XP[n]}",
    "(if {XB[n]} (vector 1 2) (vector 0.5 -1 2))",
    "(if {XB[n]} (list 1 2) (list 3))",
    "(lookup (dict 1 (list 1 2) 2 (list 2 1 1)) {XK[n]})",
)
ITEMS = (*SERIES, "{XD[n]}", "{XD[n]}")
"""What rows have of several lengths and kinds: lists and vectors, and dictionaries too."""

PROCEDURES = ("(if {XB[n]} flip bernoulli)", "(lookup procedures {XJ[n]})", "bernoulli")

# --------------------------------------------------------------------------------------------------------------- forms

LONG = re.compile(r"enumerate|\(ode|wishart|probability \(|inverse|solve|det |cholesky")
"""Forms that take long, or are about other things."""

OWN: Forms = {
    "row": (
        "(+ <effect> (* <number> <effect>))",
        "(+ <effect> <row>)",
        "(* <effect> (+ 1 (if <predicate> <number> 0)))",
        '(* <effect> (+ 1 (if (= "t" "t") 3 0)))',
        "(* <effect> (+ 1 (if <predicate> 3 <number>)))",
        "(* <effect> (+ 1 (if <predicate> <number> <number>)))",
        "(+ (* <number> <effect>) (if <predicate> 1 2))",
        "(+ <effect> (if <predicate> <effect> 0))",
        "(if <predicate> <effect> <number>)",
        "(if <predicate> <row> <effect>)",
        "(* <effect> (if (is_number <effect>) <effect> 0))",
        "(- <effect> (* <effect> (if <predicate> <effect> <number>)))",
        "(atan2 <number> <effect>)",
        "(atan2 {XZ[n]} <effect>)",
        "(* <effect> (atan2 {XZ[n]} -1))",
        "(/ <effect> (+ 1 (abs <number>)))",
        "(+ <effect> (size <items>))",
        "(+ <effect> (lookup <items> 1 0.5))",
        "(* <effect> (lookup <items> 1 0.5))",
        "(* <effect> (first <series>))",
        "(+ <effect> (sum <series>))",
        "(+ <effect> (if (is_vector <items>) 1 0))",
        "(+ <effect> (if (is_list <collection>) 1 (if (is_vector <collection>) 3 2)))",
        "(max <mixed> <effect>)",
        "(+ <effect> (min <mixed> <boolean>))",
        "(+ <effect> (if (is_boolean (max <boolean> <boolean>)) 1 0))",
        "(+ <mixed> <effect>)",
        "(+ <effect> (if (is_boolean (if <predicate> <mixed> <boolean>)) 1 0))",
        "(+ <effect> (if <predicate> <mixed> <boolean>))",
        "(* 0.5 <function>)",
        "(+ <effect> <item>)",
        "(dot <vector> (vector <number> 1))",
        "(lookup <vector> <digit>)",
        "<effect>",
        "<real>",
    ),
    "function": (
        "(sin <effect>)", "(cos <effect>)", "(abs <effect>)", "(erf <effect>)", "(erfc <effect>)",
        "(normal_cdf <effect>)", "(lgamma (+ 0.5 (abs <effect>)))", "(pow <positive> <effect>)", "(pow <effect> 2)",
        "(exp (sin <effect>))", "(logistic <effect>)", "(log (+ 1 (* <effect> <effect>)))", "(floor <effect>)",
        "(expm1 (sin <effect>))", "(log1p (* <effect> <effect>))", "(tan (* 0.5 (sin <effect>)))",
        "(sqrt (+ 1 (abs <effect>)))", "(round <effect>)", "(logsumexp <effect> <number>)", "(* <effect> <effect>)",
        "(mod <effect> 1)", "(atan2 <effect> <effect>)", "(max <effect> <effect>)", "(min <effect> 0)",
    ),
    "linear": (
        "(+ <weight> (* <number> <weight>))",
        "(+ <weight> (if <predicate> <weight> 0))",
        "(+ <weight> (if <predicate> <number> 0))",
        "(if <predicate> <weight> <weight>)",
        "(* (if <predicate> <number> 1) <weight>)",
        "(+ <weight> <weight>)",
        "(- <weight> (* 0.5 <weight>))",
        "(dot <vector> (vector <number> 1))",
        "(+ <weight> (lookup <vector> <digit>))",
        "(lookup <vector> (if <predicate> 0 1))",
        "(/ <weight> (+ 1 (abs <number>)))",
        "(+ <weight> (size <items>))",
        "(* <weight> (first <series>))",
        "(+ <weight> (if (= flip <procedure>) <number> 0))",
        "(+ <linear> (* <number> <weight>))",
        "(+ <boolean> <predicate> <weight>)",
        "(+ {XB[n]} {YB[n]} <weight>)",
        "(+ true true <weight>)",
    ),
    "predicate": (
        "<boolean>",
        '(= <text> "t")',
        "(= <text> <text>)",
        "(!= <text> <text>)",
        "(is_boolean <mixed>)",
        "(is_number <mixed>)",
        "(= <mixed> true)",
        '(contains <text> "t")',
        "(= (size <text>) 1)",
        "(is_vector <items>)",
        "(= (size <items>) 2)",
        "(is_dict <items>)",
        "(is_list <items>)",
        "(contains <items> 1)",
        "(= <items> (list 1 2))",
        "(= flip <procedure>)",
        "(= <key> 1)",
        "(< <number> 0.5)",
        "(is_string <text>)",
        "(not <boolean>)",
        "(and <boolean> (= <key> 1))",
        '(= "t" "t")',
        "(= <name> \"a\")",
    ),
    "item": ("(lookup {RV} {RI[n]})", "(lookup {RN} {RI[n]})", "(lookup {RD} {RI[n]})", "(size (list {RI[n]}))"),
    "collection": ("{RV}", "{RD}", "{RN}", "<items>"),
}  # fmt: skip

ENDS: Forms = {
    "number": ("0.7", "2"),
    "mixed": ("true", "0.5", "2"),
    "text": ('"t"', '"u"'),
    "items": ("(list 1 2)", "(vector 1 2)", "(list 3)"),
    "key": ("1", "2"),
    "name": ('"a"', '"b"'),
    "procedure": ("flip", "bernoulli"),
    "effect": ("0.4",),
    "scale": ("1", "0.6"),
    "level": ("0.4",),
    "weight": ("0.4",),
    "row": ("<effect>",),
    "linear": ("<weight>",),
    "function": ("(sin <effect>)", "(cos <effect>)", "(erf <effect>)", "(abs <effect>)", "(* <effect> <effect>)"),
    "predicate": ('(= <text> "t")', "<boolean>", "(= <key> 1)", "(is_boolean <mixed>)", '(= "t" "t")'),
    "item": ("(lookup {RV} {RI[n]})",),
    "collection": ("{RV}", "{RD}"),
    "series": ("(list 1 2)", "(vector 1 2)"),
    "boolean": ("true", "false"),
}

Evidence = tuple[str, str]
"""A random application with a place `<row>` for what its rows read, and the column that is observed."""

REGRESSIONS: tuple[Evidence, ...] = (
    ("(normal <row> <scale>)", "{YF[n]}"),
    ("(normal <effect> <scale>)", "{YF[n]}"),
    ("(normal <row> <positive>)", "{YF[n]}"),
    ("(bernoulli (logistic <row>))", "{YB[n]}"),
    ("(bernoulli_logit <row>)", "{YB[n]}"),
    ("(flip (logistic <row>))", "{YB[n]}"),
    ("(poisson (exp <row>))", "{YC[n]}"),
    ("(student_t 4 <row> <scale>)", "{YF[n]}"),
    ("(laplace <row> <positive>)", "{YF[n]}"),
    ("(cauchy <row> <positive>)", "{YF[n]}"),
    ("(logistic_dist <row> <positive>)", "{YF[n]}"),
)
LEVELS: tuple[Evidence, ...] = (
    ("(normal <level> <scale>)", "{YF[n]}"),
    ("(normal (+ <real> <level>) <scale>)", "{YF[n]}"),
    ("(student_t 4 (* <number> <level>) <scale>)", "{YF[n]}"),
    ("(bernoulli_logit (+ <real> <level>))", "{YB[n]}"),
)
OTHER_EVIDENCE: tuple[Evidence, ...] = (
    ("(normal (vector 0 1 -1) (exp (sin <row>)))", "{YV[n]}"),
    ("(normal (* <row> (ones 3)) <positive>)", "{YV[n]}"),
    ("(multivariate_normal (vector <row> 0.3) {COV})", "{YQ[n]}"),
    ("(multivariate_normal <vector> {COV})", "{YQ[n]}"),
    ("(normal (if <predicate> <row> 0) <positive>)", "{YF[n]}"),
    ("(if <predicate> (normal <row> 1) (student_t 4 <row> 1))", "{YF[n]}"),
    ("(normal <number> (+ 0.5 (abs <row>)))", "{YF[n]}"),
    ("(gamma (+ 0.5 (abs <row>)) <positive>)", "{YG[n]}"),
    ("(gamma 2 (exp (sin <row>)))", "{YG[n]}"),
    ("(lognormal (sin <row>) <positive>)", "{YG[n]}"),
    ("(softmax_categorical (vector <row> 0 1))", "{YD[n]}"),
    ("(categorical (if <predicate> (list 0.2 0.3 0.5) (list 0.6 0.2 0.2)))", "{YD[n]}"),
    ("(ordered_logistic <row> (list -0.5 0.7))", "{YD[n]}"),
    ("(flip (if <predicate> 0.8 0.3))", "{YB[n]}"),
    ("(flip (if (is_boolean <mixed>) 0.8 0.3))", "{YB[n]}"),
    ("(geometric (logistic <row>))", "{YC[n]}"),
    ("(neg_binomial <positive> (logistic <row>))", "{YC[n]}"),
    ("(binomial 3 (logistic <row>))", "{YC[n]}"),
    ("(zero_inflated 0.3 (poisson (exp (sin <row>))))", "{YC[n]}"),
    ("(truncated (normal <row> 1) none 4)", "{YF[n]}"),
)
FINITE_EVIDENCE: tuple[Evidence, ...] = (
    ("(normal <row> 1.5)", "{YF[n]}"),
    ("(bernoulli (logistic <row>))", "{YB[n]}"),
    ("(flip (if <predicate> 0.6 0.4))", "{YB[n]}"),
    ("(flip (if (is_boolean <mixed>) 0.6 0.4))", "{YB[n]}"),
    ("(normal (size <items>) 2)", "{YF[n]}"),
    ("(normal (first <series>) 2)", "{YF[n]}"),
    ("(categorical (if <predicate> (list 0.2 0.3 0.5) (list 0.4 0.4 0.2)))", "{YD[n]}"),
    ("(poisson (exp (sin <row>)))", "{YC[n]}"),
)
KINDS: tuple[Evidence, ...] = (
    ("(normal (* <effect> (+ 1 (if <predicate> 3 <number>))) <scale>)", "{YF[n]}"),
    ('(normal (* <effect> (+ 1 (if (= <text> "t") 3 {XF[n]}))) 2)', "{YF[n]}"),
    ("(normal (* <effect> (+ 1 (if (is_boolean <mixed>) 3 {XF[n]}))) 2)", "{YF[n]}"),
    ("(normal (vector 0 1 -1) (exp (* 0.1 <effect>)))", "{YV[n]}"),
    ("(laplace (vector 0 1 -1) (exp (sin <effect>)))", "{YV[n]}"),
    ("(cauchy (vector 0 1 -1) <positive>)", "{YV[n]}"),
    ("(normal (exp (sin (* <effect> (if (is_number <effect>) <number> 0)))) 1)", "{YF[n]}"),
    ("(normal (* <effect> <effect> (if (is_vector (vector <effect> 1)) <number> 0)) <scale>)", "{YF[n]}"),
    ("(normal (atan2 {XZ[n]} <effect>) 1)", "{YF[n]}"),
    ("(normal <effect> true)", "{YF[n]}"),
    ("(cauchy <effect> (= 1 1))", "{YF[n]}"),
)
"""Rows in which the kind of a value decides."""
FACTORS = (
    "(* 0.1 <row>)",
    "(sin <row>)",
    "<function>",
    "(if <predicate> 0.3 0)",
    "(- (abs <row>))",
    "(* 0.5 <effect>)",
)

CHOICES: Mapping[str, tuple[str, ...]] = {
    "effect": (
        "(normal 0 1)", "(normal <effect> 1)", "(normal 0.5 <positive>)", "(student_t 4 <effect> 1)", "(laplace 0 1)",
        "(normal (* 0.5 <effect>) 1)", "(normal 0 2)", "(cauchy 0 1)", "(logistic_dist <effect> 1)",
    ),
    "weight": ("(normal 0 1)", "(normal 0.5 2)", "(student_t 4 0 1)", "(laplace 0 1)"),
    "positive": ("(gamma 2 2)", "(half_normal 1)", "(lognormal 0 0.5)", "(inv_gamma 3 2)", "(gamma 2 <positive>)"),
    "probability": ("(beta 2 2)", "(uniform_continuous 0 1)", "(beta <positive> 1)"),
    "vector": ("(multivariate_normal (vector 0 0) {COV})", "(normal (vector 0 1) 1)", "(normal (zeros 2) <positive>)"),
    "boolean": ("(flip 0.5)", "(flip <probability>)", "(bernoulli 0.3)", "(flip (if <boolean> 0.7 0.4))"),
    "count": ("(uniform_discrete 0 3)", "(binomial 2 <probability>)", "(categorical (list 0.5 0.3 0.2))"),
    "text": ('(categorical (list 0.4 0.6) (list "t" "u"))', '(uniform_draw (list "t" "u" "tu"))'),
    "mixed": (
        "(uniform_draw (list true 0.5 2))",
        "(categorical (list 0.5 0.5) (list true 2))",
        "(uniform_draw (list false true 2))",
    ),
    "items": (
        "(uniform_draw (list (list 1 2) (list 3)))",
        "(uniform_draw (list (vector 1 2) (list 1 2)))",
        "(categorical (list 0.5 0.5) (list (list 1 2) (list 2 1)))",
    ),
    "key": ("(uniform_discrete 1 3)", "(categorical (list 0.5 0.5) (list 1 2))"),
}  # fmt: skip
"""What a name stands for, by type: random choices."""

VALUES: Forms = {
    "effect": ("(* 2 <effect>)", "(+ <effect> <effect>)", "(if <boolean> <effect> 1)", "<function>"),
    "mixed": (
        "(if <boolean> true 2)",
        "(if <boolean> 1 false)",
        "(max <boolean> <boolean>)",
        "(min <boolean> <mixed>)",
        "(if <boolean> true 0.5)",
    ),
    "items": (
        "(if <boolean> (list 1 2) (list 3 4 5))",
        "(if <boolean> (list 1 2) (list 2 3))",
        "(if <boolean> (vector 1 2) (list 1 2))",
        "(if <boolean> (vector 1 2) (vector 2 3))",
    ),
    "text": ('(if <boolean> "t" "u")',),
    "boolean": ("(not <boolean>)", "(= <count> 1)", "(= <text> <text>)"),
    "key": ("(if <boolean> 1 2)", "(+ 1 <boolean>)"),
}
"""What a name stands for: values that choices decide."""

MAKERS: Mapping[str, tuple[str, str]] = {
    "(make_beta_bernoulli 1 1)": ("", "{YB[n]}"),
    "(make_beta_bernoulli 1 2)": ("", "{XB[n]}"),
    "(make_sym_dir_mult 1 4)": ("", "{YC[n]}"),
    "(make_dir_mult (list 1 2 1 1))": ("", "{YC[n]}"),
    "(make_gamma_poisson 1 1)": ("", "{YC[n]}"),
    "(make_normal_inv_chi_sq 0 1 3 1)": ("", "{YF[n]}"),
}
"""Makers of what a class draws, and the columns that are observed."""


# ------------------------------------------------------------------------------------------------------------ programs


@dataclass(slots=True)
class RowMaker(Maker):
    """Makes the steps of one structure."""

    rows: int = 1
    # What can be read in rows alone, with its type.
    in_row: list[tuple[str, Twin]] = field(default_factory=list)
    # Memoized procedures whose values are labels.
    labelled: list[str] = field(default_factory=list)

    def read(self, kind: str, text: str) -> None:
        """Expressions of the type mention a text from here on, where it reads its row in rows alone."""
        if re.search(r"\bn\b", text):
            self.in_row.append((kind, both(text)))
        else:
            self.expressions.names.bind(kind, both(text))

    def assumed(self, kind: str, form: Twin, prefix: str, tag: str = "") -> Made:
        """A name for a choice or a value, which expressions of the type mention from here on."""
        name = self.expressions.fresh(prefix)
        if tag:
            form = twin(f"(tag '{tag} 0 {{0}})", form)
        step = self.assume(name, form)
        self.offer(kind, both(name))
        return [step]

    def offer(self, kind: str, item: Twin) -> None:
        e = self.expressions
        if kind in ("positive", "probability"):
            e.forms = {**e.forms, kind: (*e.forms[kind], *[item.plain] * 4)}
            if kind == "positive":
                e.names.bind("scale", item)
            return
        e.names.bind(kind, item)
        if kind in ("effect", "weight", "items"):
            e.names.bind("series" if kind == "items" else "real", item)

    def choice(self, kind: str, tag: str = "") -> Made:
        made = self.expressions.filled(self.pick(CHOICES[kind]), 1)
        return self.assumed(kind, made, "x", tag)

    def value(self, kind: str) -> Made:
        return self.assumed(kind, self.expressions.filled(self.pick(VALUES[kind]), 1), "v")

    def loop(self, directives: Sequence[Twin]) -> Made:
        """A loop over all rows; plainly each of its passes."""
        plain, dressed = (
            f"for n in 1...{self.rows}: {' '.join(getattr(each, spelling) for each in directives)}"
            for spelling in ("plain", "dressed")
        )
        written = tuple(directive for _, found in passes(plain) for directive in found)
        return [self.step("observe", dressed, written)]

    def evidence(self, forms: Sequence[Evidence], kind: str = "row") -> Twin:
        form, value = forms[int(self.rng.integers(len(forms)))]
        if kind != "row":
            form = form.replace("<row>", f"<{kind}>").replace("<effect>", f"<{kind}>")
        made = self.in_rows(form)
        return twin(f"[observe {{0}} {value.replace('{', '{{').replace('}', '}}')}]", made)

    def factor(self) -> Twin:
        return twin("[factor {0}]", self.in_rows(self.pick(FACTORS)))

    def in_rows(self, form: str) -> Twin:
        """A form filled where the columns can be read."""
        e = self.expressions
        outer, e.names = e.names, e.names.copy()
        for kind, names in COLUMNS.items():
            for name in names:
                e.names.bind(kind, both(f"{{{name}[n]}}"))
        for kind, texts in (("series", SERIES), ("items", ITEMS), ("procedure", PROCEDURES)):
            for text in texts:
                e.names.bind(kind, both(text))
        for kind, item in self.in_row:
            e.names.bind(kind, item)
        made = e.filled(form, 3)
        e.names = outer
        return made


Theme = Callable[[RowMaker], Made]


def some_choices(make: RowMaker, kinds: Sequence[str], least: int, most: int) -> Made:
    steps: Made = []
    for _ in range(int(make.rng.integers(least, most + 1))):
        steps += make.choice(make.pick(kinds))
    return steps


CONTINUOUS = ("effect", "effect", "effect", "positive", "probability", "vector")
DISCRETE = ("boolean", "boolean", "count", "text", "mixed", "items", "key")


def regression(make: RowMaker) -> Made:
    """Numbers that all rows read, beside discrete choices that decide what they read."""
    steps = [*make.choice("effect"), *some_choices(make, CONTINUOUS, 1, 3), *some_choices(make, DISCRETE, 0, 1)]
    steps += values(make) if make.chance(0.5) else []
    steps += effects(make) if make.chance(0.4) else []
    return [*steps, *loops(make)]


def hierarchy(make: RowMaker) -> Made:
    """Families that rows find by keys, beside numbers that all rows read."""
    steps = [*make.choice("positive"), *some_choices(make, CONTINUOUS, 0, 2)]
    for _ in range(1 + make.chance(0.5)):
        steps += family(make)
    if make.chance(0.3):
        return [*steps, *make.loop([make.evidence(LEVELS)])]
    return [*steps, *loops(make)]


def levels(make: RowMaker) -> Made:
    """A family whose groups, beside one spread, are all that rows read."""
    return [*make.choice("positive"), *family(make), *make.loop([make.evidence(LEVELS)])]


def family(make: RowMaker) -> Made:
    """A memoized procedure of a number or a text, whose body may choose its distribution by the key."""
    e, name = make.expressions, make.expressions.fresh("mu")
    by_text = make.chance(0.3)
    equal = '(= k "a")' if by_text else "(= k 1)"
    bodies = (
        "(normal 0 2)",
        "(normal <effect> <positive>)",
        "(normal 0 <positive>)",
        "(student_t 4 0 1)",
        f"(if {equal} (normal 0 1) (laplace 1 1))",
        f"(normal (if {equal} <effect> 0) 1)",
    )
    body = e.filled(make.pick(bodies), 1)
    if make.chance(0.2):
        body = twin("(tag 'b 0 {0})", body)
    step = make.assume(name, twin("(mem (lambda (k) {0}))", body))
    keys = ["{XW[n]}", "{XW[n]}", '"a"'] if by_text else ["{XK[n]}", "{XK[n]}", "1", *map(str, keys_of(make))]
    for key in keys:
        make.read("effect", f"({name} {key})")
        if "n" in key:
            make.read("level", f"({name} {key})")
    predicted = "(list (NAME 1) (NAME 2))" if not by_text else '(list (NAME "a") (NAME "b"))'
    text = f"[predict {predicted.replace('NAME', name)}]"
    return [step, make.step("predict", text, (text,))]


def keys_of(make: RowMaker) -> list[Any]:
    """Choices among keys, which decide which family a row reads."""
    return [item.plain for item in make.expressions.values("key") if make.chance(0.5)]


def effects(make: RowMaker) -> Made:
    """A procedure that reads a choice, called in rows."""
    e, name = make.expressions, make.expressions.fresh("effect")
    body = e.filled(make.pick(("(* <effect> g)", "(+ <effect> g)", "(if (= g 1) <effect> g)", "(* <weight> g)")), 1)
    for argument in ("1", "{XF[n]}", "{XK[n]}"):
        for kind in ("effect", "weight"):
            make.read(kind, f"({name} {argument})")
    return [make.assume(name, twin("(lambda (g) {0})", body))]


def values(make: RowMaker) -> Made:
    steps: Made = []
    for _ in range(int(make.rng.integers(1, 3))):
        kind = make.pick(("effect", "effect", *VALUES))
        steps += make.value(kind)
    if make.chance(0.3):
        steps += naming.alias(make)
    return steps


def loops(make: RowMaker) -> Made:
    """One or two loops, at times a factor among the rows or beside them."""
    steps: Made = []
    for _ in range(1 + make.chance(0.3)):
        forms = REGRESSIONS if make.chance(0.6) else OTHER_EVIDENCE
        directives = [make.evidence(forms)]
        if make.chance(0.1):
            directives.append(make.factor())
        steps += make.loop(directives)
    if make.chance(0.25):
        made = make.expressions.filled(make.pick(("<function>", "<effect>", "(* 0.5 <effect>)", "(sin <effect>)")), 2)
        steps.append(make.step("observe", f"[factor {made.dressed}]", (f"[factor {made.plain}]",)))
    return steps


def linear(make: RowMaker) -> Made:
    """Weights that likelihoods read through a linear predictor, or nearly so."""
    steps = [*some_choices(make, ("weight",), 1, 3), *(make.choice("vector") if make.chance(0.4) else [])]
    if make.chance(0.5):
        steps += effects(make)
    if make.chance(0.4):
        name = make.expressions.fresh("w")
        steps.append(make.assume(name, both("(mem (lambda (k) (normal 0 1)))")))
        for key in ("1", "2", "{XK[n]}", "{XK[n]}"):
            make.read("weight", f"({name} {key})")
        text = f"[predict (list ({name} 1) ({name} 2))]"
        steps.append(make.step("predict", text, (text,)))
    steps += make.loop([make.evidence(REGRESSIONS, "linear")])
    return steps


def chain(make: RowMaker) -> Made:
    """A recursion over the rows: a walk of numbers, or states of few values."""
    e = make.expressions
    steps = [*make.choice("effect"), *some_choices(make, CONTINUOUS, 0, 1)]
    if make.chance(0.6):
        name = e.fresh("walk")
        mean = make.pick((f"(* 0.5 ({name} (- i 1)))", f"({name} (- i 1))", f"(+ ({name} (- i 1)) <effect>)",
                          f"(* <effect> ({name} (- i 1)))", f"(sin ({name} (- i 1)))"))  # fmt: skip
        body = e.filled(f"(if (<= i 1) (normal 0 1) (normal {mean} <positive>))", 1)
        kind = "effect"
    else:
        name, kind = e.fresh("state"), "boolean"
        body = e.filled(f"(flip (if (<= i 1) 0.5 (if ({name} (- i 1)) 0.8 <probability>)))", 1)
    steps.append(make.assume(name, twin("(mem (lambda (i) {0}))", body)))
    for _ in range(3):
        make.read(kind, f"({name} n)")
    steps += make.loop([make.evidence(REGRESSIONS if kind == "effect" else FINITE_EVIDENCE, "row")])
    return steps


def latent(make: RowMaker) -> Made:
    """A choice for each row."""
    e, name = make.expressions, make.expressions.fresh("latent")
    steps = [*make.choice("effect"), *make.choice("positive")]
    kind, body = [("effect", "(normal <effect> <positive>)"), ("boolean", "(flip <probability>)"),
                  ("mixed", "(uniform_draw (list true 0.5 2))")][int(make.rng.integers(3))]  # fmt: skip
    steps.append(make.assume(name, twin("(mem (lambda (i) {0}))", e.filled(body, 1))))
    for _ in range(3):
        make.read(kind, f"({name} n)")
    return [*steps, *make.loop([make.evidence(REGRESSIONS if make.chance(0.7) else OTHER_EVIDENCE)])]


def labels(make: RowMaker) -> Made:
    """Labels that are keys of what classes have: parameters of one or several families, products of makers."""
    e = make.expressions
    crp, z = e.fresh("crp"), e.fresh("z")
    make.labelled.append(z)
    steps = [
        make.assume(crp, twin("(make_crp {0})", e.positive(1))),
        make.assume(z, both(f"(mem (lambda (i) (tag 'z i ({crp}))))")),
    ]
    if make.chance(0.2):
        text = f"[observe ({z} 1) {make.pick(['1', '2', '3'])}]"
        steps.append(make.step("observe", text, (text,)))
    if has_makers := make.chance(0.5):
        steps += makers_of_classes(make, z)
    if make.chance(0.7) or not has_makers:
        steps += parameters_of_classes(make, z)
    return steps


def makers_of_classes(make: RowMaker, z: str) -> Made:
    """Several memoized makers, at times of equal arguments, each observed in all rows."""
    steps: Made = []
    form = make.pick(list(MAKERS))
    for number in range(int(make.rng.integers(2, 5))):
        if number and make.chance(0.3):
            form = make.pick(list(MAKERS))
        name = make.expressions.fresh("feature")
        steps.append(make.assume(name, both(f"(mem (lambda (k) {form}))")))
        steps += make.loop([both(f"[observe (({name} ({z} n))) {MAKERS[form][1]}]")])
    return steps


def parameters_of_classes(make: RowMaker, z: str) -> Made:
    """Numbers of classes: of one family, or of two of which a row reads one, by its data or by its label."""
    e = make.expressions
    one, other, out = e.fresh("m"), e.fresh("m"), e.fresh("out")
    steps = [make.assume(one, both("(mem (lambda (k) (normal 0 2)))"))]
    form = make.pick(
        (
            f"({one} ({z} n))",
            f"({one} ({z} n))",
            *[f"(if {{XB[n]}} ({one} ({z} n)) ({other} ({z} n)))"] * 3,
            f"(if (= ({z} n) 1) ({one} ({z} n)) ({other} ({z} n)))",
            f"(+ ({one} ({z} n)) ({other} ({z} n)))",
            f"({one} ({z} n) {{XK[n]}})",
            # labels that come and go
            f"(if ({out} n) 0 ({one} ({z} n)))",
            f"(+ ({one} ({z} n)) {{XF[n]}})",
        )
    )
    if f"({one} ({z} n) {{" in form:
        steps = [make.assume(one, both("(mem (lambda (k j) (normal 0 2)))"))]
    if other in form:
        steps.append(make.assume(other, both("(mem (lambda (k) (normal 0 1)))")))
    if out in form:
        steps.append(make.assume(out, both("(mem (lambda (i) (flip 0.3)))")))
    if make.chance(0.2):
        steps += make.choice("positive")
    made = e.filled(make.pick(("(normal <row> 1)", "(normal <row> <positive>)")).replace("<row>", "{FORM}"), 2)
    made = Twin(made.plain.replace("{FORM}", form), made.dressed.replace("{FORM}", form))
    return [*steps, *make.loop([twin("[observe {0} {{YF[n]}}]", made)])]


def kinds(make: RowMaker) -> Made:
    """Numbers that rows read in which the kind of a value decides, at times a computed number that is a factor."""
    steps = [*some_choices(make, ("effect",), 1, 2), *make.loop([make.evidence(KINDS)])]
    if make.chance(0.3):
        computed = make.value("effect")
        name = computed[0].text.split()[1]
        steps += [*computed, make.step("observe", f"[factor {name}]", (f"[factor {name}]",))]
    return steps


def finite(make: RowMaker) -> Made:
    """Choices of few values, whose worlds can be enumerated."""
    steps = [*make.choice("boolean"), *some_choices(make, DISCRETE, 1, 2)]
    for kind in ("mixed", "items"):
        if make.chance(0.5):
            steps += make.value(kind)
    steps += values(make) if make.chance(0.5) else []
    if make.chance(0.4):
        e, name = make.expressions, make.expressions.fresh("pick")
        body = e.filled(make.pick(("(flip <probability>)", "(uniform_draw (list true 0.5 2))")), 1)
        steps.append(make.assume(name, twin("(mem (lambda (k) {0}))", body)))
        kind = "boolean" if "flip" in body.plain else "mixed"
        for key in ("1", "{XK[n]}"):
            make.read(kind, f"({name} {key})")
    steps += make.loop([make.evidence(FINITE_EVIDENCE)])
    if make.chance(0.4):
        made = e_of(make).filled(make.pick(("(if (is_boolean <mixed>) 1 0)", "(if <predicate> 1 0)")), 2)
        steps.append(make.step("observe", f"[factor {made.dressed}]", (f"[factor {made.plain}]",)))
    return steps


def e_of(make: RowMaker) -> Expressions:
    return make.expressions


THEMES: tuple[Theme, ...] = (
    regression, hierarchy, linear, finite, regression, hierarchy, labels, chain, latent, regression, linear, labels,
    hierarchy, finite, kinds, levels, kinds,
)  # fmt: skip


def forms() -> Forms:
    """The forms of this module, and those of the catalogue that are fast."""
    quick = {kind: tuple(form for form in found if not LONG.search(form)) for kind, found in COMPUTED.items()}
    few = {
        kind: quick[kind]
        for kind in ("real", "positive", "probability", "bounded", "vector", "count", "matrix", "numbers")
    }
    return {**quick, **few, **OWN}


FORMS = forms()
LEAVES: Forms = {**SIMPLE, **ENDS}


def row_program(structure: int, rows: int, odd: str) -> Program:
    """The program of a structure at a number of rows, the odd row at a place."""
    rng = np.random.default_rng([structure, 42])
    expressions = Expressions(rng, True, False, budget=0.0, simple=LEAVES, forms=FORMS)
    make = RowMaker(expressions, depth=2, rows=rows)
    theme = THEMES[structure % len(THEMES)]
    steps = theme(make)
    used = " ".join(step.text for step in steps)
    pools = [make.assume(name, both(pool)) for name, pool in POOLS.items() if name in used]
    steps = [naming.identity(make), *pools, *steps]
    parameters = {**PARAMETERS, **data(rows, odd, np.random.default_rng([structure, rows, PLACES.index(odd)]))}
    program = Program(tuple(steps), (), queries(make), parameters=parameters)
    # rows observed one by one are as many directives, which take long
    one_by_one = rng.random() < 0.25 and (rows <= 26 or structure % 8 == 0)
    return program.plain if one_by_one else program


ASKED: Mapping[str, str] = {
    "boolean": "{0}",
    "count": "{0}",
    "key": "{0}",
    "mixed": "(is_boolean {0})",
    "text": '(= {0} "t")',
    "items": "(size {0})",
}
"""What is asked of a name, by the type of what it stands for."""


def queries(make: RowMaker) -> tuple[Twin, ...]:
    """Of the names of discrete values; of labels, which of the first three are equal."""
    values = make.expressions.names.values
    found = [twin(form, item) for kind, form in ASKED.items() for item in values.get(kind, []) if item.plain.isalnum()]
    labels = [f"({z} {n})" for z in make.labelled for n in range(1, min(make.rows, 3) + 1)]
    pairs = [both(f"(= {one} {other})") for one, other in itertools.combinations(labels, 2)]
    return (*found[:6], *pairs)
