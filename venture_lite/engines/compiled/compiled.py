"""`(compile NAME SCOPE BLOCK ...)` learns proposals from draws of the program; `(compiled_mh NAME SCOPE BLOCK T)` makes
exact transitions with them (Liang et al. 2021, Accelerating Metropolis-Hastings with lightweight inference
compilation)."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from venture_lite.draws.draws import KernelStatistics
from venture_lite.engines.compiled import files
from venture_lite.engines.compiled.chains import chains_of
from venture_lite.engines.compiled.moves import CompiledMH
from venture_lite.engines.compiled.proposer import Proposer
from venture_lite.engines.compiled.report import LEAST_GAIN, ProposerReport
from venture_lite.engines.compiled.rounds import Rounds
from venture_lite.engines.compiled.structure import StateTrainer, trainer_of
from venture_lite.engines.compiled.supply import LastCompiled, supply_of
from venture_lite.engines.compiled.training import FRAMES, Trainer, refitted
from venture_lite.errors import ArgumentError, ParameterError, Span, VentureError, nearest
from venture_lite.inference.given import ActionForm, label_of
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part, located
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection
from venture_lite.values import show

WORLDS, COMPONENTS, HIDDEN, DEFENSIVE = 10_000, 5, 32, 0.05


class Proposers:
    """The proposers of a model, by name, and what blocks those are for that a program is about to compile."""

    def __init__(self, model: Model) -> None:
        self.known: dict[str, Proposer] = dict(supply_of(model).given)
        self.announced: dict[str, str] = {}


def proposers_of(model: Model) -> dict[str, Proposer]:
    return model.kept.lasting(Proposers, model).known


def quietly(model: Model, run: Callable[[], object]) -> list[ProposerReport]:
    """The reports of what a run compiles or loads, which are not printed."""
    supply, before = supply_of(model), dict(proposers_of(model))
    printed, supply.prints = supply.prints, False
    try:
        run()
    finally:
        supply.prints = printed
    return [made.report for name, made in proposers_of(model).items() if before.get(name) is not made]


@dataclass(frozen=True, slots=True)
class Compile(Part):
    """Makes, writes or reads proposers, and tells what came of it."""

    settings: str
    span: Span = field(repr=False, compare=False)
    once: Callable[[], None] = field(repr=False, compare=False)

    @property
    def heading(self) -> str:
        return f"{self.action} {self.settings}"

    def run(self) -> None:
        try:
            self.once()
        except VentureError as error:
            raise located(error, self.span) from error


def _compile(program: InferenceProgram, given: ActionForm) -> Part:
    name, model = label_of(given["NAME"]), program.model
    worlds = given.count("N", 100) if "worlds" in given else WORLDS
    components = given.count("K", 1) if "components" in given else COMPONENTS
    hidden = given.count("H", 1) if "hidden" in given else HIDDEN
    frame = given.word("FRAME", FRAMES) if "frame" in given else None
    if "frame" in given and frame is None:
        raise ArgumentError(f"FRAME must be {' or '.join(FRAMES)}", given["FRAME"].span)
    rounds = given.count("R") if "rounds" in given else 0
    scope, selector = given.scope, given.selector

    def train() -> Proposer | None:
        selection = Selection(model, scope, selector)
        if not any(selection.in_order()):
            program.warn(selection.missing() or f"compile: there is nothing to move in {show(scope)}")
            return None
        trainer = trainer_of(model, selection, worlds, components, hidden, frame, generator(model, name))
        with _watched(program, trainer, name):
            kinds, reports = trainer.run()
            proposer = Proposer(name, scope, show_selector(given), kinds, tuple(reports), trainer.rare)
            chains = chains_of(model, selection, DEFENSIVE, trainer.rng, isinstance(trainer, StateTrainer))
            in_box = trainer.run_in if isinstance(trainer, Trainer) else None
            driven = Rounds(model, selection, chains, partial(refitted, trainer), in_box, "box" in given)
            for _ in range(rounds):
                proposer = driven.after_round(proposer)
        return proposer

    model.kept.lasting(Proposers, model).announced[name] = show_selector(given)
    once = _loaded(program, given) if name in supply_of(model).given else _trained(program, given, train)
    return Compile(given.action, f"{name}: {worlds:,} worlds of {show_selector(given)}", given.span, once)


@contextlib.contextmanager
def _watched(program: InferenceProgram, trainer: Trainer | StateTrainer, name: str) -> Iterator[None]:
    """Progress is told the steps of the training, whose number is not known before."""
    steps = itertools.count(1)

    def poll() -> None:
        program.model.poll()
        program.progress.advance(next(steps))

    trainer.poll = poll
    program.progress.begin(f"training {name}", None)
    try:
        yield
    finally:
        program.progress.end()


def _trained(program: InferenceProgram, given: ActionForm, train: Callable[[], Proposer | None]) -> Callable[[], None]:
    """What trains a proposer at each run, for all chains together."""
    name, times = label_of(given["NAME"]), itertools.count()

    def once() -> None:
        supply, at, start = supply_of(program.model), next(times), time.perf_counter()
        key = given.span, at
        is_new = key not in program.joint
        if is_new:
            program.joint[key] = supply.trained(name, train, program.model.poll)
        proposer: Proposer | None = program.joint[key]
        if proposer is not None:
            proposers_of(program.model)[name] = proposer
            if at:
                # in a loop: what was drawn by a proposer that is learned again does not count
                program.draws.mark_earlier()
            _note(program, given, proposer, time.perf_counter() - start)
            if is_new:
                _tell(program, proposer)
        if supply.last == given.span:
            raise LastCompiled

    return once


def _loaded(program: InferenceProgram, given: ActionForm) -> Callable[[], None]:
    """What stands for the training of a proposer that a file has."""
    model, name = program.model, label_of(given["NAME"])
    proposer = supply_of(model).given[name]
    _refuse_others(proposer.blocks, given)

    def once() -> None:
        CompiledMH(model, {name: proposer}, name, DEFENSIVE, program.warn).inspect(
            Selection(model, given.scope, given.selector)
        )
        proposers_of(model)[name] = proposer
        _note(program, given, proposer, 0.0)
        _tell_loaded(program, proposer)

    return once


def _note(program: InferenceProgram, given: ActionForm, proposer: Proposer, seconds: float) -> None:
    """Statistics of a training, a row for each kind of block."""
    program.notes[given.span] = [
        KernelStatistics(given.span.text, 0, 0, 0, seconds, details=report.details()) for report in proposer.reports
    ]


def show_selector(given: ActionForm) -> str:
    """The blocks of an action: drawn, one by one or in order, they are the same."""
    block = given["BLOCK"].span.text
    return f"{given['SCOPE'].span.text} {'one' if given.selector.kind in ('each', 'ordered') else block}"


def generator(model: Model, name: str) -> np.random.Generator:
    """Of worlds, weights and minibatches: of the session's seed and the name alone, whichever chain trains."""
    seed = model.trace.rng.bit_generator.seed_seq
    assert isinstance(seed, np.random.SeedSequence)
    own = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(own,)))


