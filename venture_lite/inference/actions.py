"""Every action of inference programs by name. A new engine is a file with its record, listed here."""

from __future__ import annotations

from venture_lite.inference.anneal import ANNEAL
from venture_lite.inference.combinators import CYCLE, DO, MIXTURE, REPEAT
from venture_lite.inference.flymc import FLYMC
from venture_lite.inference.gibbs import GIBBS
from venture_lite.inference.hmc import HMC
from venture_lite.inference.mala import MALA
from venture_lite.inference.mh import MH
from venture_lite.inference.output import COLLECT, LABELLED, PLOT, PRINT
from venture_lite.inference.pgibbs import PGIBBS
from venture_lite.inference.program import Action
from venture_lite.inference.rejection import REJECTION
from venture_lite.inference.slice import SLICE
from venture_lite.inference.subsampled import SUBSAMPLED_MH, SUBSAMPLED_MH_REPORT

RECORDS: tuple[Action, ...] = (
    MH, GIBBS, SLICE, MALA, HMC, REJECTION, SUBSAMPLED_MH, SUBSAMPLED_MH_REPORT, PGIBBS, FLYMC, ANNEAL, CYCLE,
    MIXTURE, REPEAT, DO, COLLECT, LABELLED, PRINT, PLOT,
)  # fmt: skip

ACTIONS: dict[str, Action] = {record.name: record for record in RECORDS}
