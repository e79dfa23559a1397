"""Worlds in columns against draws made by hand, and what a blanket reads of them against the trace.

Each comparison of distributions is a two-sample Kolmogorov-Smirnov test at 1e-6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from venture_lite import Venture
from venture_lite.audit.snapshot import snapshot
from venture_lite.blocks.worlds import Blanket, RunReader, WorldMaker, names_of
from venture_lite.errors import KernelError
from venture_lite.interpreter.model import Model
from venture_lite.trace.nodes import node_at

FALSE_ALARM = 1e-6
WORLDS = 5000


def model_of(program: str, **parameters: Any) -> Model:
    venture = Venture(seed=1)
    venture.execute(program, **parameters)
    return venture.traces[0]


def scoped(model: Model, scope: str) -> list[int]:
    return model.trace.scopes[scope].everything()


def drawn(model: Model, nodes: list[int]) -> list[np.ndarray]:
    maker = WorldMaker(model, nodes)
    worlds = maker.draw(WORLDS, np.random.default_rng(0))
    assert not worlds.failed.any()
    return [worlds.values[int(maker.places.of(node >> 32, node & 0xFFFFFFFF))] for node in nodes]


def observed(model: Model) -> list[int]:
    trace = model.trace
    every = (node_at(site, row) for site in range(len(trace.program.site_code)) for row in rows_of(model, site))
    return [node for node in every if trace.is_choice(*trace.decode(node)) and trace.is_observed(node)]


def rows_of(model: Model, site: int) -> list[int]:
    table = model.trace.tables[model.trace.program.site_code[site].index]
    slot = model.trace.program.site_slot[site]
    flags = table.observed.get(slot, b"")
    return [row for row, flag in enumerate(flags) if flag]


HIERARCHY = """
    [assume m (tag 'm 0 (normal 1 2))] [assume s (gamma 2 2)]
    [assume x (mem (lambda (i) (tag 'x i (normal (* 2 m) s))))]
    for n in 1...N: [observe (poisson (exp (* 0.2 (x {G[n]})))) {Y[n]}]
"""


def test_latent_choices_and_data_are_drawn_from_their_joint_distribution() -> None:
    data = {"N": 6, "G": [1, 1, 2, 2, 3, 3], "Y": [1, 2, 0, 3, 1, 1]}
    model = model_of(HIERARCHY, **data)
    before = snapshot(model)
    nodes = [*scoped(model, "m"), *scoped(model, "x"), *observed(model)]
    assert len(nodes) == 1 + 3 + 6
    found = drawn(model, nodes)
    assert snapshot(model) == before
    rng = np.random.default_rng(5)
    m, s = rng.normal(1, 2, WORLDS), rng.gamma(2, 1 / 2, WORLDS)
    x = rng.normal(2 * m, s, (3, WORLDS))
    expected = [m, *x, *[rng.poisson(np.exp(0.2 * x[g - 1])) for g in data["G"]]]
    for ours, theirs in zip(found, expected, strict=True):
        assert stats.ks_2samp(ours, theirs).pvalue > FALSE_ALARM
    # and together: two data of one group share its level
    pair = found[4] + found[5], expected[4] + expected[5]
    apart = found[4] - found[6], expected[4] - expected[6]
    for ours, theirs in (pair, apart):
        assert stats.ks_2samp(ours, theirs).pvalue > FALSE_ALARM


def test_only_what_the_blanket_depends_on_is_drawn() -> None:
    model = model_of(
        HIERARCHY + "[assume z (mem (lambda (i) (normal i 1)))] [predict (list (z 1) (z 2))]", N=1, G=[1], Y=[2]
    )
    maker = WorldMaker(model, observed(model))
    # the rate is computed where it is read
    assert maker.places.nowhere == 4


@pytest.mark.thorough
def test_vectors_booleans_and_values_computed_row_by_row() -> None:
    model = model_of("""
        [assume w (tag 'w 0 (multivariate_normal (vector 1 2) (matrix (list 1 0.5) (list 0.5 2))))]
        [assume b (tag 'b 0 (flip 0.3))] [assume pair (list b (lookup w 0))]
        [assume y (tag 'y 0 (normal (+ (second pair) (if (first pair) 10 0)) 1))]
    """)
    nodes = [scoped(model, name)[0] for name in "wby"]
    w, b, y = drawn(model, nodes)
    rng = np.random.default_rng(2)
    first = rng.normal(1, 1, WORLDS)
    coin = rng.random(WORLDS) < 0.3
    assert np.cov(w.T) == pytest.approx(np.array([[1, 0.5], [0.5, 2]]), abs=0.25)
    assert stats.binomtest(int(b.sum()), WORLDS, 0.3).pvalue > FALSE_ALARM
    assert stats.ks_2samp(y, rng.normal(first + 10 * coin, 1)).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    "program",
    [
        "[assume b (flip 0.5)] [assume y (tag 'y 0 (normal (if b (normal 0 1) 2) 1))]",
        "[assume k (poisson 2)] [assume f (mem (lambda (i) (normal i 1)))] [assume y (tag 'y 0 (normal (f k) 1))]",
        "[assume c (make_crp 1)] [assume y (tag 'y 0 (normal (c) 1))]",
    ],
)
def test_structure_that_depends_on_choices_is_refused(program: str) -> None:
    model = model_of(program)
    with pytest.raises(KernelError, match="what exists around the block, or the statistics"):
        WorldMaker(model, scoped(model, "y"))


def at_half(reader: RunReader, arguments: list[Any]) -> np.ndarray:
    return np.full(len(reader.run.rows), 0.5)


def test_a_blanket_is_read_with_the_block_at_its_centre() -> None:
    """Children have their values, and their arguments as they would be with the block at the centre."""
    data = {"N": 4, "G": [1, 1, 2, 2], "X": [1.0, 2.0, 3.0, 4.0], "Y": [1.0, 2.0, 0.0, 3.0]}
    program = """
        [assume m (tag 'm 0 (normal 1 2))] [assume x (mem (lambda (i) (tag 'x i (normal m 3))))]
        for n in 1...N: [observe (normal (* {X[n]} (x {G[n]})) 0.7) {Y[n]}]
    """
    model = model_of(program, **data)
    (block,) = [[node] for node in scoped(model, "x") if model.trace.value(node) is not None][:1]
    before = snapshot(model)
    features = Blanket(model, block).read(at_half)
    assert snapshot(model) == before
    m = model.trace.value(scoped(model, "m")[0])
    assert features.fixed.tolist() == [[m, 3.0]]
    (rows,) = features.ports.values()
    of_groups = [[[data["Y"][n], data["X"][n] * 0.5, 0.7] for n in range(4) if data["G"][n] == g] for g in (1, 2)]
    assert sorted(rows[0].tolist()) in [sorted(own) for own in of_groups]


def test_what_a_blanket_reads_does_not_depend_on_the_block() -> None:
    model = model_of(HIERARCHY, N=6, G=[1, 1, 2, 2, 3, 3], Y=[1, 2, 0, 3, 1, 1])
    block = [*scoped(model, "m"), *scoped(model, "x")]
    before = Blanket(model, block).read(at_half)
    for node in block:
        with model.transaction() as change:
            model.put_value(node, 7.5)
            change.keep()
    after = Blanket(model, block).read(at_half)
    assert before.fixed.tobytes() == after.fixed.tobytes()
    assert {key: rows.tobytes() for key, rows in before.ports.items()} == {
        key: rows.tobytes() for key, rows in after.ports.items()
    }


def test_worlds_and_the_trace_are_read_alike() -> None:
    """A world that has the trace's values gives the features of the trace."""
    model = model_of(HIERARCHY, N=6, G=[1, 1, 2, 2, 3, 3], Y=[1, 2, 0, 3, 1, 1])
    block = scoped(model, "x")
    maker = WorldMaker(model, [*block, *observed(model)])
    worlds = maker.draw(1, np.random.default_rng(0))
    for site, rows in maker.places.rows():
        for row in rows.tolist():
            place = int(maker.places.of(site, row))
            worlds.values[place] = np.array([model.trace.value(node_at(site, row))])
    here, there = Blanket(model, block).read(at_half), Blanket(model, block, maker.places).read(at_half, worlds)
    assert np.allclose(here.fixed, there.fixed, rtol=1e-12)
    assert here.ports.keys() == there.ports.keys()
    for key, rows in here.ports.items():
        assert np.allclose(rows, there.ports[key], rtol=1e-12)


def test_sites_have_the_same_names_in_every_session() -> None:
    """Whatever else was asked before."""
    program = "[assume x (tag 'x 0 (normal 0 1))] [assume y (tag 'x 1 (normal 0 1))]"
    first, second = Venture(seed=1), Venture(seed=1)
    first.execute(program)
    second.execute("[sample (+ 1 2)] [assume z (lambda (v) (normal 0 1))] " + program + " [sample (z x)]")
    found = [sorted(names_of(venture.traces[0], scoped(venture.traces[0], "x"))) for venture in (first, second)]
    assert found == [["x: (normal 0 1)", "y: (normal 0 1)"]] * 2


def rows_read(model: Model) -> list[Any]:
    return [rows[0].tolist() for rows in Blanket(model, scoped(model, "x")).read(at_half).ports.values()]


def test_a_call_and_a_distribution_of_the_same_text_are_ports_of_their_own() -> None:
    model = model_of("""
        [assume x (tag 'x 0 (normal 0 1))]
        [observe (normal x 1) 2] [observe ((lambda (normal) (normal x 1)) normal) 5]
    """)
    assert rows_read(model) == [[[2.0, 0.5, 1.0]], [[5.0, 0.5, 1.0]]]


def test_two_procedures_of_one_name_are_read_alike() -> None:
    """The second was registered when the program had the first."""
    venture = Venture(seed=1)

    def register(sd: float) -> None:
        venture.register(
            "near",
            simulate=lambda rng, mean: float(rng.normal(mean, sd)),
            log_density=lambda value, mean: float(stats.norm.logpdf(value, mean, sd)),
        )

    register(1.0)
    venture.execute("[assume x (tag 'x 0 (normal 0 1))] [assume first near]")
    register(2.0)
    venture.execute("[assume both (list first near first)] for n in 0...2: [observe ((lookup both n) x) n]")
    (rows,) = rows_read(venture.traces[0])
    assert sorted(rows) == [[0.0, 0.5], [1.0, 0.5], [2.0, 0.5]]


def test_evidence_that_is_a_list_is_read_as_the_vectors_of_worlds() -> None:
    """So are matrices that stay in the trace and vary between worlds."""
    model = model_of(
        """
        [assume m (tag 'm 0 (normal 0 1))] [assume v (wishart 4 {C})]
        [observe (multivariate_normal (vector m 1) v) (list 1 0.5)]
        """,
        C=np.eye(2),
    )
    block = scoped(model, "m")
    maker = WorldMaker(model, [*block, *observed(model)])
    worlds = maker.draw(1, np.random.default_rng(0))
    (here,) = Blanket(model, block).read(at_half).ports.values()
    (there,) = Blanket(model, block, maker.places).read(at_half, worlds).ports.values()
    assert here[0, 0, :4].tolist() == [1.0, 0.5, 0.5, 1.0]
    assert here.shape[1:] == there.shape[1:] == (1, 8)


@pytest.mark.parametrize(
    ("one", "other", "mean", "means"),
    [
        # an integer that is no float beside floats
        ("(+ 9007199254740993 (> (f 1) 9))", "(* 0.5 (f 0))", "(if (= (g {J[n]}) 9007199254740992) 9 0)", (0, 0)),
        ("(vector (f 0) 0)", "(list true (f 0))", "(if (is_vector (g {J[n]})) 9 0)", (9, 0)),
        ("(vector (f 0) 5)", "(dict 0 9 1 (> (f 0) 7))", "(lookup (g {J[n]}) 1)", (5, 0)),
        # of which one stays
        ("(vector (f 0) 0)", "(list 1 2)", "(if (is_vector (g {J[n]})) 9 0)", (9, 0)),
        ("(list (f 0) 0)", "(list 1 2)", "(lookup (g {J[n]}) 1)", (0, 2)),
    ],
)
def test_rows_read_values_of_several_kinds(one: str, other: str, mean: str, means: tuple[int, int]) -> None:
    program = f"""
        [assume f (mem (lambda (k) (normal 0 1)))]
        [assume g (mem (lambda (k) (if (= k 1) {one} {other})))]
        for n in 1...30: [observe (normal {mean} 0.001) 1]"""
    model = model_of(program, J=[1, 2] * 15)
    data = observed(model)
    maker = WorldMaker(model, [*model.trace.default.everything(), *data])
    worlds = maker.draw(4, np.random.default_rng(0))
    for at, node in enumerate(data):
        found = worlds.values[int(maker.places.of(node >> 32, node & 0xFFFFFFFF))]
        assert np.allclose(found, means[at % 2], atol=0.01)
