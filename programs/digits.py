"""Bayesian logistic regression on handwritten digits, 7 against 9: data, program, posterior, picture.

    python programs/digits.py                            # scikit-learn's bundled 8 x 8 digits
    python programs/digits.py --data mnist_7v9.npz       # MNIST: X_train, y_train, X_test, y_test

The arrays go to one .npz, which the command line runs as well:

    venture run programs/bayes_lr.vnt -d out/digits.npz
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from venture_lite import Venture

PROGRAM = Path(__file__).with_name("bayes_lr.vnt")
# the prior variance of a weight, as in the paper
PRIOR_VARIANCE = 0.1
# Roberts, Gelman and Gilks (1997): the best random walk in d dimensions has 2.38 / sqrt(d) of the target's sd
WALK = 2.38


@dataclass(frozen=True, slots=True)
class Size:
    """How large a problem is made, and how long the chains run on it."""

    components: int
    burn: int
    thin: int


BUNDLED = Size(components=10, burn=2_000, thin=20)
MNIST = Size(components=50, burn=10_000, thin=100)


@dataclass(frozen=True, slots=True)
class Images:
    """Images of sevens and nines; `nine` is the class to learn."""

    # train: (count, side, side), test likewise
    train: np.ndarray
    train_nine: np.ndarray
    test: np.ndarray
    test_nine: np.ndarray
    source: str


def main() -> None:
    options = arguments()
    images = bundled_digits() if options.data is None else mnist(options.data)
    usual = BUNDLED if options.data is None else MNIST
    components = options.components or usual.components
    burn, thin = options.burn or usual.burn, options.thin or usual.thin
    parameters = features(images, components) | {"burn": burn, "T": thin, "draws": options.draws}
    options.out.mkdir(parents=True, exist_ok=True)
    data_file, picture_file = options.out / "digits.npz", options.out / "digits.png"
    np.savez(data_file, **parameters)

    started = time.perf_counter()
    model = Venture(seed=options.seed, chains=options.chains)
    draws = model.run_file(PROGRAM, **parameters)[-1]
    seconds = time.perf_counter() - started

    weights = draws["w"].reshape(-1, components + 1)
    probability = logistic(parameters["X_test"] @ weights.T)
    correct = (probability.mean(axis=1) > 0.5) == images.test_nine
    transitions = options.chains * (burn + options.draws * thin)
    draw_picture(images, probability, picture_file)

    print(
        f"data      {images.source}, 7 against 9: {len(images.train):,} to learn from, {len(images.test):,} to test on"
    )
    print(f"          {components} principal components and a bias, in {data_file}")
    print(f"program   {PROGRAM.name}, {options.chains} chains, seed {options.seed}")
    print(f"time      {seconds:.1f} s, {transitions:,} transitions, {transitions / seconds:,.0f} a second")
    print(f"accepted  {acceptance(draws):.2f} of the proposals")
    print(f"accuracy  {100 * correct.mean():.1f}% of the test images\n")
    print(draws.summary())
    print(f"\npicture   {picture_file}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a .npz with X_train, y_train, X_test, y_test (labels 7 and 9)")
    parser.add_argument("--components", type=int, help="principal components (10; 50 with --data)")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--draws", type=int, default=1000, help="draws kept of each chain")
    parser.add_argument("--thin", type=int, help="transitions before each draw (20; 100 with --data)")
    parser.add_argument("--burn", type=int, help="transitions before the first draw (2,000; 10,000 with --data)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the data and the picture")
    return parser.parse_args()


def bundled_digits() -> Images:
    """Sevens and nines among scikit-learn's 1,797 digits; every fourth is kept for testing."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    chosen = np.isin(bunch.target, (7, 9))
    pictures, nine = bunch.images[chosen] / 16.0, bunch.target[chosen] == 9
    test = np.arange(len(nine)) % 4 == 3
    return Images(pictures[~test], nine[~test], pictures[test], nine[test], "scikit-learn's digits")


def mnist(path: Path) -> Images:
    with np.load(path) as file:
        train, test = file["X_train"] / 255.0, file["X_test"] / 255.0
        return Images(train, file["y_train"] == 9, test, file["y_test"] == 9, path.name)


