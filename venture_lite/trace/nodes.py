"""Nodes from outside: what stands at a node the trace says; where it stands is asked here.

A node is (site, row), packed into one integer. Only the trace, the interpreter and the fast ways know how.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.trace.table import ROW_MASK

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace


def site_of(node: int) -> int:
    """The slot of the text at which a node stands, numbered through the whole program."""
    return node >> 32


def sites_of(nodes: Sequence[int]) -> np.ndarray:
    """The site of each of many nodes (n,)."""
    found: np.ndarray = np.array(nodes, np.int64) >> 32
    return found


def row_of(node: int) -> int:
    return node & ROW_MASK


def node_at(site: int, row: int) -> int:
    return site << 32 | row


class Cells:
    """Where the values of some nodes are stored, found once; nodes that store none are left out."""

    def __init__(self, trace: Trace, nodes: Iterable[int]) -> None:
        stored = [node for node in nodes if not trace.is_borrowed(node)]
        self._cells = [(node, trace.column(node >> 32), node & ROW_MASK) for node in stored]

    def values(self) -> dict[int, Any]:
        """Node -> its value now."""
        return {node: column.view[row] for node, column, row in self._cells}
