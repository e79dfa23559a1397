"""What the training of a proposer came to: what `compile` prints, `Venture.compile` returns and files keep."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

MOST_TOLD = 4
"""Choices of a block that a report names."""
LEAST_GAIN = 0.05
"""Nats of the held-out loss below which a proposer is said not to be worth its time."""


@dataclass(frozen=True, slots=True)
class KindReport:
    """What the training for one kind of block came to. Seconds are CPU time; losses are means of -log density of
    held-out blocks in the coordinates of the frame, in nats."""

    # the choices of a block, by the text of their sites
    sites: tuple[str, ...]
    # how many blocks of the kind there are
    blocks: int
    worlds: int
    # worlds that could not be drawn, in which a block cannot be read at the centre of its frame, or its own numbers are
    # beyond the floats: they are left out
    failed: int
    # drawing worlds and reading them, for all kinds together
    seconds_of_worlds: float
    seconds_of_training: float
    parameters: int
    loss: float
    # of proposing from the prior
    prior_loss: float
    # the coordinates: `prior` or `newton`
    frame: str
    # what reads a block, each with its mean number of rows
    ports: tuple[tuple[str, float], ...]
    # numbers among the inputs that were cut to six standard deviations
    clipped: int
    # what each round came to
    rounds: tuple[str, ...] = ()
    rounds_kept: int = 0

    def after_round(self, told: str, is_kept: bool) -> KindReport:
        return replace(self, rounds=(*self.rounds, told), rounds_kept=self.rounds_kept + is_kept)

    def trained_again(self, report: KindReport) -> KindReport:
        """What another training came to, with the rounds of this one before it."""
        return replace(report, rounds=self.rounds, rounds_kept=self.rounds_kept)

    @property
    def gain(self) -> float:
        """Nats by which the network's loss is below the prior's; infinite where the frame is all there is."""
        return self.prior_loss - self.loss if self.parameters else math.inf

    def details(self) -> dict[str, float]:
        """All numbers, by name, for the statistics of an inference."""
        numbers = {
            "worlds": self.worlds,
            "worlds left out": self.failed,
            "seconds for worlds": self.seconds_of_worlds,
            "seconds for training": self.seconds_of_training,
            "parameters": self.parameters,
            "held-out loss": self.loss,
            "held-out loss of the prior": self.prior_loss,
            "newton frame": self.frame == "newton",
            "inputs clipped": self.clipped,
            "rounds kept": self.rounds_kept,
        }
        numbers |= {f"rows of {text}": count for text, count in self.ports}
        return {name: float(number) for name, number in numbers.items()}

    def _what(self) -> str:
        """The blocks, by the choices of one."""
        more = f" and {len(self.sites) - MOST_TOLD} more" if len(self.sites) > MOST_TOLD else ""
        return f"{self.blocks} x {', '.join(self.sites[:MOST_TOLD])}{more}"

    def __str__(self) -> str:
        ports = ", ".join(f"{text} ({count:.3g} rows)" for text, count in self.ports) or "none"
        left_out = f", {self.failed:,} left out" if self.failed else ""
        clipped = f", {self.clipped:,} inputs clipped" if self.clipped else ""
        rounds = "".join(f"; round {at} {told}" for at, told in enumerate(self.rounds, 1))
        learned = (
            f"{self.parameters:,} parameters, trained in {self.seconds_of_training:.2f} s{clipped}; held-out loss "
            f"{self.loss:.3g} nats in the {self.frame} frame, {self.prior_loss:.3g} by the prior"
        )
        return (
            f"{self._what()}; {self.worlds:,} worlds{left_out} in {self.seconds_of_worlds:.2f} s; "
            f"{learned if self.parameters else f'the {self.frame} frame alone'}; read by: {ports}{rounds}"
        )


@dataclass(frozen=True, slots=True)
class ProposerReport:
    """What `compile` made under a name: a report for each kind of block."""

    name: str
    kinds: tuple[KindReport, ...]

    @property
    def parameters(self) -> int:
        return sum(kind.parameters for kind in self.kinds)

    @property
    def gain(self) -> float:
        """The least that a kind gains."""
        return min((kind.gain for kind in self.kinds), default=0.0)

    def __iter__(self) -> Iterator[KindReport]:
        return iter(self.kinds)

    def __len__(self) -> int:
        return len(self.kinds)

    def __str__(self) -> str:
        return "\n".join(f"proposer {self.name}: {kind}" for kind in self.kinds) or f"proposer {self.name}: nothing"

    __repr__ = __str__
