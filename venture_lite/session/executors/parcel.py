"""A chain of a session as bytes: from them a process that shares nothing with this one makes the same chain.

A chain is its program (Codes, names, registered procedures), the directives in force, and what its trace holds
(`trace/contents.py`). Codes, names, tables and columns refer to each other in circles: each is sent as a number, and
what it is made of after it. What a module of the package defines goes by its name there. Large arrays, and the program,
are parts of their own, known by a digest of what they are: chains share them, and who has a part is not sent it again.

Registered procedures, and whatever else Python can only send by value, go by cloudpickle.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from types import FunctionType
from typing import Any

import cloudpickle
import numpy as np

from venture_lite.interpreter.model import Model
from venture_lite.interpreter.queries import Query
from venture_lite.language.syntax import (
    Expression,
    Form,
    Index,
    IndexArithmetic,
    IndexName,
    IndexOf,
    Parameter,
    walked,
)
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.program.code import Code, Global
from venture_lite.program.queries import QueryText
from venture_lite.program.supplied import Parameters
from venture_lite.session.chains import Chains, Given
from venture_lite.session.live import Directory, Live, LoopPart
from venture_lite.session.shapes import DirectiveShapes
from venture_lite.trace.contents import OF_ANALYZER, OF_PROGRAM, columns_of, contents, fill, lay_out, layout
from venture_lite.values import freeze

LARGE = 2048
"""Bytes from which on an array is a part of its own."""

PLAIN = (int, float, complex, str, bytes, bool, type(None), tuple, list, dict, set, frozenset, type, type(sys))
"""What is sent by value, or by name, anyway."""

Shareable = bytes | np.ndarray

NamedPlace = tuple[str, str, str | int | None]
"""Where a module of the package has something: the module, the name, and of an item of a table its key."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A chain: what is its own, and the digests of what it may share with others."""

    chain: bytes
    program: bytes
    arrays: tuple[bytes, ...]

    def digests(self) -> tuple[bytes, ...]:
        return self.program, *self.arrays


@dataclass(frozen=True, slots=True)
class Work:
    """What a chain is to do: an inference program, and what begins it."""

    expression: Expression
    start: Expression | None
    # of those that it was given, the parameters that it reads, and the variables of the loops around it
    parameters: Mapping[str, Any]
    passes: Mapping[str, int]

    @classmethod
    def of(cls, expression: Expression, start: Expression | None, given: Given) -> Work:
        """Raises ParameterError for a parameter that cannot be read."""
        names: set[str] = set()
        for item in (expression, start):
            if item is not None:
                names.update(*(_names(part.index) for part in walked(item) if isinstance(part, Parameter)))
        known = {name: given.parameters[name] for name in sorted(names) if name in given.parameters}
        return cls(expression, start, known, given.passes)


# ------------------------------------------------------------------------------------------------------- sending