def _tell(program: InferenceProgram, proposer: Proposer) -> None:
    if supply_of(program.model).prints:
        print(proposer.report)
    if proposer.report.gain < LEAST_GAIN:
        gain = f"{proposer.report.gain:.3g} nats over the prior"
        program.warn(f"compile: {proposer.name} gains {gain} by reading its inputs: it is not worth its time")


def _tell_loaded(program: InferenceProgram, proposer: Proposer) -> None:
    text = f"proposer {proposer.name}: loaded, {proposer.parameters:,} parameters"
    if supply_of(program.model).prints and program.is_first(text):
        print(text)


def _path(given: ActionForm) -> Path:
    path = given.value("FILE")
    if not isinstance(path, str) or not path:
        raise ArgumentError(f"FILE must be a string, got {show(path)}", given["FILE"].span)
    return Path(path)


def _save(program: InferenceProgram, given: ActionForm) -> Part:
    path, times = _path(given), itertools.count()

    def save() -> None:
        if not program.is_first((given.span, next(times))):
            return
        trained = [proposer for proposer in proposers_of(program.model).values() if proposer.kinds]
        try:
            files.save(trained, path)
        except OSError as error:
            raise ParameterError(f"{path}: {error.strerror or error}", given["FILE"].span) from None

    return Compile(given.action, str(path), given.span, save)


