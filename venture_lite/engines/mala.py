"""`mala`: the Metropolis-adjusted Langevin algorithm (Roberts and Tweedie 1996).

The proposal is a normal step of standard deviation STEP about the present point shifted by STEP^2 / 2 times the
gradient. That is a Hamiltonian path of one leapfrog step (Neal 2011, section 5.5.2): with z standard normal the new
point is x + STEP^2 / 2 grad(x) + STEP z, and the change of the total energy is the logarithm of Metropolis and
Hastings' ratio, the densities of the step there and of the step back among it.
"""

from __future__ import annotations

from venture_lite.engines.hmc import compile_paths
from venture_lite.inference.program import Action

MALA = Action(
    "mala", ("(mala SCOPE BLOCK STEP ['precondition] ['adapt BURN] T)",),
    "T Langevin transitions on continuous choices, in unconstrained coordinates: a normal step of standard deviation "
    "STEP about a drift of STEP^2/2 times the gradient, with 'precondition in the coordinates of the block's "
    "curvature. 'adapt tunes STEP, and without 'precondition the scales of coordinates, in the first BURN transitions, "
    "which do not count as draws.",
    lambda program, given: compile_paths(program, given, range(1, 2)),
)  # fmt: skip
