"""An inference takes as long wherever its caller stands on Python's stack."""

from __future__ import annotations

import resource
from collections.abc import Callable

from venture_lite import Venture

# a chunk of the stack has room for fewer frames
DEPTHS = 130
PAGES = 200
"""More than an inference touches anew, and fewer than its transitions."""


def at_depth(depth: int, function: Callable[[], object]) -> object:
    return at_depth(depth - 1, function) if depth else function()


def most_pages() -> int:
    """The most pages that an inference touches anew, over all depths of its caller."""
    venture = Venture(seed=1)
    venture.execute("[assume x (normal 0 1)] [assume y (mem (lambda (i) (normal x 1)))] [predict (y 1)]")
    venture.infer("(mh default one 100)")
    found = []
    for depth in range(DEPTHS):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        at_depth(depth, lambda: venture.infer("(mh default one 300)"))
        found.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return max(found)


def test_no_depth_of_the_caller_maps_memory_for_each_transition() -> None:
    """Without room on the stack it is 600 pages at the worst depth, two for each transition there."""
    assert most_pages() < PAGES
