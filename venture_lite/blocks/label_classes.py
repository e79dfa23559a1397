"""The classes of labels: which draws of an exchangeable procedure are equal, and what belongs to a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.selection import one_of_each_kind
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.trace import Trace
from venture_lite.values import key_of


def is_label(trace: Trace, node: int) -> bool:
    """Whether a choice is a draw of a maker of labels."""
    operator, _ = trace.application(node)
    return isinstance(operator, Exchangeable) and operator.record.labels


def labels_by_maker(model: Model) -> dict[int, list[int]]:
    """Every label, observed or not, by the node of its maker."""
    found: dict[int, list[int]] = {}
    # a maker is no distribution that the text names
    for node in one_of_each_kind(model, list(model.trace.choices())):
        operator, _ = model.trace.application(node)
        if isinstance(operator, Exchangeable) and operator.record.labels:
            found.setdefault(operator.node, []).append(node)
    return found


def by_label(trace: Trace, labels: Sequence[int]) -> dict[Any, list[int]]:
    """The members of each class."""
    found: dict[Any, list[int]] = {}
    for node in labels:
        found.setdefault(key_of(trace.value(node)), []).append(node)
    return found


def free_labels(labels: Mapping[int, list[int]], nodes: Sequence[int]) -> dict[int, list[int]]:
    """Of the labels of each maker those among some choices."""
    among = set(nodes)
    return {maker: [node for node in members if node in among] for maker, members in labels.items()}


def parameters_of(model: Model, members: Sequence[int]) -> list[int]:
    """The unobserved choices that would go if a class lost all of its members."""
    scaffold = Builder(model.trace).build(members)
    return [node for node in model.regenerator.choices_that_go(scaffold) if not model.trace.is_observed(node)]
