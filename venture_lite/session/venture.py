"""`Venture`: one program, one trace for each chain, and a method for each directive."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np

from venture_lite.draws.draws import Draws, DrawsBuilder
from venture_lite.errors import ArgumentError, Source, Span, VentureWarning
from venture_lite.inference.explain import Explanation
from venture_lite.inference.progress import for_person
from venture_lite.interpreter.machine import Limits
from venture_lite.interpreter.model import WAYS, Model
from venture_lite.interpreter.tally import Progress
from venture_lite.language import syntax
from venture_lite.language.source_files import read_source
from venture_lite.procedures.predictor import LinearPredictor
from venture_lite.procedures.registered.makers import ExchangeableState
from venture_lite.procedures.registered.registration import user_procedure
from venture_lite.procedures.registered.signatures import Arguments
from venture_lite.procedures.registered.value_domains import ValueDomainLike
from venture_lite.program.supplied import Parameters
from venture_lite.session.chains import ChainExecutor, Chains, Given
from venture_lite.session.door import door
from venture_lite.session.programs import (
    DirectiveResult,
    constant_of,
    expression_of,
    label_of,
    name_of,
    reference_to,
    written,
)
from venture_lite.session.runner import Runner
from venture_lite.session.undo import Undo
from venture_lite.values import written as value_as_text

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from venture_lite.engines.compiled.report import ProposerReport


class Venture:
    """A model and its inference: runs programs, and has a method for each directive.

        v = Venture(seed=1)
        v.assume("mu", "(normal 0 10)")
        v.execute("for n in 1...3: [observe (normal mu 1) {y[n]}]", y=[1.1, 0.4, 1.6])
        draws = v.infer("(repeat 1000 (do (mh default one 10) (collect mu)))")

    `seed` is a whole number, or None for fresh entropy (kept as `v.seed`); the same seed gives the same values and
    draws. `chains` is the number of independent traces, chain k drawing from `SeedSequence(seed).spawn(chains)[k]`;
    of several, a value is a list with one for each. `nested_calls`, and `memory_mb` of the whole process, stop a
    program that would never end.

    `kernels` says how transitions are made: "compiled", by a fast way where a block has one; "interpreted", each on the
    trace by its definition; "checked", in both ways from the same state with the same random numbers, which raises
    InternalError where weights, decisions or values differ. The draws are the same, but where a fast way takes its
    random numbers in another order: in `pgibbs`, in the kernels of `smc`, in `anneal` of collapsed components, and in
    `(mh SCOPE one T)` behind a kernel with 'weights.

    `executor` is any executor of `concurrent.futures`, in which the chains of inferences then run: in other processes,
    on other machines; the draws are the same.

    A mistake raises VentureError, which tells its place in the text, what is wrong and what to try; the traces are then
    as they were before the directive. Sessions are independent of each other, also in threads; one session runs one
    directive at a time. A session cannot be pickled or copied.
    """

    def __init__(
        self,
        seed: int | None = None,
        chains: int = 1,
        *,
        only_chain: int | None = None,
        progress: Progress | None = None,
        nested_calls: int = 400_000,
        memory_mb: float | None = None,
        kernels: str = "compiled",
        executor: Executor | None = None,
    ) -> None:
        if not isinstance(chains, (int, np.integer)) or chains < 1:
            raise ArgumentError(f"chains must be a whole number, 1 or more, got {chains!r}")
        if seed is not None and (not isinstance(seed, (int, np.integer)) or seed < 0):
            raise ArgumentError(f"a seed is a whole number from 0, got {seed!r}")
        if kernels not in WAYS:
            raise ArgumentError(f"kernels are {', '.join(map(repr, WAYS[:-1]))} or {WAYS[-1]!r}, got {kernels!r}")
        root = np.random.SeedSequence(seed)
        self.seed: int = int(seed if seed is not None else root.entropy)  # type: ignore[arg-type]
        seeds = root.spawn(chains)
        seeds = seeds if only_chain is None else [seeds[only_chain]]
        limits = Limits(nested_calls, memory_mb)
        elsewhere = None if executor is None else _in_executor(executor)
        made = Chains(seeds, chains, only_chain or 0, limits, progress or for_person(), kernels, elsewhere)
        self._runner = Runner(made, self.seed, may_copy=only_chain is None)

    @property
    def traces(self) -> list[Model]:
        """The trace of each chain, with the machinery that changes it."""
        return self._runner.chains.models

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Venture cannot be pickled or copied: keep its program and v.seed, and run them again; "
            "draws can be pickled, or written with draws.save"
        )

    def __repr__(self) -> str:
        chains = f", chains={len(self.traces)}" if len(self.traces) > 1 else ""
        count = len(self._runner.directory.entries)
        return f"<Venture(seed={self.seed}{chains}) with {count} directive{'s' * (count != 1)}>"

    # ------------------------------------------------------------------------------------------------ programs

    @door
    def execute(self, text: str, /, **parameters: Any) -> list[Any]:
        """Run a program's text; returns the value of each directive, in order.

        `parameters` are what `{name}` and `{name[n]}` in the text stand for: numbers, strings, lists, NumPy arrays, and
        series of pandas or polars; positions count from 1. The columns of a frame are parameters under their own
        names, and the frame's name is the matrix of them. The trace copies what it takes.

        Raises:
            VentureError: a directive failed; those before it stay.
            ParameterError: one of them, for data that are missing or no values of the language.
        """
        return self._run_all(Source("<input>", text), parameters)

    @door
    def run_file(self, path: str | PathLike[str], /, **parameters: Any) -> list[Any]:
        """Run a program file, as `execute` runs a text; `load` in it resolves against its folder."""
        return self._run_all(read_source(Path(path), None), parameters)

    def _run_all(self, source: Source, parameters: Mapping[str, Any]) -> list[Any]:
        values: list[Any] = []
        known = Parameters.of(parameters)
        self.run_source(source, known, lambda result: values.append(result.value))
        for remark in known.unread():
            warnings.warn(remark, VentureWarning, stacklevel=3)
        return values

    def run_source(
        self,
        source: Source,
        parameters: Mapping[str, Any],
        on_value: Callable[[DirectiveResult], None],
        program: tuple[syntax.Directive, ...] | None = None,
        on_part: Callable[[DirectiveResult], None] | None = None,
        on_draws: Callable[[Draws], None] = lambda draws: None,
    ) -> None:
        """Run a program, and tell each directive's result as it comes; `program` is the source parsed, if it is.

        `on_part` is told the results inside a loop that runs pass by pass, or a loaded file, as they come; `on_draws`
        what `auto` drew, while it still looks whether there is more to say of them.
        """
        self._runner.run(source, parameters, on_value, program, on_part, on_draws)

    # ---------------------------------------------------------------------------------------------- directives

    @door
    def assume(self, name: str, expression: str, /, label: str | None = None, **parameters: Any) -> Any:
        """`[assume NAME EXPR]`: bind a name to an expression's value, which is returned."""
        parsed, name = expression_of(expression), name_of(name)
        return self._execute(
            syntax.Assume(name, parsed, span=written("assume", name, expression), label=label_of(label)), parameters
        )

    @door
    def observe(self, expression: str, value: Any, /, label: str | None = None, **parameters: Any) -> Any:
        """`[observe EXPR VALUE]`: constrain the random choice that the expression's value is; returns its log density.

        Raises ParameterError for a value that is missing or none of the language.
        """
        parsed = expression_of(expression)
        constant = constant_of(value, parsed)
        span = written("observe", expression, constant)
        return self._execute(syntax.Observe(parsed, constant, span=span, label=label_of(label)), parameters)

    @door
    def factor(self, expression: str, /, label: str | None = None, **parameters: Any) -> Any:
        """`[factor EXPR]`: add a number to the log density; returns it."""
        return self._weigh(syntax.Factor, expression, label, parameters)

    @door
    def condition(self, expression: str, /, label: str | None = None, **parameters: Any) -> Any:
        """`[condition EXPR]`: states in which the predicate does not hold have probability zero; returns its value."""
        return self._weigh(syntax.Condition, expression, label, parameters)

    def _weigh(self, made: type[syntax.Factor], expression: str, label: str | None, parameters: Any) -> Any:
        span = written(made.__name__.lower(), expression)
        return self._execute(made.of(expression_of(expression), span, label_of(label)), parameters)

    @door
    def predict(self, expression: str, /, label: str | None = None, **parameters: Any) -> Any:
        """`[predict EXPR]`: evaluate an expression in the trace and keep it up to date; returns its value."""
        parsed = expression_of(expression)
        return self._execute(
            syntax.Predict(parsed, span=written("predict", expression), label=label_of(label)), parameters
        )

    @door
    def sample(self, expression: str, /, **parameters: Any) -> Any:
        """`[sample EXPR]`: evaluate an expression against the current trace and keep nothing."""
        parsed = expression_of(expression)
        return self._execute(syntax.Sample(parsed, span=parsed.span), parameters)

    @door
    def force(self, expression: str, value: Any, /, **parameters: Any) -> Any:
        """`[force EXPR VALUE]`: set a random choice once, without constraining it; returns the value."""
        parsed = expression_of(expression)
        return self._execute(syntax.Force(parsed, constant_of(value, parsed), span=parsed.span), parameters)

    @door
    def forget(self, label: str | int, *positions: int) -> None:
        """Undo an assume, observe or predict; of a loop's data those of the pass with these loop variables."""
        reference = reference_to(label, positions)
        self._execute(syntax.Forget(reference, span=reference.span))

    @door
    def freeze(self, label: str | int) -> None:
        """Make the value of an assume or predict a constant; the choices that only it used leave the trace."""
        reference = reference_to(label)
        self._execute(syntax.Freeze(reference, span=reference.span))

    @door
    def report(self, label: str | int) -> Any:
        """A directive's present value."""
        reference = reference_to(label)
        return self._execute(syntax.Report(reference, span=reference.span))

    @door
    def infer(self, expression: str, /, **parameters: Any) -> Any:
        """Run an inference program, `(repeat 1000 (do (mh default one 10) (collect mu b)))`; returns its `Draws`.

        They are empty where it collects nothing. Of an expression that is no action, its value. After an error or
        Ctrl-C the traces are as the last whole transition left them, and the exception has the draws so far as `draws`.
        """
        parsed = expression_of(expression)
        return self._execute(syntax.Infer(parsed, span=parsed.span), parameters)

    @door
    def auto(
        self,
        draws: int = 1000,
        chains: int = 4,
        target_ess: float = 400.0,
        seconds: float | None = None,
        collect: Iterable[str] | None = None,
        warmup: int = 1000,
        approximate: bool = False,
    ) -> Draws:
        """Compose an inference program for the model, run it until its draws can be trusted, and return them.

        Every unobserved choice is moved, by a kernel for its kind; steps and scales are tuned in `warmup` draws, which
        do not count. Then `draws` draws a chain are made, and more while any number that is drawn has a bulk, tail or
        sd ESS below `target_ess` or an R-hat above 1.01 (1 + 16 / ESS where that is more), for at most `seconds`. What
        is drawn are the assumes that are numbers or arrays, and the calls of memoized procedures that are; or
        `collect`, a list of expressions. `draws.program` is the program that was run, which `infer` takes; what there
        is to beware of is warned of. Kernels that leave what is not quite the posterior are tried where `approximate`
        asks for them, and their draws marked.

        A session of one chain is run anew on `chains` of its seed, and is left as the first of these. Each chain is
        left at its last draw.

        Raises VentureError for a model without unobserved choices, and for choices that no kernel can be written for.
        """
        from venture_lite.session.auto.running import options_of

        options = options_of(draws, chains, target_ess, seconds, collect, warmup, approximate)
        return self._runner.auto(options, Given(Parameters({})))

    @door
    def predictive(self, draws: Draws | int, *labels: str, log_likelihood: bool = False) -> Draws:
        """Data as the model predicts them, beside what predicts them.

        Of draws of this program: the same draws (without those of a warm-up) with `(replicate LABEL)`, in which each
        datum is drawn anew with its arguments as they are in the draw, and with `log_likelihood` the log density of
        each, `(log_likelihood LABEL)`. Of a whole number: so many draws of the prior a chain, every assume that is
        numbers among them, in which the conditions hold that stand outside loops and read no parameter. `labels` are
        those of observes, or the names of the parameters that hold the data; left out, all are.

            draws = v.predictive(v.infer("(repeat 1000 (do (nuts default all 'adapt 500 1) (collect mu sd)))"))
            tree = draws.to_datatree(prior=v.predictive(500))

        The traces stay as they are. Data are drawn with each chain's own generator.

        Raises ArgumentError for draws that lack a choice on which the data depend; `(collect (replicate LABEL))` needs
        none. Raises VentureError for a prior that a factor weighs, or whose conditions hold in none of 10,000 draws.
        """
        if not isinstance(draws, Draws) and (not isinstance(draws, (int, np.integer)) or draws < 1):
            raise ArgumentError(f"draws of an inference, or how many of the prior, are needed, got {draws!r}")
        return self._runner.predictive(draws, labels, log_likelihood)

    @door
    def explain(self, expression: str, /, **parameters: Any) -> Explanation:
        """What an inference program would do in this state, without running it: its tree, and for each kernel the
        blocks that it would move, what a transition of them touches, and whether there is a fast way, or why not.

        `print` shows it; `parts` are its records. The traces stay as they are.
        """
        return self._runner.explain_expression(expression_of(expression), Given(Parameters(parameters)))

    def explain_source(self, source: Source, parameters: Mapping[str, Any]) -> list[Explanation]:
        """Run a program but for its inferences, and explain each of these as of the state before it."""
        return self._runner.explain(source, Parameters.of(parameters))

    def undo(self) -> Undo:
        """Begin what can be taken back as a whole: see `Undo`."""
        return Undo(self._runner)

    def collecting(self) -> DrawsBuilder | None:
        """What the inference under way has collected in the chain that it is at; another thread may ask."""
        return self._runner.chains.collecting

    @door
    def log_score(self) -> Any:
        """Log joint density of the current trace; one a chain where there are several."""
        return self._execute(syntax.GetLogScore(span=_nowhere()))

    @door
    def clear(self) -> None:
        """Forget everything but the seed's generators, which start afresh."""
        self._execute(syntax.Clear(span=_nowhere()))

    def list_directives(self) -> list[dict[str, Any]]:
        """Every directive of the model: id, label, kind and text."""
        return self._runner.directory.listed()

    def _execute(self, directive: syntax.Directive, parameters: Mapping[str, Any] | None = None) -> Any:
        return self._runner.execute(directive, Given(Parameters(parameters or {})))

    # ----------------------------------------------------------------------------------------------- proposers

    @door
    def compile(
        self,
        name: str,
        scope: str,
        block: str | int,
        *,
        worlds: int | None = None,
        rounds: int | None = None,
        components: int | None = None,
        hidden: int | None = None,
        frame: str | None = None,
        box: bool = False,
    ) -> ProposerReport:
        """Train the proposer `name` for blocks of a scope, as `(compile NAME SCOPE BLOCK ...)` does, but print nothing:
        the report is returned. `(compiled_mh NAME SCOPE BLOCK T)` then proposes with it.

        `block` is "one", "each", "ordered", "all" or a key. Of the options, `worlds` is how many joint draws of the
        program and its data are trained on, `components` how many normals a number has, `hidden` the width of hidden
        layers, `frame` "prior" or "newton", and `rounds` how often what was learned is corrected on the data at hand,
        with `box` only by what serves other data near these, too;
        those left out have the action's defaults. Several chains are trained once, and share what was learned.

        Raises VentureError for blocks of which no proposal can be learned; a proposer that was there before under this
        name then stays. Where there is nothing to move it warns, and the report is empty.
        """
        options = {"worlds": worlds, "rounds": rounds, "components": components, "hidden": hidden, "frame": frame}
        given = "".join(f" '{option} {value}" for option, value in options.items() if value is not None)
        given += " 'box" if box else ""
        program = f"(compile {name_of(name)} {scope} {block}{given})"
        from venture_lite.engines.compiled.compiled import quietly
        from venture_lite.engines.compiled.report import ProposerReport

        made = quietly(self.traces[0], lambda: self.infer(program))
        return made[0] if made else ProposerReport(name, ())

    @door
    def save_proposers(self, path: str | PathLike[str], /) -> None:
        """Write every proposer to a file, whole or not at all: `load_proposers` and `venture run --proposers` read it.

        Raises VentureError where it cannot be written.
        """
        self.infer(f"(save_proposers {value_as_text(str(path))})")

    @door
    def load_proposers(self, path: str | PathLike[str], /) -> list[ProposerReport]:
        """Read proposers that were trained for this program, on these data or on others; the report of each.

        Raises VentureError for a file that cannot be read, or is none of proposers. Whether they were trained for this
        program is seen where `compiled_mh` first uses them.
        """
        from venture_lite.engines.compiled.compiled import quietly

        return quietly(self.traces[0], lambda: self.infer(f"(load_proposers {value_as_text(str(path))})"))

    # ---------------------------------------------------------------------------------------------- procedures

    @overload
    def register(
        self,
        name: str,
        *,
        simulate: Callable[..., Any],
        log_density: Callable[..., Any],
        arguments: Arguments | None = None,
        domain: ValueDomainLike | None = None,
        support: Callable[..., Iterable[Any]] | None = None,
        log_density_columns: Callable[..., Any] | None = None,
        gradient: Mapping[str, Callable[..., Any]] | None = None,
        gradient_columns: Mapping[str, Callable[..., Any]] | None = None,
        predictor: LinearPredictor | None = None,
        log_bound: float | Callable[..., float] | None = None,
        summary: str = ...,
    ) -> None: ...

    @overload
    def register(
        self,
        name: str,
        *,
        function: Callable[..., Any],
        arguments: Arguments | None = None,
        columns: Callable[..., Any] | None = None,
        summary: str = ...,
    ) -> None: ...

    @overload
    def register(
        self,
        name: str,
        *,
        make: Callable[..., ExchangeableState],
        arguments: Arguments | None = None,
        applied: Arguments | None = None,
        domain: ValueDomainLike | None = None,
        summary: str = ...,
    ) -> None: ...

    @door
    def register(self, name: str, **fields: Any) -> None:
        """Give the language a procedure of your own, made of Python functions.

        It is a procedure like any other: it can be sampled, observed, memoized and passed as a value, and every engine
        works on it that its fields allow. It is known to this `Venture` alone, in text that comes after; registered
        again, it is the new one in text that comes after that. `clear` keeps it.

        **Random**: `simulate(rng, *arguments)` draws a value, `log_density(value, *arguments)` is its log density or
        log mass, normalised, minus infinity where it is zero. Optional:

        - `domain`: where the values lie, "real", "positive", "unit", "angle", "simplex", "positive definite" or
          `(low, high)`; `'drift` then moves them. Or of discrete values "integer", "count", "positive integer",
          "boolean". Outside of it the density is zero, and `log_density` is not asked.
        - `support(*arguments)`: the list of all values, where it is finite; `gibbs` then enumerates them.
        - `log_density_columns(value, *arguments)`: the density of many rows in one call. Each argument is an array
          whose first axis is the rows, the result has one number for each.
        - `gradient`: the derivatives of `log_density` as functions of the same arguments, by what they are taken in:
          `{"value": ..., "sd": ...}`; `gradient_columns` likewise for rows.
        - `predictor`: for likelihoods of generalised linear models, a `procedures.predictor.LinearPredictor`, with
          Taylor terms and lower bounds.
        - `log_bound`: the largest that `log_density` can be, for `rejection`; a number, or a function of the same
          arguments, in which None stands for one that can change.

        **Deterministic**: `function(*arguments)`, which must depend on nothing else. `columns` is its form for many
        rows in one call, with arguments as above.

        **Exchangeable**: `make(*arguments)`, a class whose objects keep the statistics of their applications, with
        the methods

        - `set_arguments(arguments)`: new parameters, the statistics kept;
        - `simulate(rng)`, `log_predictive(value)`: of one further application, given those so far;
        - `add(value)`, `remove(value)`: take an application in, or out again;
        - `log_joint()`: the joint log density of all applications that are in, equal to the sum of their predictive
          densities in any order;
        - and if it likes `support()`, and faster ways than copying: `restore(token)`, which undoes the latest `add` or
          `remove` exactly, given what that returned, and `recount(applications)`, from a list of `(value,)`;
          `statistics()`, a dictionary for the checker.

        Where an application is given something, as in `(f x)`, it comes after the value in each of these:
        `log_predictive(value, x)`; `applied` names it.

        `arguments` are names, or names with domains: `{"mean": "real", "sd": "positive", "n": int, "p": (0, 1)}`.
        Left out, they are read from the signature of `log_density`, `function` or `make`, with type hints as domains
        (`sd: Annotated[float, "positive"]`) and defaults.

        Raises:
            ArgumentError: the name is taken or no name of the language, or a field is not what it must be.
                Nothing is registered then. What the functions return is checked whenever they are called; such an
                error names the procedure and is one of the directive that called it.
        """
        name = name_of(name)
        self.traces[0].trace.analyzer.refuse_registration(name)
        self._runner.chains.registered[name] = user_procedure(name, fields)


def _in_executor(executor: Executor) -> ChainExecutor:
    """Raises ArgumentError for what is no executor."""
    if not callable(getattr(executor, "submit", None)):
        hint = "as concurrent.futures.ProcessPoolExecutor(4) is, or client.get_executor() of dask"
        raise ArgumentError(f"executor must have a method submit, got {executor!r}", hint=hint)
    # imported here: most sessions run where they are
    from venture_lite.session.executors.crew import InExecutor

    return InExecutor(executor)


def _nowhere() -> Span:
    return Span(Source("<input>", ""), 0, 0)
