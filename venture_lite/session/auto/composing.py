"""Looks at a trace and composes a program of kernels that moves every choice of it, as text of the language.

Kernels go by kinds: choices with gradients move together along them, the others one evaluation after the other, each in
the way that its support allows. What decides which other choices exist is never moved by a kernel that takes structure
as given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.kinds import kinds
from venture_lite.engines.hmc import TARGET
from venture_lite.errors import KernelError
from venture_lite.interpreter.addresses import address
from venture_lite.interpreter.ancestry import name_of_choice
from venture_lite.interpreter.choices import Choices
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.session.auto.groups import KindGroup
from venture_lite.session.auto.labels import (
    SUMMED_SPLITS,
    SUMMED_WIDTH,
    are_split_with_labels,
    concentrations,
    keyed_by_labels,
    label_sweep,
    moved_with_labels,
    splitting,
)
from venture_lite.session.auto.quantities import LeftOut, Quantities, Quantity
from venture_lite.session.auto.state_chains import is_finite_chain, is_ordered_chain
from venture_lite.session.auto.ties import can_be_drawn_together, ties
from venture_lite.session.auto.trials import MANY_ROWS, rows_of_predictor, written_row_kernel
from venture_lite.trace.nodes import site_of

MOST_DENSE = 200
"""Coordinates up to which their scales are learned together."""
PATHS, MOST_OF_PATHS = 4, 100
"""Uphill, of which a chain begins at the first that is not hopeless, and the coordinates up to which there are so many:
beyond that a path takes as long as many draws."""
MOST_NAMES = 6
"""Names that a scope is written with; of more it is written without."""
WIDE = 80
"""Characters of a line of what is collected."""
WIDTH, STEPS = 1, 50
"""Of slices, to begin with, and the most of them."""

PARTICLES = 20
"""Of a chain of states."""


@dataclass(frozen=True, slots=True)
class Composed:
    """A program of kernels with what it draws."""

    # before anything is drawn, each moves once
    starts: tuple[str, ...]
    # one after the other, then a draw
    kernels: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    # as `starts`, on traces whose paths are compared
    starts_aside: tuple[str, ...]
    # whether a path takes as long as many draws
    has_long_paths: bool = False
    # pairs of choices that hold one another, and that no kernel moves together
    held: tuple[str, ...] = ()

    @property
    def adapts(self) -> bool:
        """Whether draws of the warm-up are marked as such by a kernel."""
        return any("'adapt" in kernel for kernel in self.kernels)

    @property
    def has_set_ups(self) -> bool:
        """Whether a kernel that does not adapt learns of the rows where it first runs: its warm-up and its draws are
        one run, so that it learns from the same state as in the text."""
        return not self.adapts and any("'precondition" in kernel for kernel in self.kernels)

    @property
    def start(self) -> str:
        return _do(self.starts)

    def warmed_up(self, sweeps: int) -> str:
        """The start, and so many sweeps."""
        return _do([*self.starts, _indented(f"(repeat {sweeps} ", self.sweep) + ")"])

    @property
    def start_aside(self) -> str:
        return _do(self.starts_aside)

    @property
    def sweep(self) -> str:
        return _do(self.kernels)

    @property
    def draw(self) -> str:
        """A sweep, and a draw of everything."""
        return self._draw(len(self.quantities))

    @property
    def has_paths(self) -> bool:
        """Whether chains begin at the ends of paths along gradients."""
        return len(self.starts) > 1

    @property
    def look(self) -> str:
        """A draw of everything, and nothing moves."""
        return self._collected(len(self.quantities))

    def moved(self, sweeps: int) -> str:
        """So many sweeps, and one draw."""
        return _do([f"(repeat {sweeps} {self.sweep})", self.look])

    def _collected(self, shown: int) -> str:
        names = [quantity.text for quantity in self.quantities[:shown]]
        more = ["..."] * (shown < len(self.quantities))
        return _indented("(collect ", "\n".join(_packed(names + more))) + ")"

    def _draw(self, shown: int) -> str:
        return _do([*self.kernels, self._collected(shown)])

    def text(self, warmup: int, draws: int, shown: int | None = None) -> str:
        """The whole program, or with as many quantities as are to be shown."""
        draw = self._draw(len(self.quantities) if shown is None else shown)
        loops = [("repeat", warmup + draws, draw)]
        if not self.adapts:
            loops = [("repeat", warmup, self.sweep), ("repeat", draws, draw)]
        parts = [_indented(f"({action} {times} ", what) + ")" for action, times, what in loops]
        return _do([*self.starts, *parts])


def _do(parts: Sequence[str]) -> str:
    return _indented("(do ", "\n".join(parts)) + ")"


def _packed(texts: list[str]) -> list[str]:
    """In lines of WIDE characters, where a text is no longer."""
    lines: list[str] = []
    for text in texts:
        if lines and len(lines[-1]) + 1 + len(text) <= WIDE:
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    return lines


def _indented(head: str, text: str) -> str:
    """With the lines of a text below one another."""
    return head + text.replace("\n", "\n" + " " * len(head))


class Composer:
    """Composes the program of one model."""

    def __init__(self, model: Model, burn: int, target: float = TARGET, row_kernel: str | None = None) -> None:
        """`burn` is how many draws kernels adapt for, `target` the acceptance to which the step of paths is tuned;
        `row_kernel` the name of the kernel that a trial chose in the place of paths.

        Raises KernelError for a model in which nothing can be inferred.
        """
        self.model, self.burn, self.target, self.row_kernel = model, burn, target, row_kernel
        self.nodes = model.trace.default.everything()
        if not self.nodes:
            hint = "a model has choices that are not observed: [assume mu (normal 0 10)]"
            raise KernelError("the model has no unobserved choices: there is nothing to infer", hint=hint)
        # pairs of choices that hold one another, which no kernel moves together
        self.held: tuple[str, ...] = ()
        self.groups = self._grouped()
        self._is_structural = any(group.structural for group in self.groups)

    def starts(self, paths: int = 1) -> tuple[str, ...]:
        """With so many paths uphill, where they are short."""
        smooth = self._of("smooth")
        if not smooth:
            return ("(initialize)",)
        several = f" 'paths {paths}" if paths > 1 and not self.has_long_paths() else ""
        return "(initialize)", f"(pathfinder {self._scope(smooth)} all{several})"

    def has_long_paths(self) -> bool:
        """Whether paths uphill go through many coordinates."""
        smooth = self._of("smooth")
        return bool(smooth) and self._size(smooth) > MOST_OF_PATHS

    def kernels(self) -> tuple[str, ...]:
        """Raises KernelError for choices that no kernel can be written for."""
        found = []
        keyed = keyed_by_labels(self.model, self.groups)
        summed = moved_with_labels(self.model, self.groups, keyed)
        smooth = [group for group in self._of("smooth") if group not in (*keyed, *summed)]
        alone = [] if self.row_kernel is not None else concentrations(self.model, smooth)
        if along := [group for group in smooth if group not in alone]:
            found.append(self._along_gradients(along))
        if one_by_one := [*alone, *([] if summed else keyed)]:
            found.append(f"(slice {self._scope(one_by_one)} each {WIDTH} {STEPS} 'adapt {self.burn} 1)")
        rows = [group for kind in ("rough", "counts") for group in self._of(kind, structural=False)]
        rows = [group for group in rows if group.name is not None and is_ordered_chain(self.model, group.nodes)]
        found.extend(f"(pgibbs {self._scope([group])} ordered {PARTICLES} 'ancestor 1)" for group in rows)
        if rough := [group for group in self._of("rough", structural=False) if group not in rows]:
            found.append(f"(slice {self._scope(rough)} each {WIDTH} {STEPS} 'adapt {self.burn} 1)")
        finite = self._of("finite")
        deciding = [group for group in self.groups if group.structural]
        chains = [
            group
            for group in finite
            if self._is_alone(group) and is_finite_chain(self.model, group.nodes, decides_alone=deciding == [group])
        ]
        found.extend(f"(gibbs {self._scope([group])} all 'forward 1)" for group in chains)
        if others := [group for group in finite if group not in chains]:
            scope, nodes = self._scope(others), [node for group in others for node in group.nodes]
            splits = are_split_with_labels(self.model, summed)
            found.append(self._with_labels(summed, splits) if summed else label_sweep(self.model, scope, nodes))
            found.extend(self._tied(others))
            found.extend(() if splits else splitting(self.model, scope, nodes))
        if counts := [group for group in self._of("counts", structural=False) if group not in rows]:
            found.append(f"(mh {self._scope(counts)} each 'drift {WIDTH} 'adapt {self.burn} 1)")
        resimulated = [group for group in deciding if group.kind in ("rough", "counts")]
        found.extend(f"(mh {self._scope([group])} each 1)" for group in resimulated)
        return tuple(found)

    def _along_gradients(self, groups: list[KindGroup]) -> str:
        """What moves all choices of some groups together."""
        scope, size = self._scope(groups), self._size(groups)
        if self.row_kernel is not None:
            return written_row_kernel(self.row_kernel, scope, self.burn, size)
        dense = " 'dense" if size <= MOST_DENSE else ""
        target = f" 'target {self.target}" if self.target != TARGET else ""
        return f"(nuts {scope} all{dense} 'adapt {self.burn}{target} 1)"

    def _tied(self, groups: list[KindGroup]) -> tuple[str, ...]:
        """What draws choices of finite support together that hold one another, where these are few enough; the names
        of others are kept."""
        pairs = list(ties(self.model, [node for group in groups for node in group.nodes]))
        tied = [group for group in groups if any(not set(group.nodes).isdisjoint(pair) for pair in pairs)]
        if any(group.name is None for group in tied):
            tied = groups
        if not tied:
            return ()
        if can_be_drawn_together(self.model, [node for group in tied for node in group.nodes]):
            return (f"(gibbs {self._scope(tied)} all 1)",)
        names = [" and ".join(name_of_choice(self.model.trace, node) for node in pair) for pair in pairs]
        self.held = tuple(dict.fromkeys(names))
        return ()

    def _with_labels(self, groups: Sequence[KindGroup], splits: bool) -> str:
        """What moves all choices of some groups with the labels among them summed out, and then the labels."""
        names = " ".join(str(group.name) for group in groups)
        splitting = f" 'splits {SUMMED_SPLITS}" if splits else ""
        return f"(slice (choices {names}) all {SUMMED_WIDTH} {STEPS} 'weights{splitting} 1)"

    def has_row_kernels(self) -> bool:
        """Whether all that has a gradient is read by very many rows, through one linear predictor."""
        nodes = [node for group in self._of("smooth") for node in group.nodes]
        if max(table.count for table in self.model.trace.tables) <= MANY_ROWS:
            return False
        return rows_of_predictor(self.model, nodes) > MANY_ROWS

    def _is_alone(self, group: KindGroup) -> bool:
        """Whether a scope can be written for the choices of a group."""
        return group.name is not None or len(self._of(group.kind)) == 1

    def _size(self, groups: list[KindGroup]) -> int:
        """How many coordinates they have together."""
        return BlockDensity(self.model, [node for group in groups for node in group.nodes]).size

    def _of(self, kind: str, structural: bool | None = None) -> list[KindGroup]:
        found = [group for group in self.groups if group.kind == kind]
        return found if structural is None else [group for group in found if group.structural == structural]

    # -------------------------------------------------------------------------------------------------- groups

    def _grouped(self) -> list[KindGroup]:
        """The choices by kind and name, in the order of the text."""
        trace, kind_of = self.model.trace, kinds(self.model)
        names = {bound.code.index: name for name, bound in trace.analyzer.globals.items() if bound.code is not None}
        groups: dict[tuple[str, str | None], KindGroup] = {}
        for node in self.nodes:
            kind = kind_of(site_of(node))
            assert kind is not None
            name = names.get(address(trace, node)[-1][0])
            group = groups.setdefault((kind, name), KindGroup(kind, name))
            group.nodes.append(node)
        for group in groups.values():
            group.structural = group.kind != "smooth" and self._decides(group.nodes)
        return list(groups.values())

    def _decides(self, nodes: list[int]) -> bool:
        """Whether one of some choices decides which others exist: one of each site is looked at."""
        firsts = {site_of(node): node for node in reversed(nodes)}
        return any(Builder(self.model.trace).build([node], with_brush=False).structural for node in firsts.values())

    def _scope(self, groups: list[KindGroup]) -> str:
        """Choices by name; without names where there are many, or where others may come that have other names."""
        kind, names = groups[0].kind, [group.name for group in groups]
        everything = {group.name for group in self._of(kind)} == set(names)
        if everything and (None in names or len(names) > MOST_NAMES or self._is_structural):
            return str(Choices((), kind))
        if None in names:
            where = "observations and predictions make choices that decide which others exist"
            raise KernelError(f"auto cannot move all choices: {where}", hint="give them names, by assume")
        return str(Choices(tuple(name for name in names if name is not None), kind))


def composed(
    model: Model,
    burn: int,
    collect: tuple[str, ...] | None,
    target: float = TARGET,
    row_kernel: str | None = None,
) -> tuple[Composed, tuple[LeftOut, ...]]:
    """The program of a model, which draws what is judged, or expressions of the user's; and what it leaves out."""
    composer = Composer(model, burn, target, row_kernel)
    starts, kernels, aside = composer.starts(PATHS), composer.kernels(), composer.starts()
    held = composer.held
    are_long = composer.has_long_paths()
    if collect is not None:
        return Composed(starts, kernels, tuple(map(Quantity, collect)), aside, are_long, held), ()
    bound = sorted(model.trace.analyzer.globals.values(), key=lambda target: target.order)
    found = Quantities(model, (target.name for target in bound))
    quantities = *found.found, Quantity("(log_score)")
    return Composed(starts, kernels, quantities, aside, are_long, held), tuple(found.left_out)
