"""The parameters that a program needs, and, where they are given, whether its text can use them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from venture_lite.checker.findings import Findings
from venture_lite.checker.known import Certain, Computed, Known
from venture_lite.errors import VentureError
from venture_lite.language.syntax import Index, Loop, Parameter
from venture_lite.program.parameters import constant_index, index_column, index_names, names_in
from venture_lite.session.chains import Given
from venture_lite.session.live import LivePasses
from venture_lite.session.rows import passes_of
from venture_lite.values import is_value


class NeededParameters:
    """Notes each use of a parameter. `given` holds their values, or is None where they are not known."""

    def __init__(self, findings: Findings, given: Mapping[str, Any] | None) -> None:
        self.findings = findings
        self.given = given
        # the variables of the loops around: a column with the value in each pass, None where the passes are not known
        self.variables: dict[str, np.ndarray | None] = {}

    @contextlib.contextmanager
    def inside(self, loop: Loop) -> Iterator[None]:
        """Within the block the loop's variable has a value."""
        self._note(loop.first)
        self._note(loop.last)
        outer = self.variables
        self.variables = self._passes(loop)
        try:
            yield
        finally:
            self.variables = outer

    def _passes(self, loop: Loop) -> dict[str, np.ndarray | None]:
        known = self._known()
        if self.given is not None and known is not None:
            with self.findings.told(loop.span):
                return dict(passes_of(loop, Given(self.given), known))
        return {**self.variables, loop.variable: None}

    def _known(self) -> dict[str, np.ndarray] | None:
        """The columns of all loop variables, if they are all known."""
        found = {name: column for name, column in self.variables.items() if column is not None}
        return found if len(found) == len(self.variables) else None

    def read(self, parameter: Parameter) -> Known:
        """Takes note of a use; a value that is given and the same in every pass is known."""
        self._note(parameter.index)
        known = self._known()
        if self.given is None or known is None:
            return Computed()
        try:
            if known.keys() & index_names(parameter.index):
                if len(next(iter(known.values()))):
                    index_column(parameter.index, self.given, known)
                return Computed()
            value = constant_index(parameter.index, self.given)
            return Certain(value) if is_value(value) else Computed()
        except VentureError as error:
            if error.position is not None and known:
                names, columns = tuple(known), tuple(known.values())
                error.in_pass(LivePasses(names, columns, len(columns[0])).told(error.position))
            self.findings.error(error, parameter.span)
            return Computed()

    def _note(self, index: Index) -> None:
        for name in names_in(index):
            if name.name not in self.variables:
                self.findings.parameters[name.name].append(name.span)
