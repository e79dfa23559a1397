"""Steps that bind values and names for names: choices, values, aliases, loops' data."""

from __future__ import annotations

from tests.generator.programs import Step
from tests.generator.steps import Made, Maker
from tests.generator.twins import EVIDENT, Twin, both, twin

KINDS = ("real", "boolean", "count") * 3 + ("vector", "matrix", "covariance matrix", "numbers", "text", "probabilities")


def choice(make: Maker) -> Made:
    """A name bound directly to a random choice."""
    e = make.expressions
    kind = make.pick(["real", "boolean", "boolean", "count"]) if not e.finite else make.pick(["boolean", "count"])
    name = e.fresh("x")
    e.spend()
    if kind == "real":
        made, value = twin("(normal {0} {1})", e.real(1), e.positive(1)), "0.37"
    elif kind == "boolean":
        made, value = twin("(flip {0})", e.probability(2)), make.pick(["true", "false"])
    else:
        form = make.pick(["(binomial 2 {0})", "(uniform_discrete 0 3)"])
        made, value = twin(form, e.probability(1)), make.pick(["0", "1", "2"])
    if make.chance(0.3):
        made = twin("(scope_include 's {0} {1})", e.block(), made)
    step = make.assume(name, made)
    e.names.bind(kind, both(name))
    e.names.forceable.append((both(name), value))
    return [step]


def value(make: Maker) -> Made:
    kind = make.pick(KINDS)
    return value_of(make, kind, make.expressions.make(kind, make.depth))


def value_of(make: Maker, kind: str, made: Twin) -> Made:
    """A name for a value of a type."""
    name = make.expressions.fresh("v")
    step = make.assume(name, made)
    make.expressions.names.bind(kind, both(name))
    return [step]


def computed(make: Maker) -> Made:
    """A name for what follows from other names; the plain spelling computes it where it is used."""
    e = make.expressions
    kind = make.pick(["real", "boolean", "count"])
    found = [*e.values(kind), *(e.values("count") if kind == "real" else [])]
    if not found:
        return choice(make)
    a, b = e.pick_twin(found), e.pick_twin(found)
    forms = {
        "real": ["(+ {0} {1})", "(* 0.5 (- {0} {1}))", "(sin {0})"],
        "boolean": ["(and {0} {1})", "(not {0})", "(= {0} {1})", "(or {0} (not {1}))"],
        "count": ["(min 2 (+ {0} {1}))", "(mod (+ 1 {0}) 3)", "(max {0} {1})"],
    }[kind]
    return [name_of(make, kind, twin(make.pick(forms), a, b))]


def derived(make: Maker) -> Made:
    """Two choices, a value that follows from both, in both spellings, and evidence on it."""
    e = make.expressions
    if not e.spend(2):
        return computed(make)
    a, b, v = e.fresh("x"), e.fresh("x"), e.fresh("v")
    steps = [make.assume(name, both("(flip 0.5)")) for name in (a, b)]
    kind, form = ("count", "(+ {0} {1})") if make.chance(0.6) else ("boolean", "(!= {0} {1})")
    steps.append(make.assume(v, twin(form, both(a), both(b))))
    for named, name in (("boolean", a), ("boolean", b), (kind, v)):
        e.names.bind(named, both(name))
    read = e.dress(both(v))
    evidence = twin("[observe (flip (/ (+ 1 {0}) 4)) " + make.pick(["true]", "false]"]), read)
    return [*steps, make.step("observe", evidence.dressed, (evidence.plain,))]


def name_of(make: Maker, kind: str, meaning: Twin) -> Step:
    """A name that the plain spelling does without."""
    name = make.expressions.fresh("a")
    make.expressions.names.bind(kind, Twin(meaning.plain, name))
    return make.step("assume", f"[assume {name} {meaning.dressed}]", ())


def alias(make: Maker) -> Made:
    """A name for a name, at times of another such name, at times through a wrapper or an identity."""
    e = make.expressions
    named = [(kind, item) for kind, items in e.names.values.items() for item in items]
    kind, item = named[int(make.rng.integers(len(named)))]
    step = name_of(make, kind, e.dress(item, 0.5))
    new = e.values(kind)[-1]
    # The choice under its new name can be forced and observed, where evidence finds its way.
    for known, value_to_force in list(e.names.forceable):
        if known.plain == item.plain and step.text.split(" ", 2)[2][:-1] in (item.dressed, *evident(item)):
            e.names.forceable.append((new, value_to_force))
    return [step]


def evident(item: Twin) -> list[str]:
    return [wrapper.format(item.dressed) for wrapper in EVIDENT]


def alias_of_call(make: Maker) -> Made:
    """A name for a memoized call; plainly the call is predicted, so that it stands as long."""
    e = make.expressions
    memoized = [(kind, call) for kind, calls in e.names.calls.items() for call in calls if call.memoized]
    if not memoized or not e.spend(2):
        return alias(make)
    kind, call = memoized[int(make.rng.integers(len(memoized)))]
    made = e.applied(call, 0)
    name = e.fresh("a")
    e.names.bind(kind, Twin(made.plain, name))
    return [make.step("assume", f"[assume {name} {made.dressed}]", (f"[predict {made.plain}]",))]


def identity(make: Maker) -> Step:
    """The procedure that wrappers call `same`."""
    return make.step("assume", make.pick(["[assume (same x) x]", "[assume same (lambda (x) x)]"]), ())
