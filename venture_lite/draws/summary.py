"""A summary of draws for a person: a row for each coordinate, and warnings about what not to trust."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.draws import diagnostics
from venture_lite.draws.calls import by_procedure, procedure_of
from venture_lite.draws.groups import measured
from venture_lite.draws.kernel_summary import KernelRow, has_particles, kernel_lines, kernel_rows, kernel_warnings
from venture_lite.draws.presentation import cut, listed, table

if TYPE_CHECKING:
    from venture_lite.draws.draws import Draws

# coordinates of one variable that are printed; the data and `rows` hold them all
COORDINATES_SHOWN = 12
# of more calls of memoized procedures than this, those with the fewest effective draws are printed, so many
MOST_CALLS = 24
CALLS_SHOWN = 12
CONSTANTS_SHOWN = 3
LEFT_OUT_SHOWN = 12
# Vehtari et al. (2021) recommend both limits
R_HAT_LIMIT = 1.01
ESS_LIMIT = 100
# effective draws from which R-hat may be what it is by chance
MANY = 400
# of the effective size of the sd, as a share of the mean's
LEAST_SHARE = 0.5
INTERVAL = (0.05, 0.95)

# the column of the table with which diagnostics begin, and the least that is left of a name
DIAGNOSTICS_BEGIN = 5
SHORTEST_NAME = 8
# by the field of a row: what JSON calls it, its heading, and how it is printed
COLUMNS = {
    "mean": ("mean", "mean", ".4g"),
    "sd": ("sd", "sd", ".4g"),
    "low": ("q5", "5%", ".4g"),
    "high": ("q95", "95%", ".4g"),
    "ess_bulk": ("ess_bulk", "ess_bulk", ".0f"),
    "ess_tail": ("ess_tail", "ess_tail", ".0f"),
    "r_hat": ("r_hat", "r_hat", ".3f"),
}


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One scalar: a variable, or a coordinate of one (`w[3]`, positions count from 0).

    Undefined diagnostics (a constant, fewer than 4 draws) are NaN and print as `-`.
    """

    name: str
    variable: str
    mean: float
    sd: float
    # ends of the central 90% interval
    low: float
    high: float
    ess_bulk: float
    ess_tail: float
    # infinite where no chain moves, or no half of one, and their values differ; then it prints as `-` too
    r_hat: float
    ess_mean: float
    ess_sd: float
    # positions of the chains that hold one value throughout
    still: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """Rows for numeric variables; `str` gives the table, what the kernels did, and the warnings."""

    rows: tuple[SummaryRow, ...]
    # chains and draws, of each numeric variable
    sizes: dict[str, tuple[int, int]]
    # variables without a summary: neither numbers nor arrays of one shape, or never drawn
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]
    # how many draws a chain were left out, of each variable that was drawn while it warmed up
    adapting: dict[str, int] = field(default_factory=dict)
    # values that `force` had set and no kernel moved, a line each
    held: tuple[str, ...] = ()
    # what each kernel of the program did, its chains together
    kernels: tuple[KernelRow, ...] = ()
    # what stands before all else
    preface: str = ""

    def as_dict(self) -> dict[str, dict[str, float | None]]:
        """Plain numbers by coordinate, for JSON: `{"mu": {"mean": 9.99, ...}}`; None for what is undefined."""

        def known(value: float) -> float | None:
            return value if math.isfinite(value) else None

        return {
            row.name: {key: known(getattr(row, field)) for field, (key, _, _) in COLUMNS.items()} for row in self.rows
        }

    def cells(self) -> list[tuple[str, ...]]:
        """The header and a line for each coordinate that is printed."""
        shown = [row for group in self._groups() for row in group[:COORDINATES_SHOWN]]
        return self._cells([*shown, *_worst(self._many_calls())])

    def everything(self) -> str:
        """The table with a line for every row."""
        return "\n".join(_aligned(self._cells(self.rows), None)) if self.rows else ""

    def _cells(self, shown: Sequence[SummaryRow]) -> list[tuple[str, ...]]:
        header = ("variable", *(heading for _, heading, _ in COLUMNS.values()))
        forms = [(field, form) for field, (_, _, form) in COLUMNS.items()]
        return [
            header,
            *((row.name, *(_cell(field, getattr(row, field), form) for field, form in forms)) for row in shown),
        ]

    def notes(self) -> list[str]:
        """What the cells leave out, a line for each variable with more than twelve coordinates, and one for calls."""
        notes = [_note(group) for group in self._groups() if len(group) > COORDINATES_SHOWN]
        calls = self._many_calls()
        if calls:
            names = ", ".join(f"({name} ...)" for name in dict.fromkeys(procedure_of(row.variable) for row in calls))
            head = f"{names}: {len(calls) - len(_worst(calls)):,} more rows not shown"
            constant = sum(map(math.isinf, map(_least_ess, calls)))
            head += f", {constant:,} of all {len(calls):,} constant" if constant else ""
            notes += [_extent(head, calls), "every row: summary().everything(), or venture run --json"]
        return notes

    def made_from(self) -> list[str]:
        """How many draws there are, what to know of them, and which variables have no summary."""
        lines = [_size_line(self.sizes), *_rough_spread(self.rows), *self.held]
        if self.adapting:
            most = max(self.adapting.values())
            everything = "" if self.sizes else ", all that there are"
            lines.append(f"not counted: {most} warm-up draw{'s' * (most != 1)} a chain{everything}")
        if self.left_out:
            names = listed(by_procedure(self.left_out), LEFT_OUT_SHOWN)
            lines.append(f"not summarized (not numbers of one shape): {names}")
        return [line for line in lines if line]

    def _groups(self) -> list[list[SummaryRow]]:
        """The rows by variable, but for those of many calls."""
        left = set(map(id, self._many_calls()))
        rows = [row for row in self.rows if id(row) not in left]
        return [list(group) for _, group in itertools.groupby(rows, key=lambda row: row.variable)]

    def _many_calls(self) -> list[SummaryRow]:
        """Those of calls, where these are more than a person reads: the worst first, by R-hat where that is too large,
        then by effective draws."""
        calls = [row for row in self.rows if procedure_of(row.variable) is not None]
        return sorted(calls, key=_goodness) if len(calls) > MOST_CALLS else []

    def table(self, width: int | None = None) -> str:
        """The rows alone, aligned; a variable's coordinates beyond twelve are summed up in one line.

        Where they are wider than `width`, diagnostics stand below the moments, and long names are cut.
        """
        if not self.rows:
            return ""
        text = _aligned(self.cells(), width)
        if width is not None and max(map(len, text)) > width:
            moments = [line[:DIAGNOSTICS_BEGIN] for line in self.cells()]
            others = [(line[0], *line[DIAGNOSTICS_BEGIN:]) for line in self.cells()]
            text = _aligned(moments, width) + _aligned(others, width)
        return "\n".join(text + self.notes())

    def body(self, width: int | None = None) -> str:
        """The table and what it is made from, without the kernels and the warnings."""
        return "\n".join(part for part in (self.preface, self.table(width), *self.made_from()) if part)

    def _repr_html_(self) -> str:
        from venture_lite.draws.markup import summary_html

        return summary_html(self)

    def __str__(self) -> str:
        parts = [self.body(), *kernel_lines(self.kernels), *(f"warning: {warning}" for warning in self.warnings)]
        return "\n".join(part for part in parts if part)