class Packer:
    """Makes parcels of the chains of one session. Mutable: it keeps the parts that they share."""

    def __init__(self, chains: Chains, directory: Directory, work: Work) -> None:
        self._chains, self._directory, self._work = chains, directory, work
        # by digest
        self.parts: dict[bytes, Shareable] = {}
        # id of an array -> its digest; the array is kept, so that no other one has its id
        self._digests: dict[int, tuple[np.ndarray, bytes]] = {}
        self._of_modules = _of_modules()
        self._ahead: dict[int, Parcel] = {}

    def pack_ahead(self, index: int) -> None:
        """Keep a chain's parcel for when it is asked for. Raises as `pack` does."""
        self._ahead[index] = self.pack(index)

    def pack(self, index: int) -> Parcel:
        """Raises an exception of any kind where something cannot be sent."""
        if index in self._ahead:
            return self._ahead.pop(index)
        chains, model = self._chains, self._chains.models[index]
        tables = layout(model.trace)
        written = io.BytesIO()
        known = _parts_of(model, chains, self._directory)
        numbers: dict[int, Any] = {**self._of_modules, **{id(part): name for name, part in known.items()}}
        pickler = _Pickler(written, numbers, self.digest)
        pickler.dump_all(
            {
                "registered": chains.registered,
                "defined": chains.defined,
                "program": {name: getattr(model.trace.program, name) for name in OF_PROGRAM},
                "analyzer": {name: getattr(model.trace.analyzer, name) for name in OF_ANALYZER},
                "work": self._work,
                "lives": [(live.id, live.directive, live.given.passes, live.given.run) for live in self._directory],
            }
        )
        program = written.getvalue()
        pickler.dump_all(tables)
        for column in columns_of(model.trace):
            pickler.know(column)
        pickler.dump_all(
            {
                "trace": contents(model.trace),
                "model": (model.maybe_impossible, model.impossible_since),
                "kept": (model.kept.edition, _lasting(model)),
                "live parts": [[_in_chain(part, index) for part in live.parts] for live in self._directory],
            }
        )
        digest = self._keep(program)
        return Parcel(written.getvalue()[len(program) :], digest, tuple(pickler.arrays))

    def digest(self, array: np.ndarray) -> bytes:
        """Keep an array as a part."""
        known = self._digests.get(id(array))
        if known is None:
            plain = np.ascontiguousarray(array)
            known = self._digests[id(array)] = array, self._keep(plain)
        return known[1]

    def _keep(self, part: Shareable) -> bytes:
        found = hashlib.blake2b(digest_size=16)
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype.str} {part.shape}".encode())
        found.update(part)  # type: ignore[arg-type]
        self.parts.setdefault(found.digest(), part)
        return found.digest()


def _names(index: Index) -> Iterator[str]:
    """The names in an index expression."""
    match index:
        case IndexName(name=name):
            yield name
        case IndexOf(base=base, positions=positions):
            for part in (base, *positions):
                yield from _names(part)
        case IndexArithmetic(left=left, right=right):
            yield from _names(left)
            yield from _names(right)


def _in_chain(part: LoopPart, index: int) -> LoopPart:
    return replace(part, rows=[part.rows[index]])


def _lasting(model: Model) -> dict[Any, Any]:
    """What lasts as long as the trace; the shapes of expressions are found again where they are asked for."""
    return {kind: made for kind, made in model.kept._lasting.items() if kind is not DirectiveShapes}


def _parts_of(model: Model, chains: Chains, directory: Directory) -> dict[str, Any]:
    """What is there in every process before the chain is."""
    trace = model.trace
    return {
        "chains": chains, "directory": directory, "model": model, "machine": model.machine, "kept": model.kept,
        "in common": model.in_common, "trace": trace, "program": trace.program, "analyzer": trace.analyzer,
        "library": trace.analyzer.library, "journal": trace.journal, "users": trace.users, "default": trace.default,
        "statistics": trace.statistics, "constants": trace.constants, "bindings": trace.bindings,
    }  # fmt: skip


def _of_modules() -> dict[int, NamedPlace]:
    """What the package's modules define, by id. Records of procedures, sentinels and functions are told apart by what
    they are, and not by what they hold."""
    found: dict[int, NamedPlace] = {}
    for module, named in list(sys.modules.items()):
        if module.partition(".")[0] == "venture_lite" and named is not None:
            for name, value in list(vars(named).items()):
                if isinstance(value, (tuple, dict)) and not name.startswith("__"):
                    pairs = value.items() if isinstance(value, dict) else enumerate(value)
                    found.update((id(item), (module, name, key)) for key, item in pairs if _has_place(key, item))
                elif not isinstance(value, PLAIN):
                    found[id(value)] = module, name, None
    return found


