"""Steps that bind exchangeable procedures: by name, in lists and dictionaries, in memories, in restaurants."""

from __future__ import annotations

from tests.generator import loops
from tests.generator.catalogue import MAKERS, UNCOLLAPSED, MadeForm
from tests.generator.naming import choice
from tests.generator.programs import Call
from tests.generator.steps import Made, Maker
from tests.generator.twins import Twin, both, twin


def some_maker(make: Maker) -> MadeForm:
    forms = UNCOLLAPSED if make.chance(0.15 if make.expressions.finite else 0.3) else MAKERS
    return forms[int(make.rng.integers(len(forms)))]


def application(make: Maker, drawn: MadeForm) -> Twin:
    """Of a maker; what it is given is no simpler where it is given much."""
    return make.expressions.filled(drawn.form, 2 + (drawn.form.count("<") > 2))


def product(make: Maker) -> Made:
    return product_of(make, some_maker(make))


def offer(make: Maker, made: MadeForm, spelling: Twin, observable: bool = True) -> None:
    """Applications cost a choice each. `spelling` has a place for what a draw is given."""
    e = make.expressions
    if made.finite or not e.finite:
        e.names.offer(made.kind, Call(spelling, made.given, 1.0, named=False))
    if observable:
        given = both(make.pick(made.places)) if made.given else both("")
        e.names.observable.append((twin_of(spelling, given), made.values))


def twin_of(spelling: Twin, given: Twin) -> Twin:
    return Twin(spelling.plain.format(given.plain), spelling.dressed.format(given.dressed))


def product_of(make: Maker, drawn: MadeForm) -> Made:
    """The product of a maker, by its name, or in a list, a dictionary, a closure; plainly by its name."""
    e, name = make.expressions, make.expressions.fresh("made")
    made = application(make, drawn)
    plain = (f"[assume {name} {made.plain}]",)
    place = e.fresh("at")
    given, parameter = (" {0}", "t") if drawn.given else ("", "")
    light = ["name", "list", "dictionary", "mixed", "let"]
    match make.pick([*light, "closure", "argument", "argument"] if e.heavy else light):
        case "list":
            text, call = f"[assume {place} (list {made.dressed} 1)]", f"((first {place}){given})"
        case "mixed":
            text, call = f'[assume {place} (list 1 "s" {made.dressed} \'q)]', f"((lookup {place} 2){given})"
        case "dictionary":
            text, call = f"[assume {place} (dict 'm {made.dressed} 'n 2)]", f"((lookup {place} 'm){given})"
        case "closure":
            applied = f"(lambda ({parameter}) (g{' ' + parameter if parameter else ''}))"
            text, call = f"[assume {place} (let ((g {made.dressed})) {applied})]", f"({place}{given})"
        case "argument":
            text, call = f"[assume {place} {made.dressed}]", f"((lambda (g) (g{given})) {place})"
        case "let":
            text, call = f"[assume {place} {made.dressed}]", f"(let ((g {place})) (g{given}))"
        case _:
            offer(make, drawn, both(f"({name}{given})"))
            if not given:
                e.names.products.append(both(name))
            return [make.assume(name, made)]
    evident = call.startswith(("((lambda", "(let", f"({place}"))
    offer(make, drawn, Twin(f"({name}{given})", call), observable=evident)
    return [make.step("assume", text, plain)]


def crossed(make: Maker) -> Made:
    """A value that depends on a choice through a branch, and is read, by another name or as a maker's parameter, in a
    branch that the same choice opens: what is made anew there has to wait for it."""
    e = make.expressions
    if not e.spend(3):
        return choice(make)
    c, d, r = e.fresh("x"), e.fresh("x"), e.fresh("x")
    steps = [make.assume(c, both("(flip 0.6)")), make.assume(d, both(f"(if {c} (flip 0.15) (flip 0.85))"))]
    if make.chance(0.5):
        level, name = e.fresh("v"), e.fresh("a")
        steps.append(make.assume(level, both(f"(if {d} 0.9 0.2)")))
        steps.append(make.step("assume", f"[assume {name} {e.dress(both(level), 0.5).dressed}]", ()))
        steps.append(make.assume(r, Twin(f"(if {c} (flip {level}) (flip 0.5))", f"(if {c} (flip {name}) (flip 0.5))")))
    else:
        name, place = e.fresh("made"), e.fresh("at")
        maker = f"(make_beta_bernoulli (if {d} 4 1) 1)"
        steps.append(make.step("assume", f"[assume {place} (list {maker} 1)]", (f"[assume {name} {maker}]",)))
        steps.append(make.assume(r, Twin(f"(if {c} (flip 0.3) ({name}))", f"(if {c} (flip 0.3) ((first {place})))")))
    if make.chance(0.6):
        evidence = f"[observe (flip (if {r} 0.9 0.1)) true]"
        steps.append(make.step("observe", evidence, (evidence,)))
    for name in (c, d, r):
        e.names.bind("boolean", both(name))
    return steps