def _aligned(lines: list[tuple[str, ...]], width: int | None) -> list[str]:
    """Lines of cells in columns; names are cut as far as the width asks for, and a name can be."""
    if width is not None:
        _, *others = [max(map(len, column)) for column in zip(*lines, strict=True)]
        room = max(SHORTEST_NAME, width - sum(others) - 2 * len(others))
        lines = [(cut(name, room), *cells) for name, *cells in lines]
    return table(lines[0], lines[1:], right=bool).split("\n")


def summarize(draws: Draws) -> Summary:
    """The summary of a set of draws, less those of the warm-up, and what was measured of data."""
    adapting = {name: count for marks in draws.adapting for name, count in marks.items() if count}
    draws = draws.without_adaptation()
    names = [name for name in draws.names if measured(name) is None]
    numeric = [name for name in names if draws.is_numeric(name) and draws[name].shape[1] > 0]
    rows = tuple(row for name in numeric for row in _rows_of(name, draws[name]))
    # of those that are all marked nothing is left to summarize, whatever they are
    counted = [name for name in names if draws[name].size or name not in adapting]
    kernels = kernel_rows(draws.statistics)
    return Summary(
        rows=rows,
        sizes={name: (draws[name].shape[0], draws[name].shape[1]) for name in numeric},
        left_out=tuple(name for name in counted if name not in numeric),
        warnings=(
            *kernel_warnings(kernels, draws.chain_count),
            *_still(draws, rows),
            *_mixing(rows, draws.chain_count, has_particles(kernels)),
        ),
        adapting=adapting,
        held=draws.held,
        kernels=kernels,
        preface=draws.preface,
    )