def _has_place(key: Any, item: Any) -> bool:
    """Whether an item of a module's table is known by its key there."""
    return isinstance(key, (str, int)) and isinstance(item, (Deterministic, Random, Maker, FunctionType))


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Writes numbers for what is shared, and after each object what the numbers stand for. Mutable."""

    def __init__(self, file: io.BytesIO, numbers: dict[int, Any], digest: Callable[[np.ndarray], bytes]) -> None:
        """`numbers` are what is written for parts that both sides have, by id."""
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._digest, self._numbers = digest, numbers
        # what has a number stays, so that nothing else has its id
        self._numbered: list[Any] = []
        # Codes and names of which it was not said yet what they are made of
        self._open: deque[Code | Global] = deque()
        # the digests of the arrays that are parts
        self.arrays: dict[bytes, None] = {}

    def know(self, part: Any) -> None:
        """Both sides have this part: the next number stands for it."""
        self._numbers[id(part)] = len(self._numbered)
        self._numbered.append(part)

    def dump_all(self, root: Any) -> None:
        self.dump(root)
        while self._open:
            part = self._open.popleft()
            self.dump({each.name: getattr(part, each.name) for each in fields(part)})

    def persistent_id(self, part: Any) -> Any:
        number = self._numbers.get(id(part))
        if number is not None:
            return number
        kind = part.__class__
        if kind is Code or kind is Global:
            self._open.append(part)
            self.know(part)
            return kind, self._numbers[id(part)]
        if kind is np.ndarray and part.nbytes >= LARGE and part.dtype != object:
            self.know(part)
            self.arrays[digest := self._digest(part)] = None
            return digest, self._numbers[id(part)], part.flags.writeable
        return None

    def reducer_override(self, part: Any) -> Any:
        if isinstance(part, np.ndarray) and not part.flags.writeable:
            # values never change in place
            return freeze, (part.copy(),)
        if isinstance(part, Query):
            return _query, (part.host, part.form, part.text)
        return super().reducer_override(part)


def _query(host: Model, form: Form, text: QueryText | None) -> Query:
    made = Query(host, form)
    made.text = text
    return made


# ----------------------------------------------------------------------------------------------------- receiving


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` wrote. Mutable."""

    def __init__(self, file: io.BytesIO, known: Mapping[str, Any], arrays: Mapping[bytes, np.ndarray]) -> None:
        super().__init__(file)
        self._known, self._arrays = known, arrays
        self._numbered: list[Any] = []
        self._open: deque[Code | Global] = deque()

    def know(self, part: Any) -> None:
        self._numbered.append(part)

    def load_all(self) -> Any:
        root = self.load()
        while self._open:
            part = self._open.popleft()
            for name, value in self.load().items():
                setattr(part, name, value)
        return root

    def persistent_load(self, number: Any) -> Any:
        match number:
            case int():
                return self._numbered[number]
            case str():
                return self._known[number]
            case (str() as module, str() as name, key):
                found = getattr(importlib.import_module(module), name)
                return found if key is None else found[key]
            case (type() as kind, _):
                made: Any = object.__new__(kind)
                self._open.append(made)
            case (digest, _, writeable):
                shared = self._arrays[digest]
                made = shared.copy() if writeable else shared
        self.know(made)
        return made


def unpack(program: bytes, chain: bytes, arrays: Mapping[bytes, np.ndarray], chains: Chains) -> tuple[Directory, Work]:
    """Have `chains`, which has one empty trace, hold a parcel's chain; the directives in force, and what it is to do.

    `arrays` are read-only. Raises an exception of any kind where this process cannot make it.
    """
    (model,), directory = chains.models, Directory(chains)
    reader = _Unpickler(io.BytesIO(program + chain), _parts_of(model, chains, directory), arrays)
    shared = reader.load_all()
    chains.registered.update(shared["registered"])
    chains.defined.update(shared["defined"])
    vars(model.trace.program).update(shared["program"])
    vars(model.trace.analyzer).update(shared["analyzer"])
    lay_out(model.trace, reader.load_all())
    for column in columns_of(model.trace):
        reader.know(column)
    own = reader.load_all()
    fill(model.trace, own["trace"])
    model.maybe_impossible, model.impossible_since = own["model"]
    model.kept.edition, lasting = own["kept"]
    model.kept._lasting.update(lasting)
    for (number, directive, passes, run), parts in zip(shared["lives"], own["live parts"], strict=True):
        given = Given(Parameters({}), passes, run)
        directory.entries[number] = Live(number, directive, parts, given)
    return directory, shared["work"]
