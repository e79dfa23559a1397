"""What `infer` returns: draws by variable, and a row of statistics for each kernel that ran.

An inference program fills one `DrawsBuilder` for each chain; `Draws.merge` joins the chains. Everything here is a
copy of what the trace held. How the draws are summed up is in `summary.py`, how they are written to a file in
`export.py`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.errors import nearest
from venture_lite.values import to_python

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.figure import Figure
    from xarray import DataTree

    from venture_lite.summary import Summary


@dataclass(frozen=True, slots=True)
class KernelStatistics:
    """What one kernel of an inference program did in one chain, over the whole program."""

    # the kernel as written, `(mh w all 10)`
    kernel: str
    # proposals made, and how many of them were accepted
    transitions: int
    accepted: int
    # likelihood rows evaluated
    rows: int
    # time spent inside the kernel
    seconds: float
    # position of the chain, from 0
    chain: int = 0
    # what else the engine has to say, by name
    details: Mapping[str, float] = field(default_factory=dict)
    # the longest run of transitions that changed nothing
    refused: int = 0


class DrawsBuilder:
    """Draws of one chain while its inference program runs; `add` and `add_plotted` append to one variable."""

    __slots__ = ("_adapting", "adapting", "could_move", "plotted", "statistics", "values")

    def __init__(self) -> None:
        self.values: dict[str, list[Any]] = {}
        # by variable how many of its first draws were made while a kernel still adapted
        self.adapting: dict[str, int] = {}
        # what adapts now
        self._adapting: set[Hashable] = set()
        # the variables that never changed though they depend on an unobserved choice, found out at the end
        self.could_move: frozenset[str] = frozenset()
        # what `plot` keeps, apart from the draws
        self.plotted: dict[str, list[Any]] = {}
        self.statistics: list[KernelStatistics] = []

    def add(self, name: str, value: Any) -> None:
        """One more draw of a variable; `value` is a value of the language, and values never change in place."""
        column = self.values.get(name)
        if column is None:
            column = self.values[name] = []
        column.append(value)
        if self._adapting:
            self.adapting[name] = len(column)

    def mark(self, kernel: Hashable, is_adapting: bool) -> None:
        """Whether a kernel's last transition adapted: draws are marked while one did."""
        if is_adapting:
            self._adapting.add(kernel)
        else:
            self._adapting.discard(kernel)

    def add_plotted(self, name: str, value: Any) -> None:
        """One more draw of a variable for its picture."""
        self.plotted.setdefault(name, []).append(value)

    def finish(self) -> Draws:
        """The draws so far, as a set with one chain."""
        plotted = Draws([_arrays(self.plotted)]) if self.plotted else None
        arrays = [_arrays(self.values)]
        return Draws(arrays, self.statistics, plotted, adapting=[self.adapting], could_move=[self.could_move])


