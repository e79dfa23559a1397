"""Data as the model predicts them: drawn anew from draws of an inference, or from the prior.

Each draw is put into the trace, choice by choice; the data are drawn anew with their arguments as they then stand, and
all is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from venture_lite.draws.draws import Draws, column_array
from venture_lite.errors import ArgumentError, VentureError, warn
from venture_lite.interpreter.ancestry import is_unobserved, name_of_choice, read_by_density
from venture_lite.interpreter.kernel import Resimulation
from venture_lite.interpreter.model import Model, Rows
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.sources import depends_on, reached
from venture_lite.interpreter.weights import log_density
from venture_lite.language.syntax import Condition, Factor, Parameter, walked
from venture_lite.session.live import Directory, LoopPart
from venture_lite.session.measured import ObservedData
from venture_lite.session.origin import data_names
from venture_lite.values import from_python, to_python

Find = Callable[[Model, str], int]
"""The unobserved choice that an expression's value is. Raises VentureError where it is none."""
Measured = Mapping[str, Callable[[], Any]]
"""By variable, what gives its value in the state at hand."""


MOST_TRIES = 10_000
"""Draws of the prior for one in which the conditions of the model hold."""

FORGET_AND_INFER = "forget the data and infer: the draws are then those of the prior"


def from_draws(draws: Draws, directory: Directory, labels: Sequence[str], find: Find, likelihood: bool) -> Draws:
    """The draws, without those of the warm-up, and with `(replicate LABEL)` of each label, or of all data;
    with `(log_likelihood LABEL)`, too.

    Raises ArgumentError where a choice that the data depend on is not among the variables.
    """
    draws = draws.without_adaptation()
    models, chains = directory.chains.models, []
    for place, number in enumerate(draws.numbers):
        chain = number % len(models)
        model, data = models[chain], _data(directory, chain, labels)
        measured = {f"(replicate {label})": each.replicate for label, each in data.items()}
        if likelihood:
            measured |= {f"(log_likelihood {label})": each.log_likelihood for label, each in data.items()}
        columns = {name: draws.by_chain(name)[place] for name in draws.names}
        choices = _choices(model, columns, find)
        _refuse_missing(model, choices, [node for each in data.values() for node in each.nodes()])
        chains.append(columns | _collected(model, _states(model, choices, columns), measured))
        _tell(data)
    return draws.with_chains(chains)


def from_prior(count: int, directory: Directory, labels: Sequence[str]) -> Draws:
    """So many draws in each chain, as if nothing had been observed: of every assume that is numbers, and
    `(replicate LABEL)`. What depends on data through a procedure that gave them knows them still.

    Conditions of the model hold in each draw; those of data are left out, as their factors are, and a warning names
    them. Raises VentureError where a factor weighs the model, and where `MOST_TRIES` find no draw that is possible.
    """
    conditions = _of_the_model(directory)
    chains = []
    for chain, model in enumerate(directory.chains.models):
        measured: dict[str, Callable[[], Any]] = {}
        for live in directory:
            if live.name is not None:
                rows = live.parts[0].rows[chain]
                measured[live.name] = partial(model.trace.result, rows.code, int(rows.rows[0]))
        data = _data(directory, chain, labels)
        measured |= {f"(replicate {label})": each.replicate for label, each in data.items()}
        states = _prior_states(model, count, [(part.rows[chain], part) for part in conditions])
        found = _collected(model, states, measured)
        _tell(data)
        chains.append({name: values for name, values in found.items() if values.dtype != object})
    return Draws(chains)


def _data(directory: Directory, chain: int, labels: Sequence[str]) -> dict[str, ObservedData]:
    model = directory.chains.models[chain]
    return {label: ObservedData(model, directory, chain, label) for label in labels or data_names(directory)}


def _tell(data: Mapping[str, ObservedData]) -> None:
    for note in filter(None, [each.note() for each in data.values()]):
        warn(note)


