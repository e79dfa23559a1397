"""Which variables were measured of data, and are none of the posterior's."""

from __future__ import annotations

GROUPS = {"replicate": "posterior_predictive", "log_likelihood": "log_likelihood"}
"""ArviZ's groups of measures, `(replicate y)` and `(log_likelihood y)`."""


def measured(name: str) -> tuple[str, str] | None:
    """The group of a variable that is such a measure, and the name of the data."""
    measure, _, data = name.removeprefix("(").removesuffix(")").partition(" ")
    return (GROUPS[measure], data) if measure in GROUPS and name == f"({measure} {data})" else None
