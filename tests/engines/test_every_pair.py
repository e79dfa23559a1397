"""Every action with every kind of choice: it runs, or ends with a VentureError, and the trace is sound.

Whatever is no VentureError fails, as does a fast way that does not give the interpreter's answer.
"""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from tests.procedures.examples import RANDOM
from venture_lite import Venture, VentureError, VentureWarning
from venture_lite.audit.invariants import check
from venture_lite.errors import Disagreement

READ = {"number": "x", "boolean": "(if x 1 0)", "vector": "(lookup x 0)", "matrix": "(lookup (lookup x 0) 0)"}


@dataclass(frozen=True)
class Choice:
    """A kind of choice: definitions before it, and the expression that draws it."""

    name: str
    drawn: str
    before: str = ""
    parameters: tuple[Any, ...] = ()
    # what of its value data are centred at, by the kind of the value
    read: str = "number"

    def program(self, form: str) -> str:
        """`alone`, `in a branch` that another choice takes, or `in a family` of three that a loop reads."""
        drawn = self.drawn
        for at, _ in enumerate(self.parameters):
            drawn = drawn.replace(f"#{at}", f"{{a{at}}}")
        value = READ[self.read]
        if form == "alone":
            return f"{self.before} [assume x {drawn}] [observe (normal {value} 1) 0.4] [predict x]"
        if form == "in a branch":
            other = {"number": "1", "boolean": "true"}.get(self.read, "y")
            y = f"[assume y {drawn}] [assume b (flip)]" if other == "y" else "[assume b (flip)]"
            return f"{self.before} {y} [assume x (if b {drawn} {other})] [observe (normal {value} 1) 0.4]"
        each = f"((lambda (x) {value}) (x n))"
        loop = f"for n in 1...3: [observe (normal {each} 1) {{d[n]}}]"
        return f"{self.before} [assume x (mem (lambda (n) {drawn}))] {loop}"


FORMS = ("alone", "in a branch", "in a family")


def law(name: str) -> Choice:
    # what is None is left out
    arguments = tuple(each for each in RANDOM[name].arguments[0] if each is not None)
    value = Venture(seed=1).sample(
        f"({name} {' '.join(f'{{a{i}}}' for i in range(len(arguments)))})", **named(arguments)
    )
    text = f"({name} {' '.join(f'#{i}' for i in range(len(arguments)))})"
    return Choice(name, text, parameters=arguments, read=kind_of(value))


def named(arguments: tuple[Any, ...]) -> dict[str, Any]:
    return {f"a{i}": each for i, each in enumerate(arguments)}


