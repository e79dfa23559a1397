"""Steps that bind procedures: lambdas, recursions, memories, memories of memories, and what names them."""

from __future__ import annotations

from collections.abc import Callable

from tests.generator.naming import choice, value_of
from tests.generator.programs import Call
from tests.generator.steps import Made, Maker
from tests.generator.twins import Twin, both, twin


def result(make: Maker, depth: int) -> tuple[str, Callable[[], Twin]]:
    """A type of a body, and what makes one."""
    e = make.expressions
    kind = make.pick(["boolean", "count", "real"])
    forms = {"real": e.real, "boolean": e.boolean, "count": e.count}
    return kind, lambda: forms[kind](depth)


def procedure(make: Maker) -> Made:
    """A lambda, by sugar, by a name, in a closure over another value."""
    e, name = make.expressions, make.expressions.fresh("f")
    kind, body_of = result(make, make.depth)
    argument = make.pick(["real", "count"])
    body = make.body([(argument, both("a"))], body_of, memoized=False)
    form = make.pick(
        ["[assume ({1} a) {0}]", "[assume {1} (lambda (a) {0})]", "[assume {1} (let ((b 1)) (lambda (a) {0}))]"]
    )
    dressed = (form if e.heavy else "[assume {1} (lambda (a) {0})]").format(body.dressed, name)
    step = make.step("assume", dressed, (f"[assume ({name} a) {body.plain}]",))
    e.names.offer(kind, Call(both(f"({name} {{0}})"), (argument,)))
    return [step]


def memory(make: Maker) -> Made:
    e, name = make.expressions, make.expressions.fresh("m")
    kind, body_of = result(make, make.depth - 1)
    body = make.body([("count", both("i"))], body_of, memoized=True)
    plain = f"[assume {name} (mem (lambda (i) {body.plain}))]"
    forms = [
        f"[assume {name} (mem (lambda (i) {{0}}))]",
        f"[assume {name} (let ((g (lambda (i) {{0}}))) (mem g))]",
        f"[assume {name} ((lambda (g) (mem g)) (lambda (i) {{0}}))]",
        f"[assume {name} (let ((g (mem (lambda (i) {{0}})))) (lambda (i) (g i)))]",
    ]
    dressed = make.pick(forms) if e.heavy and make.chance(0.5) else forms[0]
    step = make.step("assume", dressed.format(body.dressed), (plain,))
    e.names.offer(kind, Call(both(f"({name} {{0}})"), ("index",), memoized=True))
    return [step]


def memory_of_memories(make: Maker) -> Made:
    """`((m i) k)`; plainly `(m i k)`."""
    e, name = make.expressions, make.expressions.fresh("m")
    kind, body_of = result(make, 1)
    body = make.body([("count", both("i")), ("count", both("k"))], body_of, memoized=True, copies=2.0)
    dressed = f"[assume {name} (mem (lambda (i) (mem (lambda (k) {body.dressed}))))]"
    step = make.step("assume", dressed, (f"[assume {name} (mem (lambda (i k) {body.plain}))]",))
    spelling = Twin(f"({name} {{0}} {{1}})", f"(({name} {{0}}) {{1}})")
    e.names.offer(kind, Call(spelling, ("index", "index"), named=False, memoized=True))
    if not make.chance(0.6):
        return [step]
    # A name for one of the inner memories.
    inner = e.fresh("g")
    e.names.offer(kind, Call(Twin(f"({name} 1 {{0}})", f"({inner} {{0}})"), ("index",), named=False, memoized=True))
    return [step, make.step("assume", f"[assume {inner} ({name} 1)]", ())]


def inner_memories(make: Maker) -> Made:
    """Two memories that one memory keeps, a choice of one key in both, and a name for each of the choices."""
    e, name = make.expressions, make.expressions.fresh("m")
    if not e.spend(2):
        return choice(make)
    drawn, key = twin("(flip {0})", e.probability(1)), make.pick(["0", "1"])
    dressed = f"[assume {name} (mem (lambda (i) (mem (lambda (k) {drawn.dressed}))))]"
    steps = [make.step("assume", dressed, (f"[assume {name} (mem (lambda (i k) {drawn.plain}))]",))]
    for i in (0, 1):
        steps += value_of(make, "boolean", Twin(f"({name} {i} {key})", f"(({name} {i}) {key})"))
    return steps


def alias_of_procedure(make: Maker) -> Made:
    """A name for a procedure that has one, or a closure over it."""
    e, name = make.expressions, make.expressions.fresh("p")
    calls = [(kind, call) for kind, found in e.names.calls.items() for call in found if call.named]
    if not calls:
        return choice(make)
    kind, call = calls[int(make.rng.integers(len(calls)))]
    operator = call.spelling.dressed[1:].partition(" ")[0].rstrip(")")
    dressed = call.spelling.dressed.replace(f"({operator}", f"({name}", 1)
    e.names.offer(kind, Call(Twin(call.spelling.plain, dressed), call.arguments, memoized=call.memoized))
    if len(call.arguments) == 1 and e.heavy and make.chance(0.4):
        wrapper = make.pick(
            ["(lambda (a) ({0} a))", "(let ((g {0})) (lambda (a) (g a)))", "((lambda (g) (lambda (a) (g a))) {0})"]
        )
    else:
        wrapper = "{0}" if make.chance(0.5) else e.wrapper()
    return [make.step("assume", f"[assume {name} {wrapper.format(operator)}]", ())]


