"""An inference program in one chain of a session, which can go on."""

from __future__ import annotations

from typing import Any

from venture_lite.inference.actions import ACTIONS
from venture_lite.inference.program import InferenceProgram
from venture_lite.inference.tree import Part, Repeat
from venture_lite.interpreter.impossible import impossible_choices, is_impossible, told
from venture_lite.interpreter.model import Model
from venture_lite.language.syntax import Expression
from venture_lite.session.chain_processes import ChainOutcome
from venture_lite.session.chains import Chains
from venture_lite.session.stack_room import with_room
from venture_lite.values import to_python


class ChainProgram:
    """The program in one chain. Mutates the chain's trace."""

    def __init__(
        self,
        chains: Chains,
        program: InferenceProgram,
        expression: Expression,
        start: Expression | None,
        number: int | None,
    ) -> None:
        self.program, self.model = program, program.model
        self._chains, self._expression, self._start = chains, expression, start
        # what the chain is called, where there are several
        self._number = number
        # what begins it, and what runs; none before it first does, and for an expression that is no action
        self._begin: Part | None = None
        self._part: Part | None = None
        self._has_begun = False

    def prepare(self) -> None:
        """Compile the program, where it is one of actions. Raises VentureError where it cannot be."""
        if self._part is None and self.program.is_action(self._expression):
            self._begin = None if self._start is None else self.program.compile(self._start)
            self._part = self.program.compile(self._expression)

    @with_room
    def more(self, times: int) -> ChainOutcome:
        """Run the program so many times more; all that it gave so far. After an error or Ctrl-C, which the outcome has,
        the trace is as the last whole transition left it."""
        program, model = self.program, self.model
        self._chains.collecting = program.draws
        error: BaseException | None = None
        value = None
        try:
            value = to_python(self._run(times))
            model.commit()
        except BaseException as met:
            error = met
            model.rollback()
        finally:
            self._chains.collecting = None
        if error is not None and self._part is None and program.is_action(self._expression):
            # an action further on could not be compiled: no kernel before it has done anything
            program.tallies.clear()
        impossible = _why_impossible(model, bool(program.draws.values)) if error is None else ""
        if impossible and self._number is not None:
            impossible = f"chain {self._number}: {impossible}"
        return ChainOutcome(program.finished(looked_at=error is None), value, error, impossible)

    def _run(self, times: int) -> Any:
        if not self.program.is_action(self._expression):
            return self.program.value(self._expression)
        # all is known before the first thing runs, as of a program in one text: a start may take long, too
        self.prepare()
        assert self._part is not None
        if not self._has_begun:
            self._has_begun = True
            if self._begin is not None:
                self._begin.run()
        if times == 1:
            self._part.run()
        else:
            Repeat("repeat", times, self.program, parts=(self._part,)).run()
        return None

    def is_alone(self) -> bool:
        """Whether a program of actions makes nothing that is for all chains."""
        return bool(self._parts()) and not any(ACTIONS[each.action].for_all_chains for each in self._parts())

    def does_more(self) -> bool:
        """Whether it does anything that each chain does for itself."""
        return any(not each.parts and not ACTIONS[each.action].for_all_chains for each in self._parts())

    def _parts(self) -> list[Part]:
        """All parts of a program of actions, once it is compiled."""
        return [each for part in (self._begin, self._part) if part is not None for _, each in part.walk()]


def _why_impossible(model: Model, has_draws: bool) -> str:
    """That the state has probability zero, with the observation; empty where it has not."""
    if not is_impossible(model):
        return ""
    impossible = impossible_choices(model.trace)
    more = f" (and {len(impossible) - 1} more)" if len(impossible) > 1 else ""
    drawn = "; no draw counts before one that is possible, which (initialize) looks for" if has_draws else ""
    return f"the state has probability zero: {told(model.trace, impossible[0])}{more}{drawn}"
