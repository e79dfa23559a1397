"""`pgibbs 'evidence`: passes without a retained particle against enumeration; see `test_smc.py` for the threshold."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engines.particle_models import CHAIN, MODELS, log_evidence
from tests.engines.test_smc import FURTHEST, RUNS, beyond, often
from venture_lite import Venture
from venture_lite.engines.pgibbs.particle_tree import TreeSweep
from venture_lite.errors import VentureError
from venture_lite.kernels.population import Writer


def z_of(name: str, particles: int, runs: int = RUNS) -> float:
    v = Venture(seed=3)
    v.execute(MODELS[name][0])
    draws = v.infer(f"(pgibbs x ordered {particles} 'evidence {runs} 1)")
    return beyond(draws, log_evidence(name), most=0.2)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [often(name, ("chain", "panel", "tables", "maker")) for name in MODELS])
def test_evidence_is_that_of_an_enumeration(name: str) -> None:
    assert z_of(name, 20) < FURTHEST


def test_what_the_blocks_do_not_weigh_is_counted() -> None:
    """The same density, of observations that no choice is read by and of a maker that has no other application."""
    plain, more = Venture(seed=3), Venture(seed=3)
    for v in (plain, more):
        v.execute(CHAIN)
    more.execute("[observe (normal 0 1) 1] [assume f (make_beta_bernoulli 1 1)] [observe (f) true] [observe (f) false]")
    one, other = (v.infer("(pgibbs x ordered 20 'evidence 4 1)").evidence for v in (plain, more))
    assert one is not None
    assert other is not None
    assert other.log - one.log == pytest.approx(-0.5 - 0.5 * np.log(2 * np.pi) - np.log(6.0), abs=1e-9)


@pytest.mark.thorough
def test_the_chain_draws_what_it_would_have_drawn() -> None:
    query = "(collect (+ (x 1) (* 2 (x 2)) (* 4 (x 3)) (* 8 (x 4))))"
    found = []
    for option in ("", "'evidence 3 "):
        v = Venture(seed=7)
        v.execute(CHAIN)
        found.append(v.infer(f"(repeat 50 (do (pgibbs x ordered 4 {option}1) {query}))"))
    with_evidence = found[1].evidence
    assert with_evidence is not None
    assert len(with_evidence.runs) == 3
    assert found[0].evidence is None
    (name,) = found[0].names
    assert (found[0][name] == found[1][name]).all()


def test_passes_with_a_retained_particle_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What conditional passes would give: the present state is one of three particles."""
    init = Writer.__init__

    def retaining(self: Writer, *given: object) -> None:
        init(self, *given[:4])  # type: ignore[arg-type]

    monkeypatch.setattr(Writer, "__init__", retaining)
    v = Venture(seed=3)
    v.execute("[assume x (mem (lambda (t) (tag 'x t (normal 0 3))))] for t in 1...4: [observe (normal (x t) 0.3) t]")
    exact = float(sum(-0.5 * np.log(2 * np.pi * 9.09) - t * t / 18.18 for t in range(1, 5)))
    v.infer("(slice x each 1 10 20)")
    assert beyond(v.infer(f"(pgibbs x ordered 3 'evidence {RUNS} 1)"), exact, most=np.inf) > FURTHEST


@pytest.mark.thorough
def test_a_step_whose_weights_are_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    free = TreeSweep.free_pass

    def broken(self: TreeSweep) -> float:
        del self.schedule.steps[-1].absorbing[:]
        return free(self)

    monkeypatch.setattr(TreeSweep, "free_pass", broken)
    assert z_of("rows", 20) > FURTHEST


BAD = [
    ("[assume y (normal 0 1)]", "(pgibbs x ordered 5 'evidence 4 1)", "all unobserved choices in the blocks, and y is"),
    ("", "(pgibbs x ordered 5 'evidence 0 1)", "RUNS must be a whole number, 1 or more, got 0"),
    ("[assume y (tag 'x 9 (flat))]", "(pgibbs x ordered 5 'evidence 4 1)", "flat is improper: "),
    ("", "(smc 5 (pgibbs x ordered 5 'evidence 4 1))", "data come and go here"),
]


@pytest.mark.parametrize(("more", "program", "message"), BAD)
def test_a_mistake_is_told_and_the_trace_is_as_before(more: str, program: str, message: str) -> None:
    v = Venture(seed=3)
    v.execute(CHAIN + more)
    before = v.log_score()
    with pytest.raises(VentureError, match=message) as met:
        v.infer(program)
    assert met.value.span is not None
    assert v.log_score() == before
