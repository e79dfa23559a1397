"""Choices of many values, tagged for `gibbs`, that all rows of loops read: when something changed, which of many."""

from __future__ import annotations

from tests.generator.loops import passes
from tests.generator.steps import Made, Maker
from tests.generator.twins import Twin, both

CHOICES = (
    "(uniform_discrete 1 12)",
    "(binomial 11 <probability>)",
    "(categorical (vector 0.1 0.05 0.05 0.1 0.2 0.1 0.1 0.1 0.1 0.1))",
    "(uniform_discrete (- <count> 4) 8)",
)
ROWS = (
    "(normal (if (< n {w}) <real> <real>) 1) {{D[n]}}",
    "(poisson (if (< n {w}) 0.5 (+ 1 (* 0.1 n)))) {{C[n]}}",
    "(normal (+ <real> (if (> n {w}) (* <real> (- n {w})) 0)) <positive>) {{D[n]}}",
    "(flip (if (= n {w}) <probability> (if (< n {v}) 0.3 0.6))) {{B[n]}}",
    "(normal (exp (min 2 (/ (* {w} n) 20))) (sqrt (+ 1 (abs {w})))) {{D[n]}}",
    "(uniform_continuous -9 (+ {w} n)) {{D[n]}}",
    "(multivariate_normal (vector {w} (- {v} n)) {{COV}}) {{P[n]}}",
    "(categorical (if (< n {w}) (list 0.2 0.3 0.5) (list 0.3 0.3 0.4))) {{C[n]}}",
    "(normal (* ({m} {{H[n]}}) <real>) 1) {{D[n]}}",
    "(normal (- ({m} {{H[n]}}) ({m} {{K[n]}})) <positive>) {{D[n]}}",
    "(normal (if (< {w} {v}) (* {w} n) (+ ({m} 0) n)) 1) {{D[n]}}",
)
"""What stands in double braces is a parameter's."""


def changes(make: Maker) -> Made:
    """Two choices of many values, at times in one block, a memory of such, and loops whose rows read them."""
    e = make.expressions
    w, v, m = e.fresh("when"), e.fresh("when"), e.fresh("many")
    e.blocks += 1
    keys = e.blocks, e.blocks if make.chance(0.5) else e.blocks + 1
    e.blocks = keys[1]
    steps = []
    for name, key in zip((w, v), keys, strict=True):
        drawn = e.filled(make.pick(CHOICES), 1)
        text = f"(scope_include 'd {key} {{0}})"
        steps.append(make.assume(name, Twin(text.format(drawn.plain), text.format(drawn.dressed))))
    many = f"(mem (lambda (i) (scope_include 'd (+ {1000 * keys[1]} i) {make.pick(CHOICES[:3:2])})))"
    steps.append(make.assume(m, both(many)))
    for _ in range(2):
        row = e.filled(make.pick(ROWS).format(w=w, v=v, m=m), 1)
        last = make.pick(["12", "12", "5"])
        plain, dressed = (f"for n in 1...{last}: [observe {text}]" for text in (row.plain, row.dressed))
        written_out = tuple(directive for _, found in passes(plain) for directive in found)
        steps.append(make.step("observe", dressed, written_out))
    e.names.bind("real", both(w))
    return steps
