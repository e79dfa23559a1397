"""Draws in other people's formats: .npz, .csv, .parquet, and netCDF of the tree that ArviZ reads (`datatree.py`)."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from venture_lite.draws.summary import coordinates
from venture_lite.draws.whole_files import refuse_no_file, replacing
from venture_lite.errors import VentureError

if TYPE_CHECKING:
    from venture_lite.draws.draws import Draws


SUFFIXES = (".npz", ".csv", ".parquet", ".nc")


def save(draws: Draws, path: str | PathLike[str]) -> None:
    """Write draws by the file's suffix.

    .npz holds one array a variable, (chains, draws, ...), values that are not numbers as JSON text; .csv and .parquet
    have one row for each draw of each chain and one column for each coordinate; .nc is netCDF with ArviZ's groups.
    Chains of different length are a variable each in .npz, `x (chain 2)`, and a group each in .nc. Where a kernel
    adapted while draws were collected, a column `adapting` of the table says of each whether it did, and the .nc holds
    them apart.

    A file that exists keeps its permissions.

    Raises:
        VentureError: another suffix, no library for netCDF or parquet, or a file that cannot be written.
    """
    path = Path(path)
    check_output(path)
    try:
        with replacing(path) as beside:
            match path.suffix:
                case ".npz":
                    _save_npz(draws, beside)
                case ".csv":
                    _save_csv(draws, beside)
                case ".parquet":
                    _save_parquet(draws, beside)
                case _:
                    _save_netcdf(draws, beside)
    except OSError as error:
        raise VentureError(f"cannot write {path}: {error.strerror or error}") from error


def save_parts(even: Draws, rest: Draws | None, path: Path, say: Callable[[str], None]) -> list[Path]:
    """Write even chains, and beside them what is left of uneven ones; says and returns where they are."""
    even.save(path)
    say(f"draws written to {path}")
    if not rest:
        return [path]
    beside = path.with_name(f"{path.stem}-rest{path.suffix}")
    rest.save(beside)
    say(f"the rest written to {beside}, chain by chain")
    return [path, beside]


def check_output(path: Path) -> None:
    """Refuse an output file that could not be written, before anything has run."""
    if path.suffix not in SUFFIXES:
        raise VentureError(f"cannot tell the format of {path}", hint=f"end its name in {', '.join(SUFFIXES)}")
    refuse_no_file(path, "draws")
    if path.suffix == ".nc" and _netcdf_engine() is None:
        raise VentureError(
            "no netCDF library is installed, so .nc files cannot be written",
            hint="pip install 'venture-lite[netcdf]', or write .npz or .csv",
        )
    if path.suffix == ".parquet" and importlib.util.find_spec("polars") is None:
        raise VentureError(
            ".parquet files are written with polars, which is not installed",
            hint="pip install 'venture-lite[parquet]', or write .npz or .csv",
        )


def _netcdf_engine() -> Literal["h5netcdf", "netcdf4"] | None:
    if all(map(importlib.util.find_spec, ("h5netcdf", "h5py"))):
        return "h5netcdf"
    return "netcdf4" if importlib.util.find_spec("netCDF4") else None


def _save_netcdf(draws: Draws, path: Path) -> None:
    """Made in memory first where that is possible: the HDF5 library does not survive a disk that takes no more."""
    from venture_lite.draws.datatree import to_datatree

    tree, engine = to_datatree(draws, warmup=True), _netcdf_engine()
    if engine == "netcdf4":
        tree.to_netcdf(path, engine=engine)
        return
    content = io.BytesIO()
    tree.to_netcdf(content, engine=engine)
    path.write_bytes(content.getbuffer())


def _save_npz(draws: Draws, path: Path) -> None:
    """Written entry by entry: `numpy.savez` takes names as keywords, and a variable may be called `file`."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, values in _arrays(draws):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, values, allow_pickle=False)


def _arrays(draws: Draws) -> Iterator[tuple[str, np.ndarray]]:
    """Each variable by name, without Python objects in it; chain by chain where chains differ in length."""
    for name in draws.names:
        values = draws[name]
        if values.ndim == 1:
            for number, chain in zip(draws.numbers, draws.by_chain(name), strict=True):
                if len(chain):
                    yield f"{name} (chain {number})", _plain(chain)
        else:
            yield name, values if values.dtype != object else np.stack([_plain(chain) for chain in values])


def _plain(chain: np.ndarray) -> np.ndarray:
    """One chain's draws, values that are not numbers as text."""
    return chain if chain.dtype != object else np.array([_text(value) for value in chain])


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, default=lambda other: other.tolist() if hasattr(other, "tolist") else str(other))


def _save_csv(draws: Draws, path: Path) -> None:
    table = _table(draws)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        for row in zip(*table.values(), strict=True):
            writer.writerow(
                ["" if cell is None else str(cell).lower() if isinstance(cell, bool) else cell for cell in row]
            )


def _cell(value: Any) -> Any:
    """Truth is written `true` or `false`, as JSON has it."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value


def _save_parquet(draws: Draws, path: Path) -> None:
    import polars

    content = io.BytesIO()
    polars.DataFrame(_table(draws), strict=False).write_parquet(content)
    path.write_bytes(content.getbuffer())


def _table(draws: Draws) -> dict[str, list[Any]]:
    """A row for each draw of each chain: columns by their headings, None where a variable has no draw."""
    columns = [column for name in draws.names for column in _columns(draws, name)]
    marked = any(map(len, draws.adapting))
    table: dict[str, list[Any]] = {name: [] for name in ("chain", "draw", *["adapting"] * marked)}
    table |= {heading: [] for heading, _ in columns}
    for chain, number in enumerate(draws.numbers):
        length = max((len(cells[chain]) for _, cells in columns), default=0)
        adapted = max(draws.adapting[chain].values(), default=0)
        table["chain"] += [number] * length
        table["draw"] += range(length)
        if marked:
            table["adapting"] += [draw < adapted for draw in range(length)]
        for heading, cells in columns:
            table[heading] += [*cells[chain], *[None] * (length - len(cells[chain]))]
    return table


def _columns(draws: Draws, name: str) -> Iterator[tuple[str, list[list[Any]]]]:
    """Each coordinate's heading, and its cells by chain."""
    chains = draws.by_chain(name)
    filled = [chain for chain in chains if len(chain)] or chains
    shapes = {chain.shape[1:] for chain in filled}
    if len(shapes) > 1 or any(chain.dtype == object for chain in filled):
        yield name, [[_text(value) for value in chain.tolist()] for chain in chains]
        return
    (shape,) = shapes
    for heading, index in coordinates(name, shape):
        place: Any = (slice(None), *index)
        yield heading, [chain[place].tolist() if len(chain) else [] for chain in chains]
