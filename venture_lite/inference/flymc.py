"""`flymc`: Firefly Monte Carlo (Maclaurin and Adams 2014), exact transitions that look at the bright rows.

A transition resamples the brightness given the block (`firefly.py`), then moves the block given the brightness
(`firefly_moves.py`). Blocks are those whose rows read them through linear predictors (`linear_block.py`).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from venture_lite.errors import ArgumentError
from venture_lite.forms import scope_name
from venture_lite.inference.firefly import Firefly, Settings
from venture_lite.inference.firefly_moves import Langevin, Move, Slice, Step, Walk
from venture_lite.inference.inspection import inspected_first
from venture_lite.inference.mh import Resimulation
from venture_lite.inference.precondition import MOVED
from venture_lite.inference.program import Action, InferenceProgram, Kernel
from venture_lite.inference.reading import is_symbol, options_of, parts_of
from venture_lite.inference.supports import from_within
from venture_lite.syntax import Expression, Form
from venture_lite.trace.directives import Model

MOVES: dict[str, tuple[type[Walk] | type[Langevin] | type[Slice], str]] = {
    "drift": (Walk, "the drift's SIGMA"), "mala": (Langevin, "STEP"), "slice": (Slice, "WIDTH"),
}  # fmt: skip
"""What a kernel is named, the move, and what its number is named."""


class FireflyMonteCarlo:
    """Transitions of one `flymc` action. The blocks' states live with the trace, for all actions whose bounds are made
    alike."""

    def __init__(self, program: InferenceProgram, settings: Settings, move: Move, size: float, adapting: int) -> None:
        self.program = program
        self.settings = settings
        self.move = move
        self.size = size
        self.adapting = adapting
        self._states: dict[tuple[int, ...], tuple[Firefly, Step]] = {}
        self._transitions = 0
        self._accepted = 0
        self._bright = 0
        # evaluations of rows by purpose, those of transitions that adapted apart
        self._queries: Counter[str] = Counter({"set-up": 0})
        # what became of set-ups, by name
        self._counts: Counter[str] = Counter()
        # choices that stood when the action began, and blocks whose new scale this action has not looked at yet
        self._stood: frozenset[int] = frozenset()
        self._new: set[tuple[int, ...]] = set()

    @property
    def rows(self) -> int:
        """Evaluations of rows, all told."""
        return self._queries.total()

    def begin(self, nodes: list[int]) -> None:
        """The action runs for the first time; these are the choices that it may move."""
        self._stood = frozenset(nodes)

    def prepare(self, model: Model, nodes: list[int]) -> tuple[Firefly, Step]:
        """The state of a block; raises KernelError where there can be none."""
        block = tuple(nodes)
        found = self._states.get(block)
        if found is None:
            step = Step(self.size, self.move.target or 0.0, self.adapting)
            found = self._states[block] = self._kept_or_made(model, block), step
        return found

    def _key(self, block: tuple[int, ...]) -> tuple[Any, ...]:
        return ("firefly", *block, *self.settings.made_from)

    def _kept_or_made(self, model: Model, block: tuple[int, ...]) -> Firefly:
        setups = model.setups
        kept: Firefly | None = setups.find(self._key(block))
        if kept is not None and kept.follows(self.program.warn):
            self._counts["set-ups kept"] += 1
            return kept
        made = Firefly(model, block, self.settings, self.program.warn)
        setups.keep(self._key(block), made)
        self._counts["set-ups made"] += 1
        if made.is_scale_new:
            self._new.add(block)
        return made

    def step(self, nodes: list[int], key: Any) -> bool:
        """One transition; whether the block moved."""
        firefly, step = self.prepare(self.program.model, nodes)
        is_adapting = step.adapting > 0
        try:
            firefly.refresh()
            self._settle(firefly, tuple(nodes))
            firefly.resample(self.settings)
            moved = self.move(firefly, step)
        except BaseException:
            # it may be in the middle of a change
            self.program.model.setups.drop(self._key(tuple(nodes)))
            raise
        finally:
            self._count(firefly, is_adapting)
        if self.adapting:
            self.program.draws.mark((self, *nodes), is_adapting)
        if not is_adapting:
            self._transitions += 1
            self._accepted += moved
            self._bright += firefly.brightness.bright_count
        return moved

    def _settle(self, firefly: Firefly, block: tuple[int, ...]) -> None:
        """Where this action made the scale, move the block once to where it holds."""
        if block not in self._new:
            return
        self._new.discard(block)
        if self._stood.issuperset(block) and firefly.settle():
            self._counts[MOVED] += 1
            self.program.draws.mark_earlier()

    def _count(self, firefly: Firefly, is_adapting: bool) -> None:
        for purpose, count in firefly.queries.items():
            self._queries["adaptation" if is_adapting and purpose != "set-up" else purpose] += count
        firefly.queries.clear()

    def details(self) -> dict[str, float]:
        """By name, for the statistics of the kernel; means are over the transitions that did not adapt."""
        found: dict[str, float] = {f"queries of {purpose}": count for purpose, count in self._queries.items()}
        if self._transitions:
            found |= {
                "queries a transition": (self._queries["proposals"] + self._queries["brightening"]) / self._transitions,
                "mean bright rows": self._bright / self._transitions,
                "acceptance": self._accepted / self._transitions,
            }
        for firefly, step in self._states.values():
            found["step"] = step.size
            if firefly.scale is not None:
                found[f"preconditioned by the {firefly.scale.curvature}"] = 1
        return found | dict(self._counts)


def _compile_flymc(program: InferenceProgram, form: Form) -> Kernel:
    usage = " or ".join(FLYMC.usage)
    parts = parts_of(form, 8, usage)
    scope, selector = scope_name(parts[0]), program.selector(parts[1])
    known = {**dict.fromkeys(MOVES, 1), "precondition": 0, "explicit": 1, "adapt": 1}
    options = options_of(form, parts[5:-1], known, usage)
    named = [name for name in MOVES if name in options]
    if len(named) != 1:
        raise ArgumentError(f"flymc is written {usage}", form.span)
    kind, meaning = MOVES[named[0]]
    size = program.positive(options[named[0]][0], meaning)
    if kind is Slice and ("precondition" in options or "adapt" in options):
        raise ArgumentError("a slice has no step for 'precondition or 'adapt", form.span, "'drift or 'mala")
    adapting = program.count(options["adapt"][0], "BURN") if "adapt" in options else 0
    explicit = _fraction(program, options["explicit"][0], "FRACTION") if "explicit" in options else None
    settings = Settings(
        _bound_name(parts[2]),
        _is_at_mode(parts[3]),
        _fraction(program, parts[4], "Q"),
        explicit,
        "precondition" in options,
    )
    engine = FireflyMonteCarlo(program, settings, kind(), size, adapting)

    def refuse(model: Model, nodes: list[int]) -> None:
        engine.prepare(model, nodes)

    step = from_within(program.model, engine.step, Resimulation(program.model))
    run = program.kernel(form, scope, selector, program.count(parts[-1], "T"), step, engine)
    return inspected_first(program, scope, selector, form, run, refuse, by_block=True, begin=engine.begin)


def _bound_name(part: Expression) -> str | None:
    name = scope_name(part)
    if not isinstance(name, str):
        raise ArgumentError("BOUND must be auto or the name of a bound", part.span)
    return None if name == "auto" else name


def _is_at_mode(part: Expression) -> bool:
    for name in ("map", "untuned"):
        if is_symbol(part, name):
            return name == "map"
    raise ArgumentError("TUNING must be 'map or 'untuned", part.span)


def _fraction(program: InferenceProgram, part: Expression, what: str) -> float:
    value = program.probability(part, what)
    if not value:
        raise ArgumentError(f"{what} must be above 0", part.span)
    return value


FLYMC = Action(
    "flymc",
    (
        "(flymc SCOPE BLOCK BOUND TUNING Q 'drift SIGMA ['precondition] ['explicit FRACTION] ['adapt BURN] T)",
        "(flymc SCOPE BLOCK BOUND TUNING Q 'mala STEP ['precondition] ['explicit FRACTION] ['adapt BURN] T)",
        "(flymc SCOPE BLOCK BOUND TUNING Q 'slice WIDTH ['explicit FRACTION] T)",
    ),
    "T transitions of Firefly Monte Carlo. BOUND is auto or a bound's name, TUNING 'map or 'untuned, Q the probability "
    "with which a dark row is proposed to brighten. 'explicit draws a FRACTION of the brightness anew instead; 'adapt "
    "tunes the step for BURN transitions.",
    _compile_flymc,
)
