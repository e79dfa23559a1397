"""`gibbs` of choices of many values: candidates weighed together, each as the interpreter weighs it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.errors import InternalError
from venture_lite.kernels import candidate_columns
from venture_lite.kernels.candidate_columns import CandidateColumns

COUNTS = [4, 5, 4, 1, 0, 4, 3, 4, 0, 6, 3, 3, 1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 2, 1, 0, 0, 1, 1, 0]
DATA: dict[str, Any] = {
    "C": COUNTS,
    "Y": [0.1 * max(t - 12, 0) + 0.3 * math.sin(7 * t) for t in range(30)],
    "K": [int(t % 7 == 0) for t in range(30)],
    "L": [int(t % 3 == 0) for t in range(30)],
    "S": np.array([[1.0, 0.3], [0.3, 0.8]]),
    "M": np.array([[0.5 * math.sin(t), 4 + math.cos(t)] for t in range(30)]),
}
RATES = "[assume early (gamma 2 1)] [assume late (gamma 2 1)] "
FAMILIES = "[assume m (mem (lambda (k) (uniform_discrete 0 12)))] "
MODELS = {
    "a change between two rates": RATES + """
        [assume when (uniform_discrete 1 31)]
        for t in 1...30: [observe (poisson (if (< t when) early late)) {C[t]}]""",
    "two changes": RATES + """
        [assume when (uniform_discrete 1 31)] [assume again (uniform_discrete 1 31)]
        for t in 1...30: [observe (poisson (+ (if (< t when) early 1) (if (< t again) 0.5 late))) {C[t]}]""",
    "two changes, one in the other": RATES + """
        [assume when (uniform_discrete 1 31)] [assume again (uniform_discrete 1 31)]
        for t in 1...30: [observe (poisson (if (< t when) early (if (< t again) 1 late))) {C[t]}]""",
    "a change of slope": """
        [assume level (normal 0 1)] [assume change (normal 0 1)] [assume when (uniform_discrete 1 31)]
        for t in 1...30: [observe (normal (+ level (if (> t when) (* change (- t when)) 0)) 1) {Y[t]}]""",
    "what changes, and how much it varies": """
        [assume level (normal 0 1)] [assume when (binomial 30 0.4)]
        for t in 1...30: [observe (normal (if (< t when) level 1) (if (< t when) 1 2)) {Y[t]}]""",
    "few rows": RATES + """
        [assume when (uniform_discrete 1 31)]
        for t in 1...5: [observe (poisson (if (< t when) early late)) {C[t]}]""",
    "candidates that are impossible": """
        [assume top (uniform_discrete 1 20)]
        for t in 1...30: [observe (uniform_continuous -1 (/ top 4)) {Y[t]}]""",
    "families that rows call": FAMILIES + """
        for t in 1...30: [observe (normal (m {K[t]}) 3) {Y[t]}]""",
    "rows that call two families": FAMILIES + """
        for t in 1...30: [observe (normal (- (m {K[t]}) (m {L[t]})) 3) {Y[t]}]""",
    "vectors": """
        [assume shift (uniform_discrete -5 6)]
        for t in 1...30: [observe (multivariate_normal (vector 0 shift) {S}) {M[t]}]""",
    "what is computed on the way": """
        [assume n (uniform_discrete 1 15)] [assume scale (exp (/ n 5))] [assume mean (* n 0.2)]
        [observe (gamma n 2) 3.5] for t in 1...30: [observe (normal mean scale) {Y[t]}]""",
}  # fmt: skip


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of how many candidates each call weighed, that could."""
    weigh, answers = CandidateColumns.weigh, list[int]()

    def noting(self: CandidateColumns, rows: Any, values: Any) -> Any:
        found = weigh(self, rows, values)
        if found is not None:
            answers.append(len(found))
        return found

    monkeypatch.setattr(CandidateColumns, "weigh", noting)
    return answers


def loaded(name: str, kernels: str = "checked") -> Venture:
    v = Venture(seed=3, kernels=kernels)
    text = MODELS[name]
    v.execute(text, **{key: value for key, value in DATA.items() if f"{{{key}" in text})
    return v


KERNEL = "(gibbs (choices 'finite) each 4)"


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_candidates_weigh_together_what_the_interpreter_weighs(name: str, together: list[int]) -> None:
    """Each draw is made twice from one state, with all weights compared to 1e-9 of the sum of their terms."""
    v = loaded(name)
    v.infer(KERNEL)
    assert len(together) >= 4
    assert "columns" in str(v.explain(KERNEL))


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_parts_of_candidates_and_rows_weigh_alike(
    name: str, together: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidate_columns, "MOST_CANDIDATES", 7)
    monkeypatch.setattr(candidate_columns, "MOST_LANES", 50)
    loaded(name).infer(KERNEL)
    assert len(together) >= 4


@pytest.mark.thorough
def test_choices_of_one_block_are_enumerated_together(together: list[int]) -> None:
    v = loaded("two changes", kernels="compiled")
    v.infer("(gibbs (choices 'finite) all 2)")
    assert together == [900, 900]


def test_what_a_choice_can_be_may_not_depend_on_the_others_of_its_block(together: list[int]) -> None:
    v = Venture(seed=1, kernels="checked")
    v.execute(
        """[assume a (uniform_discrete 1 5)] [assume b (uniform_discrete 0 (+ a 4))]
           for t in 1...30: [observe (normal (if (< t b) a 0) 1) {Y[t]}]""",
        Y=DATA["Y"],
    )
    v.infer("(gibbs (choices 'finite) all 3)")
    assert not together


def swapped_lanes(columns: Any, axes: Any, candidates: int, rows: int, *arguments: Any) -> Any:
    """What candidates and rows have is laid out the other way round."""
    found = candidate_columns._over_lanes(columns, axes, candidates, rows, *arguments)
    return found.reshape(rows, candidates, *found.shape[2:]).swapaxes(0, 1)


DEFECTS = {
    "rows are not told from candidates": ("over_lanes", swapped_lanes),
    "what is summed is the first row's": ("parts", lambda rows, candidates: iter([(slice(0, 1), 1)])),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_wrong_weight_is_noticed(defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, wrong = DEFECTS[defect]
    printer = candidate_columns._Printer.__init__

    def broken(self: Any, form: Any) -> None:
        printer(self, form)
        self.namespace[name] = wrong

    monkeypatch.setattr(candidate_columns._Printer, "__init__", broken)
    with pytest.raises(InternalError, match="differ in log weights"):
        loaded("a change between two rates").infer(KERNEL)


@pytest.mark.thorough
def test_a_change_point_is_drawn_from_its_posterior(together: list[int]) -> None:
    """The years' shares of 2,000 independent draws, given both rates, within 6 standard errors: 1e-7 for 30 years."""
    v = loaded("a change between two rates", kernels="compiled")
    v.execute("[force early 3] [force late 0.8]")
    draws = v.infer("(repeat 2000 (do (gibbs (choices when) all 1) (collect when)))")["when"].ravel()
    counts = np.array(COUNTS)
    log = [
        sum(counts[: w - 1]) * math.log(3) - 3 * (w - 1) + sum(counts[w - 1 :]) * math.log(0.8) - 0.8 * (31 - w)
        for w in range(1, 31)
    ]
    exact = np.exp(log - np.logaddexp.reduce(log))
    found = np.bincount(draws.astype(int), minlength=31)[1:] / len(draws)
    assert len(together) > 1990
    assert (np.abs(found - exact) < 6 * np.sqrt(exact * (1 - exact) / len(draws)) + 1e-3).all()
