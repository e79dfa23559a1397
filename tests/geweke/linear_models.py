"""Joint models whose data read their parameters through linear predictors, for engines that bound or expand them.

As in `models.py`, data are ordinary choices in scope `data`. Classes that are redrawn are often what they were, and
what an engine keeps of them stays.
"""

from __future__ import annotations

import numpy as np

from tests.geweke.models import Model, Rng
from tests.statistics import Floats

FEATURES = np.array([1, 2, 3]) - 1.75


def simulate_classes(rng: Rng, n: int) -> dict[str, Floats]:
    tau = rng.gamma(4, 1 / 4, n)
    w = tau * rng.standard_normal(n)
    y = rng.random((n, 3)) < 1 / (1 + np.exp(-w[:, None] * FEATURES))
    return {
        "tau": tau,
        "w": w,
        "w_square": w * w,
        "tau_w": tau * np.abs(w),
        "y2": y[:, 1] * 1.0,
        "w_y1": w * y[:, 0],
        "y1_y3": y[:, 0] * y[:, 2] * 1.0,
        "w_y2_y3": w * y[:, 1] * y[:, 2],
    }


CLASSES = Model(
    """[assume tau (scope_include 'tau 0 (gamma 4 4))] [assume w (scope_include 'w 0 (normal 0 tau))]
    [assume y (mem (lambda (i) (scope_include 'data i (bernoulli (logistic (* w (- i 1.75)))))))]
    y1: [predict (y 1)] y2: [predict (y 2)] y3: [predict (y 3)]""",
    {
        "tau": "tau",
        "w": "w",
        "w_square": "(* w w)",
        "tau_w": "(* tau (abs w))",
        "y2": "(y 2)",
        "w_y1": "(* w (y 1))",
        "y1_y3": "(* (y 1) (y 3))",
        "w_y2_y3": "(* w (y 2) (y 3))",
    },
    simulate_classes,
)


def simulate_line(rng: Rng, n: int) -> dict[str, Floats]:
    a, w, s = rng.standard_normal(n), 1.5 * rng.standard_normal(n), rng.gamma(3, 1 / 3, n)
    y = a[:, None] + w[:, None] * FEATURES + s[:, None] * rng.standard_t(4, (n, 3))
    signs = np.sign(y)
    return {
        "a": a,
        "w": w,
        "w_square": w * w,
        "s": s,
        "log_s": np.log(s),
        "s_w": s * np.abs(w),
        "a_y2": a * signs[:, 1],
        "w_y1": w * signs[:, 0],
        "w_y3": w * np.arctan2(y[:, 2], s),
        "s_y": s * np.abs(signs[:, 0] - signs[:, 2]),
        "far": (np.abs(y[:, 1] - a - w / 4) > 2 * s) * 1.0,
    }


LINE = Model(
    """[assume a (scope_include 'w 0 (normal 0 1))] [assume w (scope_include 'w 0 (normal 0 1.5))]
    [assume s (scope_include 's 0 (gamma 3 3))]
    [assume y (mem (lambda (i) (scope_include 'data i (student_t 4 (+ a (* w (- i 1.75))) s))))]
    [assume sign (lambda (v) (if (< v 0) -1 1))]
    [predict (y 1)] [predict (y 2)] [predict (y 3)]""",
    {
        "a": "a",
        "w": "w",
        "w_square": "(* w w)",
        "s": "s",
        "log_s": "(log s)",
        "s_w": "(* s (abs w))",
        "a_y2": "(* a (sign (y 2)))",
        "w_y1": "(* w (sign (y 1)))",
        "w_y3": "(* w (atan2 (y 3) s))",
        "s_y": "(* s (abs (- (sign (y 1)) (sign (y 3)))))",
        "far": "(if (> (abs (- (y 2) a (* 0.25 w))) (* 2 s)) 1 0)",
    },
    simulate_line,
)
