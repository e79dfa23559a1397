"""Worlds made one after the other against worlds in columns and by hand, and what is read of a block in a state.

Each comparison of distributions is a two-sample Kolmogorov-Smirnov test, or a binomial one, at 1e-6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.trace.test_worlds import FALSE_ALARM, HIERARCHY, model_of, observed, scoped
from venture_lite.audit.snapshot import snapshot
from venture_lite.blocks.resimulated import Reading, ResimulatedWorlds, StateBlanket
from venture_lite.blocks.worlds import Features, WorldMaker
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.kernel import Interpreted, Metropolis, Move, Resimulation
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection, Selector

WORLDS = 2000

MIXTURE = """
    [assume mu (mem (lambda (k) (tag 'mu k (normal 0 5))))]
    [assume z (mem (lambda (i) (tag 'z i (uniform_discrete 0 3))))]
    for n in 1...5: [observe (normal (mu (z n)) 1) {Y[n]}]
"""
Y = [1.0, -2.0, 4.0, 4.5, 0.5]
BRANCH = """
    [assume b (tag 'b 0 (flip 0.3))] [assume m (if b 1 (tag 'g 0 (gamma 1 1)))]
    [observe (normal m 0.5) 1.3] [observe (if b (normal m 1) (poisson 3)) 2]
"""
RECURSION = """
    [assume steps (lambda (n) (if (tag 'go n (flip 0.6)) (+ (tag 'x n (normal 0 1)) (steps (+ n 1))) 0))]
    [assume total (steps 0)] [observe (normal total 1) 2]
"""
LABELS = """
    [assume a (tag 'a 0 (gamma 2 2))] [assume c (make_crp a)] [assume z (mem (lambda (i) (tag 'z i (c))))]
    [assume mu (mem (lambda (k) (tag 'mu k (normal 0 5))))]
    for n in 1...5: [observe (normal (mu (z n)) 1) {Y[n]}]
"""
# each state of b makes as many choices as there are calls that read it, in rows of one table
CALLS = """
    [assume f (lambda (i) (tag 'b i (flip 0.5)))] [assume b (mem (lambda (i) (f i)))] [assume a (tag 'a 0 (flip 0.5))]
    [assume g (mem (lambda (k) (normal k 1)))]
    [assume h (mem (lambda (i) (lambda (j) (if a (+ (normal i 1) (g (if (b i) j 7))) (g (if (b i) i 8))))))]
    for n in 1...5: [observe (normal ((h n) n) 4) n]
"""
# a call that comes and goes with a stands amid those that stay: where it went the last of these takes its place
USERS = """
    [assume a (mem (lambda () (tag 'a 0 (flip 0.5))))] [assume f (mem (lambda (k) (if (a) (normal k 1) 0)))]
    for k in 1...5: [observe (normal (f k) 4) k]
    [predict (if (a) (f 20) 0)] [force (a) true]
    for k in 6...12: [observe (normal (f k) 4) k]
"""
PROGRAMS = {
    "mixture": MIXTURE,
    "branch": BRANCH,
    "recursion": RECURSION,
    "labels": LABELS,
    "calls": CALLS,
    "users": USERS,
}


def model_named(name: str) -> Model:
    program = PROGRAMS[name]
    return model_of(program, **({"Y": Y} if "{Y" in program else {}))


def drawn(model: Model, read: Any, count: int = WORLDS) -> np.ndarray:
    worlds, rng = ResimulatedWorlds(model), np.random.default_rng(1)
    found = []
    for _ in range(count):
        with worlds.world(rng):
            found.append(read())
    return np.array(found)


@pytest.mark.thorough
def test_worlds_one_by_one_have_the_distribution_of_those_in_columns() -> None:
    model = model_of(HIERARCHY, N=6, G=[1, 1, 2, 2, 3, 3], Y=[1, 2, 0, 3, 1, 1])
    before = snapshot(model)
    nodes = [*scoped(model, "m"), *scoped(model, "x"), *observed(model)]
    one_by_one = drawn(model, lambda: [model.trace.value(node) for node in nodes])
    assert snapshot(model) == before
    maker = WorldMaker(model, nodes)
    worlds = maker.draw(WORLDS, np.random.default_rng(0))
    columns = [worlds.values[int(maker.places.of(node >> 32, node & 0xFFFFFFFF))] for node in nodes]
    for ours, theirs in zip(one_by_one.T, columns, strict=True):
        assert stats.ks_2samp(ours, theirs).pvalue > FALSE_ALARM
    # and together: two data of one group share its level
    assert stats.ks_2samp(one_by_one[:, 4] - one_by_one[:, 5], columns[4] - columns[5]).pvalue > FALSE_ALARM


@pytest.mark.thorough
def test_data_of_a_branch_are_drawn_in_the_branch_that_is_taken() -> None:
    model = model_of("[assume b (tag 'b 0 (flip 0.3))] [observe (if b (normal 10 1) (normal -10 1)) 9] [predict b]")
    (b,) = scoped(model, "b")

    def data() -> float:
        (node,) = filter(model.trace.is_observed, model.trace.choices())
        return float(model.trace.value(node))

    found = drawn(model, lambda: (model.trace.value(b), data()))
    assert ((found[:, 1] > 0) == found[:, 0]).all()
    assert stats.binomtest(int(found[:, 0].sum()), WORLDS, 0.3).pvalue > FALSE_ALARM


def test_what_reads_an_observed_value_reads_that_of_the_world() -> None:
    model = model_of("[assume x (normal 0 1)] [observe x 3] [assume y (+ x 1)] [assume w (tag 'w 0 (normal y 0.01))]")
    (w,), (x,) = scoped(model, "w"), observed(model)
    found = drawn(model, lambda: (model.trace.value(x), model.trace.value(w)), 200)
    assert np.abs(found[:, 1] - found[:, 0] - 1.0).max() < 0.1
    assert found[:, 0].std() > 0.5


@pytest.mark.thorough
def test_the_length_of_a_recursion_is_drawn() -> None:
    """The number of steps is geometric, and each has a choice of its own."""
    model = model_named("recursion")
    count = drawn(model, lambda: [model.trace.scopes[name].block_count() for name in ("go", "x")])
    assert (count[:, 0] == count[:, 1] + 1).all()
    for steps in range(4):
        share = 0.4 * 0.6**steps
        assert stats.binomtest(int((count[:, 1] == steps).sum()), WORLDS, share).pvalue > FALSE_ALARM


@pytest.mark.thorough
def test_labels_of_exchangeable_procedures_are_drawn_anew() -> None:
    """With concentration 1 two of two customers sit together half of the time."""
    model = model_of("[assume c (make_crp 1)] [assume a (tag 'z 0 (c))] [assume b (tag 'z 1 (c))] [observe (c) 1]")
    together = drawn(model, lambda: len({model.trace.value(node) for node in scoped(model, "z")}) == 1)
    assert stats.binomtest(int(together.sum()), WORLDS, 0.5).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_world_leaves_no_trace(name: str) -> None:
    model = model_named(name)
    before, state = snapshot(model), model.trace.rng.bit_generator.state
    drawn(model, lambda: 0, 20)
    assert snapshot(model) == before
    assert model.trace.rng.bit_generator.state == state


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("point", [1, 2])
def test_an_interrupted_world_leaves_no_trace(name: str, point: int) -> None:
    model = model_named(name)
    before, generator = snapshot(model), model.trace.rng
    model.machine.poll_every = 7
    model.interrupt_after = point
    with pytest.raises(KeyboardInterrupt):
        drawn(model, lambda: 0, 50)
    assert snapshot(model) == before
    assert model.trace.rng is generator


def test_a_world_that_cannot_be_drawn_leaves_no_trace() -> None:
    model = model_of("[assume x (tag 'x 0 (normal 0 1))] [observe (normal 0 (+ 5 x)) 1] [force x 2]")
    model.trace.put(scoped(model, "x")[0], 2.0)
    model.commit()
    worlds = ResimulatedWorlds(model)
    before = snapshot(model)

    class Low(np.random.Generator):
        def normal(self, *args: Any, **given: Any) -> Any:
            return -6.0

        def standard_normal(self, *args: Any, **given: Any) -> Any:
            return -6.0

    with pytest.raises(VentureError), worlds.world(Low(np.random.PCG64(0))):
        pass
    assert snapshot(model) == before


# ---------------------------------------------------------------------------------------------- what a block reads


def at(value: Any, name: str = "") -> Reading:
    return Reading(lambda node, operator, arguments: value, name)


def same(one: Features, other: Features) -> bool:
    return (
        np.array_equal(one.fixed, other.fixed)
        and one.ports.keys() == other.ports.keys()
        and all(
            np.allclose(np.sort(rows, axis=1), np.sort(other.ports[key], axis=1), rtol=1e-12)
            for key, rows in one.ports.items()
        )
    )


def test_a_block_is_read_at_each_of_several_values() -> None:
    """Which family is read depends on the block; those that nobody else keeps are made anew, the same each time."""
    model = model_named("mixture")
    node = model.trace.scopes["z"].members(2)
    read = [at(float(k), f" at {k}") for k in range(3)]
    features = StateBlanket(model, node).read(read)
    assert features.fixed.tolist() == [[0.0, 3.0]]
    rows = [features.ports[f"(normal (mu (z n)) 1): normal at {k}"][0] for k in range(3)]
    assert [row[0][0] for row in rows] == [-2.0] * 3
    kept = {
        key: model.trace.value(member)
        for key in model.trace.scopes["mu"].all_keys()
        for member in model.trace.scopes["mu"].members(key)
        if any(model.trace.value(model.trace.scopes["z"].members(n)[0]) == key for n in (1, 3, 4, 5))
    }
    assert kept
    for key, value in kept.items():
        assert rows[int(key)][0][1] == value


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "scope", "values"),
    [("mixture", "z", [0.0, 1.0, 2.0]), ("mixture", "mu", [0.5]), ("branch", "b", [True, False]),
     ("recursion", "go", [True, False]), ("labels", "mu", [0.5]), ("labels", "a", [0.5, 2.0]),
     ("calls", "a", [True, False]), ("calls", "b", [True, False]), ("users", "a", [True, False])],
)  # fmt: skip
def test_what_is_read_of_a_block_stays_when_the_block_moves(name: str, scope: str, values: list[Any]) -> None:
    """Also where the move makes and removes choices: so one density serves both directions."""
    model = model_named(name)
    selection = Selection(model, scope, Selector("each"))
    moves = Interpreted(model, Move(Resimulation(model), Metropolis(model)))
    accepted = 0
    for _ in range(25):
        for block in selection.sweep():
            read = [at(value, f" at {value}") for value in values]
            before, then = StateBlanket(model, block).read(read), snapshot(model)
            assert snapshot(model) == then
            accepted += moves.step(block, selection)
            assert same(before, StateBlanket(model, block).read(read))
    assert accepted > 4


def test_data_that_a_block_brings_about_are_read_in_the_structure_of_the_centre() -> None:
    model = model_named("branch")
    block = scoped(model, "b")
    found = StateBlanket(model, block).read([at(False, " at False"), at(True, " at True")])
    names = {key: rows[0].tolist() for key, rows in found.ports.items()}
    assert names["(poisson 3): poisson at False"] == [[2.0, 3.0]]
    assert names["(normal m 1): normal at True"] == [[2.0, 1.0, 1.0]]
    assert names["(normal m 0.5): normal at True"] == [[1.3, 1.0, 0.5]]


def test_data_are_left_out_at_random() -> None:
    model = model_of("""
        [assume x (tag 'x 0 (normal 0 1))] [predict (normal x 1)]
        for n in 1...20: [observe (normal x 1) n]
    """)
    rng, counts = np.random.default_rng(0), []
    for _ in range(20):
        blanket = StateBlanket(model, scoped(model, "x"))
        blanket.thin_out(rng)
        counts.append(sum(rows.shape[1] for rows in blanket.read([at(0.0)]).ports.values()))
    # what is no evidence stays
    assert min(counts) >= 1
    assert len(set(counts)) > 5
    assert max(counts) <= 21


def test_symbols_are_read_by_their_place_in_the_support() -> None:
    model = model_of("[assume p (tag 'p 0 (beta 1 1))] [observe (categorical (list p (- 1 p)) (list 'yes 'no)) 'yes]")
    found = StateBlanket(model, scoped(model, "p")).read([at(0.25)])
    assert [rows.tolist() for rows in found.ports.values()] == [[[[1.0, 0.0, 0.25, 0.75]]]]


def test_a_block_that_takes_away_choices_of_its_own_is_refused() -> None:
    model = model_of("""
        [assume b (tag 'a 0 (flip 0.5))] [assume x (if b 1 (tag 'a 0 (normal 0 1)))] [observe (normal x 1) 1]
        [force b false]
    """)
    with pytest.raises(KernelError, match="what choices the block has depends on itself"):
        StateBlanket(model, scoped(model, "a"))


def test_statistics_of_makers_are_read_by_their_joint_density() -> None:
    """Of three customers, two at one table: a^2 / (a (a + 1) (a + 2))."""
    model = model_of("""
        [assume a (tag 'a 0 (gamma 2 2))] [assume c (make_crp a)]
        [observe (c) 1] [observe (c) 1] [observe (c) 2] [force a 0.7]
    """)
    before = snapshot(model)
    found = StateBlanket(model, scoped(model, "a")).read([at(1.0), at(3.0, " at +1")])
    assert snapshot(model) == before
    joint = [np.log(a / ((a + 1) * (a + 2))) for a in (1.0, 3.0)]
    one, other = (rows[0].tolist() for rows in found.ports.values())
    assert one == [pytest.approx(joint[:1])]
    assert other == [pytest.approx([joint[1] - joint[0]])]
