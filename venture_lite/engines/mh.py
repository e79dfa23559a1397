"""`mh`: Metropolis-Hastings on a block, by resimulation from the prior, by a Gaussian random walk, or by a procedure of
the user's (`proposal.py`).

Resimulation proposes a choice from its own distribution, so that its density cancels. `'drift SIGMA` is a walk
(`walk.py`), with `'adapt BURN` a tuned one (`tuned_walk.py`).
"""

from __future__ import annotations

from venture_lite.engines.walk import Walk, drift
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part
from venture_lite.interpreter.kernel import Metropolis, Move, Resimulation
from venture_lite.kernels.compiled import kernel
from venture_lite.values import show


def _compile_mh(program: InferenceProgram, given: ActionForm) -> Part:
    model = program.model
    if "drift" in given:
        walk, move = drift(program, given), f"a walk of sd {show(given.value('SIGMA'))}{scaled(given)}"
        if "adapt" in given:
            # imported here, as below: only who asks for a way of proposing pays for it
            from venture_lite.engines.adaptation import LEAST_BURN, tuned
            from venture_lite.engines.tuned_walk import tuned_walk

            burn = given.count("BURN", LEAST_BURN)
            return given.kernel(f"{move}{tuned(burn)}", tuned_walk(program, walk, burn))
        moves = kernel(model, Move(walk, Metropolis(model)))
        return given.kernel(move, Walk(model, walk, moves))
    if "PROPOSAL" in given:
        from venture_lite.engines.proposal import OwnProposal, ProposalDensity
        from venture_lite.inference.replay import ReplayedProcedure

        density = ProposalDensity(ReplayedProcedure(program, program.procedure(given["PROPOSAL"], "PROPOSAL")))
        return given.kernel(f"proposals by {density.text}", OwnProposal(density, program.warn))
    return given.kernel("proposals from the prior", kernel(model, Move(Resimulation(model), Metropolis(model))))


def scaled(given: ActionForm) -> str:
    """What `'precondition` adds to a move."""
    return ", in the coordinates of the curvature" if "precondition" in given else ""


MH = Action(
    "mh",
    (
        "(mh SCOPE BLOCK T)",
        "(mh SCOPE BLOCK 'drift SIGMA ['precondition] ['adapt BURN] T)",
        "(mh SCOPE BLOCK PROPOSAL T)",
    ),
    "T Metropolis-Hastings transitions: proposals from the prior; with 'drift a Gaussian random walk of standard "
    "deviation SIGMA, with 'precondition in the coordinates of the block's curvature; or by PROPOSAL, a procedure from "
    "the block's values to new ones whose random choices give its density. 'adapt tunes the walk in the first BURN "
    "transitions, which do not count as draws; it then walks on whole numbers too.",
    _compile_mh,
)  # fmt: skip