def several(make: Maker) -> Made:
    """Products of makers from `map`. Where the parameters are constants, plainly one by one; where they change, what is
    applied counts as another procedure, and its draws are made anew."""
    e = make.expressions
    constant = make.chance(0.5)
    a, b = (both("4"), both("0.5")) if constant else (e.positive(2), e.positive(2))
    names, place = (e.fresh("made"), e.fresh("made")), e.fresh("at")
    mapped = twin("(map (lambda (a) (make_beta_bernoulli a 1)) (list {0} {1}))", a, b)
    for number, name in enumerate(names):
        call = f"((lookup {place} {number}))"
        spelling = Twin(f"({name})" if constant else call, call)
        e.names.offer("boolean", Call(spelling, cost=1.0, named=False))
    if not constant:
        return [make.assume(place, mapped)]
    plain = tuple(f"[assume {name} (make_beta_bernoulli {p.plain} 1)]" for name, p in zip(names, (a, b), strict=True))
    return [make.step("assume", f"[assume {place} {mapped.dressed}]", plain)]


def decided(make: Maker) -> Made:
    """A choice decides which product it is; in both spellings."""
    e, name = make.expressions, make.expressions.fresh("made")
    one, other, which = e.positive(2), e.positive(2), e.boolean(1)
    form = make.pick(
        [
            "(if {2} (make_beta_bernoulli {0} 1) (make_beta_bernoulli 1 {1}))",
            "(lookup (list (make_beta_bernoulli {0} 1) (make_beta_bernoulli 1 {1})) (if {2} 0 1))",
            "(let ((k (make_beta_bernoulli {0} 1)) (l (make_beta_bernoulli {1} 2))) (if {2} k l))",
        ]
    )
    e.names.offer("boolean", Call(both(f"({name})"), cost=1.0, named=False))
    return [make.assume(name, twin(form, one, other, which))]


def in_memory(make: Maker) -> Made:
    """A maker that a memoized procedure applies."""
    e, name = make.expressions, make.expressions.fresh("mk")
    drawn = some_maker(make)
    body = make.body([("count", both("i"))], lambda: application(make, drawn), memoized=True)
    made = twin("(mem (lambda (i) {0}))", body)
    given = " {1}" if drawn.given else ""
    if drawn.finite or not e.finite:
        e.names.offer(drawn.kind, Call(both(f"(({name} {{0}}){given})"), ("index", *drawn.given), 1.0, named=False))
    at = f"(({name} {make.pick(['0', '1'])}){given.format('', make.pick(drawn.places or ('',)))})"
    e.names.observable.append((both(at), drawn.values))
    return [make.assume(name, made)]


def restaurant(make: Maker) -> Made:
    """A Chinese restaurant, its customers, and something for each table."""
    e = make.expressions
    if not e.spend(3):
        return choice(make)
    crp, z, dish = e.fresh("crp"), e.fresh("z"), e.fresh("dish")
    discount = " 0.2" if make.chance(0.4) else ""
    e.blocks += 1
    steps = [
        make.assume(crp, twin(f"(make_crp {{0}}{discount})", e.positive(1))),
        make.assume(z, both(f"(mem (lambda (i) (scope_include 'd (+ {1000 * e.blocks} i) ({crp}))))")),
    ]
    if make.chance(0.2):
        steps.append(make.step("observe", f"[observe ({z} 5) 2]", (f"[observe ({z} 5) 2]",)))
        make.permanent.add(steps[-1].label)
    if make.chance(0.5):
        kind = "boolean" if e.finite else make.pick(["boolean", "real", "drawn"])
        if kind == "drawn":
            kind, body = "real", make.body([("label", both("t"))], lambda: twin("(normal {0} 2)", e.real(1)), True)
        else:
            form = e.boolean if kind == "boolean" else e.real
            body = make.body([("label", both("t"))], lambda: form(1), True)
        steps.append(make.assume(dish, twin("(mem (lambda (t) {0}))", body)))
        e.names.offer(kind, Call(both(f"({dish} ({z} {{0}}))"), ("table",), named=False))
        if kind == "real":
            # customers that several rows of a loop read
            loop = f"for n in 1...8: [observe (normal ({dish} ({z} {{G[n]}})) 1) {{W[n]}}]"
            plain = tuple(directive for _, found in loops.passes(loop) for directive in found)
            steps.append(make.step("observe", loop, plain))
    else:
        steps.append(make.assume(dish, twin("(mem (lambda (t) (make_beta_bernoulli {0} 1)))", e.positive(1))))
        call = both(f"(({dish} ({z} {{0}})))")
        e.names.offer("boolean", Call(call, ("table",), cost=1.0, named=False))
        e.names.observable += [(twin("((" + dish + " (" + z + " {0})))", both(i)), ("true", "false")) for i in "01"]
    if make.chance(0.6):
        predicted = f"[predict (list ({z} 0) ({z} 1))]"
        steps.append(make.step("predict", predicted, (predicted,)))
        make.permanent.add(steps[-1].label)
        for customer in ("0", "1"):
            e.names.bind("label", both(f"({z} {customer})"))
    return steps


