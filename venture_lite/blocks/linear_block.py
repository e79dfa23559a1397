"""A block that likelihoods read through linear predictors: its log posterior, gradient and Hessian, and its mode.

What Firefly Monte Carlo's bounds, control variates and preconditioned proposals share. The block's values stand in one
vector, its free coordinates being the values themselves.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from venture_lite.blocks import linear_mode, second
from venture_lite.blocks.curvature import hessian_by_differences, inverse_root, scaled
from venture_lite.blocks.distributions import name_of, transform_of
from venture_lite.blocks.linear import OTHERS, Linear, linear_predictor
from venture_lite.blocks.sections import Sections
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.ancestry import name_of_choice
from venture_lite.interpreter.answers import Differs
from venture_lite.interpreter.model import GivenValues, Model
from venture_lite.interpreter.sources import application_nodes
from venture_lite.interpreter.weights import log_density
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import REAL
from venture_lite.trace.nodes import node_at, site_of
from venture_lite.values import freeze

TOLERANCE, MOST_ROWS, MODERATE = 1e-9, 100, 10.0
"""Relative, of changes of log densities that are compared; rows of a kind whose are; the largest predictor at which the
interpreter's density of what is computed from it is known as well as that."""

LEAST = -1e300

PRIOR_DRAWS = 1000
"""By which the variance of a prior is estimated that has no curvature."""


class NotBelieved(KernelError):
    """The predictors of a block differ from the interpreter: an engine moves the block without them."""


