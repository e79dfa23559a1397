"""Every action of inference programs by name, imported when it is first asked for.

A new engine is a module with its record, named as the action in capitals, and a line here. A program pays for the
engines that it uses; who only asks which names there are pays for none.
"""

from __future__ import annotations

import importlib
from collections import UserDict
from typing import TYPE_CHECKING, Any, cast

from venture_lite.errors import ArgumentError, NameUnknown
from venture_lite.language.directives import EXAMPLES
from venture_lite.language.suggestions import suggestion
from venture_lite.language.syntax import Expression, Form, Name
from venture_lite.procedures import registry
from venture_lite.program.compounds import USAGES as COMPOUNDS
from venture_lite.program.forms import SPECIAL_FORMS
from venture_lite.program.queries import USAGES as QUERIES

if TYPE_CHECKING:
    from venture_lite.inference.program import Action

_HOMES = {
    "auto": "session.auto.action",
    "initialize": "engines.starts",
    "optimize": "engines.starts",
    "pathfinder": "engines.starts",
    "mh": "engines.mh",
    "gibbs": "engines.gibbs",
    "slice": "engines.slice",
    "mala": "engines.mala",
    "hmc": "engines.hmc",
    "nuts": "engines.nuts.nuts",
    "vi": "engines.vi",
    "rejection": "engines.rejection",
    "split_merge": "engines.split_merge",
    "subsampled_mh": "engines.subsampled.subsampled",
    "subsampled_mh_report": "engines.subsampled.subsampled",
    "pgibbs": "engines.pgibbs.pgibbs",
    "flymc": "engines.firefly.flymc",
    "smc": "engines.smc.smc",
    "anneal": "engines.anneal.anneal",
    "compile": "engines.compiled.compiled",
    "compiled_mh": "engines.compiled.compiled",
    "save_proposers": "engines.compiled.compiled",
    "load_proposers": "engines.compiled.compiled",
    "cycle": "inference.combinators",
    "mixture": "inference.combinators",
    "repeat": "inference.combinators",
    "do": "inference.combinators",
    "collect": "inference.output",
    "labelled": "inference.output",
    "print": "inference.output",
    "plot": "inference.output",
}
"""The module of each action, in the order of the manual."""


class Actions(UserDict[str, Any]):
    """Records by name; the names are known without an import, a record asked for imports its engine. `data` has for
    each name its record or, until that is asked for, the module where it stands."""

    def __getitem__(self, name: str) -> Action:
        known: Action | str = self.data[name]
        if isinstance(known, str):
            module = importlib.import_module(f"venture_lite.{known}")
            known = self.data[name] = cast("Action", getattr(module, name.upper()))
        return known

    def of(self, item: Expression) -> tuple[Form, Action]:
        """A form, and the action that it names. Raises NameUnknown for another name, ArgumentError for no form."""
        match item:
            case Form(items=(Name(name=name), *_)) if name in self:
                return item, self[name]
            case Form(items=(Name(name=name, span=span), *_)):
                raise unknown_action(name).at(span)
        raise ArgumentError("an inference action is written (action argument ...)", item.span)


ACTIONS = Actions(_HOMES)


def unknown_action(name: str) -> NameUnknown:
    """The error of a form whose first word names nothing that inference programs know."""
    words = [*ACTIONS, *registry.PROCEDURES, *SPECIAL_FORMS, *COMPOUNDS, *QUERIES, *EXAMPLES]
    is_of_model = name in words and name not in EXAMPLES
    hint = f"{name} is no action: (collect ({name} ...)) evaluates it in the model" if is_of_model else None
    return NameUnknown(f"unknown inference action {name}", hint=hint or suggestion(name, words, EXAMPLES))