def customers(make: Maker) -> Made:
    """A restaurant one of whose customers has a name that is drawn: another name brings another draw of the same
    procedure, in place of one that goes."""
    e = make.expressions
    if not e.spend(4):
        return choice(make)
    crp, z, key = e.fresh("crp"), e.fresh("z"), e.fresh("key")
    e.blocks += 1
    drawn = f"({crp})" if make.chance(0.5) else f"(scope_include 'd (+ {1000 * e.blocks} i) ({crp}))"
    steps = [
        make.assume(crp, twin("(make_crp {0})", e.positive(1))),
        make.assume(z, both(f"(mem (lambda (i) {drawn}))")),
        make.assume(key, both(f"(scope_include 'd {1000 * e.blocks - 1} (uniform_discrete 0 3))")),
    ]
    a, u, w = (e.fresh(name) for name in "auw")
    for name, customer in ((a, key), (u, "10"), (w, "11")):
        steps.append(make.assume(name, both(f"({z} {customer})")))
        make.permanent.add(steps[-1].label)
    e.names.bind("boolean", both(f"(= {a} {w})"))
    for one, other in ((a, u), (u, w)) if make.chance(0.8) else ():
        weighed = (
            f"[observe (flip (if (= {one} {other}) {make.pick(['0.9', '0.2'])} {e.constant(0.1, 0.9).plain})) true]"
        )
        steps.append(make.step("observe", weighed, (weighed,)))
    return steps


def process(parameters: str, base: str) -> str:
    """A Dirichlet process, with a discount the two-parameter one."""
    return f"({'make_pitman_yor' if ' ' in parameters else 'make_dp'} {parameters} {base})"


def hierarchy(make: Maker) -> Made:
    """A restaurant for each group, its tables' dishes drawn by the group itself or by a common one: a hierarchy of
    Dirichlet processes, which have names, too."""
    e = make.expressions
    if not e.spend(3):
        return choice(make)
    name, base, p = e.fresh("group"), e.fresh("base"), e.constant(0.2, 0.8)
    own, spread = f"(lambda () (flip {p.plain}))", make.pick(["", " 0.2"])
    common = f"(let ((c (make_crp 1{spread})) (atom (mem (lambda (k) (flip {p.plain}))))) (lambda () (atom (c))))"
    steps = [make.assume(base, Twin(common, process(f"1{spread}", own)) if make.chance(0.7) else both(own))]
    draws = make.pick(["(lambda () (atom (c)))", "(mem (lambda (i) (atom (c))))"])
    discount = " 0.3" if make.chance(0.4) else ""
    group = f"(mem (lambda (d) (let ((c (make_crp 0.8{discount})) (atom (mem (lambda (k) ({base}))))) {draws})))"
    named = f"(mem (lambda (d) {process(f'0.8{discount}', base)}))" if draws.startswith("(lambda") else group
    steps.append(make.assume(name, Twin(group, named)))
    inner = "" if draws.startswith("(lambda") else " {1}"
    call = Call(both(f"(({name} {{0}}){inner})"), ("index", "index")[: 2 if inner else 1], cost=2.0, named=False)
    e.names.offer("boolean", call)
    e.names.offer("boolean", call)
    return steps
