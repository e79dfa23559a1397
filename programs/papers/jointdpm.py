"""The joint Dirichlet process mixture of logistic experts: accuracy over time and over the sections read for w.

    python programs/papers/jointdpm.py                              # 2,000 points, 2 seeds
    python programs/papers/jointdpm.py --points 10000 --seeds 5     # as in the documents

Chen, Mansinghka and Ghahramani (2014), Figures 6 and 7: clusters of points in the plane, each with a logistic
regression of its own, found by Gibbs steps for the clusters' assignments and by exact (eps 0) or subsampled transitions
of the experts' weights, of the same number. Both start where subsample annealing ends.
The class of 1,000 test points is predicted by the average over the chain.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import multivariate_t

from venture_lite import Venture

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import DATA, EXACT, OTHER, POSTERIOR, STYLE, panels

PROGRAM = Path(__file__).with_suffix(".vnt").read_text(encoding="utf-8")
PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "jointdpm.png"
CLUSTERS = 6
TESTED = 1000
# points of a kind in the picture
SHOWN = 150
TOLERANCES = (0.0, 0.3)
NAMES = {0.0: "exact", 0.3: "eps 0.3"}
# the normal-inverse-Wishart prior of a cluster: mean, observations that it is worth, degrees of freedom, scale
M0, K0, V0, S0 = np.zeros(2), 0.02, 5.0, np.eye(2)
# variances of an expert's weights, the intercept's last
SPREAD = np.diag([4.0, 4.0, 36.0])
# from assignments drawn from the prior single-site steps find too many clusters, each of one class
START = "(anneal z linear 3 (mh w each 'drift 0.5 10))"


@dataclass(frozen=True, slots=True)
class Points:
    """Points (N, 2) of the plane and their classes (N,)."""

    features: np.ndarray
    classes: np.ndarray

    def with_one(self) -> np.ndarray:
        """(N, 3), the intercept's feature last."""
        return np.column_stack([self.features, np.ones(len(self.features))])


def generated(points: int, seed: int) -> tuple[Points, Points]:
    """Points to learn from and points to test: clusters on a ring, each cut along its radius, one way or the other."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * np.arange(CLUSTERS) / CLUSTERS
    centers = 6 * np.column_stack([np.cos(angles), np.sin(angles)])
    steep = 3 * rng.choice((-1, 1), CLUSTERS)
    normals = steep[:, None] * np.column_stack([-np.sin(angles), np.cos(angles)])
    cluster = rng.integers(CLUSTERS, size=points + TESTED)
    features = centers[cluster] + rng.normal(size=(len(cluster), 2))
    scores = np.einsum("ij,ij->i", features - centers[cluster], normals[cluster])
    classes = rng.random(len(cluster)) < expit(scores)
    return Points(features[:points], classes[:points]), Points(features[points:], classes[points:])


@dataclass(frozen=True, slots=True)
class State:
    """One draw: each point's cluster, numbered from 0, and each cluster's weights."""

    cluster: np.ndarray
    weights: np.ndarray
    alpha: float


def state_of(v: Venture) -> State:
    tables, cluster = np.unique(np.asarray(v.report("table")), return_inverse=True)
    weights = np.array([v.sample(f"(w {table})") for table in tables.tolist()])
    return State(cluster, weights, float(v.sample("alpha")))


def predicted(state: State, learnt: Points, tested: np.ndarray) -> np.ndarray:
    """(tested,): probability of each test point's class, its cluster summed out; a new cluster says nothing."""
    fit = np.log(state.alpha) + log_density_of(np.empty((0, 2)), tested)
    joint, right = [fit], [np.full(len(tested), 0.5)]
    ones = np.column_stack([tested, np.ones(len(tested))])
    for k, weights in enumerate(state.weights):
        members = learnt.features[state.cluster == k]
        joint.append(np.log(len(members)) + log_density_of(members, tested))
        right.append(expit(ones @ weights))
    share = np.exp(np.array(joint) - np.max(joint, axis=0))
    return np.asarray((share * right).sum(axis=0) / share.sum(axis=0))


def log_density_of(members: np.ndarray, tested: np.ndarray) -> np.ndarray:
    """Log density of each test point given a cluster's points (Murphy 2007, section 9)."""
    n, size = len(members), tested.shape[1]
    mean = members.mean(axis=0) if n else M0
    away = members - mean
    k, v = K0 + n, V0 + n
    scale = S0 + away.T @ away + (K0 * n / k) * np.outer(mean - M0, mean - M0)
    center = (K0 * M0 + n * mean) / k
    freedom = v - size + 1
    return np.asarray(multivariate_t(center, scale * (k + 1) / (k * freedom), freedom).logpdf(tested))


@dataclass(frozen=True, slots=True)
class Run:
    """Accuracy (snapshots,) of the average over the chain so far, beside what had been spent."""

    accuracy: np.ndarray
    # (snapshots,): sections evaluated for w, seconds for w alone and for everything
    sections: np.ndarray
    seconds_for_w: np.ndarray
    seconds: np.ndarray
    state: State


