"""The generator itself: its programs cover what the language has, and a seed stands for one program."""

from __future__ import annotations

from tests.generator.comparison import finite_program
from tests.generator.directives import random_program
from tests.generator.programs import Program

# What the text of programs has, by sections of the language's description.
FORMS = """
    [assume [observe [predict [force [forget [freeze for
    (lambda (if (cond (let (letrec (begin (and (or (not (mem (scope_include (tag 'q
    (flip (bernoulli (binomial (poisson (categorical (uniform_discrete (normal (uniform_continuous (beta (gamma
    (inv_gamma (expon (student_t (laplace (lognormal (multivariate_normal (symmetric_dirichlet (dirichlet
    (make_crp (make_beta_bernoulli (make_uc_beta_bernoulli (make_sym_dir_mult (make_dir_mult (make_gamma_poisson
    (make_normal_inv_chi_sq
    (list (pair (first (lookup (dict (vector (dot (size (contains (range (map (filter (fold (is_empty (min (max (mod
    (abs (exp (sin (logistic {X[n]} {COV}
"""
# Ways to name, wrap and pass values, as they begin in the text.
WAYS = {
    "a name for a name": "[assume a3 x",
    "an identity": "(same x",
    "an alias through let": "(let ((w x",
    "a tag of a name": "(tag 'q 0 x",
    "an alias of an alias": " a3)",
    "a memory of memories": "(mem (lambda (i) (mem (lambda (k)",
    "a restaurant for each group": "(mem (lambda (d) (let ((c (make_crp",
    "a maker in a memory": "(mem (lambda (i) (make_beta_bernoulli",
    "a maker in a list": "(list (make_",
    "a maker in a list of several types": '(list 1 "s" (make_',
    "a maker in a dictionary": "(dict 'm (make_",
    "makers from map": "(map (lambda (a) (make_beta_bernoulli",
    "a maker that a choice decides on": " (make_beta_bernoulli 1 ",
    "a product as an argument": "((lambda (g) (g))",
    "a closure over a product": "(lambda () (g)))]",
    "a random procedure in a list": "((first (list flip 1))",
    "a random procedure that a choice decides on": "flip bernoulli)",
    "a procedure as a key": " c",
    "vectors that print alike as keys": "(vector 0.1 0.2000000001)",
    "a dictionary as a key": "(dict 'a 0.1000000001)",
    "a support that depends on a choice": "(uniform_discrete 0 (+ 1 ",
    "a shape that depends on a choice": "(range x",
    "an observed label": " 5) 2]",
}


def text_of(programs: list[Program]) -> str:
    return "\n".join(step.text for program in programs for step in (*program.directives, *program.operations))


def test_programs_cover_the_language() -> None:
    text = text_of([random_program(seed, finite) for seed in range(700) for finite in (False, True)])
    assert [form for form in FORMS.split() if form not in text] == []
    assert [way for way, part in WAYS.items() if part not in text] == []


def test_operations_come_late() -> None:
    operations = [step.kind for seed in range(100) for step in finite_program(seed).operations]
    assert {"observe", "predict", "force", "forget", "freeze"} <= set(operations)


def test_a_seed_stands_for_one_program() -> None:
    assert random_program(7) == random_program(7)
    assert random_program(7) != random_program(8)
    assert finite_program(7) == finite_program(7)
