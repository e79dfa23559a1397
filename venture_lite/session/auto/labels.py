"""Labels of exchangeable procedures in the program of `auto`: `split_merge` beside `gibbs`, and what to do with the
parameters of classes.

A class that has just been opened has parameters of the prior's size, and those of a class of a thousand are known to a
hundredth of that. Scales that are learned for choices, or for their site, are wrong for classes that come and go, and
one path through all parameters takes the shortest of steps. So such parameters are moved class by class, by slices,
which find their width anew.

What only makers of labels read, a concentration, is moved by slices as well. It is given the number of classes, another
one in each sweep, and a step of paths that is right for most of it is too long where there are many classes: a path
stayed at a concentration of 5 for 600 draws, where most are below 1.

A sweep of `gibbs` lets classes grow and shrink by a few members, so that two classes that lie in one place, or one that
lies in two, stay for hundreds of sweeps. What a proposal of `split_merge` costs by columns is a small part of a sweep
of thousands of labels, and there are several to a sweep. By the interpreter it costs as much as twenty sweeps: there it
is made in a share of these, at random.

Of many labels over columns a sweep costs most, one label after the other. Given the weights of their classes all are
drawn together, in a tenth of that. Meanwhile they can be summed out, and the parameters of their classes with the
numbers that all rows share move without being held by them. So do classes that are split and merged: a proposal costs a
tenth of one that draws its members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from venture_lite.blocks.label_classes import is_label
from venture_lite.blocks.slices import SliceWidth
from venture_lite.blocks.weighted_columns import has_columns
from venture_lite.engines.split_merge import SplitMerge
from venture_lite.engines.weighted_labels import WeightedLabels
from venture_lite.errors import KernelError
from venture_lite.interpreter.ancestry import Families
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.session.auto.groups import KindGroup
from venture_lite.trace.runtime import Exchangeable

FEW_LABELS, SHARE = 20, 0.05
"""With more labels than that there is a proposal of the interpreter's in this share of the sweeps."""

PROPOSALS = 8
"""By columns to a sweep."""

MOST_SHARED = 4
"""Numbers that all rows of labels share, which move one after the other with the labels summed out; of more, paths go
along all."""

SUMMED_WIDTH = 2
"""Of slices with labels summed out, in units that shrink with the weight of a class."""

SUMMED_SPLITS = 20
"""Splits and merges with labels summed out, to a sweep."""

MANY_LABELS = 300
"""From so many on labels are drawn together, given weights; of fewer a sweep costs less than the weights do."""


def keyed_by_labels(model: Model, groups: Sequence[KindGroup]) -> list[KindGroup]:
    """The groups of choices with gradients that come and go with the classes of labels, where these are all that
    decides which choices there are, and the choices have names."""
    deciding = [node for group in groups if group.structural for node in group.nodes]
    if not deciding or not all(is_label(model.trace, node) for node in deciding):
        return []
    families = Families(model.trace)

    def stays(node: int) -> bool:
        code, _, row = model.trace.decode(node)
        return families.stays(code, row)

    smooth = [group for group in groups if group.kind == "smooth"]
    if any(group.name is None for group in smooth):
        return []
    return [group for group in smooth if not all(stays(node) for node in group.nodes)]


def concentrations(model: Model, groups: Sequence[KindGroup]) -> list[KindGroup]:
    """The groups of choices with gradients that nothing but makers of labels reads."""

    def is_concentration(node: int) -> bool:
        scaffold = Builder(model.trace).build([node], with_brush=False)
        if scaffold.absorbing or scaffold.groups or scaffold.structural or not scaffold.makers:
            return False
        makers = [model.trace.value(maker) for maker in scaffold.makers]
        return all(isinstance(maker, Exchangeable) and maker.record.labels for maker in makers)

    return [group for group in groups if group.name and all(map(is_concentration, group.nodes))]


def splitting(model: Model, scope: str, nodes: list[int]) -> Iterator[str]:
    """The kernel that splits and merges the classes of the labels among some choices, the scope of which is given, if
    there is one."""
    labels = sum(is_label(model.trace, node) for node in nodes)
    if not labels or not _are_accepted(model, nodes):
        return
    kernel = f"(split_merge {scope} 1)"
    if labels <= FEW_LABELS:
        yield kernel
    elif has_columns(model, nodes):
        yield f"(split_merge {scope} {PROPOSALS})"
    else:
        yield f"(mixture ({SHARE} {kernel} {1.0 - SHARE} (do)) 1)"


def label_sweep(model: Model, scope: str, nodes: list[int]) -> str:
    """The kernel that draws each of some choices of finite support, labels among them, whose scope is given."""
    if len(nodes) < MANY_LABELS or not all(is_label(model.trace, node) for node in nodes):
        return f"(gibbs {scope} each 1)"
    try:
        WeightedLabels(model).refuse(nodes)
    except KernelError:
        return f"(gibbs {scope} each 1)"
    return f"(gibbs {scope} all 'weights 1)" if has_columns(model, nodes) else f"(gibbs {scope} each 1)"


def moved_with_labels(model: Model, groups: Sequence[KindGroup], keyed: Sequence[KindGroup]) -> tuple[KindGroup, ...]:
    """The groups, labels first, of what moves with the labels summed out, where many labels over columns have all that
    comes and goes with them, and numbers: empty where they have not."""
    labels = [group for group in groups if group.kind == "finite"]
    if not keyed or len(labels) != 1 or len(labels[0].nodes) < MANY_LABELS:
        return ()
    (finite,) = labels
    others = [node for group in keyed for node in group.nodes]
    numbers = [group for group in groups if group.kind == "smooth" and group not in keyed and len(group.nodes) == 1]
    shared = [group for group in numbers if group.name and _has_columns_with(model, finite.nodes, group.nodes)]
    found = finite, *keyed, *(shared if len(shared) <= MOST_SHARED else ())
    names = [group.name for group in found]
    if None in names or any(group.name in names and group not in found for group in groups):
        return ()
    return found if _has_columns_with(model, finite.nodes, others) else ()


def are_split_with_labels(model: Model, summed: Sequence[KindGroup]) -> bool:
    """Whether the classes of labels are split with these summed out: all that a class has moves with them."""
    if not summed:
        return False
    labels, *others = summed
    return _has_columns_with(model, labels.nodes, [node for group in others for node in group.nodes], splits=1)


def _has_columns_with(model: Model, labels: list[int], others: list[int], splits: int = 0) -> bool:
    """Whether other choices move over columns, with the labels summed out, and classes are split before."""
    engine = WeightedLabels(model, SliceWidth(SUMMED_WIDTH, 1), splits)
    try:
        engine.refuse([*labels, *others])
    except KernelError:
        return False
    return engine.has_columns([*labels, *others])


def _are_accepted(model: Model, nodes: list[int]) -> bool:
    """Whether `split_merge` would move the labels."""
    engine = SplitMerge(model)
    try:
        engine.refuse(nodes)
    except KernelError:
        return False
    return True
