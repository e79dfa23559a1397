"""Choices between 0 and 1 whose densities have no bound at an end: kernels that move them by their logit refuse to
begin at the float that stands for all that is nearer to 1, of which the logit is not known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.statistics import Mean, assert_chain_agrees
from venture_lite import Venture
from venture_lite.audit.invariants import check
from venture_lite.errors import KernelError

KERNELS = (
    "(slice default one 10 20 3)",
    "(mh default one 'drift 5 3)",
    "(mala default all 1 3)",
    "(hmc default all 1 5 3)",
    "(nuts default all 'step 1 3)",
)
PROGRAMS = {
    "alone": "[assume t (beta 0.02 0.02)]",
    "a vector": "[assume t (beta (vector 0.02 3) (vector 0.02 3))]",
    "one of a family": "[assume f (mem (lambda (i) (beta 2 0.02)))] [assume t (+ (f 1) (f 2))]",
    "truncated": "[assume t (truncated (beta 2 0.02) 0.1 none)]",
    "near 0": "[assume t (beta 0.0005 1)]",
}


# near 0 there are floats down to a logit of -744, where only a slice comes in few steps
PAIRS = [(name, kernel) for name in PROGRAMS for kernel in (KERNELS if name != "near 0" else KERNELS[:1])]


@pytest.mark.parametrize(("name", "kernel"), PAIRS)
def test_what_cannot_be_told_from_an_end_is_not_moved(name: str, kernel: str) -> None:
    v = Venture(seed=2)
    v.execute(PROGRAMS[name])
    with pytest.raises(KernelError, match=r"stands for all that is nearer to [01] than any other float") as caught:
        v.infer(f"(repeat 400 (do {kernel} (collect t)))")
    assert caught.value.span is not None
    assert "mh without 'drift" in str(caught.value)
    check(v.traces[0])


def test_auto_says_it_too() -> None:
    v = Venture(seed=2)
    v.execute(PROGRAMS["alone"])
    with pytest.raises(KernelError, match="nearer to"):
        v.auto(draws=200, warmup=100, chains=2)


@pytest.mark.parametrize("kernel", ["(mh default one 1)", *(pytest.param(k, marks=pytest.mark.slow) for k in KERNELS)])
def test_where_data_hold_it_away_from_the_ends_any_kernel_moves_it(kernel: str) -> None:
    """Exact by conjugacy: beta(0.02 + 3, 0.02 + 2); by mh the prior. False alarms below 1e-6."""
    v = Venture(seed=1)
    v.execute("[assume t (beta 0.02 0.02)]")
    mean = 0.5
    if "'drift" in kernel or "mh" not in kernel:
        v.execute("[force t 0.5] for n in 1...5: [observe (flip t) {y[n]}]", y=[True, True, True, False, False])
        mean = 3.02 / 5.04

    def more(n: int) -> dict[str, np.ndarray]:
        return {"t": np.asarray(v.infer(f"(repeat {n} (do {kernel} (collect t)))")["t"]).reshape(n)}

    assert_chain_agrees(more, {"t": Mean(mean)}, 400, kernel)
