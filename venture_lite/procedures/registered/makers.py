"""Exchangeable procedures that a user registers: a class that keeps the statistics of its applications.

The class is asked for what only it can know (`REQUIRED_METHODS`). What it leaves out is done the plain way: `restore`
puts a copy back that was made before the change, `recount` applies everything to a new state.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures.record import Argument, Maker
from venture_lite.procedures.registered.procedures import SOURCE
from venture_lite.procedures.registered.results import called, density_of, drawn, values_of
from venture_lite.procedures.registered.signatures import Arguments, arguments_of
from venture_lite.procedures.registered.value_domains import ValueDomain, value_domain

Method = Callable[..., Any]


class ExchangeableState(Protocol):
    """What `make` returns: an object that keeps the statistics of its applications.

    `inputs` are what an application is given, as in `(f x)`; most procedures are given nothing. Optional are
    `support(*inputs)`, every value that an application can take; `restore(token)`, which undoes the latest `add` or
    `remove` bit for bit, given what that returned; `recount(applications)`, from `(value, *inputs)` of each; and
    `statistics()`, a dictionary for the checker.
    """

    @property
    def set_arguments(self) -> Method:
        """`set_arguments(arguments)`: new parameters, the statistics kept."""

    @property
    def simulate(self) -> Method:
        """`simulate(rng, *inputs)`: a draw of one further application, given those so far; changes nothing."""

    @property
    def log_predictive(self) -> Method:
        """`log_predictive(value, *inputs)`: log density of one further application; minus infinity where it is zero."""

    @property
    def log_joint(self) -> Method:
        """`log_joint()`: of all applications that are in, equal to the sum of predictive densities in any order."""

    @property
    def add(self) -> Method:
        """`add(value, *inputs)`: take an application in."""

    @property
    def remove(self) -> Method:
        """`remove(value, *inputs)`: take an application out again."""


REQUIRED_METHODS = ("set_arguments", "simulate", "log_predictive", "log_joint", "add", "remove")


def user_maker(
    name: str,
    make: Callable[..., ExchangeableState],
    *,
    arguments: Arguments | None = None,
    applied: Arguments | None = None,
    domain: Any = None,
    summary: str = "A maker of exchangeable procedures registered from Python.",
) -> Maker:
    """A record of `make(*arguments) -> state`; see `Venture.register` for what a state is asked.

    `applied` says what each application is given; left out, it is read from the class's `log_predictive`.
    Raises ArgumentError where the record cannot be made, and, when it is used, for results that are not what they must
    be.
    """
    if not callable(make):
        raise ArgumentError(f"{name}: its make must be a class or a function, got {make!r}")
    if isinstance(make, type):
        _refuse_lacking(name, make)
    taken, rest = arguments_of(name, "make", make, arguments, skipped=0)
    inputs: tuple[Argument, ...] = ()
    if applied is not None or isinstance(make, type):
        predictive = getattr(make, "log_predictive", make)
        inputs, more = arguments_of(name, "log_predictive", predictive, applied, skipped=2)
        rest = rest or more
    if rest is not None:
        raise ArgumentError(f"{name}: a maker takes a fixed number of arguments", hint="name them: arguments=[...]")
    inside = value_domain(name, domain)

    def made(*args: Any) -> CheckedState:
        return CheckedState(name, make, args, inside)

    transform = None if inside is None else inside.transform
    finite = callable(getattr(make, "support", None))
    return Maker(name, taken, summary, made, transform, SOURCE, inputs, finite=finite)


def _refuse_lacking(name: str, state: Any) -> None:
    lacking = [method for method in REQUIRED_METHODS if not callable(getattr(state, method, None))]
    if lacking:
        raise ArgumentError(
            f"{name}: what it makes has no {', '.join(lacking)}", hint=f"a state has {', '.join(REQUIRED_METHODS)}"
        )


class CheckedState:
    """A user's state as the trace's `MakerState`: every result is checked, and errors name the procedure."""

    __slots__ = ("_inside", "_make", "_name", "_state", "arguments", "count")

    def __init__(
        self, name: str, make: Callable[..., ExchangeableState], arguments: tuple[Any, ...], inside: ValueDomain | None
    ) -> None:
        self._name = name
        self._make = make
        self._inside = inside
        self.arguments = arguments
        self.count = 0
        self._state = called(name, "make", make, *arguments)
        _refuse_lacking(name, self._state)

    def __deepcopy__(self, memo: dict[int, Any]) -> CheckedState:
        other = copy.copy(self)
        other._state = copy.deepcopy(self._state, memo)
        return other

    def _ask(self, method: str, *args: Any) -> Any:
        return called(self._name, method, getattr(self._state, method), *args)

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        self._ask("set_arguments", arguments)
        self.arguments = arguments

    def simulate(self, rng: np.random.Generator, *inputs: Any) -> Any:
        return drawn(self._name, self._ask("simulate", rng, *inputs), self._inside)

    def log_predictive(self, value: Any, *inputs: Any) -> float:
        if self._inside is not None and not self._inside.contains(value):
            return -np.inf
        return density_of(self._name, "log_predictive", self._ask("log_predictive", value, *inputs))

    def log_joint(self) -> float:
        return density_of(self._name, "log_joint", self._ask("log_joint"))

    def support(self, *inputs: Any) -> Sequence[Any] | None:
        if not hasattr(self._state, "support"):
            return None
        given = self._ask("support", *inputs)
        return None if given is None else values_of(self._name, "support", given)

    def add(self, value: Any, *inputs: Any) -> Any:
        return self._changed("add", 1, value, *inputs)

    def remove(self, value: Any, *inputs: Any) -> Any:
        return self._changed("remove", -1, value, *inputs)

    def _changed(self, method: str, step: int, *application: Any) -> Any:
        """Apply a change; the token is the class's own, or else a copy of what there was."""
        if hasattr(self._state, "restore"):
            token = self._ask(method, *application)
        else:
            token = copy.deepcopy(self._state)
            try:
                self._ask(method, *application)
            except BaseException:
                self._state = token
                raise
        self.count += step
        return step, token

    def restore(self, token: Any) -> None:
        step, own = token
        self.count -= step
        if hasattr(self._state, "restore"):
            self._ask("restore", own)
        else:
            self._state = own

    def recount(self, applications: Iterable[tuple[Any, ...]]) -> None:
        known = list(applications)
        if hasattr(self._state, "recount"):
            self._ask("recount", known)
        else:
            self._state = called(self._name, "make", self._make, *self.arguments)
            for application in known:
                self._ask("add", *application)
        self.count = len(known)

    def statistics(self) -> Any:
        return self._ask("statistics") if hasattr(self._state, "statistics") else {"count": self.count}