class LinearBlock:
    """The posterior of one block as a function of its values in one vector (D,).

    Reads the trace when it is made: the features, what the likelihoods' other arguments are, the observed values. A
    matrix block of a vector predictor stands row by row.
    """

    def __init__(self, model: Model, sections: Sections, block: Sequence[int]) -> None:
        self.model = model
        self.block = list(block)
        trace = model.trace
        self.read_priors()
        self.shapes = [np.shape(trace.value(node)) for node in self.block]
        for kind in sections.factors:
            place = trace.place(kind.group.code, kind.group.slot, int(kind.rows(np.zeros(1, int))[0]))
            hint = "an observation of a distribution with a linear predictor, or a kernel without one"
            raise KernelError("a factor depends on the block: it has no linear predictor", hint=hint).at(*place)
        ends = [0, *np.cumsum([int(np.prod(shape)) for shape in self.shapes]).tolist()]
        # where each choice stands among the coordinates
        self.parts = [slice(start, end) for start, end in itertools.pairwise(ends)]
        self.size = ends[-1]
        # each row counts as so many: more than one where rows are a sample
        self.weight = 1.0
        self.kinds = self._believed(sections)
        self.look()

    def _believed(self, sections: Sections) -> list[Linear]:
        """The likelihoods as the text has them. The first readings of a kind of block, and the first after structure
        has changed as often again, answer to the interpreter. Raises NotBelieved where they differ, KernelError where
        a likelihood reads the block otherwise."""
        trace = self.model.trace
        sites = [site_of(node) for node in self.block], [kind.group.site for kind in sections.kinds]
        key = ("linear predictors", *map(frozenset, sites), trace.journal.structure.bit_length())
        names = dict.fromkeys(name_of_choice(trace, node) for node in self.block[:3])

        def make() -> list[Linear]:
            given = self.block, sections.order
            return [linear_predictor(trace, kind.group.site, kind.all_rows(), *given) for kind in sections.kinds]

        try:
            way = f"linear predictors of {', '.join(names)}"
            return self.model.answers.believed(key, way, make, partial(self._difference, sections))
        except Differs:
            raise NotBelieved(f"the {way} differ from the interpreter", hint=OTHERS) from None

    def _difference(self, sections: Sections, found: list[Linear] | VentureError) -> str | None:
        """What the interpreter finds otherwise of the log densities of some rows at two values of the block; None where
        nothing, or where it has no densities there."""
        rng, kinds = np.random.default_rng(0), [] if isinstance(found, VentureError) else found
        picked = [np.linspace(0, kind.count - 1, min(kind.count, MOST_ROWS)).astype(int) for kind in kinds]
        parts = (np.abs(kind.features[rows]) for kind, rows in zip(kinds, picked, strict=True))
        largest = max((float(part.max(initial=1.0)) for part in parts), default=1.0)
        with contextlib.suppress(VentureError), self.model.transaction():
            for theta in rng.standard_normal((2, self.size)) / largest:
                values = dict(zip(self.block, self.values(theta), strict=True))
                sections.propose(GivenValues(values, counts=False))
                for kind, section, rows in zip(kinds, sections.kinds, picked, strict=False):
                    terms = np.broadcast_to(self.terms(theta, kind, rows)[0], len(rows)).tolist()
                    for row, term in zip(section.rows(rows).tolist(), terms, strict=True):
                        expected = log_density(self.model.trace, node_at(section.group.site, row))
                        # a probability near 1 may be rounded to it
                        is_rounded = expected == -math.inf and kind.predictor.inverse_link is not None
                        if not is_rounded and not section.group.agrees(row, expected, term):
                            return f"a log density, {expected} and {term}"
        return None

    @property
    def count(self) -> int:
        """Rows of all kinds."""
        return sum(kind.count for kind in self.kinds)

    def look(self) -> None:
        """Take what stands in the trace now for what was read. A column that has values of the block in some rows
        changes with these, too."""
        self._stamps = self._stamps_now()

    def _stamps_now(self) -> list[int]:
        return [column.stamp for kind in self.kinds for column in kind.columns]

    def is_as_read(self) -> bool:
        """Whether likelihoods read besides the block's values what they read when these were looked at."""
        return self._stamps == self._stamps_now()

    def bytes_used(self) -> int:
        """Of features that are no view of the trace's columns."""
        return sum(kind.features.nbytes for kind in self.kinds if kind.features.base is None)

    def reads_as(self, other: LinearBlock) -> bool:
        """Whether another reading of the block found the same likelihoods; the priors may differ."""
        mine, theirs = self.kinds, other.kinds
        return self.shapes == other.shapes and len(mine) == len(theirs) and all(map(Linear.is_as, mine, theirs))

    def has_rows_of(self, other: LinearBlock) -> bool:
        """Whether another reading found as many rows with the same values; what they read besides may differ."""
        mine, theirs = self.kinds, other.kinds
        pairs = zip(mine, theirs, strict=False)
        return len(mine) == len(theirs) and all(np.array_equal(one.values, two.values) for one, two in pairs)

    def read_priors(self) -> None:
        """The distributions of the block's choices as they stand in the trace."""
        trace = self.model.trace
        self.priors: list[tuple[Random, tuple[Any, ...]]] = []
        for node in self.block:
            operator, arguments = trace.application(node)
            code, slot, _ = trace.decode(node)
            if not isinstance(operator, Random) or transform_of(operator) is not REAL or operator.gradient is None:
                raise KernelError(
                    f"a linear block is made of unbounded continuous choices; {name_of(operator)} is none",
                    code.slots[slot].span,
                    OTHERS,
                )
            self.priors.append((operator, arguments))

    # ------------------------------------------------------------------------------------------------- values

    def present(self) -> np.ndarray:
        """The block's values (D,) as they stand in the trace."""
        return np.concatenate([np.ravel(self.model.trace.value(node)) for node in self.block]).astype(np.float64)

    def values(self, theta: np.ndarray) -> list[Any]:
        """One value for each choice, as the trace keeps it."""
        return [
            float(theta[part][0]) if shape == () else freeze(theta[part].reshape(shape).copy())
            for part, shape in zip(self.parts, self.shapes, strict=True)
        ]

    def coefficients(self, theta: np.ndarray, kind: Linear) -> np.ndarray:
        """As `Linear.eta` takes them: (F,), or (K, F) for a vector predictor."""
        return theta.reshape(-1, kind.features.shape[1]) if kind.predictor.is_vector else theta

    # -------------------------------------------------------------------------------------------------- prior

    def log_prior(self, theta: np.ndarray) -> float:
        values = self.values(theta)
        return sum(
            record.log_density(value, *arguments)
            for value, (record, arguments) in zip(values, self.priors, strict=True)
        )

    def prior_gradient(self, theta: np.ndarray) -> np.ndarray:
        """(D,)"""
        return np.concatenate([self.prior_slope(at, theta[part]) for at, part in enumerate(self.parts)])

    def prior_slope(self, choice: int, value: np.ndarray) -> np.ndarray:
        """The gradient of one choice's log density, flat as the value given."""
        (record, arguments), shape = self.priors[choice], self.shapes[choice]
        assert record.gradient is not None
        count, wanted = 1 + len(arguments), (True, *(False,) * len(arguments))
        given = float(value[0]) if shape == () else value.reshape(shape)
        found = record.gradient.evaluate((False,) * count, wanted, given, *arguments)[0]
        return np.asarray(found, dtype=np.float64).ravel()

    def prior_hessian(self, theta: np.ndarray) -> np.ndarray:
        """(D, D), choice by choice: their priors are independent."""
        found = np.zeros((self.size, self.size))
        for at, part in enumerate(self.parts):
            (record, arguments), shape = self.priors[at], self.shapes[at]
            exact = second.of_value(record, theta[part].reshape(shape), arguments)
            by_differences = partial(hessian_by_differences, partial(self.prior_slope, at), theta[part])
            found[part, part] = by_differences() if exact is None else exact
        return found

    def prior_precision(self, theta: np.ndarray) -> np.ndarray:
        """(D, D), positive definite but for zeros of improper choices: each choice's curvature, or its inverse variance
        where it has none (a Laplace distribution's) or not everywhere a positive one."""
        found = -self.prior_hessian(theta)
        rng = np.random.default_rng(0)
        for part, (record, arguments) in zip(self.parts, self.priors, strict=True):
            if inverse_root(found[part, part]) is None and record.start is None:
                draws = np.array([np.ravel(record.simulate(rng, *arguments)) for _ in range(PRIOR_DRAWS)])
                found[part, part] = np.diag(1.0 / draws.var(axis=0))
        return found

    # --------------------------------------------------------------------------------------------- likelihood

    def terms(self, theta: np.ndarray, kind: Linear, rows: Any = slice(None)) -> tuple[Any, Any, Any]:
        """The Taylor terms of some rows of a kind at their predictors."""
        with np.errstate(all="ignore"):
            return kind.predictor.taylor(*kind.given(kind.eta(self.coefficients(theta, kind), rows), rows))

    def log_density(self, theta: np.ndarray) -> float:
        """Log posterior up to a constant."""
        return self.log_prior(theta) + self.weight * sum(float(np.sum(self.terms(theta, k)[0])) for k in self.kinds)

    def likelihood_gradient(self, theta: np.ndarray) -> np.ndarray:
        """(D,)"""
        found = sum(summed_gradient(kind, self.terms(theta, kind)[1]) for kind in self.kinds)
        return np.asarray(self.weight * found)

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """(D,)"""
        return np.asarray(self.prior_gradient(theta) + self.likelihood_gradient(theta))

    def likelihood_hessian(self, theta: np.ndarray) -> np.ndarray:
        """(D, D)"""
        found = sum(summed_hessian(kind, self.terms(theta, kind)[2]) for kind in self.kinds)
        return np.asarray(self.weight * found)

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """(D, D)"""
        return np.asarray(self.prior_hessian(theta) + self.likelihood_hessian(theta))

    def information(self, theta: np.ndarray) -> np.ndarray:
        """(D, D), the likelihood's Fisher information: never negative, also where the likelihood is not log-concave."""
        found = np.zeros((self.size, self.size))
        for kind in self.kinds:
            eta = kind.eta(self.coefficients(theta, kind))
            found += summed_hessian(kind, np.asarray(kind.predictor.information(*kind.given(eta))))
        return np.asarray(self.weight * found)

    def mode(self, iterations: int = 100, start: np.ndarray | None = None) -> tuple[np.ndarray, float, int]:
        """The block's conditional mode, searched from `start` or its present values, the gradient's norm there, and how
        often all rows were evaluated on the way. It may be approximate; see `linear_mode.py`."""
        return linear_mode.search(self, self.present() if start is None else start, iterations)

    def preconditioner(self, theta: np.ndarray) -> tuple[np.ndarray, str]:
        """A factor L (D, D) with L L' the inverse of minus the Hessian at a mode, and which curvature it was made from.

        Where minus the Hessian is not positive definite the likelihood's Fisher information and the prior's precision
        take its place; the condition is capped.
        """
        root = inverse_root(-self.hessian(theta))
        if root is not None:
            return root, "Hessian"
        curvature = self.information(theta) + self.prior_precision(theta)
        return scaled(*np.linalg.eigh(curvature)), "Fisher information"