def run(learnt: Points, tested: Points, tolerance: float, seed: int, options: argparse.Namespace) -> Run:
    """Cycles of one chain; a first third of the snapshots is burn-in."""
    model, inference = PROGRAM.split("[infer", 1)
    v = Venture(seed=seed)
    v.execute(
        model, N=len(learnt.classes), X=learnt.features, X1=learnt.with_one(), Y=learnt.classes,
        mu_w=np.zeros(3), sig_w=SPREAD, m0=M0, k0=K0, v0=V0, S0=S0,
    )  # fmt: skip
    inference = inference.strip().removesuffix("]")
    v.infer(START)
    total, averaged = np.zeros(len(tested.classes)), 0
    spent = np.zeros(3)
    found: list[np.ndarray] = []
    for snapshot in range(options.snapshots):
        started = time.process_time()
        made = v.infer(
            inference, step_z=options.step_z, nbatch=options.batch, eps=tolerance, sigma=options.sigma,
            step_w=options.step_w, T=options.cycles // options.snapshots,
        )  # fmt: skip
        spent += (made.statistics[-1].rows, made.statistics[-1].seconds, time.process_time() - started)
        if snapshot == options.snapshots // 3:
            total[:], averaged = 0.0, 0
        state = state_of(v)
        total += predicted(state, learnt, tested.features)
        averaged += 1
        found.append(np.append(np.mean((total / averaged > 0.5) == tested.classes), spent))
    accuracy, sections, seconds_for_w, seconds = np.array(found).T
    return Run(accuracy, sections, seconds_for_w, seconds, state)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--cycles", type=int, default=96)
    parser.add_argument("--snapshots", type=int, default=24)
    parser.add_argument("--step_z", type=int, default=200, help="Gibbs steps of a cycle")
    parser.add_argument("--step_w", type=int, default=500, help="transitions of experts of a cycle")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--sigma", type=float, default=0.2, help="sd of the experts' random walk")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    found: dict[float, list[Run]] = {tolerance: [] for tolerance in TOLERANCES}
    print("seed  kernel    accuracy  clusters  sections for w  seconds for w  seconds")
    for seed in range(options.seeds):
        learnt, tested = generated(options.points, seed)
        for tolerance, runs in found.items():
            runs.append(run(learnt, tested, tolerance, seed, options))
            print(f"{seed:>4}  {NAMES[tolerance]:<8}  {line(runs[-1])}", flush=True)
    exact, subsampled = (found[tolerance] for tolerance in TOLERANCES)
    for name, runs in ((NAMES[tolerance], runs) for tolerance, runs in found.items()):
        print(f"mean  {name:<8}  {100 * np.mean([r.accuracy[-1] for r in runs]):>7.2f}%")
    for what in ("sections", "seconds_for_w", "seconds"):
        ratio = sum(getattr(r, what)[-1] for r in subsampled) / sum(getattr(r, what)[-1] for r in exact)
        print(f"{what.replace('_', ' ')}: {100 * ratio:.1f}% of those of exact transitions")
    draw(learnt, tested, found, options.picture)


def line(found: Run) -> str:
    return (
        f"{100 * found.accuracy[-1]:>7.2f}%  {len(found.state.weights):>8}  {found.sections[-1]:>14,.0f}  "
        f"{found.seconds_for_w[-1]:>13.1f}  {found.seconds[-1]:>7.1f}"
    )


def draw(learnt: Points, tested: Points, found: dict[float, list[Run]], out: Path) -> None:
    """The test points with the clusters' boundaries, and accuracy against the sections read."""
    from matplotlib import rc_context

    style = STYLE
    with rc_context(style):
        figure, (left, right) = panels(1, 2)
        last = found[TOLERANCES[-1]][-1]
        is_right = (predicted(last.state, learnt, tested.features) > 0.5) == tested.classes
        for kind, colour in ((False, POSTERIOR), (True, OTHER)):
            chosen = tested.features[is_right & (tested.classes == kind)][:SHOWN]
            left.plot(*chosen.T, ".", color=colour, markersize=3)
        left.plot(*tested.features[~is_right][:SHOWN].T, ".", color=DATA, markersize=3, label="wrong")
        for k, weights in enumerate(last.state.weights):
            members = learnt.features[last.state.cluster == k]
            ends = boundary(members, weights)
            # experts of one class alone are undecided far away
            if (
                len(members) > 0.02 * len(learnt.features)
                and np.linalg.norm(ends.mean(axis=0) - members.mean(axis=0)) < 2
            ):
                left.plot(*ends.T, "--", color=EXACT, linewidth=1)
        left.set(xlim=(-9.5, 9.5), ylim=(-9.5, 9.5), aspect="equal")
        left.legend(loc="center")
        for (tolerance, runs), colour in zip(found.items(), (EXACT, POSTERIOR), strict=True):
            for at, made in enumerate(runs):
                name = NAMES[tolerance] if not at else None
                right.plot(made.sections, 100 * made.accuracy, color=colour, linewidth=1, label=name)
        right.set_xscale("log")
        right.set_xlabel("sections evaluated for w")
        right.set_ylabel("test points classified right, %")
        right.legend()
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, dpi=100, metadata={"Software": None})


def boundary(members: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(2, 2): ends of the line on which an expert is undecided, near its cluster."""
    center, normal = members.mean(axis=0), weights[:2]
    size = float(np.linalg.norm(normal))
    foot = center - (center @ normal + weights[2]) * normal / size**2
    along = 2.0 * np.array([-normal[1], normal[0]]) / size
    return np.array([foot - along, foot + along])


if __name__ == "__main__":
    main()
