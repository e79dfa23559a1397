"""Runs the program that was composed: a warm-up, then draws until they are enough."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from venture_lite.draws.draws import Draws
from venture_lite.draws.kernel_summary import MOST_DIVERGENT, kernel_rows
from venture_lite.draws.presentation import duration, listed, number
from venture_lite.engines.adaptation import LEAST_BURN
from venture_lite.engines.hmc import TARGET
from venture_lite.errors import ArgumentError, Source, VentureError, VentureWarning, warn
from venture_lite.interpreter.model import Model
from venture_lite.language.parse import parse_expression
from venture_lite.language.syntax import Expression
from venture_lite.session.auto.advice import written_apart
from venture_lite.session.auto.composing import Composer, composed
from venture_lite.session.auto.improper import refuse_exact_fit, refuse_improper
from venture_lite.session.auto.judging import Judgement, judged, looks
from venture_lite.session.auto.places import BURN, FEW_PATHS, PATHS, STRIDE, SWEEPS, Place, elsewhere, places_line
from venture_lite.session.auto.trials import APPROXIMATE, ROW_KERNELS, tried
from venture_lite.session.programs import expression_of

MOST_DRAWS = 10_000
"""A chain, or DRAWS where these are more, of a posterior that never has enough."""
PATIENCE = 2
"""Looks after which chains that are in different places are taken to stay there."""
LEAST_DRAWS = 20
"""A chain."""
TARGETS = (TARGET, 0.95, 0.99)
"""Acceptances to which the steps of paths are tuned, one after the other, while more of them diverge."""
PARTS = 20
"""Of a warm-up, between which the clock is looked at."""
EARLY = 4
"""Parts of the first draws, after which it is seen whether too many of the paths have diverged already..."""
LONG = 10.0
"""... where the warm-up took so many seconds."""
SHOWN = 8
"""Quantities that a person is shown in the program."""


@dataclass(frozen=True, slots=True)
class AutoOptions:
    """What is asked of `auto`."""

    # a chain, at least
    draws: int = 1000
    # where the session has one
    chains: int = 4
    target_ess: float = 400.0
    # None for as long as it takes
    seconds: float | None = None
    # expressions that are drawn in place of what is judged
    collect: tuple[str, ...] | None = None
    warmup: int = 1000
    # whether kernels may be taken that leave what is not quite the posterior
    approximate: bool = False


def options_of(
    draws: int,
    chains: int,
    target_ess: float,
    seconds: float | None,
    collect: Iterable[str] | None,
    warmup: int,
    approximate: bool = False,
) -> AutoOptions:
    """Raises ArgumentError for what cannot be asked."""
    for name, value, least in (("draws", draws, LEAST_DRAWS), ("chains", chains, 1), ("warmup", warmup, LEAST_BURN)):
        if not isinstance(value, (int, np.integer)) or value < least:
            raise ArgumentError(f"{name} must be a whole number, {least} or more, got {value!r}")
    for name, amount in (("target_ess", target_ess), ("seconds", seconds)):
        if amount is not None and not (isinstance(amount, (int, float)) and 0.0 < amount < math.inf):
            raise ArgumentError(f"{name} must be a positive number, got {amount!r}")
    if isinstance(collect, str):
        raise ArgumentError("collect is a list of expressions, as in collect=['mu', '(* 2 sd)']")
    expressions = None if collect is None else tuple(collect)
    for text in expressions or ():
        expression_of(text)
    if not isinstance(approximate, (bool, np.bool_)):
        raise ArgumentError(f"approximate is True or False, got {approximate!r}")
    return AutoOptions(int(draws), int(chains), float(target_ess), seconds, expressions, int(warmup), bool(approximate))


class Runs(Protocol):
    """A program on all chains, which can go on."""

    def more(self, times: int = 1) -> Draws:
        """Run it so many times more: all draws so far."""

    def tell_impossible(self) -> None:
        """Say of chains that stand at probability zero that they do."""


class RunProgram(Protocol):
    """Brings a program to all chains of a session, with what begins it."""

    def __call__(self, expression: Expression, *, start: Expression | None) -> AbstractContextManager[Runs]: ...


class Others(Protocol):
    """Other traces of the same model, which stand where they are left."""

    def run(self, expression: Expression, start: Expression | None) -> AbstractContextManager[Runs]:
        """As of `RunProgram`."""

    def keep(self, positions: Iterable[int]) -> None:
        """Go on with these alone."""


class AutoRun:
    """One run of `auto`. Mutates the chains of the session."""

    def __init__(
        self,
        model: Model,
        run: RunProgram,
        others: Callable[[int], Others],
        options: AutoOptions,
        began: float,
        target: float = TARGETS[0],
        tried: str = "",
        on_draws: Callable[[Draws], None] = lambda draws: None,
    ) -> None:
        """`model` is the first chain's, `others` makes so many traces for what is no draw, `target` is the acceptance
        to which the steps of paths are tuned, after what was `tried` before; the seconds of the options count from
        `began`, a monotonic time. `on_draws` is told the draws before other paths are looked at.

        Raises KernelError for a model that no program can be composed for, or whose posterior is improper.
        """
        self._run, self._others, self._options, self._began = run, others, options, began
        self._model, self._on_draws = model, on_draws
        self.target = target
        self.composed, self.left_out = composed(model, options.warmup, options.collect, target)
        if target == TARGETS[0]:
            nodes = model.trace.default.everything()
            refuse_improper(model, nodes)
            refuse_exact_fit(model, nodes)
            for line in written_apart(model, nodes):
                warn(f"auto: {line}")
            if held := self.composed.held:
                warn(
                    f"auto: {listed(held, SHOWN)} hold one another: neither can take all of its values while the other "
                    "stays, and there are too many to draw them together. The draws may miss values, and nothing that "
                    "is said of them tells; write one choice for both"
                )
        # seconds of the warm-up and of the draws
        self._warming = self._drawing = 0.0
        # draws a chain so far
        self.warmed = self.made = 0
        # the share of transitions that diverged
        self.divergent = 0.0
        # whether the chains are in one place
        self._is_joined = True
        # what is said of other paths, and of other kernels
        self.compared, self.tried = "", tried

    def draws(self) -> Draws:
        """Those after the warm-up."""
        if self.target == TARGETS[0]:
            self._try_row_kernels()
        here = time.monotonic()
        start: str | None = self.composed.start
        if self.composed.has_set_ups:
            start, self.warmed = self.composed.warmed_up(self._options.warmup), self._options.warmup
        elif not self.composed.adapts:
            with self._running(self.composed.sweep, start) as runs:
                early = self._warm_up(runs)
            start = None
        with self._running(self.composed.draw, start) as runs:
            if self.composed.adapts:
                early = self._warm_up(runs)
            if self.warmed < self._options.warmup:
                # marked where they are draws at all
                self._warming = time.monotonic() - here
                self._tell_short()
                return early
            self._warming = time.monotonic() - here
            draws = self._enough(runs)
        self._drawing = time.monotonic() - here - self._warming
        if not self.should_be_finer and self._is_joined:
            self._on_draws(draws)
            self._compare(draws)
        return draws

    def _try_row_kernels(self) -> None:
        """Compose with a kernel that looks at some of very many rows, where a trial on a copy shows that it gains."""
        options, model = self._options, self._model
        composer = Composer(model, options.warmup)
        if self._left <= 0.0 or not composer.has_row_kernels():
            self.tried = "no kernel is approximate: none is known for this model" if options.approximate else ""
            return
        names = [name for name in ROW_KERNELS if options.approximate or name != APPROXIMATE]
        programs = {name: composed(model, BURN, None, self.target, name)[0].draw for name in names}
        paths = composed(model, BURN, None, self.target)[0]
        try:
            trial = tried(self._others(1).run, paths.start_aside, paths.draw, programs)
        except VentureError as error:
            # what was frozen or changed since cannot be had again
            self.tried = f"other kernels were not tried: {error.message}"
            return
        self.tried = trial.told
        self.composed, self.left_out = composed(model, options.warmup, options.collect, self.target, trial.chosen)

    def _compare(self, draws: Draws) -> None:
        """Tell of places that other paths lead to and no chain came to."""
        chains, paths = draws.chain_count, FEW_PATHS if self.composed.has_long_paths else PATHS
        if not self.composed.has_paths or self._options.collect is not None or chains >= paths or self._left <= 0.0:
            return
        try:
            places = self._places(draws, paths - chains)
        except VentureError as error:
            # what was frozen or changed since cannot be had again; or a path met what chains did not
            self.compared = f"other paths were not compared: {error.message}"
            return
        except BaseException as error:
            error.draws = draws  # type: ignore[attr-defined]
            raise
        if places is None:
            self.compared = f"{paths} paths from random starts were not followed to the end: {self._seconds} s are over"
            return
        self.compared = f"{paths} paths from random starts were compared"
        if places:
            warn(f"auto: {places_line(places.values(), paths)}")

    def _places(self, draws: Draws, paths: int) -> dict[int, Place] | None:
        """Where so many other paths stand in the end that no chain came to; None where there was no time to see."""
        others, start = self._others(paths), parse_expression(Source("<auto>", self.composed.start_aside))
        with warnings.catch_warnings():
            # nothing that is said of them is of draws
            warnings.simplefilter("ignore", VentureWarning)
            with others.run(parse_expression(Source("<auto>", self.composed.look)), start) as runs:
                looked = runs.more()
                if self._left <= 0.0:
                    return None
                places = elsewhere(draws, looked)
            if places:
                moved = composed(self._model, BURN, None, self.target)[0].moved(STRIDE)
                others.keep(places)
                with others.run(parse_expression(Source("<auto>", moved)), None) as runs:
                    for _ in range(SWEEPS // STRIDE):
                        moved_on = runs.more()
                        if self._left <= 0.0:
                            return None
                        places = elsewhere(draws, moved_on)
                        if not places:
                            break
        return places

    def _running(self, text: str, start: str | None) -> AbstractContextManager[Runs]:
        begin = None if start is None else parse_expression(Source("<auto>", start))
        return self._run(parse_expression(Source("<auto>", text)), start=begin)

    @property
    def program(self) -> str:
        """The whole program, as it ran."""
        return self.composed.text(self.warmed, self.made)

    def _warm_up(self, runs: Runs) -> Draws:
        """What is drawn meanwhile; of fewer runs than asked for where the time is up."""
        options = self._options
        part = options.warmup if options.seconds is None else max(1, options.warmup // PARTS)
        while True:
            step = min(part, options.warmup - self.warmed)
            # one shows what a sweep takes, which may be longer than all the time that there is
            step = self._affordable(step) if self.warmed or options.seconds is None else 1
            draws, self.warmed = self._made(runs, self.warmed + step, step)
            if self.warmed == options.warmup or self._left <= 0.0:
                return draws

    def _made(self, runs: Runs, wanted: int, step: int) -> tuple[Draws, int]:
        """The draws so far, after so many more, with how many each chain has; where the time was up, as many as all
        chains have."""
        draws = runs.more(step)
        if self._left > 0.0:
            return draws, wanted
        draws = draws.shared()
        return draws, min(draws.lengths().values(), default=0)

    @property
    def should_be_finer(self) -> bool:
        """Whether it is to begin anew with smaller steps: paths miss where the density is steep."""
        return self.divergent > MOST_DIVERGENT and self.target < TARGETS[-1] and self._left > 0.0

    @property
    def _left(self) -> float:
        """Seconds."""
        seconds = self._options.seconds
        return math.inf if seconds is None else seconds - (time.monotonic() - self._began)

    def _enough(self, runs: Runs) -> Draws:
        """Draws until they are enough, or will not be."""
        for look, wanted in enumerate(looks(self._options.draws), 1):
            while self.made < wanted:
                draws = self._more(runs, wanted)
                # of all that will be made, whatever the others do
                self.divergent = divergent(draws) * self.made / wanted
                if self._left <= 0.0 or self.should_be_finer:
                    break
            if self.composed.adapts:
                draws = draws.after(self.warmed)
            self.divergent = divergent(draws)
            if self.should_be_finer:
                return draws
            if not self.made:
                warn(f"auto: {self._seconds} s are over, and the warm-up took them all")
                return draws
            judgement = judged(draws, self._options.target_ess)
            self._is_joined = not judgement.apart
            if self._ends(judgement, look):
                self._tell(judgement)
                return draws
        raise AssertionError("looks never end")

    def _more(self, runs: Runs, wanted: int) -> Draws:
        """A part of the draws wanted, or all that are missing."""
        step = self._affordable(wanted - self.made)
        if self.made < self._options.draws and self.target < TARGETS[-1] and self._warming > LONG:
            step = min(step, math.ceil(wanted / EARLY))
        # draws are made from there
        runs.tell_impossible()
        before = self.warmed if self.composed.adapts else 0
        draws, made = self._made(runs, before + self.made + step, step)
        self.made = made - before
        return draws

    def _affordable(self, wanted: int) -> int:
        """How many draws there is time for, by what those so far took."""
        if math.isinf(self._left):
            return wanted
        each = (time.monotonic() - self._began) / (self.warmed + self.made)
        return max(1, min(wanted, int(self._left / each)))

    def _ends(self, judgement: Judgement, look: int) -> bool:
        if judgement.is_enough and judgement.draws >= self._options.draws:
            return True
        if self._left <= 0.0:
            warn(f"auto: {self._seconds} s are over after {self.made:,} draws a chain: {_reached(judgement)}")
            return True
        if look > PATIENCE and (judgement.apart or not judgement.draws):
            return True
        if self.made >= max(MOST_DRAWS, self._options.draws):
            warn(f"auto: {self.made:,} draws a chain are not enough: {_reached(judgement)}")
            return True
        return False

    @property
    def _seconds(self) -> str:
        return number(self._options.seconds or 0.0, 3)

    # --------------------------------------------------------------------------------------------------- telling

    def _tell_short(self) -> None:
        warn(
            f"auto: {self._seconds} s are too short for a warm-up: it got to {self.warmed:,} of "
            f"{self._options.warmup:,} draws, which do not count"
        )

    def _tell(self, judgement: Judgement) -> None:
        for line in judgement.warnings():
            warn(f"auto: {line}")

    def preface(self) -> str:
        """The program and what it took, for the head of a summary."""
        seconds = f"{duration(self._warming)} for the warm-up, {duration(self._drawing)} for the draws"
        lines = [self.composed.text(self.warmed, self.made, SHOWN)]
        if self.target != TARGETS[0]:
            lines.append(f"begun anew with smaller steps, tuned to an acceptance of {self.target}, as paths diverged")
        lines.append(f"{self.warmed:,} draws a chain to warm up, then {self.made:,}: {seconds}")
        lines.extend(line for line in (self.tried, self.compared) if line)
        for why in dict.fromkeys(left.why for left in self.left_out):
            texts = [left.text for left in self.left_out if left.why == why]
            lines.append(f"not drawn ({why}): {listed(texts, SHOWN)}")
        return "\n".join(lines)


def divergent(draws: Draws) -> float:
    """The share of transitions that diverged, of the kernel where most did."""
    return max((row.divergent for row in kernel_rows(draws.statistics)), default=0.0)


def _reached(judgement: Judgement) -> str:
    if not judgement.draws:
        return "all of them are warm-up"
    least = judgement.least
    if least is None:
        return "nothing moves"
    return f"{least.name} has {least.ess:.0f} effective draws and an R-hat of {least.r_hat:.3f}"
