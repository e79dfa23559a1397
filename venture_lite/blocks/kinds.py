"""Of what kind choices are: what decides which kernels may move them."""

from __future__ import annotations

from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.distributions import transform_of
from venture_lite.errors import KernelError
from venture_lite.interpreter.candidates import support_of
from venture_lite.interpreter.choices import Kinds
from venture_lite.interpreter.model import Model
from venture_lite.trace.nodes import site_of


class KindsBySite:
    """What was found of the sites of one model, from the first choice that stood at each."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._found: dict[int, str] = {}

    def of(self, site: int) -> str | None:
        found = self._found.get(site)
        if found is None:
            nodes = self._model.trace.default.everything()
            node = next((node for node in nodes if site_of(node) == site), None)
            found = None if node is None else self._found.setdefault(site, self._of(node))
        return found

    def _of(self, node: int) -> str:
        operator, arguments = self._model.trace.application(node)
        if transform_of(operator) is None:
            return "counts" if support_of(operator, arguments) is None else "finite"
        try:
            BlockDensity(self._model, (node,))
        except KernelError:
            return "rough"
        return "smooth"


def kinds(model: Model) -> Kinds:
    """The kind of the choices of each site."""
    return model.kept.lasting(KindsBySite, model).of
