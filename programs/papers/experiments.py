"""Runs the papers' experiments one after the other, each as its page in the documents says.

    python programs/papers/experiments.py                           # all of them, on generated data
    python programs/papers/experiments.py branch urns --out out     # two of them, pictures elsewhere
    python programs/papers/experiments.py --data FOLDER             # on the papers' data sets, where they are there

Sizes are the programs' defaults, a few minutes each; the pages say what their figures were made with.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# program -> the files that its --data takes
EXPERIMENTS: dict[str, tuple[str, ...]] = {
    "branch": (),
    "risk": ("mnist_7v9.npz",),
    "bias": ("mnist_7v9.npz",),
    "sublinearity": (),
    "jointdpm": (),
    "volatility": (),
    "urns": (),
    "crosscat": ("dartmouth_atlas_dha.csv.gz",),
    "firefly_logistic": ("mnist_7v9.npz",),
    "firefly_softmax": ("cifar10_3class_train.npz", "cifar10_3class_test.npz"),
    "firefly_robust": ("opv_cep_features.npz",),
    "compiled_conjugate": (),
    "compiled_modes": (),
    "compiled_ring": (),
    "compiled_logistic": (),
    "compiled_schools": (),
    "compiled_branch": (),
    "compiled_mixture": (),
}


def command(name: str, out: Path, data: Path | None) -> list[str]:
    """How a program is called; with data where all its files are there."""
    files = [data / file for file in EXPERIMENTS[name]] if data is not None else []
    given = ["--data", *map(str, files)] if files and all(file.exists() for file in files) else []
    return [sys.executable, str(HERE / f"{name}.py"), "--picture", str(out / f"{name}.png"), *given]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EXPERIMENTS)}; by default all")
    parser.add_argument("--data", type=Path, help="a folder with the papers' data sets")
    parser.add_argument("--out", type=Path, default=Path("build/experiments"), help="where the pictures go")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in EXPERIMENTS]
    if unknown:
        parser.error(f"no experiment is called {unknown[0]}; there are {', '.join(EXPERIMENTS)}")
    options.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in options.names or EXPERIMENTS:
        print(f"\n== {name}", flush=True)
        if subprocess.run(command(name, options.out, options.data), check=False).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
