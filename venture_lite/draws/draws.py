"""What `infer` returns: draws by variable, and a row of statistics for each kernel that ran.

An inference program fills one `DrawsBuilder` for each chain; `Draws.merge` joins the chains. Everything here is a
copy of what the trace held. How the draws are summed up is in `summary.py`, how they are written to a file in
`files.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.draws.calls import as_collected, calls_of
from venture_lite.draws.presentation import listed
from venture_lite.errors import nearest
from venture_lite.values import object_array

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.figure import Figure
    from xarray import DataTree

    from venture_lite.draws.evidence import Evidence
    from venture_lite.draws.summary import Summary

NAMED = 8
"""Variables that a person is told of who asks for one that there is not."""


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
    seconds: float
    # position of the chain, from 0
    chain: int = 0
    # what else the engine has to say, by name
    details: Mapping[str, float] = field(default_factory=dict)
    # the longest run of transitions that changed nothing
    refused: int = 0
    # of an action that moves a chain to its start: where that is; of one that makes particles: what they are
    note: str = ""
    # whether what it leaves is not quite the posterior
    is_approximate: bool = False
    # of an action that estimates the evidence: its log in each of its independent runs
    evidence: tuple[float, ...] = ()


class DrawsBuilder:
    """Draws of one chain while its inference program runs; `add` and `add_plotted` append to one variable.

    Another thread may ask for `news`, since draws are only ever added.
    """

    __slots__ = (
        "_adapting", "_adding", "_first", "adapting", "could_move", "plotted", "statistics", "transition",
        "transitions", "values",
    )  # fmt: skip

    def __init__(self) -> None:
        self.values: defaultdict[str, list[Any]] = defaultdict(list)
        # by variable how many of its first draws are warm-up: a kernel still adapted, or the state was impossible
        self.adapting: dict[str, int] = {}
        # what adapts now, with the variables that were drawn since where it has learned all that it will
        self._adapting: dict[Hashable, set[str] | None] = {}
        # the variables that never changed though they depend on an unobserved choice, found out at the end
        self.could_move: frozenset[str] = frozenset()
        # whether some variables of one `collect` have their draw already, and others not yet
        self._adding = False
        # what `plot` keeps, apart from the draws
        self.plotted: defaultdict[str, list[Any]] = defaultdict(list)
        self.statistics: list[KernelStatistics] = []
        # what there is to say of the last transition, by ArviZ's names, for each draw of the variable that came first
        self.transition: Callable[[], Mapping[str, float]] = dict
        self.transitions: defaultdict[str, list[Any]] = defaultdict(list)
        self._first: str | None = None

    def add(self, name: str, value: Any) -> None:
        """One more draw of a variable; `value` is a value of the language, and values never change in place."""
        column = self.values[name]
        column.append(value)
        if self._adapting and self._is_marked(name):
            self.adapting[name] = len(column)

    def _is_marked(self, name: str) -> bool:
        """Whether a draw comes after a transition that adapted. Mutates what is known of kernels that will no more:
        theirs is one draw of each variable, whether they run again or not."""
        over = []
        for kernel, drawn in self._adapting.items():
            if drawn is not None:
                over += [kernel] * (name in drawn)
                drawn.add(name)
        for kernel in over:
            del self._adapting[kernel]
        return bool(self._adapting)

    def add_together(self, draws: Sequence[tuple[str, Any]]) -> None:
        """One more draw of several variables, which stay equally long wherever the program is interrupted."""
        self._adding = True
        if self._adapting:
            for name, value in draws:
                self.add(name, value)
        else:
            for name, value in draws:
                self.values[name].append(value)
        self._add_transition(draws)
        self._adding = False

    def _add_transition(self, draws: Sequence[tuple[str, Any]]) -> None:
        if self._first is None and draws:
            self._first = draws[0][0]
        if any(name == self._first for name, _ in draws):
            for name, value in self.transition().items():
                self.transitions[name].append(value)

    def news(self, known: Mapping[str, int]) -> dict[str, list[Any]] | None:
        """What was added to each variable beyond its known length; None in the middle of an addition: ask again."""
        if self._adding:
            return None
        found = {name: column[known.get(name, 0) :] for name, column in list(self.values.items())}
        return None if self._adding else {name: column for name, column in found.items() if column}

    def mark(self, kernel: Hashable, left: int) -> None:
        """How many runs of a kernel's warm-up were left at its last transition, that one among them: draws are marked
        while there are any, and once more after the last."""
        if left:
            self._adapting[kernel] = set() if left == 1 else None
        else:
            self._adapting.pop(kernel, None)

    def settled(self) -> None:
        """What adapted is frozen: the draws to come count."""
        self._adapting.clear()

    def mark_earlier(self) -> None:
        """A kernel has moved the chain to where it will stay, or it stands in a state of probability zero: what was
        drawn before is warm-up."""
        for name, column in self.values.items():
            self.adapting[name] = len(column)

    def add_plotted(self, draws: Sequence[tuple[str, Any]]) -> None:
        """One more draw of several variables for their pictures."""
        for name, value in draws:
            self.plotted[name].append(value)

    def finish(self) -> Draws:
        """The draws so far, as a set with one chain."""
        plotted = Draws([_arrays(self.plotted)]) if self.plotted else None
        marks = dict.fromkeys(self.transitions, self.adapting.get(self._first or "", 0))
        transitions = Draws([_arrays(self.transitions)], adapting=[marks]) if self.transitions else None
        return Draws(
            [_arrays(self.values)], self.statistics, plotted, adapting=[self.adapting], could_move=[self.could_move],
            transitions=transitions,
        )  # fmt: skip


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

    A call is found as it was collected, `draws["(theta 3)"]`, and as `draws["theta(3)"]`; `draws["theta"]` has shape
    (chains, draws, n, ...) where the calls of `theta` are those of 1 to n and have draws of one shape.
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
        numbers: Sequence[int] = (),
        preface: str = "",
        transitions: Draws | None = None,
    ) -> None:
        self._chains = tuple(dict(chain) for chain in chains)
        # the position of each among all chains of its program: an interruption may leave the draws of some alone
        self.numbers: tuple[int, ...] = tuple(numbers) or tuple(range(len(self._chains)))
        # for each chain, by variable, how many of its first draws are warm-up
        self.adapting: tuple[Mapping[str, int], ...] = tuple(adapting) or ({},) * len(self._chains)
        # for each chain, the variables that never changed there though they depend on an unobserved choice
        self.could_move: tuple[frozenset[str], ...] = tuple(could_move) or (frozenset(),) * len(self._chains)
        # values that `force` had set and that no kernel moved meanwhile, a line each
        self.held: tuple[str, ...] = tuple(held)
        self.statistics: tuple[KernelStatistics, ...] = tuple(statistics)
        # what stands at the head of their summary
        self.preface = preface
        # what `(plot ...)` kept, for `plots.text` and `figure`; None where the program has no plot
        self.plotted = plotted
        # of the gradient kernel, where there is one: `diverging`, `energy`, ... of the transition before each draw
        self.transitions = transitions
        # None for draws that no session made
        self.origin = origin
        self._stacked: dict[str, np.ndarray] = {}

    @property
    def pictured(self) -> Draws | None:
        """What a picture is made of: what was plotted, or all that `auto` drew, of which nobody could say so."""
        return self if self.plotted is None and self.preface else self.plotted

    @classmethod
    def merge(cls, parts: Sequence[Draws], numbers: Sequence[int] = ()) -> Draws:
        """One set of draws from sets that each hold one chain (or several), in their order.

        `numbers` are the positions of their chains among all of the program; left out, there are no others.
        """
        chains: list[Mapping[str, np.ndarray]] = []
        statistics: list[KernelStatistics] = []
        numbers = numbers or range(sum(part.chain_count for part in parts))
        for part in parts:
            new = dict(zip(part.numbers, numbers[len(chains) :], strict=False))
            statistics.extend(replace(row, chain=new.get(row.chain, row.chain)) for row in part.statistics)
            chains.extend(part._chains)
        adapting = [marks for part in parts for marks in part.adapting]

        def together(field: str) -> Draws | None:
            found = [getattr(part, field) for part in parts]
            empty = [Draws([{}] * part.chain_count) for part in parts]
            return cls.merge([a or b for a, b in zip(found, empty, strict=True)], numbers) if any(found) else None

        could_move = [names for part in parts for names in part.could_move]
        held = dict.fromkeys(line for part in parts for line in part.held)
        origin = next((part.origin for part in parts if part.origin is not None), None)
        plotted, transitions = together("plotted"), together("transitions")
        return cls(chains, statistics, plotted, origin, adapting, could_move, held, numbers, transitions=transitions)

    def _like(self, chains: Sequence[Mapping[str, np.ndarray]], **changed: Any) -> Draws:
        """Other draws of the same inference; `changed` are the arguments that differ."""
        shared = (
            "statistics", "plotted", "origin", "adapting", "could_move", "held", "numbers", "preface", "transitions",
        )  # fmt: skip
        return Draws(chains, **{name: getattr(self, name) for name in shared} | changed)

    def with_chains(self, chains: Sequence[Mapping[str, np.ndarray]]) -> Draws:
        """Draws of the same inference, of other variables."""
        return self._like(chains, could_move=())

    def evened(self) -> tuple[Draws, Draws]:
        """Draws whose chains differ in length, as an interruption leaves them, as two sets: even chains, and the rest.

        Each variable of the first is as long in every chain; the chains are those with which most draws are kept. The
        rest holds, chain by chain, what stands beyond that length, and the chains that are too short.
        """
        longest_first = sorted(range(self.chain_count), key=lambda place: (-self._size(place), place))
        counts = range(1, self.chain_count + 1)
        most = max(counts, key=lambda count: (count * sum(self._shared(longest_first[:count]).values()), count))
        even = sorted(longest_first[:most])
        lengths = self._shared(even)
        plotted, transitions = (part and part._cut(even) for part in (self.plotted, self.transitions))
        rest = self._taken(
            range(self.chain_count),
            lambda place, name: slice(lengths[name] if place in even else 0, None),
            statistics=(),
            plotted=None,
            transitions=None,
        )
        even_draws = self._taken(
            even, lambda _, name: slice(0, lengths[name]), plotted=plotted, transitions=transitions
        )
        return even_draws, rest

    def shared(self) -> Draws:
        """Of each chain as many draws of a variable as the shortest has."""
        return self._cut(range(self.chain_count))

    def _cut(self, places: Sequence[int]) -> Draws:
        """These chains, each variable as long as in the one that is shortest."""
        shared = self._shared(places)
        return self._taken(places, lambda _, name: slice(0, shared[name]))

    def _size(self, place: int) -> int:
        """How many draws a chain has of all variables; of what it plots, where nothing is collected."""
        chain = self._chains[place]
        if not chain and self.plotted is not None:
            chain = self.plotted._chains[place]
        return sum(map(len, chain.values()))

    def _shared(self, places: Sequence[int]) -> dict[str, int]:
        """How many draws of each variable all of these chains have."""
        return {name: min(len(self._chains[place].get(name, ())) for place in places) for name in self.names}

    def _taken(self, places: Iterable[int], part: Callable[[int, str], slice], **changed: Any) -> Draws:
        """Some chains, with a part of each variable's draws, by its place and name; one without any is left out."""
        chains, adapting = [], []
        for place in places:
            parts = {name: (values, part(place, name)) for name, values in self._chains[place].items()}
            taken = {name: values[at] for name, (values, at) in parts.items() if len(values[at])}
            marks = {name: count - parts[name][1].start for name, count in self.adapting[place].items()}
            chains.append(taken)
            adapting.append({name: min(marks[name], len(taken[name])) for name in taken if marks.get(name, 0) > 0})
        could_move = [self.could_move[place] for place in places]
        numbers = [self.numbers[place] for place in places]
        return self._like(chains, adapting=adapting, could_move=could_move, numbers=numbers, **changed)

    def after(self, count: int) -> Draws:
        """The draws after so many of each variable and chain."""
        return self._taken(range(self.chain_count), lambda place, name: slice(count, None))

    def lengths(self) -> dict[int, int]:
        """How many draws each chain has of its longest variable, by the chain's number; chains without any left out."""
        counts = [max(map(len, chain.values()), default=0) for chain in self._chains]
        return {number: count for number, count in zip(self.numbers, counts, strict=True) if count}

    def converted(self, convert: Callable[[Any], Any]) -> Draws:
        """The draws with another object in place of each value of a variable that is not numeric."""

        def plain(values: np.ndarray) -> np.ndarray:
            return object_array([convert(value) for value in values]) if values.dtype == object else values

        chains = [{name: plain(values) for name, values in chain.items()} for chain in self._chains]
        plotted = self.plotted.converted(convert) if self.plotted is not None else None
        return self._like(chains, plotted=plotted)

    def without_adaptation(self) -> Draws:
        """The draws less those of the warm-up: what the summary is of."""
        return self._apart()[1]

    def adaptation(self) -> Draws:
        """The draws that `without_adaptation` leaves out."""
        return self._apart()[0]

    def _apart(self) -> tuple[Draws, Draws]:
        """The draws up to the last that any chain made while it warmed up, and those after it."""
        if not any(map(len, self.adapting)):
            return Draws([{}] * self.chain_count, numbers=self.numbers), self
        adapted = {name: max(marks.get(name, 0) for marks in self.adapting) for name in self.names}
        early = [{name: values[: adapted[name]] for name, values in chain.items()} for chain in self._chains]
        late = [{name: values[adapted[name] :] for name, values in chain.items()} for chain in self._chains]
        return Draws(early, numbers=self.numbers), self._like(late, adapting=())

    @property
    def program(self) -> str | None:
        """The inference program that made them, in the language; None for draws that no session made."""
        return None if self.origin is None else self.origin.inference

    @property
    def approximate(self) -> tuple[str, ...]:
        """The kernels, as written, of which the draws are approximate: they leave what is not quite the posterior."""
        return tuple(dict.fromkeys(" ".join(row.kernel.split()) for row in self.statistics if row.is_approximate))

    @property
    def evidence(self) -> Evidence | None:
        """The estimate of the log evidence, from the runs of all chains: that of the first action that makes one; None
        where none does."""
        from venture_lite.draws.kernel_summary import kernel_rows

        return next((row.evidence for row in kernel_rows(self.statistics) if row.evidence is not None), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, in the order in which they were first collected."""
        return tuple(dict.fromkeys(name for chain in self._chains for name in chain))

    @property
    def chain_count(self) -> int:
        return len(self._chains)

    def by_chain(self, name: str) -> list[np.ndarray]:
        """One array (draws, ...) for each chain."""
        if as_collected(name) in self.names:
            name = as_collected(name)
        else:
            hint = nearest(name, self.names) or (f"collected were: {listed(self.names, NAMED)}" if self.names else None)
            raise KeyError(f"no variable {name!r} was collected" + (f"; {hint}" if hint else ""))
        return [chain.get(name, np.empty(0)) for chain in self._chains]

    def is_numeric(self, name: str) -> bool:
        """Whether the variable is a number, or an array of one shape, in every draw of chains of one length."""
        return self[name].dtype != object

    def summary(self) -> Summary:
        """Mean, sd, 90% interval, effective sample sizes and R-hat of each numeric variable, and what to beware of."""
        from venture_lite.draws.summary import summarize

        return summarize(self)

    def to_datatree(self, prior: Draws | None = None, warmup: bool = False) -> DataTree:
        """An `xarray.DataTree` as ArviZ reads it; see `datatree.to_datatree`."""
        from venture_lite.draws.datatree import to_datatree

        return to_datatree(self, prior, warmup)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the draws to a .npz, .csv, .parquet or .nc file; see `files.save`."""
        from venture_lite.draws.files import save

        save(self, path)

    def figure(self) -> Figure:
        """A histogram and a trace of every variable as a matplotlib figure; see `pictures.figure`."""
        from venture_lite.draws.pictures import figure

        return figure(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the summary."""
        from html import escape

        return self.summary()._repr_html_() if self.names else escape(repr(self))

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._stacked:
            found = self._calls(name)
            self._stacked[name] = _stack(self.by_chain(as_collected(name))) if found is None else found
        return self._stacked[name]

    def _calls(self, name: str) -> np.ndarray | None:
        """The calls of a name by their keys 1 to n, (chains, draws, n, ...), where it is no variable itself."""
        if name in self.names:
            return None
        calls = [self[call] for call in calls_of(name, self.names)]
        alike = len({(call.shape, call.dtype == object) for call in calls}) == 1 and calls[0].dtype != object
        return np.stack(calls, axis=2) if alike else None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        known = self.names
        return name in known or (
            isinstance(name, str) and (as_collected(name) in known or self._calls(name) is not None)
        )

    def holds(self, other: Draws) -> bool:
        """Whether the values are those of `other`: the very arrays, as a copy with another preface has them."""
        pairs = list(zip(self._chains, other._chains, strict=False))
        return self.chain_count == other.chain_count and all(
            a.keys() == b.keys() and all(values is b[name] for name, values in a.items()) for a, b in pairs
        )

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
        return object_array(values)
    return array if array.dtype.kind in "biuf" else object_array(values)


def joined_column(pieces: Sequence[np.ndarray]) -> np.ndarray:
    """One variable's draws in one chain from arrays that follow each other: what `column_array` makes of all."""
    if len({piece.shape[1:] for piece in pieces}) == 1 and all(piece.dtype != object for piece in pieces):
        return np.concatenate(pieces)
    return column_array([value for piece in pieces for value in piece.tolist()])


def _stack(chains: Sequence[np.ndarray]) -> np.ndarray:
    """(chains, draws, ...), or an object array where the chains do not fit together."""
    if len({(chain.shape, chain.dtype == object) for chain in chains}) == 1:
        return np.stack(chains)
    if len({len(chain) for chain in chains}) == 1:
        return np.stack([object_array(chain) for chain in chains])
    return object_array(chains)
