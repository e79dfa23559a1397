"""Loops over parameters, one inside another, and their passes written out; steps that make them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tests.generator.interpreter_functions import to_dict
from tests.generator.programs import PARAMETERS, Step, plain_label
from tests.generator.steps import Made, Maker

HEAD = re.compile(r"\s*for (\w+) in ([^:]+?)\.\.\.([^:]+?):\s*")
DIRECTIVE = re.compile(r"(?:\w+:\s*)?(\[)")
OPERATORS: Mapping[type, Any] = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply}

FORMS = (
    "for n in 1...3: [observe (normal <real> {X[n]}) {Y[n]}]",
    "for n in 1...N: [observe (normal (+ <real> n) 1) {Y[n]}]",
    "for n in 1...{N + 1}: [observe (flip (if (< <real> {X[n]}) 0.3 0.8)) {Y[n]}]",
    "for n in N...2 * N - 1: [observe (normal (+ <real> {Y[n - 1]}) 1) {Y[n]}]",
    "for n in 1...2: [predict (+ n <count>)] [observe (normal <real> 2) {X[{N} - n + 1]}]",
    "for n in 1...2: [observe (multivariate_normal <vector> {COV}) {M[n]}]",
    "for row in 1...N: for col in 1...2: [observe (normal (* col <real>) 1) {M[row, col]}]",
    "for row in 1...2: for col in row...N: [observe (student_t 4 <real> row) {M[row, col]}]",
    "for row in 1...2:\n  for col in 1...row:\n    inner: [observe (normal (- <real> col) 1) {M[col, row]}]",
)
"""Their variables are words that stand for nothing else."""


def value_of(text: str, parameters: Mapping[str, Any] = PARAMETERS) -> Any:
    """What stands in braces, or bounds a loop: names, numbers, `+ - *`, and entries, counted from 1."""

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant(number):
                return number
            case ast.Name(name):
                return parameters[name]
            case ast.BinOp(left, operator, right):
                return OPERATORS[type(operator)](value(left), value(right))
            case ast.Subscript(collection, ast.Tuple(places)):
                return value(collection)[tuple(value(place) - 1 for place in places)]
            case ast.Subscript(collection, place):
                return value(collection)[value(place) - 1]
        raise ValueError(text)

    return known(value(ast.parse(re.sub(r"[{}]", "", text).strip(), mode="eval").body))


def known(value: Any) -> Any:
    """A value of the interpreter for one that a caller gives: numbers are Python's, lists tuples."""
    match value:
        case np.generic():
            return value.item()
        case list():
            return tuple(map(known, value))
        case dict():
            return to_dict([(key, known(item)) for key, item in value.items()])
    return value


def passes(text: str) -> Iterator[tuple[tuple[int, ...], list[str]]]:
    """Each pass of a loop: its indices, the outermost first, and its directives."""
    head = HEAD.match(text)
    if head is None:
        yield (), directives(text)
        return
    variable, low, high = head.groups()
    for n in range(value_of(low), value_of(high) + 1):
        for indices, found in passes(re.sub(rf"\b{variable}\b", str(n), text[head.end() :])):
            yield (n, *indices), found


def one_loop(text: str) -> tuple[str, range, list[str]] | None:
    """The variable, the range and the directives of a loop that holds no other; None for another text."""
    head = HEAD.match(text)
    if head is None or HEAD.match(text, head.end()):
        return None
    variable, low, high = head.groups()
    return variable, range(value_of(low), value_of(high) + 1), directives(text[head.end() :])


def directives(text: str) -> list[str]:
    """One after another, without labels."""
    found, at = [], 0
    while start := DIRECTIVE.search(text, at):
        depth, at = 0, start.start(1)
        while depth or at == start.start(1):
            depth += (text[at] in "([") - (text[at] in ")]")
            at += 1
        found.append(text[start.start(1) : at])
    return found


def data(make: Maker) -> Made:
    """A loop; plainly each of its passes."""
    made = make.expressions.filled(make.pick(FORMS), 2)
    plain = tuple(directive for _, found in passes(made.plain) for directive in found)
    return [make.step("observe", made.dressed, plain)]


def forget_a_pass(make: Maker, loop: Step) -> Step:
    """Forget what one pass observed, and predicted."""
    every = list(passes(loop.text))
    number = int(make.rng.integers(len(every)))
    indices, found = every[number]
    labels = [plain_label(loop, number * len(found) + i) for i in range(len(found))]
    text = f"[forget {loop.label} {' '.join(map(str, indices))}]"
    return Step("forget", loop.label, text, tuple(f"[forget {label}]" for label in labels))


def without_pass(loop: Step, forgotten: Step) -> list[Step]:
    """What stands of a loop after `forget_a_pass`."""
    return [
        Step("observe", f"{loop.label}_{'_'.join(map(str, indices))}_{number}", directive, ())
        for indices, found in passes(loop.text)
        for number, directive in enumerate(found)
        if forgotten.text != f"[forget {loop.label} {' '.join(map(str, indices))}]"
    ]