def coordinates(name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """`w[3]`, `S[0, 1]` and the index that each stands for; a scalar is itself."""
    for index in np.ndindex(*shape):
        yield (f"{name}[{', '.join(map(str, index))}]" if index else name), index


def _rows_of(name: str, values: np.ndarray) -> Iterator[SummaryRow]:
    for label, index in coordinates(name, values.shape[2:]):
        place: Any = (slice(None), slice(None), *index)
        scalar = values[place].astype(np.float64)
        with np.errstate(all="ignore"):
            row = _row(label, name, scalar)
        yield row


def _row(label: str, variable: str, scalar: np.ndarray) -> SummaryRow:
    low, high = np.quantile(scalar, INTERVAL)
    return SummaryRow(
        label,
        variable,
        *_moments(scalar),
        float(low),
        float(high),
        diagnostics.ess_bulk(scalar),
        diagnostics.ess_tail(scalar),
        diagnostics.r_hat(scalar),
        diagnostics.ess_mean(scalar),
        diagnostics.ess_sd(scalar),
        tuple(np.flatnonzero(diagnostics.never_moves(scalar)).tolist()),
    )


def _moments(scalar: np.ndarray) -> tuple[float, float]:
    """Mean and sd; of one value drawn over and over that value and 0, where sums would round."""
    if scalar.size < 2:
        return float(np.mean(scalar)), math.nan
    first = float(scalar.flat[0])
    if math.isfinite(first) and (scalar == first).all():
        return first, 0.0
    return diagnostics.moments(scalar) if np.isfinite(scalar).all() else (float(np.mean(scalar)), math.nan)


def _still(draws: Draws, rows: tuple[SummaryRow, ...]) -> Iterator[str]:
    """Variables that do not move, where their values could.

    Of chains that agree it is asked only where the value is known to depend on an unobserved choice; a coordinate that
    stays while others of its variable move may be a constant of the program.
    """
    everywhere = set(range(draws.chain_count))
    long = [row for row in rows if draws[row.variable].shape[1] >= diagnostics.FEWEST_DRAWS]
    still = [row for row in long if len(row.still) == draws.chain_count]
    apart = [row for row in still if row.r_hat == math.inf]
    if apart:
        yield (
            f"{_named(apart)} never moved, at different values in different chains: their means and intervals say "
            "nothing; move what they depend on by other kernels"
        )
    same = [row for row in still if row.r_hat != math.inf and _depend(draws, row, everywhere)]
    if same:
        yield f"{_named(same)}: constant: certain, or never moved?"
    for chain in sorted(everywhere):
        moving = [row for row in long if len(row.still) < draws.chain_count]
        some = [row for row in moving if chain in row.still and _depend(draws, row, {chain})]
        if some:
            yield f"{_named(some)}: constant in chain {chain}: certain, or never moved there?"


def _depend(draws: Draws, row: SummaryRow, chains: set[int]) -> bool:
    """Whether in these chains a variable that is constant there is known to depend on an unobserved choice."""
    return all(row.variable in draws.could_move[chain] for chain in chains)


def _mixing(rows: tuple[SummaryRow, ...], chain_count: int, are_particles: bool) -> Iterator[str]:
    """Particles of one population are no chain: halves of it need not agree, and no longer run helps."""
    rows = tuple(row for row in rows if len(row.still) < chain_count)
    unmixed = [row for row in rows if row.r_hat > _r_hat_limit(row)]
    if unmixed and not (are_particles and chain_count == 1):
        worst = max(row.r_hat for row in unmixed)
        largest = f"largest {worst:.3g}" if math.isfinite(worst) else "no half of a chain moves"
        yield (
            f"R-hat is above {R_HAT_LIMIT} for {_named(unmixed)} ({largest}): "
            "the chains do not agree yet; run longer, or change the kernels"
        )
    short = [row for row in rows if min(row.ess_bulk, row.ess_tail) < ESS_LIMIT]
    if short:
        least = min(min(row.ess_bulk, row.ess_tail) for row in short)
        yield (
            f"the effective sample size is below {ESS_LIMIT} for {_named(short)} (smallest {least:.0f}): "
            f"means and intervals are rough; {'more particles' if are_particles else 'run longer'}"
        )


def _r_hat_limit(row: SummaryRow) -> float:
    """Of many effective draws what chains that agree exceed by chance is allowed."""
    ess = min(row.ess_bulk, row.ess_tail, row.ess_sd)
    return max(R_HAT_LIMIT, diagnostics.r_hat_by_chance(ess)) if ess >= MANY else R_HAT_LIMIT


def _rough_spread(rows: tuple[SummaryRow, ...]) -> Iterator[str]:
    """Say so where the sd is known from far fewer effective draws than the mean."""
    rough = [row for row in rows if row.ess_sd < LEAST_SHARE * row.ess_mean]
    if rough:
        worst = min(rough, key=lambda row: row.ess_sd / row.ess_mean)
        sizes = f"{worst.ess_sd:.0f}, of the mean {worst.ess_mean:.0f}"
        yield f"the effective size of the sd is less than half of the mean's for {_named(rough)} (for one {sizes})"


def _named(rows: list[SummaryRow]) -> str:
    return listed(by_procedure([row.name for row in rows]), 4)


def _cell(field: str, value: float, form: str) -> str:
    is_undefined = math.isnan(value) or (field == "r_hat" and math.isinf(value))
    return "-" if is_undefined else format(value, form)


def _goodness(row: SummaryRow) -> tuple[float, float]:
    return (-row.r_hat if row.r_hat > _r_hat_limit(row) else 0.0), _least_ess(row)


def _least_ess(row: SummaryRow) -> float:
    """What a row is known by; of a constant more than of all others."""
    sizes = [size for size in (row.ess_bulk, row.ess_tail) if not math.isnan(size)]
    return min(sizes, default=math.inf)


def _worst(calls: list[SummaryRow]) -> list[SummaryRow]:
    """Those that are printed: of constants one needs no dozen."""
    moving = [row for row in calls if not math.isinf(_least_ess(row))]
    return (moving or calls[:CONSTANTS_SHOWN])[:CALLS_SHOWN]


def _note(rows: list[SummaryRow]) -> str:
    """One line for the coordinates that are not printed; the ranges are over all of the variable's."""
    return _extent(f"{rows[0].variable}: {len(rows) - COORDINATES_SHOWN} more coordinates not shown", rows)


def _extent(text: str, rows: list[SummaryRow]) -> str:
    sizes = [row.ess_bulk for row in rows if not math.isnan(row.ess_bulk)]
    ratios = [row.r_hat for row in rows if math.isfinite(row.r_hat)]
    if sizes:
        text += f"; over all {len(rows):,}, ess_bulk {min(sizes):.0f} to {max(sizes):.0f}"
    if ratios:
        text += f", r_hat at most {max(ratios):.3f}"
    return text


def _size_line(sizes: dict[str, tuple[int, int]]) -> str:
    """`4 chains of 500 draws`, with the variables that have other numbers named."""

    def words(chains: int, count: int) -> str:
        return f"{chains} chain{'s' * (chains != 1)} of {count} draw{'s' * (count != 1)}"

    if not sizes:
        return ""
    commonest, _ = Counter(sizes.values()).most_common(1)[0]
    others = [f"{name}: {words(*size)}" for name, size in sizes.items() if size != commonest]
    return "; ".join([words(*commonest), *others])
