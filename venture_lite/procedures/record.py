"""What the system knows of a procedure: one record each, and everything else follows from it.

Argument checks, help text, the reference manual, completion and the property tests are all derived from the records;
a new procedure is a new record in the module of its family, listed in `registry.py`.

**Columns.** The trace evaluates many rows of one expression in one call. For such a call an argument is either
*uniform* (one plain value for all rows) or *lifted* (an array whose first axis is the rows); `lifted` says which,
argument by argument. A record without `columns` is evaluated row by row.

**Derivatives.** One function for each record serves single calls, where nothing is lifted, and columns. `wanted` says
which derivatives are asked for; the others, and those that do not exist, are None in the answer. A derivative has the
shape of its argument *as given*: a lifted argument has one for each row, a uniform one has the sum over the rows that
share it. (An argument that is uniform can be given as lifted, broadcast, where its rows are wanted apart.) The
derivative of a list is an array or a tuple of its entries' derivatives, with None for entries that have none. A
function that cannot do all rows at once raises RowByRow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from venture_lite.procedures.columns import Flags
from venture_lite.procedures.domains import Domain
from venture_lite.procedures.predictor import LinearPredictor
from venture_lite.procedures.transforms import Transform

REQUIRED: Any = object()
"""The default of an argument that must be given."""

UNKNOWN: Any = object()
"""For `Random.log_bound`: an argument that may have any value."""

Columns = Callable[..., np.ndarray]
"""`(lifted: Flags, *arguments) -> ndarray` with one entry, along the first axis, for each row."""


DrawColumn = Callable[..., np.ndarray]
"""`(rng, count, *arguments) -> (count,)`; each argument, checked already, is one number or an array (count,)."""

Pullback = Callable[..., tuple[Any, ...]]
"""`(lifted, wanted, cotangent, result, *arguments) -> one cotangent for each argument`: the derivatives of the sum of
cotangent times result, where `cotangent` has the shape of `result`, the value of the call."""


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    # which values are allowed; knows how to check one value and a column of them
    domain: Domain
    default: Any = REQUIRED


@dataclass(frozen=True, slots=True, eq=False)
class Deterministic:
    """A function of its arguments alone."""

    name: str
    arguments: tuple[Argument, ...]
    # one or two sentences for `help` and the manual
    summary: str
    # (*arguments) -> value; raises ArgumentError for what the domains cannot express (shapes that do not match)
    scalar: Callable[..., Any]
    columns: Columns | None = None
    # the domain of any further arguments, for procedures that take any number
    rest: Domain | None = None
    # cheap and without an error on numbers: an `if` between such values may be computed as a select
    total: bool = False
    # how a derivative passes from the value to the arguments, in reverse accumulation; None where the value jumps or is
    # no number. `LOCALLY_CONSTANT` stands for the derivative zero: the value has a type or a size, not a number in it
    pullback: Pullback | None = None
    # of one that may have no value, for which it gives one that makes a state impossible: how often so far, by reason
    # with what to try. Its calls count
    failures: Counter[str] | None = None

    def __repr__(self) -> str:
        return f"<procedure {self.name}>"


@dataclass(frozen=True, slots=True, eq=False)
class Gradient:
    """The derivatives of a log density."""

    # with respect to what there is one: the value, then each argument. Not for integers, booleans, lists of values
    exists: Flags
    # (lifted, wanted, value, *arguments) -> the derivatives, as many; `lifted` and `wanted` speak of the value first.
    # 0 where the density is 0, as is a derivative there with respect to anything that keeps it 0
    evaluate: Callable[..., tuple[Any, ...]]
    # wanted -> (value, *arguments) -> the log density and the derivatives asked for, of one row, where it is defined;
    # and (lifted, wanted, value, *arguments) -> the same of columns. None where densities are evaluated apart
    of_numbers: Callable[[Flags], Callable[..., tuple[Any, ...]]] | None = None
    of_columns: Callable[..., list[Any]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Random:
    """A distribution. `log_density` is the log density or log mass, normalised, -inf outside the support, never NaN for
    arguments in their domains."""

    name: str
    arguments: tuple[Argument, ...]
    summary: str
    # (rng, *arguments) -> value
    simulate: Callable[..., Any]
    # (value, *arguments) -> float
    log_density: Callable[..., float]
    # (lifted, value, *arguments) -> (rows,): the same over columns; lifted[0] speaks of the value
    log_density_columns: Columns | None = None
    # (*arguments) -> every value of positive probability, where that is a finite list
    support: Callable[..., Sequence[Any]] | None = None
    # how a continuous value is moved in unconstrained coordinates; None for discrete values
    transform: Transform | None = None
    # where the density was taken from
    source: str = ""
    # for `bernoulli`: the same distribution with its probability given in logits
    logit_form: Random | None = None
    # as log_density_columns, but the sum over the rows, where that is cheaper; NaN sends the caller to the columns form
    log_density_total: Callable[..., float] | None = None
    # the derivatives of log_density; None where it has none at all
    gradient: Gradient | None = None
    # for likelihoods of generalised linear models: which argument is the linear predictor, and what is known along it
    predictor: LinearPredictor | None = None
    # (value, *arguments) -> an upper bound of log_density at the value over all that the arguments given as UNKNOWN can
    # be; inf where there is none. None stands for 0 where `support` shows that the values have probabilities, else inf
    log_bound: Callable[..., float] | None = None
    # (value, *arguments) -> float: the density over the numeric namespace, which can be recorded (`straight_line.py`)
    definition: Callable[..., float] | None = None
    # draws for many rows; None where they are made one by one
    simulate_columns: DrawColumn | None = None
    # (rng, *arguments) -> a number: the simulator over the numeric namespace, as `definition` is the density
    sampler: Callable[..., Any] | None = None
    # where parameters may be vectors, and values with them: (value, *arguments) -> the log density of each item
    item_log_densities: Callable[..., np.ndarray] | None = None
    # (rng, *arguments) -> where a choice begins whose density is improper: `simulate` raises KernelError
    start: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return f"<procedure {self.name}>"


class MakerState(Protocol):
    """An exchangeable procedure at run time: its parameters and the sufficient statistics of its applications.

    Applications are exchangeable: `log_joint()` equals the sum of predictive densities in any order of the
    applications. `inputs` are what an application is given, as in `(f x)`; a state whose maker has no `applied`
    arguments takes none, and leaves them out of its methods.
    """

    arguments: tuple[Any, ...]
    # number of applications incorporated
    count: int

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        """New parameters, the statistics kept."""

    def simulate(self, rng: np.random.Generator, *inputs: Any, **nothing: Any) -> Any:
        """A draw from the predictive distribution given the applications so far; changes nothing."""

    def log_predictive(self, value: Any, *inputs: Any, **nothing: Any) -> float:
        """Log density of one further application; -inf outside the support; changes nothing."""

    def log_joint(self) -> float:
        """Log joint density of all incorporated applications under the present parameters."""

    def support(self, *inputs: Any, **nothing: Any) -> Sequence[Any] | None:
        """Every value that a further application can take, where that is a finite list. A fresh table is one entry."""

    def add(self, value: Any, *inputs: Any, **nothing: Any) -> Any:
        """Incorporate an application; returns a token for `restore`."""

    def remove(self, value: Any, *inputs: Any, **nothing: Any) -> Any:
        """Take an application out; returns a token for `restore`. Exactly empty when the count reaches 0."""

    def restore(self, token: Any) -> None:
        """Undo the latest `add` or `remove` not yet undone, bit for bit."""

    def recount(self, applications: Iterable[tuple[Any, ...]]) -> None:
        """Rebuild the statistics from all applications, each `(value, *inputs)`; removes what rounding left in them."""

    def statistics(self) -> Any:
        """The statistics as plain numbers, arrays and dictionaries, for comparison with a recount."""


@dataclass(frozen=True, slots=True, eq=False)
class JointGradient:
    """The derivatives of the joint density of a maker's applications."""

    # with respect to which of the maker's arguments there is one
    exists: Flags
    # state -> one for each argument, in its shape, of the present log_joint; None where there is none
    evaluate: Callable[[Any], tuple[Any, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Maker:
    """A procedure that returns an exchangeable random procedure."""

    name: str
    arguments: tuple[Argument, ...]
    summary: str
    # (*arguments) -> a state without applications
    make: Callable[..., MakerState]
    # how a continuous application is moved by drift; None for discrete ones
    transform: Transform | None = None
    source: str = ""
    # what each application is given
    applied: tuple[Argument, ...] = ()
    # whether values are labels that mean nothing but equality: all unused ones share one probability
    labels: bool = False
    # whether discrete applications have finitely many values, a fresh label being one
    finite: bool = True
    # the derivatives of log_joint by the arguments; None where there are none
    gradient: JointGradient | None = None

    def __repr__(self) -> str:
        return f"<procedure {self.name}>"


Procedure = Deterministic | Random | Maker
