"""Every built-in procedure by name. A new one is a record in the module of its family, listed in its RECORDS."""

from __future__ import annotations

import math

from venture_lite.errors import NameUnknown, nearest
from venture_lite.language.syntax import UNWRITABLE
from venture_lite.procedures.distributions import (
    categorical,
    continuous,
    correlation,
    discrete,
    finite,
    improper,
    multivariate,
    positive,
    wishart,
)
from venture_lite.procedures.exchangeable import counted as exchangeable
from venture_lite.procedures.exchangeable import (
    crp,
    gaussian_process,
    hidden_markov,
    normal_inv_chi_sq,
    normal_inverse_wishart,
)
from venture_lite.procedures.functions import (
    algebra,
    arithmetic,
    comparison,
    covariances,
    dictionaries,
    elementary,
    lists,
    predicates,
    strings,
    vectors,
)
from venture_lite.procedures.record import Procedure

FAMILIES: tuple[tuple[Procedure, ...], ...] = (
    arithmetic.RECORDS,
    comparison.RECORDS,
    elementary.RECORDS,
    lists.RECORDS,
    vectors.RECORDS,
    algebra.RECORDS,
    dictionaries.RECORDS,
    strings.RECORDS,
    predicates.RECORDS,
    discrete.RECORDS,
    categorical.RECORDS,
    continuous.RECORDS,
    positive.RECORDS,
    multivariate.RECORDS,
    wishart.RECORDS,
    correlation.RECORDS,
    improper.RECORDS,
    finite.RECORDS,
    crp.RECORDS,
    exchangeable.RECORDS,
    normal_inv_chi_sq.RECORDS,
    normal_inverse_wishart.RECORDS,
    covariances.RECORDS,
    gaussian_process.RECORDS,
    hidden_markov.RECORDS,
)

PROCEDURES: dict[str, Procedure] = {record.name: record for family in FAMILIES for record in family}

CONSTANTS = {"pi": math.pi}
"""Numbers that have a name; a program that binds the name itself keeps its own meaning."""

UNNAMED: dict[str, Procedure] = {f"{UNWRITABLE}{record.name}": record for record in improper.WEIGHED}
"""What directives observe and no program text can name."""

NAMES: tuple[str, ...] = tuple(PROCEDURES)


def meant(name: str) -> Procedure | None:
    """The procedure that a name in a directive means, if it is one of the language."""
    return PROCEDURES.get(name) or UNNAMED.get(name)


def lookup(name: str) -> Procedure:
    """The record of a name; raises NameUnknown with the nearest spelling."""
    record = PROCEDURES.get(name)
    if record is None:
        raise NameUnknown(f"{name} is no procedure", hint=nearest(name, PROCEDURES))
    return record
