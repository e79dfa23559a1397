"""What the prompt's `:undo` takes back: the directives of one entry, with their random numbers.

The traces go back by their journal, which is kept for that until the next entry changes the model. Transitions of
inference keep none: what was done before them stays.
"""

from __future__ import annotations

from venture_lite.errors import VentureError
from venture_lite.session.runner import Runner


class Undo:
    """The session as it was when the object was made; from then on what directives do can be taken back."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._chains = chains = runner.chains
        self._models = list(chains.models)
        self._defined = dict(chains.defined)
        self._memories = [runner.directory.memory(), *(model.trace.analyzer.memory() for model in self._models)]
        self._marks = chains.hold_back()
        self._settled = chains.settled

    def take_back(self) -> None:
        """Put everything back. Raises VentureError where an inference has moved the traces."""
        chains = self._chains
        if chains.settled != self._settled or chains.models != self._models:
            raise VentureError(
                "an inference or [clear], and what was done before it, cannot be taken back",
                hint="[forget LABEL] takes back a directive",
            )
        with chains.guarded():
            chains.take_back(self._marks)
            for restore in self._memories:
                restore()
            chains.defined.clear()
            chains.defined.update(self._defined)
