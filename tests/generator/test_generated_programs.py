"""The generator itself: its programs run, from every prior draw, and cover what they should."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.generator.directives import PARAMETERS, random_program
from tests.posterior.reference import Execution, parse

FORMS = """if cond let and or not lambda mem scope_include flip bernoulli binomial poisson categorical uniform_discrete
    normal uniform_continuous beta gamma inv_gamma expon student_t multivariate_normal symmetric_dirichlet make_crp
    make_beta_bernoulli make_uc_beta_bernoulli make_sym_dir_mult make_gamma_poisson make_normal_inv_chi_sq forget force
    predict observe lookup dot pair vector"""


@dataclass(eq=False, slots=True)
class Lenient(Execution):
    """An execution that lets evidence meet an existing value without weight."""

    def met(self, value: Any, evidence: Any) -> Any:
        return value


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_programs_run_from_every_prior_draw(first: int) -> None:
    for seed in range(first, first + 50):
        program = random_program(seed)
        steps = [
            *program.directives,
            *(step for step in program.operations if step.kind in ("observe", "predict", "assume")),
        ]
        for draw in range(3):
            execution = Lenient(np.random.default_rng([seed, draw]), PARAMETERS)
            execution.run(parse("\n".join(step.text for step in steps)))
            assert not math.isnan(execution.log_joint)


def test_programs_cover_the_language() -> None:
    text = " ".join(
        step.text for program in map(random_program, range(300)) for step in (*program.directives, *program.operations)
    )
    missing = [form for form in FORMS.split() if f"({form}" not in text and f"[{form}" not in text]
    assert not missing


def test_a_seed_stands_for_one_program() -> None:
    assert random_program(7) == random_program(7)
    assert random_program(7) != random_program(8)