def features(images: Images, components: int) -> dict[str, Any]:
    """The program's parameters: whitened principal components and a bias, the prior, and a bandwidth for the walk."""
    from sklearn.decomposition import PCA

    flat_train = images.train.reshape(len(images.train), -1)
    flat_test = images.test.reshape(len(images.test), -1)
    analysis = PCA(components, whiten=True, svd_solver="full").fit(flat_train)

    def with_bias(flat: np.ndarray) -> np.ndarray:
        return np.column_stack((analysis.transform(flat), np.ones(len(flat))))

    rows, classes = with_bias(flat_train), images.train_nine.astype(np.int64)
    dimensions = components + 1
    return {
        "X": rows,
        "Y": classes,
        "X_test": with_bias(flat_test),
        "Y_test": images.test_nine.astype(np.int64),
        "N": len(rows),
        "mu": np.zeros(dimensions),
        "Sig": PRIOR_VARIANCE * np.eye(dimensions),
        "sig": WALK / np.sqrt(dimensions) * posterior_scale(rows, classes),
    }


def posterior_scale(rows: np.ndarray, classes: np.ndarray, newton_steps: int = 20) -> float:
    """A typical sd of a weight under the posterior: the curvature's at the mode, averaged as precisions."""
    weights = np.zeros(rows.shape[1])
    precision = np.eye(len(weights)) / PRIOR_VARIANCE
    for _ in range(newton_steps):
        fitted = logistic(rows @ weights)
        precision = (rows.T * (fitted * (1 - fitted))) @ rows + np.eye(len(weights)) / PRIOR_VARIANCE
        weights += np.linalg.solve(precision, rows.T @ (classes - fitted) - weights / PRIOR_VARIANCE)
    return float(1.0 / np.sqrt(np.trace(precision) / len(weights)))


def logistic(scores: np.ndarray) -> np.ndarray:
    probability: np.ndarray = 0.5 * (1.0 + np.tanh(0.5 * scores))
    return probability


def acceptance(draws: Any) -> float:
    accepted = sum(row.accepted for row in draws.statistics)
    proposed = sum(row.transitions for row in draws.statistics)
    return float(accepted) / float(proposed)


def draw_picture(images: Images, probability: np.ndarray, path: Path, doubtful: int = 12) -> None:
    """The posterior predictive: every test image's probability of being a 9, and the images most in doubt.

    Args:
        probability: (test images, draws).
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(12, 4.8), layout="constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=[5, 4])
    left, right = halves
    draw_curve(left.subplots(), probability, images.test_nine)
    mean = probability.mean(axis=1)
    right.suptitle(
        "most in doubt: what it is, and its probability of being a 9\n(red: taken for the other)", fontsize=10
    )
    panels = right.subplots(3, doubtful // 3).flat
    for panel, image in zip(panels, np.argsort(np.abs(mean - 0.5))[:doubtful], strict=True):
        is_nine = bool(images.test_nine[image])
        panel.imshow(images.test[image], cmap="gray_r")
        colour = "black" if is_nine == (mean[image] > 0.5) else "tab:red"
        panel.set_title(f"a {9 if is_nine else 7}, {mean[image]:.2f}", fontsize=9, color=colour)
        panel.set_axis_off()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_curve(axes: Any, probability: np.ndarray, nine: np.ndarray) -> None:
    """Test images in order of their predictive probability, with the posterior's 90% interval of that probability."""
    mean = probability.mean(axis=1)
    order = np.argsort(mean)
    ranks = np.arange(len(order))
    low, high = np.quantile(probability[order], (0.05, 0.95), axis=1)
    axes.fill_between(ranks, low, high, color="0.85", linewidth=0, label="90% interval")
    axes.axhline(0.5, color="0.5", linewidth=0.8, linestyle=":")
    size = 5 if len(order) < 500 else 2
    for chosen, colour, label in ((~nine[order], "tab:blue", "a 7"), (nine[order], "tab:red", "a 9")):
        axes.plot(ranks[chosen], mean[order][chosen], ".", color=colour, markersize=size, label=label)
    axes.set(xlabel="test images, in order", ylabel="posterior predictive probability of a 9", ylim=(-0.02, 1.02))
    axes.legend(loc="upper left", markerscale=5 / size)


if __name__ == "__main__":
    main()