def _choices(model: Model, columns: Mapping[str, np.ndarray], find: Find) -> dict[int, str]:
    """The unobserved choices whose values some variables are."""
    found = {}
    for name, values in columns.items():
        if len(values):
            try:
                found[find(model, name)] = name
            except VentureError:
                # a variable that is computed, or measured
                continue
    return found


def _refuse_missing(model: Model, known: Mapping[int, str], data: Sequence[int]) -> None:
    trace = model.trace
    read = [node for datum in data for node in read_by_density(trace, datum)]
    nodes = reached(read, lambda node: [] if node in known else depends_on(trace, node))
    missing = {name_of_choice(trace, node) for node in nodes if node not in known and is_unobserved(trace, node)}
    if missing:
        raise ArgumentError(
            f"the data depend on {', '.join(sorted(missing))}, of which there are no draws",
            hint="collect all that they depend on, each call by itself, or collect (replicate LABEL)",
        )


def _states(model: Model, choices: Mapping[int, str], columns: Mapping[str, np.ndarray]) -> Iterator[None]:
    """Each draw stands in the trace while the iterator is at it."""
    for draw in range(min((len(columns[name]) for name in choices.values()), default=0)):
        for node, name in choices.items():
            if not model.trace.default.has(node):
                raise ArgumentError(f"{name} is a choice that comes and goes", hint="collect (replicate LABEL)")
            model.put_value(node, from_python(columns[name][draw]))
        yield


def _of_the_model(directory: Directory) -> list[LoopPart]:
    """The conditions that belong to the model: those outside loops whose text reads no parameter."""
    conditions, left_out = [], []
    for live in directory:
        for part in live.parts:
            if not isinstance(part.directive, Factor):
                continue
            text = walked(part.directive.expression)
            if live.is_loop or live.given.passes or any(isinstance(item, Parameter) for item in text):
                left_out.append(part.directive.span.text)
            elif not isinstance(part.directive, Condition):
                message = f"the prior that {part.directive.span.text} weighs is not drawn from directly"
                raise VentureError(message, part.directive.span, FORGET_AND_INFER)
            else:
                conditions.append(part)
    if left_out:
        texts = ", ".join(dict.fromkeys(left_out))
        warn(f"the prior is drawn without {texts}: in a loop, or with a parameter in braces, it belongs to the data")
    return conditions


def _prior_states(model: Model, count: int, conditions: Sequence[tuple[Rows, LoopPart]]) -> Iterator[None]:
    """Every unobserved choice is drawn anew, parents first, whatever the data say, until the conditions hold."""
    for _ in range(count):
        tries = 1
        with model.transaction() as change:
            while broken := _broken(model, conditions):
                if tries == MOST_TRIES:
                    span = broken.directive.span
                    raise VentureError(
                        f"in {tries:,} draws of the prior {span.text} did not hold", span, FORGET_AND_INFER
                    )
                change.back()
                model.poll()
                tries += 1
            change.keep()
        yield


def _broken(model: Model, conditions: Sequence[tuple[Rows, LoopPart]]) -> LoopPart | None:
    """Draw every unobserved choice anew, parents first; the condition that does not hold then, if one does not."""
    scaffold = Builder(model.trace).build(model.trace.default.everything())
    model.regenerator.detach(scaffold, counts=False)
    model.regenerator.regenerate(scaffold, Resimulation(model))
    for rows, part in conditions:
        if log_density(model.trace, model.evidence_node(rows.code, int(rows.rows[0]))) == -np.inf:
            return part
    return None


def _collected(model: Model, states: Iterator[None], measured: Measured) -> dict[str, np.ndarray]:
    """What is measured in each state; the trace is then as it was."""
    values: dict[str, list[Any]] = {name: [] for name in measured}
    going = True
    while going:
        model.poll()
        with model.aside():
            going = next(states, states) is not states
            for name, measure in measured.items() if going else ():
                values[name].append(to_python(measure()))
    return {name: column_array(found) for name, found in values.items()}
