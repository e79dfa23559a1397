"""`auto` as an inference program has it: a whole program, which the session runs."""

from __future__ import annotations

from dataclasses import dataclass

from venture_lite.errors import InternalError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part
from venture_lite.session.auto.running import LEAST_DRAWS


@dataclass(frozen=True, slots=True)
class Automatic(Part):
    """Stands for the program that is to be composed."""

    draws: int
    # whether kernels may be taken that leave what is not quite the posterior
    approximate: bool = False

    @property
    def heading(self) -> str:
        return f"auto: composes a program that moves every choice, and makes {self.draws:,} draws a chain or more"

    def run(self) -> None:
        raise InternalError("auto is run by the session")


def _compile(program: InferenceProgram, given: ActionForm) -> Part:
    return Automatic(given.action, given.count("DRAWS", LEAST_DRAWS), "approximate" in given)


AUTO = Action(
    "auto", ("(auto DRAWS ['approximate])",),
    "Composes a program of kernels that moves every choice, tunes it, and runs it on four chains (or those that the "
    "session has) for DRAWS draws each, and more until these can be trusted. With 'approximate kernels may be taken "
    "that leave what is not quite the posterior. The summary begins with the program.",
    _compile, is_whole=True,
)  # fmt: skip
