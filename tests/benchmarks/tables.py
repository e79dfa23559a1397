"""A choice that names a memoized table, beside the same tables in lists, each of which the interpreter looks up."""

from __future__ import annotations

from tests.benchmarks.measure import Row, compare
from tests.trace.speaker import called, listed
from venture_lite import Venture

BAR = 0.51
TRANSITIONS = 5_000


def rows() -> list[Row]:
    by_name, in_list = Venture(seed=1), Venture(seed=1, kernels="interpreted")
    by_name.execute(called(0.2, 0))
    in_list.execute(listed(0.2, 0))
    kernel = "(mh default one {T})"
    found = compare(lambda: by_name.infer(kernel, T=TRANSITIONS), lambda: in_list.infer(kernel, T=TRANSITIONS))
    return [
        Row(
            "a choice that names a memoized table, (mh default one T)",
            f"{TRANSITIONS / found.ours:,.0f}/s",
            f"at least {BAR} times the rate with the tables in lists, interpreted",
            f"the tables in lists, interpreted, {TRANSITIONS / found.theirs:,.0f}/s",
            found.ratio,
            found.ratio >= BAR,
        )
    ]
