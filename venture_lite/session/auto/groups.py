"""The choices that `auto` gives one kernel: those of one kind and one name."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class KindGroup:
    """The choices of one kind and one name, or of none."""

    kind: str
    name: str | None
    nodes: list[int] = field(default_factory=list)
    # whether some decide which others exist
    structural: bool = False
