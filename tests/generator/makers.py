"""Steps that bind exchangeable procedures: by name, in lists and dictionaries, in memories, in restaurants."""

from __future__ import annotations

from tests.generator.naming import choice
from tests.generator.programs import Call
from tests.generator.steps import Made, Maker
from tests.generator.twins import Twin, both, twin


def made_by(make: Maker) -> tuple[str, Twin, tuple[str, ...]]:
    """The type of a maker's draws, the maker's application, and values that may be observed."""
    e = make.expressions
    a, b = parameter(make), parameter(make)
    kinds = ["coin", "coin", "die", "urn"] + ([] if e.finite else ["tail", "counts", "normals"])
    match make.pick(kinds):
        case "coin":
            return "boolean", twin("(make_beta_bernoulli {0} {1})", a, b), ("true", "false")
        case "die":
            return "count", twin("(make_sym_dir_mult {0} 3)", a), ("0", "1", "2")
        case "urn":
            return "count", twin("(make_dir_mult (list {0} 1 {1}))", a, b), ("0", "1", "2")
        case "tail":
            return "boolean", twin("(make_uc_beta_bernoulli {0} {1})", a, b), ("true", "false")
        case "counts":
            return "number", twin("(make_gamma_poisson {0} 2)", a), ("0", "1", "3")
    return "real", twin("(make_normal_inv_chi_sq {0} 1 3 {1})", e.real(1), a), ("0.5", "-1.2")


def parameter(make: Maker) -> Twin:
    e = make.expressions
    if make.chance(0.5):
        return twin("(if {0} 4 1)", e.boolean(1))
    return twin("(+ 0.5 {0})", e.count(1)) if make.chance(0.5) else e.positive(1)


def offer(make: Maker, kind: str, spelling: Twin, values: tuple[str, ...], observable: bool = True) -> None:
    """Applications cost a choice each."""
    e = make.expressions
    if kind in ("boolean", "count", "real"):
        e.names.offer(kind, Call(spelling, cost=1.0, named=False))
    if observable:
        e.names.observable.append((spelling, values))


def product(make: Maker) -> Made:
    """The product of a maker, by its name, or in a list, a dictionary, a closure; plainly by its name."""
    e, name = make.expressions, make.expressions.fresh("made")
    kind, made, values = made_by(make)
    plain = (f"[assume {name} {made.plain}]",)
    place = e.fresh("at")
    light = ["name", "list", "dictionary", "mixed", "let"]
    match make.pick([*light, "closure", "argument"] if e.heavy else light):
        case "list":
            text, call = f"[assume {place} (list {made.dressed} 1)]", f"((first {place}))"
        case "mixed":
            text, call = f'[assume {place} (list 1 "s" {made.dressed} \'q)]', f"((lookup {place} 2))"
        case "dictionary":
            text, call = f"[assume {place} (dict 'm {made.dressed} 'n 2)]", f"((lookup {place} 'm))"
        case "closure":
            text, call = f"[assume {place} (let ((g {made.dressed})) (lambda () (g)))]", f"({place})"
        case "argument":
            text, call = f"[assume {place} {made.dressed}]", f"((lambda (g) (g)) {place})"
        case "let":
            text, call = f"[assume {place} {made.dressed}]", f"(let ((g {place})) (g))"
        case _:
            offer(make, kind, both(f"({name})"), values)
            e.names.products.append(both(name))
            return [make.assume(name, made)]
    evident = call.startswith(("((lambda", "(let")) or call == f"({place})"
    offer(make, kind, Twin(f"({name})", call), values, observable=evident)
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
    for name in (c, d, r):
        e.names.bind("boolean", both(name))
    return steps


def several(make: Maker) -> Made:
    """Products of makers from `map`. Where the parameters are constants, plainly one by one; where they change, what is
    applied counts as another procedure, and its draws are made anew."""
    e = make.expressions
    constant = make.chance(0.5)
    a, b = (both("4"), both("0.5")) if constant else (parameter(make), parameter(make))
    names, place = (e.fresh("made"), e.fresh("made")), e.fresh("at")
    mapped = twin("(map (lambda (a) (make_beta_bernoulli a 1)) (list {0} {1}))", a, b)
    for number, name in enumerate(names):
        call = f"((lookup {place} {number}))"
        spelling = Twin(f"({name})" if constant else call, call)
        offer(make, "boolean", spelling, ("true", "false"), observable=False)
    if not constant:
        return [make.assume(place, mapped)]
    plain = tuple(f"[assume {name} (make_beta_bernoulli {p.plain} 1)]" for name, p in zip(names, (a, b), strict=True))
    return [make.step("assume", f"[assume {place} {mapped.dressed}]", plain)]


def decided(make: Maker) -> Made:
    """A choice decides which product it is; in both spellings."""
    e, name = make.expressions, make.expressions.fresh("made")
    one, other, which = parameter(make), parameter(make), e.boolean(1)
    form = make.pick(
        [
            "(if {2} (make_beta_bernoulli {0} 1) (make_beta_bernoulli 1 {1}))",
            "(lookup (list (make_beta_bernoulli {0} 1) (make_beta_bernoulli 1 {1})) (if {2} 0 1))",
            "(let ((k (make_beta_bernoulli {0} 1)) (l (make_beta_bernoulli {1} 2))) (if {2} k l))",
        ]
    )
    offer(make, "boolean", both(f"({name})"), ("true", "false"), observable=False)
    return [make.assume(name, twin(form, one, other, which))]


def in_memory(make: Maker) -> Made:
    e, name = make.expressions, make.expressions.fresh("mk")
    made = twin(
        "(mem (lambda (i) (make_beta_bernoulli {0} 1)))", make.body([("count", both("i"))], lambda: e.positive(1), True)
    )
    call = Call(both(f"(({name} {{0}}))"), ("index",), cost=1.0, named=False)
    e.names.offer("boolean", call)
    e.names.observable.append((both(f"(({name} {make.pick(['0', '1'])}))"), ("true", "false")))
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
        kind = "boolean" if e.finite else make.pick(["boolean", "real"])
        form = e.boolean if kind == "boolean" else e.real
        body = make.body([("label", both("t"))], lambda: form(1), True)
        steps.append(make.assume(dish, twin("(mem (lambda (t) {0}))", body)))
        e.names.offer(kind, Call(both(f"({dish} ({z} {{0}}))"), ("table",), named=False))
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


def hierarchy(make: Maker) -> Made:
    """A restaurant for each group, its tables' dishes drawn by the group itself or by a common one."""
    e = make.expressions
    if not e.spend(3):
        return choice(make)
    name, base, p = e.fresh("group"), e.fresh("base"), e.constant(0.2, 0.8)
    common = f"(let ((c (make_crp 1)) (atom (mem (lambda (k) (flip {p.plain}))))) (lambda () (atom (c))))"
    own = f"(lambda () (flip {p.plain}))"
    steps = [make.assume(base, both(common if make.chance(0.5) else own))]
    draws = make.pick(["(lambda () (atom (c)))", "(mem (lambda (i) (atom (c))))"])
    group = f"(mem (lambda (d) (let ((c (make_crp 0.8)) (atom (mem (lambda (k) ({base}))))) {draws})))"
    steps.append(make.assume(name, both(group)))
    inner = "" if draws.startswith("(lambda") else " {1}"
    call = Call(both(f"(({name} {{0}}){inner})"), ("index", "index")[: 2 if inner else 1], cost=2.0, named=False)
    e.names.offer("boolean", call)
    e.names.offer("boolean", call)
    return steps
