"""Mixtures of labels of `make_crp`: their programs, and the exact posterior of the partition by enumeration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scipy import special, stats

from tests.posterior.case import Case
from tests.posterior.derive import iid_normal_evidence, log_crp, partition_code, partition_expression, partitions, table
from tests.statistics import Expected


@dataclass(frozen=True, slots=True)
class Feature:
    """What each class has: a collapsed maker, or a parameter."""

    # Body of the memoized procedure.
    body: str
    # What is observed, of a call that gives the class's maker or parameter.
    observed: str
    # Log marginal likelihood of the data of one class.
    log_evidence: Callable[[Sequence[float]], float]
    # Data are true and false.
    is_boolean: bool = False


class Datum(NamedTuple):
    """One observation of a label's class."""

    label: int
    feature: int
    value: float
    # The second argument of the memoized procedure: classes have one maker or parameter for each.
    key: int | None = None


def coin(a: float = 1, b: float = 1) -> Feature:
    return Feature(f"(make_beta_bernoulli {a} {b})", "({})", lambda data: beta_bernoulli(data, a, b), True)


def bias(a: float = 1, b: float = 1) -> Feature:
    return Feature(f"(beta {a} {b})", "(flip {})", lambda data: beta_bernoulli(data, a, b), True)


def beta_bernoulli(data: Sequence[float], a: float, b: float) -> float:
    heads = sum(data)
    return float(special.betaln(a + heads, b + len(data) - heads) - special.betaln(a, b))


def die(concentration: float, sides: int) -> Feature:
    def log_evidence(data: Sequence[float]) -> float:
        counts = [list(data).count(side) for side in range(sides)]
        total = sides * concentration
        above = math.fsum(math.lgamma(concentration + n) - math.lgamma(concentration) for n in counts)
        return above + math.lgamma(total) - math.lgamma(total + len(data))

    return Feature(f"(make_sym_dir_mult {concentration} {sides})", "({})", log_evidence)


def count(shape: float, rate: float) -> Feature:
    def log_evidence(data: Sequence[float]) -> float:
        of_rate = [stats.nbinom(shape + sum(data[:n]), (rate + n) / (rate + n + 1)) for n in range(len(data))]
        return math.fsum(float(of.logpmf(x)) for of, x in zip(of_rate, data, strict=True))

    return Feature(f"(make_gamma_poisson {shape} {rate})", "({})", log_evidence)


def real(mean: float, kappa: float, nu: float, variance: float) -> Feature:
    def log_evidence(data: Sequence[float]) -> float:
        m, k, n, v, total = mean, kappa, nu, variance, 0.0
        for x in data:
            total += float(stats.t.logpdf(x, n, m, math.sqrt(v * (k + 1) / k)))
            v = (n * v + k / (k + 1) * (x - m) ** 2) / (n + 1)
            m, k, n = (k * m + x) / (k + 1), k + 1, n + 1
        return total

    return Feature(f"(make_normal_inv_chi_sq {mean} {kappa} {nu} {variance})", "({})", log_evidence)


def center(mean: float, sd: float, noise: float) -> Feature:
    return Feature(
        f"(normal {mean} {sd})", f"(normal {{}} {noise})", lambda data: iid_normal_evidence(data, mean, sd, noise)
    )


@dataclass(frozen=True, slots=True)
class Mixture:
    """Labels 1 to `labels`, and what is observed of their classes."""

    labels: int
    features: tuple[Feature, ...]
    data: tuple[Datum, ...]
    alpha: float = 1.0
    discount: float = 0.0
    # Labels that are observed, and that are forced and move on.
    known: Mapping[int, int] = field(default_factory=dict)
    forced: Mapping[int, int] = field(default_factory=dict)
    # Observations that are made and forgotten.
    forgotten: tuple[Datum, ...] = ()
    # The data of each feature are one loop.
    in_loops: bool = False

    def program(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"[assume crp (make_crp {self.alpha} {self.discount})] [assume z (mem (lambda (i) (tag 'z i (crp))))]"
        for number, feature in enumerate(self.features):
            is_keyed = any(datum.key is not None for datum in self.data if datum.feature == number)
            yield f"[assume f{number} (mem (lambda (k{' j' if is_keyed else ''}) {feature.body}))]"
        for label, value in self.known.items():
            yield f"[observe (z {label}) {value}]"
        for number, feature in enumerate(self.features if self.in_loops else ()):
            its = [datum for datum in self.data if datum.feature == number]
            if its:
                call = f"(f{number} (z {{L{number}[n]}}){f' {{K{number}[n]}}' if its[0].key is not None else ''})"
                yield f"for n in 1...{len(its)}: [observe {feature.observed.format(call)} {{X{number}[n]}}]"
        for datum in () if self.in_loops else self.data:
            yield self._observed(datum)
        for number, datum in enumerate(self.forgotten):
            yield f"gone{number}: {self._observed(datum)}"
        for number in range(len(self.forgotten)):
            yield f"[forget gone{number}]"
        for label in range(1, self.labels + 1):
            # each of them exists
            yield f"[predict (z {label})]"
        for label, value in self.forced.items():
            yield f"[force (z {label}) {value}]"

    def _observed(self, datum: Datum) -> str:
        feature, key = self.features[datum.feature], "" if datum.key is None else f" {datum.key}"
        value = str(bool(datum.value)).lower() if feature.is_boolean else datum.value
        return f"[observe {feature.observed.format(f'(f{datum.feature} (z {datum.label}){key})')} {value}]"

    def parameters(self) -> dict[str, list[int] | list[float] | list[bool]]:
        if not self.in_loops:
            return {}
        found: dict[str, list[int] | list[float] | list[bool]] = {}
        for number, feature in enumerate(self.features):
            its = [datum for datum in self.data if datum.feature == number]
            found[f"L{number}"] = [datum.label for datum in its]
            found[f"K{number}"] = [datum.key or 0 for datum in its]
            found[f"X{number}"] = [bool(datum.value) if feature.is_boolean else datum.value for datum in its]
        return found

    def log_weight(self, partition: tuple[int, ...]) -> float:
        """The log joint probability of a partition and the data; -inf where observed labels do not fit it."""
        for i, first in self.known.items():
            for j, second in self.known.items():
                if (first == second) != (partition[i - 1] == partition[j - 1]):
                    return -math.inf
        grouped: dict[tuple[int, int, int | None], list[float]] = {}
        for datum in self.data:
            group = datum.feature, partition[datum.label - 1], datum.key
            grouped.setdefault(group, []).append(datum.value)
        evidence = (self.features[feature].log_evidence(data) for (feature, _, _), data in grouped.items())
        return log_crp(partition, self.alpha, self.discount) + math.fsum(evidence)

    def exact(self) -> Mapping[str, Expected]:
        weights = {partition_code(p): math.exp(self.log_weight(p)) for p in partitions(self.labels)}
        return {"z": table({code: weight for code, weight in weights.items() if weight > 0.0})}

    def case(self, name: str, *engines: str) -> Case:
        return Case(
            name=name,
            program=self.program(),
            query={"z": partition_expression([f"(z {n})" for n in range(1, self.labels + 1)])},
            exact=self.exact,
            engines=engines,
            derivation="All partitions, with the marginal likelihood of each class.",
            parameters=self.parameters(),
        )
