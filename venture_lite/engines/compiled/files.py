"""Files of proposers: plain arrays and one JSON text in a .npz, nothing that is unpickled.

A proposer is known by what its networks read: sites by their text, ports, the heads of each choice. So a file that was
made on one data set serves every other of the same program.
"""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from venture_lite.draws.whole_files import replacing
from venture_lite.engines.compiled.frame import BlockFrame, Position
from venture_lite.engines.compiled.proposer import KindProposer, Proposer
from venture_lite.engines.compiled.report import KindReport
from venture_lite.errors import ParameterError
from venture_lite.networks.conditional import Conditional, Layout
from venture_lite.networks.heads import Categories, Head, Normals
from venture_lite.networks.pooled import InputNames
from venture_lite.values import Symbol

VERSION = 5
"""Of the format."""
DAMAGED = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, EOFError, RecursionError, MemoryError),
    *(NotImplementedError, zipfile.BadZipFile, zlib.error),
)
"""What a file raises that is none of proposers, or whose bytes are not those that were written."""

ArrayPlace = tuple[str, int, tuple[int, ...]]
"""The type of an array, where it starts among all numbers of the type, and its shape."""


def save(proposers: Iterable[Proposer], path: Path) -> None:
    """Write proposers, whole or not at all. Raises OSError."""
    arrays: dict[str, np.ndarray] = {}
    told: list[dict[str, Any]] = []
    for proposer in proposers:
        kinds = [_of_kind(kind, f"{len(told)}.{at}", arrays) for at, kind in enumerate(proposer.kinds.values())]
        scope = proposer.scope.name if isinstance(proposer.scope, Symbol) else proposer.scope
        reports = [asdict(report) for report in proposer.reports]
        told.append(
            {
                "name": proposer.name,
                "scope": scope,
                "blocks": proposer.blocks,
                "kinds": kinds,
                "reports": reports,
                "rare": proposer.rare,
            }
        )
    joined, places = _joined(arrays)
    text = json.dumps({"format": "proposers", "version": VERSION, "proposers": told, "arrays": places})
    with replacing(path) as beside, open(beside, "wb") as file:
        np.savez(file, allow_pickle=False, text=np.array(text), **joined)


def _joined(arrays: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, ArrayPlace]]:
    """All arrays of one type as one, and where each stands there: hundreds of small ones take ten times as long."""
    flat: dict[str, list[np.ndarray]] = {}
    places: dict[str, ArrayPlace] = {}
    for name, array in arrays.items():
        parts = flat.setdefault(array.dtype.name, [])
        places[name] = array.dtype.name, sum(map(len, parts)), array.shape
        parts.append(array.ravel())
    return {name: np.concatenate(parts) for name, parts in flat.items()}, places


def _apart(joined: Mapping[str, np.ndarray], places: Mapping[str, ArrayPlace]) -> dict[str, np.ndarray]:
    """The arrays again. Raises ValueError, KeyError or TypeError where they are not where they should be."""
    flat = {name: joined[name] for name in {name for name, _, _ in places.values()}}
    return {
        key: flat[name][start : start + math.prod(shape)].reshape(shape) for key, (name, start, shape) in places.items()
    }