def recursion(make: Maker) -> Made:
    e, name = make.expressions, make.expressions.fresh("rec")
    if make.chance(0.5):
        stop = e.constant(0.4, 0.8)
        if e.finite:
            if not e.spend(2):
                return choice(make)
            made = twin(f"(if (= k 0) 0 (if (flip {{0}}) 0 (+ 1 ({name} (- k 1)))))", stop)
            e.names.offer("count", Call(both(f"({name} 2)")))
            return [make.assume(f"({name} k)", made)]
        e.names.offer("count", Call(both(f"(min 2 ({name}))"), named=False))
        return [make.assume(f"({name})", twin(f"(if (flip {{0}}) 0 (+ 1 ({name})))", stop))]
    term = make.body([("count", both("k"))], lambda: e.real(1), memoized=False)
    local = twin("(letrec ((r (lambda (k) (if (<= k 0) 0 (+ {0} (r (- k 1))))))) r)", term)
    made = twin(f"(if (<= k 0) 0 (+ {{0}} ({name} (- k 1))))", term)
    e.names.offer("real", Call(both(f"({name} {{0}})"), ("count",)))
    plain = f"[assume ({name} k) {made.plain}]"
    dressed = (
        f"[assume ({name} k) {made.dressed}]" if make.chance(0.6) or not e.heavy else f"[assume {name} {local.dressed}]"
    )
    return [make.step("assume", dressed, (plain,))]


def chain(make: Maker) -> Made:
    """Three states in a row, each drawn by the one before: by a branch's value, by a row that is found, by a list."""
    e, name = make.expressions, make.expressions.fresh("z")
    e.spend(3)
    rows = ["(if {2} {0} {1})", "((mem (lambda (b) (if b {0} {1}))) {2})", "(lookup (list {1} {0}) (+ {2} 0))"]
    row = make.pick(rows).format("{0}", "{1}", f"({name} (- k 1))")
    first = make.pick(["true", "(flip {2})"])
    made = twin(f"(mem (lambda (k) (if (< k 1) {first} (flip {row}))))", *(e.constant(0.2, 0.8) for _ in range(3)))
    for at in (1, 2, 3):
        e.names.offer("boolean", Call(both(f"({name} {at})"), named=False, memoized=True))
    return [make.assume(name, made)]


def read_chain(make: Maker, name: str) -> Made:
    """Names for the first and the last state, and a datum of the one between."""
    datum = twin(f"(flip (if ({name} 2) {{0}} {{1}}))", *(make.expressions.constant(0.1, 0.9) for _ in range(2)))
    value = f" {make.pick(['true', 'false'])}]"
    steps = [make.step("observe", f"[observe {datum.dressed}{value}", (f"[observe {datum.plain}{value}",))]
    for at in (1, 3):
        steps += value_of(make, "boolean", both(f"({name} {at})"))
    return steps


def keyed(make: Maker) -> Made:
    """A memory whose keys are values of other kinds: vectors that print alike, lists, strings, procedures."""
    e, name = make.expressions, make.expressions.fresh("h")
    if not e.spend(2):
        return choice(make)
    p = e.constant(0.2, 0.8)
    tagged = make.chance(0.6)
    body = "(mem (lambda (g) (tag 's g (flip {0}))))" if tagged else "(mem (lambda (g) (flip {0})))"
    steps: Made = []
    kinds = ["vectors", "lists", "strings", "closures", "memories", "dictionaries", "tags"]
    match make.pick(kinds if not e.names.products else [*kinds, "products", "products"]):
        case "vectors":
            keys = ("(vector 0.1 0.2)", "(vector 0.1 0.2000000001)")
        case "lists":
            keys = ("(list 1 0.1)", "(list 1 0.1000000001)")
        case "strings":
            keys = ('"a"', '"b"')
        case "dictionaries":
            keys = ("(dict 'a 0.1)", "(dict 'a 0.1000000001)")
        case "closures":
            maker = e.fresh("c")
            steps = [make.assume(f"({maker} a)", both("(lambda (x) (+ a x))"))]
            keys = (e.fresh("c"), e.fresh("c"))
            steps += [make.assume(key, both(f"({maker} {i})")) for i, key in enumerate(keys)]
        case "memories":
            keys = (e.fresh("c"), e.fresh("c"))
            steps = [make.assume(key, both("(mem (lambda (a) a))")) for key in keys]
        case "products":
            keys = tuple(product.plain for product in e.names.products[:2])
        case _:
            keys = ("'a", "'b")
    # Procedures among keys have an order of their own, so that their numbers cannot stand for them. Other blocks of the
    # scope come first: their keys are small numbers.
    numbered = all(key[0] in "('\"" for key in keys)
    plain = ("90", "91") if numbered else keys
    first = make.assume(name, twin(body, p))
    for stands, key in zip(plain, keys, strict=True):
        call = Call(Twin(f"({name} {stands})", f"({name} {key})"), named=False, memoized=True)
        e.names.offer("boolean", call)
        e.names.offer("boolean", call)
    return [*steps, first]


def random_procedure(make: Maker) -> Made:
    """A name for a random procedure, or for one that a choice decides on."""
    e, name = make.expressions, make.expressions.fresh("r")
    form = make.pick(
        [
            "flip",
            "(if {0} flip bernoulli)",
            "(if {0} flip (lambda (p) (flip (- 1 p))))",
            "(lookup (list bernoulli flip) {1})",
        ]
    )
    if form == "flip":
        e.names.offer("boolean", Call(Twin("(flip {0})", f"({name} {{0}})"), ("probability",)))
        return [make.step("assume", f"[assume {name} flip]", ())]
    made = twin(form, e.boolean(1) if "{0}" in form else both(""), both("1"))
    e.names.offer("boolean", Call(both(f"({name} {{0}})"), ("probability",)))
    return [make.assume(name, made)]
