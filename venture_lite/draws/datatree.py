"""Draws as the xarray tree that ArviZ reads, with what a stranger needs to know of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.draws.groups import measured

if TYPE_CHECKING:
    from xarray import Dataset, DataTree

    from venture_lite.draws.draws import Draws


def to_datatree(draws: Draws, prior: Draws | None = None, warmup: bool = False) -> DataTree:
    """Draws as an `xarray.DataTree` that ArviZ's functions and plots take as it is.

    - `posterior`: numeric variables with dimensions chain, draw and the variable's own (`w_dim_0`, counted from 0).
      Truth is 1 and 0, for ArviZ subtracts. Variables of the commonest length are here; others, which cannot share its
      `draw` dimension, in `posterior_LENGTH`; of chains that differ in length, each in
      `posterior_LENGTH_chain_K`. A slash in a name, which a tree reads as a path, becomes a division sign.
    - `posterior_predictive` and `log_likelihood`: what was collected as `(replicate y)` and `(log_likelihood y)`, by y.
    - `prior` and `prior_predictive`: those of `prior`, which `Venture.predictive` draws.
    - `warmup_posterior`, with `warmup`: the draws made while a kernel still adapted; the others are without them.
    - `sample_stats`: of `nuts` or `hmc`, where the program has one such kernel, what its last transition before each
      draw was: `diverging`, `energy`, `lp` (the log density in free coordinates), `n_steps`, `acceptance_rate`,
      `step_size`, and of nuts `tree_depth`. Here truth is a boolean, by which ArviZ selects.
    - `kernel_stats`: what each kernel did, with dimensions chain and kernel (the kernel's text), and what its
      engine has to say besides (`details`), NaN where it says nothing.
    - `observed_data`: the numbers that the program observed, by the observe's label or the parameter's name.
    - attributes: seed, version, the program's directives and the inference program; `log_evidence` and
      `log_evidence_error`, where they were estimated; `approximate`, also of `posterior`, where kernels that leave what
      is not quite the posterior made the draws: which.
    """
    from arviz_base import from_dict
    from xarray import DataTree

    from venture_lite import __version__

    groups: dict[str, dict[str, np.ndarray]] = {"posterior": {}, **_groups(draws.without_adaptation())}
    if warmup:
        groups |= {f"warmup_{group}": found for group, found in _groups(draws.adaptation()).items()}
    if draws.transitions is not None:
        groups |= _by_length(draws.transitions.without_adaptation(), "sample_stats")
        groups |= _by_length(draws.transitions.adaptation(), "warmup_sample_stats") if warmup else {}
    coords = _chain_numbers(draws, groups)
    for group, found in _groups(prior).items() if prior is not None else ():
        groups[group.replace("posterior", "prior")] = found
    tree: DataTree = from_dict(groups, coords=coords, save_warmup=True, check_conventions=False)
    if draws.statistics:
        tree["kernel_stats"] = DataTree(_kernels(draws))
    origin = draws.origin
    if origin is not None:
        observed = {_key(name): values for name, values in origin.observed.items()}
        if observed:
            tree["observed_data"] = from_dict({"observed_data": observed}, check_conventions=False)["observed_data"]
        # as text: a seed from the operating system has 128 bits
        tree.attrs |= {"seed": str(origin.seed), "program": origin.program, "inference": origin.inference}
    if draws.approximate:
        tree.attrs["approximate"] = ", ".join(draws.approximate)
        tree["posterior"].attrs["approximate"] = tree.attrs["approximate"]
    if (evidence := draws.evidence) is not None:
        tree.attrs |= {"log_evidence": evidence.log, "log_evidence_error": evidence.error}
    tree.attrs |= {"inference_library": "venture_lite", "inference_library_version": __version__}
    return tree


def _groups(draws: Draws) -> dict[str, dict[str, np.ndarray]]:
    """The variables of each group: those of the posterior, and by the names of their data what measures gave."""
    found: dict[str, dict[str, np.ndarray]] = {}
    names: dict[str, dict[str, str]] = defaultdict(dict)
    for name in draws.names:
        group, own = measured(name) or ("posterior", name)
        names[group][name] = own
    for group, own_names in names.items():
        found |= _by_length(draws, group, own_names)
    return {group: {name: _without_truth(each) for name, each in values.items()} for group, values in found.items()}


def _by_length(draws: Draws, group: str, names: Mapping[str, str] | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Groups of numeric variables that have as many draws, the largest group by the name given; of some variables
    alone, by other names, where there are `names`."""
    by_length: dict[int, dict[str, np.ndarray]] = defaultdict(dict)
    alone: dict[str, dict[str, np.ndarray]] = defaultdict(dict)
    for name, shown in (names or {name: name for name in draws.names}).items():
        if draws.is_numeric(name) and draws[name].shape[1]:
            by_length[draws[name].shape[1]][_key(shown)] = draws[name]
        elif draws[name].ndim == 1:
            for number, chain in zip(draws.numbers, draws.by_chain(name), strict=True):
                if len(chain) and chain.dtype != object:
                    alone[f"{group}_{len(chain)}_chain_{number}"][_key(shown)] = chain[np.newaxis]
    main = max(by_length, key=lambda length: len(by_length[length]), default=0)
    even = {group if length == main else f"{group}_{length}": found for length, found in by_length.items()}
    return even | alone


def _chain_numbers(draws: Draws, groups: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, list[int]] | None:
    """The chains' positions in their program, where an interruption left the draws of some alone."""
    counts = {len(values) for group in groups.values() for values in group.values()}
    if draws.numbers == tuple(range(draws.chain_count)) or counts != {draws.chain_count}:
        return None
    return {"chain": list(draws.numbers)}


def _without_truth(values: np.ndarray) -> np.ndarray:
    return values.astype(np.int64) if values.dtype == bool else values


def _key(name: str) -> str:
    return name.replace("/", "\N{DIVISION SIGN}")


def _kernels(draws: Draws) -> Dataset:
    """What each kernel did, (chain, kernel); one that stands in the program twice is numbered."""
    from xarray import Dataset

    rows: dict[tuple[str, int], dict[int, Any]] = {}
    for row in draws.statistics:
        which = 0
        while row.chain in rows.setdefault((row.kernel, which), {}):
            which += 1
        rows[row.kernel, which][row.chain] = row
    chains = sorted({row.chain for row in draws.statistics})

    def column(field: str) -> tuple[tuple[str, str], np.ndarray]:
        table = [[getattr(by_chain.get(chain), field, 0) for by_chain in rows.values()] for chain in chains]
        return ("chain", "kernel"), np.array(table)

    variables = {field: column(field) for field in ("transitions", "accepted", "rows", "seconds")}
    for name in dict.fromkeys(name for row in draws.statistics for name in row.details):
        table = [
            [by_chain[chain].details.get(name, np.nan) if chain in by_chain else np.nan for by_chain in rows.values()]
            for chain in chains
        ]
        variables[_key(name)] = ("chain", "kernel"), np.array(table)
    with np.errstate(all="ignore"):
        rate = variables["accepted"][1] / variables["transitions"][1]
    kernels = [kernel if not which else f"{kernel} #{which + 1}" for kernel, which in rows]
    return Dataset(
        {**variables, "acceptance_rate": (("chain", "kernel"), rate)}, coords={"chain": chains, "kernel": kernels}
    )