def summed_gradient(kind: Linear, first: Any) -> np.ndarray:
    """The sum over rows of first (rows,) or (rows, K) times the features: (F,), or (K F,) row by row."""
    count = len(kind.features)
    if kind.predictor.is_vector:
        return np.asarray(first.T @ kind.features).ravel()
    return np.asarray(np.broadcast_to(first, (count,)) @ kind.features)


def summed_hessian(kind: Linear, second: Any) -> np.ndarray:
    """The sum over rows of second (rows,) or (rows, K, K) times the outer products of the features;
    without its first axis it is the same for all."""
    features = kind.features
    count, width = features.shape
    if not kind.predictor.is_vector:
        weighted = features * np.broadcast_to(second, (count,))[:, None]
        return np.asarray(features.T @ weighted)
    if np.ndim(second) == 2:
        return np.asarray(np.kron(second, features.T @ features))
    outcomes = np.shape(second)[-1]
    found = np.empty((outcomes, width, outcomes, width))
    for k in range(outcomes):
        for other in range(k, outcomes):
            block = features.T @ (features * second[:, k, other, None])
            found[k, :, other] = block
            found[other, :, k] = block.T
    return found.reshape(outcomes * width, outcomes * width)


def refuse_dependent(model: Model, moved: set[int], block: Sequence[int]) -> None:
    """Refuse priors that read what moves with the block: they are evaluated choice by choice."""
    trace = model.trace
    for node in block:
        if not moved.isdisjoint(application_nodes(trace, node)):
            code, slot, _ = trace.decode(node)
            reason = "the distribution of a choice depends on another choice of the block"
            raise KernelError(reason, code.slots[slot].span, "a scope without that choice, and another kernel for it")
