"""The log joint density of a trace, and the choices that make it minus infinity."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from venture_lite.interpreter.weights import KeptWeights, Weight, density_of, log_density
from venture_lite.procedures.record import Random
from venture_lite.program.code import Kind
from venture_lite.trace.runtime import Exchangeable

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace


def impossible_choices(trace: Trace, besides: Collection[int] = ()) -> list[int]:
    """Live choices whose density is zero, some that are not asked for left out."""
    found = []
    for table in trace.tables:
        code = table.code
        for step in code.steps:
            if code.slots[step].kind not in (Kind.RANDOM, Kind.CALL):
                continue
            site = code.first_site + step
            for row in table.live_rows():
                node = site << 32 | row
                if node in besides or not trace.is_choice(code, step, row):
                    continue
                if _is_impossible(trace, node):
                    found.append(node)
    return found


def _is_impossible(trace: Trace, node: int) -> bool:
    operator, _ = trace.application(node)
    return not isinstance(operator, Exchangeable) and log_density(trace, node) == -np.inf


def log_score(trace: Trace, kept: KeptWeights) -> Weight:
    """Log joint density of all live choices."""
    weight = Weight()
    for table in trace.tables:
        code = table.code
        if table.dead == table.count:
            continue
        for step in code.steps:
            kind = code.slots[step].kind
            site = code.first_site + step
            if kind is Kind.RANDOM:
                weight.plus(kept.all_rows(site))
            elif kind is Kind.CALL:
                for row in table.live_rows():
                    if trace.is_choice(code, step, row):
                        node = site << 32 | row
                        operator, arguments, value = trace.choice(node)
                        if isinstance(operator, Random):
                            term = density_of(trace, node, operator, arguments, value)
                            weight.add_choice(trace, node, term)
    # in the order of their nodes: rejection does not restore that of a dictionary, and a sum depends on it
    for node in sorted(trace.statistics.makers):
        weight.add(trace.statistics.makers[node].state.log_joint())
    return weight
