"""Where the chains of a session have their proposers from: trained once for all of them, or read from a file.

Chains in one process share what the first of them trained. Of chains in processes of their own the first trains, and
leaves a file for the others in a folder that the parent made; when it has ended without one, they train for themselves,
which gives the same arrays: worlds, weights and minibatches come from the session's seed and the proposer's name.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from venture_lite.errors import Span, VentureError

if TYPE_CHECKING:
    from venture_lite.engines.compiled.proposer import Proposer
    from venture_lite.interpreter.model import Model

GONE = "gone"
"""A file of this name says that the chain which trains has ended."""
SECONDS_TO_LOOK_AGAIN = 0.02

Train = Callable[[], "Proposer | None"]
"""None where there is nothing to train for."""


class Supply:
    """What `compile` finds in a session before it trains. Mutable. What is heavy is imported when it is used: each
    process of several chains has one."""

    def __init__(self) -> None:
        # a file that the command line names
        self.file: Path | None = None
        self.exchange: Exchange | None = None
        # whether reports are printed
        self.prints = True
        # the last action of a program that ends there
        self.last: Span | None = None

    @cached_property
    def given(self) -> dict[str, Proposer]:
        """The proposers of the file, by name: nothing is trained in their place. Raises ParameterError as `load`."""
        if self.file is None:
            return {}
        from venture_lite.engines.compiled import files

        return {proposer.name: proposer for proposer in files.load(self.file)}

    def trained(self, name: str, train: Train, poll: Callable[[], None]) -> Proposer | None:
        """What this process trains, or another one did."""
        return train() if self.exchange is None else self.exchange.trained(name, train, poll)


def supply_of(model: Model) -> Supply:
    return model.in_common.of(Supply)


class LastCompiled(Exception):
    """The last `compile` of a program is done."""


class Exchange:
    """A folder in which the first chain leaves what it trained. Mutable: each name counts its trainings."""

    def __init__(self, folder: Path, trains: bool) -> None:
        self._folder = folder
        self._trains = trains
        self._times = Counter[str]()

    def trained(self, name: str, train: Train, poll: Callable[[], None]) -> Proposer | None:
        """See `Supply.trained`; `poll` is asked while it waits."""
        self._times[name] += 1
        key = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
        path = self._folder / f"{key}-{self._times[name]}.npz"
        if self._trains:
            proposer = train()
            self._leave(path, proposer)
            return proposer
        while not path.exists():
            # in this order: it may have been left since
            if (self._folder / GONE).exists() and not path.exists():
                return train()
            poll()
            time.sleep(SECONDS_TO_LOOK_AGAIN)
        from venture_lite.engines.compiled import files

        left = files.load(path)
        return left[0] if left else train()

    def _leave(self, path: Path, proposer: Proposer | None) -> None:
        from venture_lite.engines.compiled import files

        try:
            files.save([proposer] if proposer is not None else [], path)
        except OSError as error:
            raise VentureError(f"a proposer cannot be handed to the other chains: {error.strerror or error}") from None
