"""What a session does between transitions: late directives, and those that only ask."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.generator.loops import forget_a_pass
from tests.generator.observations import observe, predict
from tests.generator.programs import Step, plain_label
from tests.generator.steps import Made, Maker
from tests.generator.twins import Twin


def is_loop(step: Step) -> bool:
    return step.text.startswith("for ")


@dataclass(slots=True)
class Operations:
    """Makes operations in an order that is always legal: nothing that is referred to is forgotten."""

    make: Maker
    steps: list[Step]
    # What may be forgotten, at once or by its passes.
    removable: list[Step] = field(init=False)
    loops: list[Step] = field(init=False)
    forgotten: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        given = [step for step in self.steps if step.kind in ("observe", "predict")]
        self.removable = [s for s in given if not is_loop(s) and s.label not in self.make.permanent]
        self.loops = [step for step in given if is_loop(step)]

    def some(self) -> tuple[Step, ...]:
        found: Made = []
        kinds = (self.forget, self.force, self.observe, self.again, self.freeze, self.predict, self.ask, self.ask)
        for _ in range(int(self.make.rng.integers(2, 6))):
            found += kinds[int(self.make.rng.integers(len(kinds)))]()
        return tuple(found)

    def forget(self) -> Made:
        if self.loops and self.make.chance(0.7):
            return [forget_a_pass(self.make, self.loops.pop())]
        if not self.removable:
            return self.predict()
        step = self.removable.pop(int(self.make.rng.integers(len(self.removable))))
        self.forgotten.append(step)
        plain = tuple(f"[forget {plain_label(step, number)}]" for number in range(len(step.plain)))
        return [Step("forget", step.label, f"[forget {step.label}]", plain)]

    def force(self) -> Made:
        free = [item for item in self.make.expressions.names.forceable if item[0].plain not in self.make.observed]
        return [force(self.make, *item) for item in free[:1]]

    def observe(self) -> Made:
        # The first of an observation's steps may bind a procedure for it.
        new = observe(self.make)
        self.removable += [step for step in new if step.kind != "assume" and not is_loop(step)]
        return new

    def again(self) -> Made:
        if not self.forgotten:
            return self.predict()
        step = self.forgotten.pop()
        self.removable.append(self.make.step(step.kind, step.text, step.plain))
        return self.removable[-1:]

    def freeze(self) -> Made:
        predicted = [step for step in self.removable if step.kind == "predict"]
        if not predicted:
            return self.predict()
        label = predicted[0].label
        self.removable.remove(predicted[0])
        return [Step("freeze", label, f"[freeze {label}]", (f"[freeze {label}]",))]

    def predict(self) -> Made:
        self.removable += predict(self.make)
        return self.removable[-1:]

    def ask(self) -> Made:
        """What leaves the model as it is, or makes a transition."""
        make = self.make
        named = [step for step in self.steps if step.kind == "assume" and len(step.plain) == 1]
        match int(make.rng.integers(6)):
            case 0:
                asked = make.expressions.make(make.pick(["real", "boolean", "vector"]), 2)
                return [make.step("sample", f"[sample {asked.dressed}]", (f"[sample {asked.plain}]",))]
            case 1 if named:
                return [same(make, "report", f"[report {named[-1].label}]")]
            case 2:
                name = make.expressions.fresh("steps")
                define = same(make, "define", f"[define {name} (+ 1 1)]")
                return [define, same(make, "infer", f"[infer (mh default one {name})]")]
            case 3:
                return [same(make, "infer", make.pick(["(mh default one 2)", "(mh default each 1)"]))]
            case 4:
                return [same(make, "list_directives", "[list_directives]")]
        return [same(make, "get_logscore", "[get_logscore]")]


def same(make: Maker, kind: str, text: str) -> Step:
    return make.step(kind, text, (text,))


def force(make: Maker, name: Twin, value: str) -> Step:
    return make.step("force", f"[force {name.dressed} {value}]", (f"[force {name.plain} {value}]",))