def _arrays(columns: Mapping[str, list[Any]]) -> dict[str, np.ndarray]:
    return {name: column_array(column) for name, column in columns.items()}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where draws come from, for one who finds them later."""

    seed: int
    # the directives that were in force, as text
    program: str
    # the inference expression that was run
    inference: str
    # numbers that were observed, by name: (observations, ...), read-only
    observed: Mapping[str, np.ndarray] = field(default_factory=dict)


class Draws(Mapping[str, np.ndarray]):
    """Draws of named variables from one or more chains.

    `draws["mu"]` has shape (chains, draws, ...): booleans, integers, floats, or vectors and matrices of them. Values
    of any other kind, or whose shape varies, give an object array (chains, draws); chains of different length give
    an object array (chains,) of arrays.
    """

    def __init__(
        self,
        chains: Sequence[Mapping[str, np.ndarray]],
        statistics: Iterable[KernelStatistics] = (),
        plotted: Draws | None = None,
        origin: Origin | None = None,
        adapting: Sequence[Mapping[str, int]] = (),
        could_move: Sequence[frozenset[str]] = (),
        held: Iterable[str] = (),
    ) -> None:
        self._chains = tuple(dict(chain) for chain in chains)
        # for each chain, by variable, how many of its first draws were made while a kernel still adapted
        self.adapting: tuple[Mapping[str, int], ...] = tuple(adapting) or ({},) * len(self._chains)
        # for each chain, the variables that never changed there though they depend on an unobserved choice
        self.could_move: tuple[frozenset[str], ...] = tuple(could_move) or (frozenset(),) * len(self._chains)
        # values that `force` had set and that no kernel moved meanwhile, a line each
        self.held: tuple[str, ...] = tuple(held)
        self.statistics: tuple[KernelStatistics, ...] = tuple(statistics)
        # what `(plot ...)` kept, for `plots.text` and `figure`; None where the program has no plot
        self.plotted = plotted
        # None for draws that no session made
        self.origin = origin
        self._stacked: dict[str, np.ndarray] = {}

    @classmethod
    def merge(cls, parts: Sequence[Draws]) -> Draws:
        """One set of draws from sets that each hold one chain (or several), in their order."""
        chains: list[Mapping[str, np.ndarray]] = []
        statistics: list[KernelStatistics] = []
        for part in parts:
            statistics.extend(replace(row, chain=row.chain + len(chains)) for row in part.statistics)
            chains.extend(part._chains)
        plotted = [part.plotted for part in parts if part.plotted is not None]
        origins = [part.origin for part in parts if part.origin is not None]
        return cls(
            chains,
            statistics,
            cls.merge(plotted) if plotted else None,
            next(iter(origins), None),
            [marks for part in parts for marks in part.adapting],
            [names for part in parts for names in part.could_move],
            dict.fromkeys(line for part in parts for line in part.held),
        )

    def cut_to_shortest(self) -> Draws:
        """Each variable with as many draws a chain as its shortest chain has: what an interruption leaves is uneven."""
        shortest = {name: min(map(len, self.by_chain(name))) for name in self.names}
        chains = [{name: chain[name][:length] for name, length in shortest.items() if length} for chain in self._chains]
        plotted = self.plotted.cut_to_shortest() if self.plotted is not None else None
        return Draws(chains, self.statistics, plotted, self.origin, self.adapting, self.could_move, self.held)

    def without_adaptation(self) -> Draws:
        """The draws less those that were made while a kernel still adapted: what the summary is of."""
        return self._apart()[1]

    def adaptation(self) -> Draws:
        """The draws that `without_adaptation` leaves out."""
        return self._apart()[0]

    def _apart(self) -> tuple[Draws, Draws]:
        """The draws up to the last that any chain made while a kernel adapted, and those after it."""
        if not any(map(len, self.adapting)):
            return Draws([{}] * self.chain_count), self
        adapted = {name: max(marks.get(name, 0) for marks in self.adapting) for name in self.names}
        early = [{name: values[: adapted[name]] for name, values in chain.items()} for chain in self._chains]
        late = [{name: values[adapted[name] :] for name, values in chain.items()} for chain in self._chains]
        told = Draws(late, self.statistics, self.plotted, self.origin, (), self.could_move, self.held)
        return Draws(early), told

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, in the order in which they were first collected."""
        return tuple(dict.fromkeys(name for chain in self._chains for name in chain))

    @property
    def chain_count(self) -> int:
        return len(self._chains)

    def by_chain(self, name: str) -> list[np.ndarray]:
        """One array (draws, ...) for each chain."""
        if name not in self.names:
            hint = nearest(name, self.names) or (f"collected were: {', '.join(self.names)}" if self.names else None)
            raise KeyError(f"no variable {name!r} was collected" + (f"; {hint}" if hint else ""))
        return [chain.get(name, np.empty(0)) for chain in self._chains]

    def is_numeric(self, name: str) -> bool:
        """Whether the variable is a number, or an array of one shape, in every draw of chains of one length."""
        return self[name].dtype != object

    def summary(self) -> Summary:
        """Mean, sd, 90% interval, effective sample sizes and R-hat of each numeric variable, and what to beware of."""
        from venture_lite.summary import summarize

        return summarize(self)

    def to_datatree(self) -> DataTree:
        """An `xarray.DataTree` as ArviZ reads it; see `datatree.to_datatree`."""
        from venture_lite.datatree import to_datatree

        return to_datatree(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the draws to a .npz, .csv or .nc file; see `export.save`."""
        from venture_lite.export import save

        save(self, path)

    def figure(self) -> Figure:
        """A histogram and a trace of every variable as a matplotlib figure; see `pictures.figure`."""
        from venture_lite.pictures import figure

        return figure(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the summary."""
        from html import escape

        return self.summary()._repr_html_() if self.names else escape(repr(self))

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._stacked:
            self._stacked[name] = _stack(self.by_chain(name))
        return self._stacked[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        shown = [f"{name} {self[name].shape}" for name in self.names[:6]]
        more = ", ..." if len(self.names) > 6 else ""
        return f"Draws({', '.join(shown)}{more})"


def column_array(values: Sequence[Any]) -> np.ndarray:
    """One variable's draws in one chain as (draws, ...), numeric wherever all of them have one numeric shape."""
    try:
        array = np.array(values)
    except (ValueError, OverflowError):  # ragged
        return _object_array(values)
    return array if array.dtype.kind in "biuf" else _object_array(values)


def _object_array(values: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = to_python(value)
    return array


def _stack(chains: Sequence[np.ndarray]) -> np.ndarray:
    """(chains, draws, ...), or an object array where the chains do not fit together."""
    shapes = {chain.shape for chain in chains}
    if len(shapes) == 1 and len({chain.dtype == object for chain in chains}) == 1:
        return np.stack(chains)
    lengths = {len(chain) for chain in chains}
    if len(lengths) == 1:
        joined = np.empty((len(chains), *lengths), dtype=object)
        for row, chain in enumerate(chains):
            for column, value in enumerate(chain):
                joined[row, column] = value
        return joined
    ragged = np.empty(len(chains), dtype=object)
    for row, chain in enumerate(chains):
        ragged[row] = chain
    return ragged