def _of_kind(kind: KindProposer, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    network = [] if kind.network is None else kind.network.arrays()
    frame = [x for each in kind.frame.positions for x in (each.centre, each.scale, each.values, each.reference)]
    frame += [x for x in (kind.frame.mean, kind.frame.root) if x is not None]
    ranges = [array for pair in kind.ranges for array in pair]
    for part, found in (("network", network), ("frame", frame), ("range", ranges)):
        arrays |= {f"{prefix}.{part}.{at}": array for at, array in enumerate(found)}
    layout = None if kind.network is None else kind.network.layout
    return {
        "sites": kind.sites,
        "positions": [
            (each.text, each.distribution, each.is_number, each.is_head, each.scales, each.has_tail)
            for each in kind.frame.positions
        ],
        "fixed": layout.names.fixed if layout is not None else (),
        "ports": layout.names.ports if layout is not None else (),
        "slopes": kind.slopes,
        "known": kind.known,
        "reading": kind.reading,
        "heads": [(name, _of_head(head)) for name, head in layout.coordinates] if layout is not None else (),
        "corrected": kind.frame.mean is not None,
        "arrays": [len(network), len(frame), len(ranges)],
    }


def _of_head(head: Head) -> tuple[str, int, bool]:
    if isinstance(head, Categories):
        return "categories", head.size, head.ordered
    assert isinstance(head, Normals)
    return "normals", head.components, False


def load(path: Path) -> list[Proposer]:
    """Raises ParameterError for a file that cannot be read, or is none of proposers."""
    try:
        with np.load(path, allow_pickle=False) as joined:
            told = json.loads(str(joined["text"]))
            if not isinstance(told, dict) or told.get("format") != "proposers":
                raise ValueError("no proposers")
            if told["version"] != VERSION:
                message = f"{path}: proposers of format {told['version']}, and this version reads {VERSION}"
                raise ParameterError(message, hint="compile them again")
            arrays = _apart(joined, told["arrays"])
            return [_proposer(each, f"{at}", arrays) for at, each in enumerate(told["proposers"])]
    except OSError as error:
        raise ParameterError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except DAMAGED:
        raise ParameterError(f"{path}: no file of proposers, or a damaged one") from None


def _proposer(told: Mapping[str, Any], prefix: str, arrays: Mapping[str, np.ndarray]) -> Proposer:
    kinds = [_kind(each, f"{prefix}.{at}", arrays) for at, each in enumerate(told["kinds"])]
    reports = tuple(_report(each) for each in told["reports"])
    name, blocks = str(told["name"]), str(told["blocks"])
    return Proposer(name, told["scope"], blocks, {kind.sites: kind for kind in kinds}, reports, tuple(told["rare"]))


def _report(told: Mapping[str, Any]) -> KindReport:
    ports = tuple((str(text), float(count)) for text, count in told["ports"])
    return KindReport(**{**told, "sites": tuple(told["sites"]), "ports": ports, "rounds": tuple(told["rounds"])})


def _kind(told: Mapping[str, Any], prefix: str, arrays: Mapping[str, np.ndarray]) -> KindProposer:
    parts = zip(("network", "frame", "range"), told["arrays"], strict=True)
    network, frame, ranges = ([arrays[f"{prefix}.{part}.{at}"] for at in range(count)] for part, count in parts)
    ports = tuple((name, tuple(columns)) for name, columns in told["ports"])
    heads = tuple((name, _head(*head)) for name, head in told["heads"])
    moments = (frame.pop(-2), frame.pop()) if told["corrected"] else (None, None)
    positions = [
        Position(text, distribution, centre, scale, values, is_number, is_head, reference, scales, has_tail)
        for (text, distribution, is_number, is_head, scales, has_tail), centre, scale, values, reference in zip(
            told["positions"], frame[::4], frame[1::4], frame[2::4], frame[3::4], strict=True
        )
    ]
    learned = {sum(each.width for each in positions), sum(each.width for each in positions if each.is_head)}
    if len(heads) not in learned or (heads and len(ranges) != 2 * (1 + len(ports))):
        raise ValueError("parts of different proposers")
    layout = Layout(InputNames(tuple(told["fixed"]), ports), heads)
    conditional = Conditional.from_arrays(layout, network) if heads else None
    keys = tuple(name for name, _ in ports)
    pairs = tuple(zip(ranges[::2], ranges[1::2], strict=True))
    sites, slopes, known = (tuple(told[name]) for name in ("sites", "slopes", "known"))
    of_kind = keys, slopes, conditional, pairs, known, str(told["reading"])
    return KindProposer(sites, BlockFrame(positions, *moments), *of_kind)


def _head(kind: str, size: int, ordered: bool) -> Head:
    return Categories(size, ordered) if kind == "categories" else Normals(size)