def kind_of(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    return {0: "number", 1: "vector", 2: "matrix"}[np.ndim(value)]


LAWS = [name for name in RANDOM if name not in ("draw", "uniform_draw")]
OTHERS = (
    Choice("truncated normal", "(truncated (normal 0 1) -1 2)"),
    Choice("truncated on one side", "(truncated (gamma 2 1) 0.5 none)"),
    Choice("truncated count", "(truncated (poisson 3) 1 none)"),
    Choice("zero inflated", "(zero_inflated 0.3 (poisson 2))"),
    Choice("vector", "(normal (vector 0 1 2) 1)", read="vector"),
    Choice("vector between bounds", "(uniform_continuous (vector 0 1) (vector 1 3))", read="vector"),
    Choice("vector of flips", "(flip (vector 0.2 0.7))", read="vector"),
    Choice("vector of counts", "(poisson (vector 0.5 4))", read="vector"),
    Choice("increasing", "(increasing (normal (vector 0 0 0) 1))", read="vector"),
    Choice("flat", "(flat)"),
    Choice("flat above", "(flat 0)"),
    Choice("of a symbol", "(if (draw (enumerate (lambda () (flip 0.3)))) 1 2)"),
    Choice("drawn value", "(uniform_draw (list 1 2.5 4))"),
    Choice("crp", "(crp)", "[assume crp (make_crp 1)]"),
    Choice("class of a crp", "(m (crp))", "[assume crp (make_crp 1)] [assume m (mem (lambda (k) (normal 0 1)))]"),
    Choice("coin of a maker", "(coin)", "[assume coin (make_beta_bernoulli 1 1)]", read="boolean"),
    Choice("outcome of a maker", "(die)", "[assume die (make_sym_dir_mult 1 3)]"),
    Choice("count of a maker", "(count)", "[assume count (make_gamma_poisson 2 1)]"),
    Choice("number of a maker", "(at)", "[assume at (make_normal_inv_chi_sq 0 1 3 1)]"),
    Choice("scaled", "(normal 0 s)", "[assume s (gamma 2 2)]"),
    Choice("of a level", "(normal m (exp s))", "[assume m (normal 0 1)] [assume s (normal 0 0.5)]"),
    Choice("recursion", "(go 0)", "[assume (go n) (if (flip 0.5) n (go (+ n 1)))]"),
    Choice("branch of kinds", "(if (flip 0.5) (normal 0 1) (poisson 2))"),
    Choice("truth beside numbers", "(if (flip 0.5) true (uniform_discrete 0 3))"),
    Choice("weights that move", "(categorical (vector p (- 1 p)))", "[assume p (beta 2 2)]"),
    Choice("scores that move", "(softmax_categorical (vector 0 p))", "[assume p (normal 0 1)]"),
    Choice("list of weights", "(categorical (list 0.3 0.7))"),
)
ACTIONS = (
    "(initialize)", "(initialize x 1)", "(initialize x (vector 1 2 3 4))", "(optimize default all)",
    "(optimize default (ordered_range 7 9))", "(pathfinder default all)", "(pathfinder default one 'paths 2)",
    "(mh default one 3)", "(mh default all 3)", "(mh default each 1)", "(mh default one 'drift 0.5 3)",
    "(mh default all 'drift 0.5 'adapt 20 3)", "(mh default all 'drift 0.5 'precondition 3)",
    "(mh default one (lambda (x) (normal x 1)) 3)", "(mh default one (lambda (x) (not x)) 3)",
    "(gibbs default one 3)", "(gibbs default each 1)", "(gibbs default all 1)", "(gibbs default all 'forward 1)",
    "(gibbs default all 'weights 1)", "(gibbs (choices 'finite) each 1)", "(slice default one 1 5 3)",
    "(slice default all 1 5 'adapt 20 3)", "(slice default all 1 5 'weights 1)",
    "(slice default all 1 5 'weights 'splits 2 1)", "(mala default one 0.2 3)",
    "(mala default all 0.2 'precondition 3)", "(hmc default all 0.1 3 2)", "(hmc default one 0.1 3 'fixed 'adapt 20 2)",
    "(nuts default all 'step 0.1 2)", "(nuts default all 'adapt 20 'dense 2)",
    "(nuts (choices 'smooth) all 'adapt 20 2)", "(vi default all 2)", "(vi default all 'full 2)",
    "(vi default all 'minibatch 2 2)", "(rejection default one 2)",
    "(split_merge default 2)", "(subsampled_mh default one 2 0.05 2)",
    "(subsampled_mh default one 2 0 'drift 0.5 'proxy 2)",
    "(subsampled_mh default one 2 0 'drift 0.5 'bernstein 2)", "(pgibbs default ordered 3 1)",
    "(pgibbs default ordered 3 'ancestor 1)", "(pgibbs default ordered 3 'evidence 2 1)",
    "(flymc default all auto 'untuned 0.3 'drift 0.5 2)", "(flymc default all auto 'map 0.3 'mala 0.2 2)",
    "(flymc default all auto 'untuned 0.3 'slice 1 2)", "(smc 6 (mh default one 1))",
    "(smc 6 'tempered (mh default one 1))",
    "(smc 6 'tempered 'runs 2 (gibbs (choices 'finite) each 1) (mh default one 1))", "(anneal default constant 1)",
    "(anneal default constant 'energy 1 (mh default one 1))", "(compile p default one 'worlds 30)",
    "(do (compile p default all 'worlds 30) (compiled_mh p default all 2))",
    "(cycle ((mh default one 1) (slice default one 1 3 1)) 2)",
)  # fmt: skip
CHOICES = dict.fromkeys(LAWS) | {choice.name: choice for choice in OTHERS}
PAIRS = [(name, form, action) for name in CHOICES for form in FORMS for action in ACTIONS]
SHARE = 60
"""Of so many pairs one is for every day."""
FAILED = {
    # a value that is a vector was compared by !=; what was weighed before an error that both ways meet was compared
    ("multinomial", "in a family", "(anneal default constant 1)"),
    ("normal", "in a branch", "(gibbs default one 3)"),
}


def run(name: str, form: str, action: str) -> None:
    choice = CHOICES[name] or law(name)
    v = Venture(seed=crc32(f"{name} {form} {action}".encode()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VentureWarning)
        warnings.simplefilter("error", Disagreement)
        v.execute(choice.program(form), d=[0.4, 1.2, -0.3], **named(choice.parameters))
        with contextlib.suppress(VentureError):
            v.infer(f"(repeat 2 (do {action} (collect x)))" if form != "in a family" else action)
    check(v.traces[0])


def is_everyday(pair: tuple[str, str, str]) -> bool:
    return pair in FAILED or crc32(" ".join(pair).encode()) % SHARE == 0


@pytest.mark.parametrize(("name", "form", "action"), [pair for pair in PAIRS if is_everyday(pair)])
def test_a_pair_runs_or_says_why_not(name: str, form: str, action: str) -> None:
    run(name, form, action)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CHOICES)
def test_every_action_of_a_choice_runs_or_says_why_not(name: str, form: str) -> None:
    failed = []
    for action in ACTIONS:
        try:
            run(name, form, action)
        except Exception as error:
            failed.append(f"{action}: {type(error).__name__}: {error}")
    assert not failed, "\n".join(failed)
