"""Classes split and merged with the labels summed out, given the measure that the labels come from.

The weights of the classes of a Dirichlet process are the jumps of a gamma process over their sum (Ferguson 1973, A
Bayesian analysis of some nonparametric problems, section 4), a Poisson process of intensity alpha s^-1 e^-s h(x) at a
jump s with parameters x. A split of a jump in shares r and 1 - r leaves the sum alone. With the Jacobian of (s, r),
which is s, the density of the measure changes by alpha h(x_1) h(x_2) / (h(x) r (1 - r)): in the logit of r it is flat,
and so that is drawn. In free coordinates the parameters are x_1 = x + (1 - r) d and x_2 = x - r d, so that their mean
stays (Richardson and Green 1997, On Bayesian analysis of mixtures with an unknown number of components, section 3.2); d
is drawn in units of how far one datum tells a parameter. A merge is the way back.

Only classes that every label may choose are split, in parts that every label may choose, and merged: which these are is
a function of the measure alone. What labels chose so far is forgotten, and a proposal costs the rows of two classes, no
draws of their members.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from venture_lite.blocks.distributions import transform_of
from venture_lite.blocks.label_weights import LEAST, MeasureDraw
from venture_lite.blocks.slices import SliceWidth, slice_point
from venture_lite.procedures.numeric import log
from venture_lite.procedures.record import Random

APART, DEGREES = 0.8, 3.0
"""The scale and the degrees of freedom of Student's t, of which the distance of two parts is drawn, in units of how far
one datum tells a parameter."""

ANY_PAIR = 0.1
"""What a pair of classes has besides the cosine of what they have of the labels, when one is drawn to be merged."""

NEAREST = 1e-4
"""The step of differences, in free coordinates, relative to the coordinate where that is above 1."""


SEEN = 256
"""So many labels, evenly spread, tell at most which classes are near to each other and how far one datum tells a
parameter: proposals are drawn by what these say, and accepted by what all do."""

WIDER = 4
"""Of slices of shares, over those of parameters: two classes that lie apart know the logit to 2 to 4 of its units."""

PARTS = 2
"""In so many parts splits are proposed where numbers that all classes share move, too: after each of them."""


def parts_of(times: int, has_shared: bool) -> list[int]:
    """How many proposals each part has: one that has none where there are none."""
    parts = max(1, min(PARTS if has_shared else 1, times))
    return [times * (at + 1) // parts - times * at // parts for at in range(parts)]


class Terms(Protocol):
    """What the rows of all labels have, in log densities (P, n), under P lists of parameters; finite numbers."""

    def __call__(self, several: Sequence[Sequence[Any]]) -> np.ndarray: ...


@dataclass(frozen=True, slots=True)
class FreeParameter:
    """The distribution of one parameter of a class, which depends on no other."""

    record: Random
    arguments: tuple[Any, ...]

    def free_of(self, value: Any) -> Any:
        return self._transform.to_free(value, self.arguments)

    def value_at(self, free: Any) -> Any:
        return self._transform.from_free(free, self.arguments)

    def log_density(self, value: Any) -> float:
        """In free coordinates."""
        jacobian = float(self._transform.log_jacobian(value, self.arguments))
        return float(self.record.log_density(value, *self.arguments)) + jacobian

    @property
    def _transform(self) -> Any:
        transform = transform_of(self.record)
        assert transform is not None
        return transform


class ClassPrior:
    """The distributions of the parameters of a class, and how these lie in free coordinates (d,)."""

    def __init__(self, parameters: Sequence[FreeParameter], values: Sequence[Any]) -> None:
        """`values` are those of any class."""
        self._parameters = tuple(parameters)
        self._shapes = [np.shape(each.free_of(value)) for each, value in zip(parameters, values, strict=True)]

    def free_of(self, values: Sequence[Any]) -> np.ndarray:
        parts = [np.ravel(each.free_of(value)) for each, value in zip(self._parameters, values, strict=True)]
        return np.concatenate(parts, dtype=np.float64) if parts else np.empty(0)

    def values_at(self, free: np.ndarray) -> list[Any]:
        found, start = [], 0
        for parameter, shape in zip(self._parameters, self._shapes, strict=True):
            if not shape:
                found.append(parameter.value_at(float(free[start])))
                start += 1
            else:
                end = start + math.prod(shape)
                found.append(parameter.value_at(free[start:end].reshape(shape)))
                start = end
        return found

    def log_density(self, values: Sequence[Any]) -> float:
        return sum(each.log_density(value) for each, value in zip(self._parameters, values, strict=True))


@dataclass(slots=True)
class WideClass:
    """A class that every label may choose. Mutable: its label is given where it stands, its slopes are found late."""

    label: int
    weight: float
    values: list[Any]
    # in free coordinates, and the log density of the prior there
    free: np.ndarray
    log_prior: float
    # of the rows of all labels (n,), and their derivatives by the free coordinates, of some of the labels (d, m)
    logs: np.ndarray
    slopes: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class Division:
    """How a class is divided in two, or would be."""

    # of the share that the first has, and up to where it may go
    logit: float
    end: float
    # how far the parts lie apart, in free coordinates, and the unit of each (d,)
    apart: np.ndarray
    units: np.ndarray
    # that the class is drawn to be split
    probability: float

    def log_density(self) -> float:
        """As a draw: either part may be the first."""
        far, half = self.apart / self.units, 0.5 * (DEGREES + 1.0)
        log_t = _LOG_T * len(far) - half * float(np.log1p(far * far / DEGREES).sum())
        return math.log(self.probability) - math.log(self.end) + log_t - float(np.log(self.units).sum())


_LOG_T = math.lgamma(0.5 * (DEGREES + 1.0)) - math.lgamma(0.5 * DEGREES) - 0.5 * math.log(DEGREES * math.pi)


class SummedSplits:
    """The classes of one measure that are wide enough for every label. Mutable: they are split and merged."""

    def __init__(
        self, rng: np.random.Generator, measure: MeasureDraw, prior: ClassPrior, terms: Terms,
        classes: Mapping[int, Sequence[Any]], others: np.ndarray,
    ) -> None:  # fmt: skip
        """`classes` has parameters by label, `others` the log density of each label (n,) in the classes besides."""
        self._rng, self._measure, self._prior, self._terms = rng, measure, prior, terms
        self._before = set(classes)
        # proposals, and those accepted
        self.counts = dict.fromkeys(("splits", "splits accepted", "merges", "merges accepted"), 0)
        # evaluations of all labels in one class
        self.points = 0
        self.classes = self._made([(label, measure.weights[label], list(values)) for label, values in classes.items()])
        self._most = np.max([others, *map(self._logs_of, self.classes)], axis=0)
        # the labels by which proposals are drawn
        self._seen = slice(None, None, -(-len(others) // SEEN))
        # of each class for each label (K, n) over the most, and their sum with what others have (n,)
        self._rest = np.exp(others - self._most)
        self._shares = np.array(list(map(self._share_of, self.classes)))
        self._total = self._rest + self._shares.sum(axis=0)
        self._log_total = float(np.log(self._total).sum())
        # the odds of each pair (K, K) to be merged
        self._pairs = self._pair_odds(self._shares, self._total)

    def _stand(self, others: Sequence[int], new: Sequence[WideClass], total: np.ndarray, pairs: np.ndarray) -> None:
        """Some of the classes, by their places, and new ones are those that there are."""
        self.classes = [*(self.classes[place] for place in others), *new]
        self._shares = np.concatenate([self._shares[others], [self._share_of(each) for each in new]])
        self._total, self._pairs = total, pairs
        self._log_total = float(np.log(total).sum())

    def _made(self, given: Sequence[tuple[int, float, list[Any]]]) -> list[WideClass]:
        """Classes of a label, a weight and parameters: one evaluation for all."""
        terms = self._evaluated([values for *_, values in given])
        return [self._class(*each, self._prior.free_of(each[2]), logs) for each, logs in zip(given, terms, strict=True)]

    def _evaluated(self, several: Sequence[Sequence[Any]]) -> np.ndarray:
        self.points += len(several)
        return self._terms(several)

    def _made_with_slopes(self, label: int, weight: float, values: list[Any]) -> WideClass:
        free = self._prior.free_of(values)
        steps = _steps(free)
        logs = self._evaluated([values, *self._beside(free, steps)])
        made = self._class(label, weight, values, free, logs[0])
        made.slopes = _slopes(logs[1:, self._seen], steps)
        return made

    def _class(
        self, label: int, weight: float, values: list[Any], free: np.ndarray, logs: np.ndarray
    ) -> WideClass:  # fmt: skip
        return WideClass(label, weight, values, free, self._prior.log_density(values), logs)

    def _beside(self, free: np.ndarray, steps: np.ndarray) -> list[list[Any]]:
        """The parameters above (d) and below (d), coordinate by coordinate."""
        moved = np.diag(steps)
        return [self._prior.values_at(each) for each in np.concatenate([free + moved, free - moved])]

    def _logs_of(self, each: WideClass) -> np.ndarray:
        found: np.ndarray = each.logs + math.log(each.weight / self._measure.widest)
        return found

    def _share_of(self, each: WideClass) -> np.ndarray:
        found: np.ndarray = np.exp(self._logs_of(each) - self._most)
        return found

    def reuse(self, labels: Iterable[int]) -> None:
        """Let new classes have labels of classes that are gone, where these are among some: names mean nothing, and a
        class that has one needs not be made."""
        now, known = {each.label for each in self.classes}, set(labels)
        gone = sorted((known & self._before) - now)
        for each in self.classes:
            if gone and each.label not in known:
                each.label = gone.pop(0)

    # ----------------------------------------------------------------------------------------------- proposals

    def propose(self) -> None:
        """Propose to split a class or to merge two."""
        splits = self._rng.random() < 0.5
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            accepted = self._split() if splits else self._merge()
        what = "splits" if splits else "merges"
        self.counts[what] += 1
        self.counts[f"{what} accepted"] += accepted

    def _split(self) -> bool:
        odds = self._split_odds(self.classes)
        at = _drawn(odds, self._rng.random())
        whole, end = self.classes[at], self._log_end(self.classes[at].weight)
        if end <= 0.0:
            return False
        units = self._units(whole, self._shares[at], self._total)
        if units is None:
            return False
        logit = (2.0 * self._rng.random() - 1.0) * end
        apart = units * self._rng.standard_t(DEGREES, len(units))
        share = 1.0 / (1.0 + math.exp(-logit))
        first, second = whole.free + (1.0 - share) * apart, whole.free - share * apart
        parts = self._made([
            (0, share * whole.weight, self._prior.values_at(first)),
            (0, (1.0 - share) * whole.weight, self._prior.values_at(second)),
        ])  # fmt: skip
        division = Division(logit, end, apart, units, odds[at] / odds.sum())
        others = [place for place in range(len(self.classes)) if place != at]
        total, seen = self._with(others, parts)
        pairs = self._pair_odds(seen, total)
        log_ratio = self._log_measure(whole, parts) - division.log_density() + math.log(pairs[-2, -1] / _count(pairs))
        if not self._accepts(total, log_ratio):
            return False
        small, large = sorted(parts, key=lambda each: each.weight)
        small.label, large.label = self._measure.unused(), whole.label
        self._stand(others, parts, total, pairs)
        return True

    def _merge(self) -> bool:
        count = len(self.classes)
        if count < 2:
            return False
        first, second = divmod(_drawn(self._pairs.ravel(), self._rng.random()), count)
        parts = self.classes[first], self.classes[second]
        weight = parts[0].weight + parts[1].weight
        logit = math.log(parts[0].weight) - math.log(parts[1].weight)
        free = (parts[0].weight * parts[0].free + parts[1].weight * parts[1].free) / weight
        label = max(parts, key=lambda each: each.weight).label
        whole = self._made_with_slopes(label, weight, self._prior.values_at(free))
        end = self._log_end(weight)
        others = [place for place in range(count) if place not in (first, second)]
        total, seen = self._with(others, [whole])
        units = self._units(whole, seen[-1], total)
        if units is None or end <= 0.0:
            return False
        odds = self._split_odds([*(self.classes[place] for place in others), whole])
        apart = parts[0].free - parts[1].free
        division = Division(logit, end, apart, units, odds[-1] / odds.sum())
        log_pair = math.log(self._pairs[first, second] / _count(self._pairs))
        if not self._accepts(total, division.log_density() - self._log_measure(whole, parts) - log_pair):
            return False
        self._stand(others, [whole], total, self._pair_odds(seen, total))
        return True

    def _with(self, others: Sequence[int], new: Sequence[WideClass]) -> tuple[np.ndarray, np.ndarray]:
        """What labels have (n,), were there some of the classes, by their places, and new ones; and what each of these
        has of the labels by which proposals are drawn (K, m)."""
        shares = [self._share_of(each) for each in new]
        total = self._of_others(others)
        for each in shares:
            total += each
        seen = [self._shares[others, self._seen], *(each[None, self._seen] for each in shares)]
        return total, np.concatenate(seen)

    def _of_others(self, places: Sequence[int]) -> np.ndarray:
        """What labels have of some classes and of those that take no part (n,)."""
        chosen = np.zeros(len(self.classes))
        chosen[places] = 1.0
        found: np.ndarray = chosen @ self._shares
        found += self._rest
        return found

    def move_weights(self, width: SliceWidth) -> None:
        """Share out anew what each class and another that is drawn have together, by slices in the logit of the first's
        share, in which the density of the measure is flat."""
        count, size = len(self.classes), len(self._total)
        for at in range(count if count > 1 else 0):
            other = int(self._rng.random() * (count - 1))
            other += other >= at
            weight = self.classes[at].weight + self.classes[other].weight
            self._share_out(at, other, SliceWidth(WIDER * width.width, width.most_steps).of_class(weight, size))
        self._pairs = self._pair_odds(self._shares, self._total)

    def _share_out(self, at: int, other: int, width: SliceWidth) -> None:
        first, second = self.classes[at], self.classes[other]
        weight = first.weight + second.weight
        end, logit = self._log_end(weight), math.log(first.weight) - math.log(second.weight)
        # what labels would have, had either class all of it
        in_first = self._shares[at] * (weight / first.weight)
        in_second = self._shares[other] * (weight / second.weight)
        others = [place for place in range(len(self.classes)) if place not in (at, other)]
        rest = self._of_others(others)

        def densities(points: Sequence[float]) -> list[float]:
            found = []
            for point in points:
                share = 1.0 / (1.0 + math.exp(-point))
                total = rest + share * in_first + (1.0 - share) * in_second
                found.append(float(np.log(total).sum()) if abs(point) < end else -math.inf)
            return found

        point = slice_point(self._rng, logit, self._log_total, width, densities)
        if point is None:
            return
        share = 1.0 / (1.0 + math.exp(-point))
        first.weight, second.weight = share * weight, (1.0 - share) * weight
        self._shares[at], self._shares[other] = share * in_first, (1.0 - share) * in_second
        self._total = rest + self._shares[at] + self._shares[other]
        self._log_total = float(np.log(self._total).sum())

    def _log_measure(self, whole: WideClass, parts: Sequence[WideClass]) -> float:
        """The log density of a measure in which a class is divided, in the logit of a share, over that in which it is
        not."""
        return log(self._measure.concentration) + sum(each.log_prior for each in parts) - whole.log_prior

    def _accepts(self, total: np.ndarray, log_ratio: float) -> bool:
        """Whether classes stand that have these sums (n,). Ratios of a label that are no floats are refused, from
        either end."""
        log_ratio += float(np.log(total).sum()) - self._log_total
        return math.isfinite(log_ratio) and -self._rng.standard_exponential() < log_ratio

    # -------------------------------------------------------------------------------------------- what is drawn

    def _split_odds(self, classes: Sequence[WideClass]) -> np.ndarray:
        """Of each class to be split: half by their weights, half any."""
        weights = np.array([each.weight for each in classes])
        found: np.ndarray = weights / weights.sum() + 1.0 / len(classes)
        return found

    def _pair_odds(self, shares: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Of each pair of classes (K, K) to be merged, from either, by what they have of the labels (K, n), or of those
        by which proposals are drawn (K, m), of all that each label has (n,)."""
        fractions = self._look_at(shares, total)
        products = fractions @ fractions.T
        norms = np.sqrt(np.maximum(np.diag(products), LEAST))
        found: np.ndarray = products / norms / norms[:, None] + ANY_PAIR
        np.fill_diagonal(found, 0.0)
        return found

    def _look_at(self, shares: np.ndarray, total: np.ndarray) -> np.ndarray:
        """The fractions that some have of the labels by which proposals are drawn (..., m), where shares may be given
        for all labels."""
        if shares.shape[-1] == len(total):
            shares = shares[..., self._seen]
        found: np.ndarray = shares / total[self._seen]
        return found

    def _log_end(self, weight: float) -> float:
        """Up to where the logit of a share of a weight goes: both parts are wide enough for every label."""
        least = self._measure.widest
        return math.log((weight - least) / least) if weight > 2.0 * least else 0.0

    def _units(self, whole: WideClass, shares: np.ndarray, total: np.ndarray) -> np.ndarray | None:
        """How far one datum tells each free coordinate of a class (d,): the root of the inverse of the mean square of
        the derivatives, over the labels by what the class has of each. None where nothing is told."""
        if whole.slopes is None:
            steps = _steps(whole.free)
            whole.slopes = _slopes(self._evaluated(self._beside(whole.free, steps))[:, self._seen], steps)
        fractions = self._look_at(shares, total)
        units: np.ndarray = APART / np.sqrt(np.square(whole.slopes) @ fractions / fractions.sum())
        return units if all(0.0 < unit < math.inf for unit in units.tolist()) else None


def _steps(free: np.ndarray) -> np.ndarray:
    found: np.ndarray = NEAREST * np.maximum(1.0, np.abs(free))
    return found


def _slopes(beside: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Derivatives (d, m) from log densities above and below (2 d, m)."""
    found: np.ndarray = (beside[: len(steps)] - beside[len(steps) :]) / (2.0 * steps[:, None])
    found[~np.isfinite(found)] = 0.0
    return found


def _drawn(odds: np.ndarray, u: float) -> int:
    """A place, in proportion to odds."""
    reached = np.cumsum(odds)
    return min(int(np.searchsorted(reached, u * reached[-1], side="right")), len(odds) - 1)


def _count(pairs: np.ndarray) -> float:
    """The odds of all pairs, each of which is there twice."""
    return float(pairs.sum()) / 2.0
