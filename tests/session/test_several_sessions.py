"""Several sessions in one process: interleaved, in threads, and one session asked for by two threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from venture_lite import Venture, VentureError

PROGRAMS = (
    """[assume mu (normal 0 1)] for n in 1...20: [observe (normal mu 1) {y[n]}]
[infer (repeat 80 (do (mh default one 2) (collect mu)))]""",
    """[assume c (make_crp 1)] [assume z (mem (lambda (i) (c)))] [assume m (mem (lambda (k) (normal 0 5)))]
       for n in 1...12: [observe (normal (m (z n)) 1) {y[n]}]
[infer (repeat 40 (do (mh default one 2) (collect (z 1) (m (z 1)))))]""",
    """[assume w (multivariate_normal (vector 0 0) (matrix (list 1 0.5) (list 0.5 1)))]
       [assume (f n) (map (lambda (i) (+ i n)) (range 3))] [predict (f 2)]
[infer (repeat 80 (do (mh default all 'drift 0.5 2) (collect w)))]""",
)
DATA = np.linspace(-2, 2, 20)


def whole(program: str, seed: int = 4) -> dict[str, Any]:
    draws = Venture(seed=seed).execute(program, y=DATA)[-1]
    return {name: draws[name].tolist() for name in draws}


@pytest.mark.thorough
def test_interleaved_sessions_give_what_each_gives_alone() -> None:
    def stepwise(program: str) -> Iterator[dict[str, Any] | None]:
        head, _, inference = program.partition("[infer ")
        venture = Venture(seed=4)
        venture.execute(head, y=DATA)
        yield None
        draws = venture.infer(inference.strip()[:-1])
        yield {name: draws[name].tolist() for name in draws}

    alone = [whole(program) for program in PROGRAMS]
    steps = [stepwise(program) for program in PROGRAMS]
    assert [next(step) for step in steps] == [None] * len(PROGRAMS)
    assert [next(step) for step in reversed(steps)] == alone[::-1]


@pytest.mark.thorough
def test_sessions_in_threads_give_what_each_gives_alone() -> None:
    jobs = [(program, seed) for program in PROGRAMS for seed in (1, 2)]
    alone = [whole(*job) for job in jobs]
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(4) as pool:
        threads_before = [entry["num_threads"] for entry in threadpool_info()]
        assert list(pool.map(lambda job: whole(*job), jobs)) == alone
        assert [entry["num_threads"] for entry in threadpool_info()] == threads_before


def test_a_session_that_is_busy_refuses_a_second_thread_and_goes_on() -> None:
    venture = Venture(seed=1)
    inside, release = threading.Event(), threading.Event()

    def wait(x: float) -> float:
        inside.set()
        assert release.wait(30)
        return x

    venture.register("wait", function=wait)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(venture.sample, "(wait 3)")
        assert inside.wait(30)
        with pytest.raises(VentureError, match="running a directive already") as caught:
            venture.sample("(+ 1 1)")
        assert "a Venture of its own" in str(caught.value)
        release.set()
        assert slow.result() == 3
    assert venture.sample("(+ 1 1)") == 2


@pytest.mark.parametrize("wrong", [{"seed": "one"}, {"seed": -1}, {"seed": 1.5}, {"chains": 0}, {"chains": 2.0}])
def test_seed_and_chains_are_whole_numbers(wrong: dict[str, Any]) -> None:
    with pytest.raises(VentureError, match="whole number"):
        Venture(**wrong)


def test_a_seed_of_numpy_is_the_seed() -> None:
    assert Venture(seed=np.int64(3)).assume("x", "(normal 0 1)") == Venture(seed=3).assume("x", "(normal 0 1)")


def test_without_a_seed_the_one_that_was_used_is_kept() -> None:
    first = Venture()
    assert Venture(seed=first.seed).assume("x", "(normal 0 1)") == first.assume("x", "(normal 0 1)")
    assert f"seed={first.seed}) with 1 directive>" in repr(first)
