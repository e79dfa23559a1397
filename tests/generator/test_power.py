"""The comparisons of random programs notice defects that are put back one at a time.

Each patch undoes one mend and nothing else; the comparisons go through the programs until one of them fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.generator import comparison
from tests.generator.comparison import Fault, Interrupted, assert_finds_the_answer, compare_spellings, finite_program
from venture_lite.engines.pgibbs.particle_columns import BundleSweep
from venture_lite.errors import InternalError
from venture_lite.interpreter import machine, schedule, selection
from venture_lite.interpreter.addresses import address, address_order
from venture_lite.interpreter.machine import Machine
from venture_lite.interpreter.sources import nodes_read
from venture_lite.program.code import GlobalRef

Patch = pytest.MonkeyPatch


def read_names_for_names_unrenewed(patch: Patch) -> None:
    """What reads a name for a name does not wait for what that one reads."""

    def nearest(trace: Any, code: Any, row: int, refs: Any) -> list[int]:
        (ref,) = refs
        if not isinstance(ref, GlobalRef):
            return nodes_read(trace, code, row, refs)
        node = -1 if ref.target.code is None else trace.result_node(ref.target.code, ref.target.row)
        return [node] if node >= 0 else []

    patch.setattr(machine, "nodes_read", nearest)


def end_addresses_at_the_innermost_memory(patch: Patch) -> None:
    """Blocks that share a place are visited once for all of them."""
    patch.setattr(selection, "order_of", lambda model, node: address_order(address(model.trace, node)[:1]))
    patch.setattr(selection, "key_of", lambda key: 0)


def apply_before_the_maker_is_ready(patch: Patch) -> None:
    """An application reached through a value does not wait for its maker."""
    original = Machine.blocked_by

    def push(self: Machine, nodes: Any, row: int, slot: int) -> bool:
        # What the operator's text reads is waited for all the same; those lists are kept.
        read = (*self._parents.values(), *self._result_parents.values())
        is_maker = len(nodes) == 1 and isinstance(nodes[0], int) and nodes[0] in self.trace.statistics.makers
        is_maker = is_maker and not any(nodes is known for known in read)
        return not is_maker and original(self, nodes, row, slot)

    patch.setattr(Machine, "blocked_by", push)
    patch.setattr(schedule, "is_maker_application", lambda trace, node: False)


def write_back_what_moved(patch: Patch) -> None:
    """Retained steps with a new past keep what was computed from the old one."""

    def write(self: BundleSweep, drawn: list[Any], path: list[np.ndarray]) -> int:
        first = np.arange(self.bundle.count) * self.particles
        for chosen, population in zip(path, drawn, strict=True):
            strands = np.flatnonzero(chosen)
            for node, column in population.items():
                self._put(node, column, strands, (first + chosen)[strands])
        return int(sum(np.count_nonzero(chosen) for chosen in path))

    patch.setattr(BundleSweep, "_write", write)


# Each with a kernel that it reaches, and programs among which it shows: to the plain spelling, to the enumeration.
DEFECTS = [
    (read_names_for_names_unrenewed, "(mh default one 4)", range(24, 27), range(25, 27)),
    (end_addresses_at_the_innermost_memory, "(gibbs default each 1)", range(15, 18), range(3, 5)),
    (apply_before_the_maker_is_ready, "(mh default one 4)", range(18, 20), range(153, 155)),
    (write_back_what_moved, "(pgibbs default ordered 3 'ancestor 1)", range(48, 50), range(16, 18)),
]


def noticed(compare: Any, seeds: range) -> bool:
    """Whether a comparison fails for one of the programs, not by its audit alone."""
    for seed in seeds:
        try:
            compare(seed)
        except Fault:
            return True
        except (Interrupted, InternalError):
            continue
    return False


@pytest.fixture(autouse=True)
def without_the_audit(monkeypatch: Patch) -> None:
    """It would end the comparison first."""
    monkeypatch.setattr(comparison, "check", lambda venture: None)


@pytest.mark.slow
@pytest.mark.parametrize(("defect", "kernel", "seeds", "_"), DEFECTS)
def test_the_plain_spelling_tells(defect: Any, kernel: str, seeds: range, _: range, monkeypatch: Patch) -> None:
    defect(monkeypatch)
    assert noticed(lambda seed: compare_spellings(finite_program(seed), seed, (kernel,), True), seeds)


@pytest.mark.slow
@pytest.mark.parametrize(("defect", "kernel", "_", "seeds"), DEFECTS)
def test_the_enumeration_tells(defect: Any, kernel: str, seeds: range, _: range, monkeypatch: Patch) -> None:
    defect(monkeypatch)
    assert noticed(lambda seed: assert_finds_the_answer(finite_program(seed), seed, kernel), seeds)
