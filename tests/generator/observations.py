"""Steps that observe and predict: evidence on choices wherever they stand."""

from __future__ import annotations

from tests.generator import loops
from tests.generator.catalogue import EVIDENCE, Evidence
from tests.generator.naming import KINDS
from tests.generator.programs import Step
from tests.generator.steps import Made, Maker
from tests.generator.twins import Twin, both, twin


def density(make: Maker, depth: int) -> Twin:
    return twin("(normal {0} {1})", make.expressions.real(depth), make.expressions.positive(depth))


def evidence(make: Maker, expression: Twin, value: str) -> Step:
    e = make.expressions
    item = Twin(expression.plain, e.evident_wrapper().format(expression.dressed)) if e.chance(0.25) else expression
    return make.step("observe", f"[observe {item.dressed} {value}]", (f"[observe {expression.plain} {value}]",))


def observe(make: Maker) -> Made:
    """Evidence on a choice of any distribution, found directly, in a branch, through a call, a memory, a maker."""
    e = make.expressions
    number = e.constant(-2, 2).plain
    match int(make.rng.integers(13)):
        case 0 | 1 | 2 | 9 | 10:
            return observe_form(make, EVIDENCE[int(make.rng.integers(len(EVIDENCE)))])
        case 3:
            branches = twin("(if {0} {1} {2})", e.boolean(2), density(make, 1), density(make, 2))
            return [evidence(make, branches, number)]
        case 4:
            inner = twin("(let ((a {0})) (normal a {1}))", e.real(2), e.positive(0))
            return [evidence(make, twin("(if {0} {1} {2})", e.boolean(1), inner, density(make, 1)), number)]
        case 5:
            return observe_calls(make)
        case 6:
            return observe_memory(make)
        case 7 if e.names.observable:
            expression, values = e.names.observable[int(make.rng.integers(len(e.names.observable)))]
            return [evidence(make, expression, make.pick(list(values)))]
        case 8:
            return loops.data(make)
        case 11:
            return weighed(make)
        case 12:
            return listed(make)
    return [evidence(make, density(make, make.depth - 1), number)]


def listed(make: Maker) -> Made:
    """Evidence on the items of a list, which are observed one by one where they are written plainly."""
    e = make.expressions
    count, values = 2 + e.chance(0.4), [e.constant(-2, 2).plain for _ in range(3)]
    match make.pick(["list", "map", "pair"]):
        case "map":
            mean, sd = e.real(1), e.positive(1)
            shifts = [e.constant(-1, 1).plain for _ in range(count)]
            items = [twin(f"(normal (+ {shift} {{0}}) {{1}})", mean, sd) for shift in shifts]
            dressed = f"(map (lambda (u) (normal (+ u {mean.dressed}) {sd.dressed})) (list {' '.join(shifts)}))"
        case form:
            items = [density(make, 1), *(twin("(flip {0})", e.probability(1)) for _ in range(count - 1))]
            values = [values[0], "true", "false"]
            rest = " ".join(item.dressed for item in items[1:])
            dressed = f"({form} {items[0].dressed} {rest if form == 'list' else f'(list {rest})'})"
    values = values[:count]
    plain = tuple(f"[observe {item.plain} {value}]" for item, value in zip(items, values, strict=True))
    return [make.step("observe", f"[observe {dressed} (list {' '.join(values)})]", plain)]


def weighed(make: Maker) -> Made:
    """A factor, or a condition that may hold whatever else there is."""
    e = make.expressions
    if e.chance(0.6):
        keyword, made = "factor", e.real(2)
    else:
        keyword, made = "condition", twin("(or (flip {0}) {1})", e.constant(0.2, 0.9), e.boolean(2))
        e.spend()
    return [make.step("observe", f"[{keyword} {made.dressed}]", (f"[{keyword} {made.plain}]",))]


def observe_form(make: Maker, chosen: Evidence) -> Made:
    return [evidence(make, make.expressions.filled(chosen.form, 2), make.pick(chosen.values))]


def observe_calls(make: Maker) -> Made:
    e, name = make.expressions, make.expressions.fresh("g")
    body = make.body([("real", both("a"))], lambda: density(make, 1), memoized=False)
    calls = [twin(f"({name} {{0}})", e.real(1)) for _ in range(2)]
    return [make.assume(f"({name} a)", body), *(evidence(make, call, e.constant(-2, 2).plain) for call in calls)]


def observe_memory(make: Maker) -> Made:
    """Evidence on a memoized call that exists, and on one that does not."""
    e, name = make.expressions, make.expressions.fresh("o")
    body = make.body([("count", both("i"))], lambda: twin("(flip {0})", e.probability(1)), memoized=True)
    e.spend()
    return [
        make.assume(name, twin("(mem (lambda (i) {0}))", body)),
        make.step("predict", f"[predict (list ({name} 0) ({name} 1))]", (f"[predict (list ({name} 0) ({name} 1))]",)),
        evidence(make, both(f"({name} 1)"), "true"),
        evidence(make, both(f"({name} 2)"), "false"),
    ]


def observe_name(make: Maker) -> Made:
    """Evidence on a choice that has a name already."""
    e = make.expressions
    found = [(name, value) for name, value in e.names.forceable if name.plain not in make.observed]
    if len(found) < 2:
        return observe(make)
    name, value = found[int(make.rng.integers(len(found)))]
    make.observed.add(name.plain)
    return [evidence(make, name, value)]


def predict(make: Maker) -> Made:
    made = make.expressions.make(make.pick(KINDS), make.depth)
    return [make.step("predict", f"[predict {made.dressed}]", (f"[predict {made.plain}]",))]