def _load(program: InferenceProgram, given: ActionForm) -> Part:
    path, known = _path(given), proposers_of(program.model)
    announced = program.model.kept.lasting(Proposers, program.model).announced
    found: list[Proposer] = []
    # what the program does with the names comes after this; a file that cannot be read is told when it is needed
    with contextlib.suppress(ParameterError):
        found += files.load(path)
        announced.update({proposer.name: proposer.blocks for proposer in found})

    def load() -> None:
        try:
            found[:] = found or files.load(path)
        except ParameterError as error:
            error.span = given["FILE"].span
            raise
        known.update({proposer.name: proposer for proposer in found})
        for proposer in found:
            _tell_loaded(program, proposer)

    return Compile(given.action, str(path), given.span, load)


def _refuse_others(blocks: str, given: ActionForm) -> None:
    """Raises ArgumentError where the blocks of an action are not those that the proposer was compiled for."""
    if blocks != show_selector(given):
        name = label_of(given["NAME"])
        rest = " T" if given.action == "compiled_mh" else ""
        message = f"proposer {name} was compiled for {blocks}"
        raise ArgumentError(message, given["SCOPE"].span, f"({given.action} {name} {blocks}{rest})")


def _compiled_mh(program: InferenceProgram, given: ActionForm) -> Part:
    name, known = label_of(given["NAME"]), proposers_of(program.model)
    announced = program.model.kept.lasting(Proposers, program.model).announced
    blocks = announced.get(name) or (known[name].blocks if name in known else None)
    if blocks is None:
        there = f"there are {', '.join(sorted(known))}" if known else "compile makes one"
        raise ArgumentError(f"there is no proposer {name}", given["NAME"].span, nearest(name, known) or there)
    _refuse_others(blocks, given)
    safe = (
        float(given.number("EPS", "above 0 and at most 1", lambda x: 0.0 < x <= 1.0))
        if "defensive" in given
        else DEFENSIVE
    )
    engine = CompiledMH(program.model, known, name, safe, program.warn)
    return given.kernel(f"proposals of {name}", engine)


COMPILE = Action(
    "compile",
    ("(compile NAME SCOPE BLOCK ['worlds N] ['components K] ['hidden H] ['frame FRAME] ['rounds R ['box]])",),
    "Learns proposals for blocks from joint draws of the program and its data: a network for each kind of block reads "
    "what the block depends on and what depends on it. Moves nothing; prints what was learned. N worlds (10,000), K "
    "normals for each number (5), hidden layers of H (32). FRAME is prior, or newton where there is a gradient. R "
    "rounds (0) correct it on the data at hand; with 'box only by what serves other data near these, too.",
    _compile, for_all_chains=True,
)  # fmt: skip
COMPILED_MH = Action(
    "compiled_mh", ("(compiled_mh NAME SCOPE BLOCK ['defensive EPS] T)",),
    "T exact transitions with what compile learned as NAME: proposals from the network, with probability EPS (0.05) "
    "from the prior or from the network made wide.", _compiled_mh,
)  # fmt: skip
SAVE_PROPOSERS = Action(
    "save_proposers", ("(save_proposers FILE)",), "Writes every proposer that was compiled to a .npz file.", _save,
    for_all_chains=True,
)  # fmt: skip
LOAD_PROPOSERS = Action(
    "load_proposers", ("(load_proposers FILE)",),
    "Reads proposers that save_proposers wrote, on these data or on others of the same program.", _load,
    for_all_chains=True,
)  # fmt: skip
