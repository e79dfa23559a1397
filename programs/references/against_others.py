"""Effective draws a leapfrog step and a second: `nuts`, NumPyro's and nutpie's, with a diagonal metric tuned to 0.8.

    python programs/references/against_others.py venture FOLDER OUT [NAME...]    # where venture_lite is installed
    python programs/references/against_others.py numpyro FOLDER OUT [NAME...]    # where numpyro is
    python programs/references/against_others.py nutpie FOLDER OUT [NAME...]     # where nutpie and pymc are
    python programs/references/against_others.py table FOLDER OUT

FOLDER is as of `references.py`, whose parameters are those that count; OUT is a file that each run adds a line of JSON
to, with four chains of 1,000 draws after 1,000 of warm-up. The least effective size of the bulk, by ArviZ, is divided
by the steps after the warm-up. Seconds are of processors, of all processes and threads, with the warm-up; what the
others compile is told apart. Models with differential equations are left out, and for nutpie those with recursions.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
CHAINS, WARMUP, DRAWS = 4, 1000, 1000


def ess_bulk(values: np.ndarray) -> float:
    """Of draws (chains, draws)."""
    import arviz_stats.base

    arviz: Any = arviz_stats.base
    return float(arviz.array_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk"))


def seconds() -> float:
    """Of processors, of this process and of those that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def disagreement(values: np.ndarray, reference: Mapping[str, float]) -> float:
    """Of a mean with the reference's, in its Monte Carlo errors."""
    error = math.hypot(float(values.std()) / math.sqrt(ess_bulk(values)), reference["mcse_mean"])
    return abs(float(values.mean()) - reference["mean"]) / error


def line(name: str, seed: int, by: str, draws: Mapping[str, np.ndarray], known: Any, steps: float, **more: Any) -> str:
    """One run as JSON; the draws (chains, draws) are by the reference's names."""
    sizes = {parameter: ess_bulk(values) for parameter, values in draws.items()}
    off = max(disagreement(values, known["reference"][parameter]) for parameter, values in draws.items())
    least = min(sizes, key=lambda parameter: sizes[parameter])
    found = {"name": name, "by": by, "seed": seed, "ess": sizes[least], "of": least, "steps": steps, "off": off}
    return json.dumps(found | more)


# ------------------------------------------------------------------------------------------------------ this system


def run_venture(name: str, known: Any, seed: int) -> str:
    """Four chains of the program of this folder."""
    from references import expression_of, kernels_of, parameters_of

    from venture_lite import Venture

    text = (HERE / f"{name}.vnt").read_text("utf-8")
    asked = {parameter: expression_of(parameter, text) for parameter in known["reference"]}
    v = Venture(seed=seed, chains=CHAINS)
    v.execute(text, **parameters_of(known["data"]))
    loop = f"(repeat {WARMUP + DRAWS} (do {kernels_of(text, '', WARMUP)} (collect {' '.join(asked.values())})))"
    began = seconds()
    draws = v.infer(f"(do (initialize) (pathfinder (choices 'smooth) all) {loop})")
    took = seconds() - began
    rows = [row.details for row in draws.statistics if "mean steps" in row.details]
    made = {each: np.asarray(draws[text])[:, -DRAWS:].astype(float) for each, text in asked.items()}
    steps = sum(row["mean steps"] * row["transitions that count"] for row in rows)
    diverged = sum(row["divergences"] for row in rows)
    return line(name, seed, "venture", made, known, steps, diverged=diverged, seconds=took, compiled=0.0)


# ---------------------------------------------------------------------------------------------------------- numpyro


def regression(columns: np.ndarray, y: np.ndarray, sigma: str = "flat", slopes: float | None = None) -> Any:
    """y by columns (N, D), the scale's prior by its name, the slopes' flat where they have no sd."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    columns, size = jnp.asarray(columns), columns.shape[1]
    scales = {
        "flat": lambda: dist.ImproperUniform(dist.constraints.positive, (), ()),
        "half_cauchy 2.5": lambda: dist.HalfCauchy(2.5),
        "half_normal 10": lambda: dist.HalfNormal(10.0),
    }

    def model() -> None:
        flat = dist.ImproperUniform(dist.constraints.real_vector, (), (size,))
        beta = numpyro.sample("beta", flat if slopes is None else dist.Normal(0.0, slopes).expand([size]).to_event(1))
        scale = numpyro.sample("sigma", scales[sigma]())
        numpyro.sample("y", dist.Normal(columns @ beta, scale), obs=jnp.asarray(y))

    return model


def with_ones(*columns: Any) -> np.ndarray:
    """An intercept, and columns (N,)."""
    return np.column_stack([np.ones(len(columns[0])), *columns])


def arma(data: Mapping[str, np.ndarray]) -> Any:
    import jax
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    y = jnp.asarray(data["y"])

    def model() -> None:
        mu, phi = numpyro.sample("mu", dist.Normal(0, 10)), numpyro.sample("phi", dist.Normal(0, 2))
        theta, sigma = numpyro.sample("theta", dist.Normal(0, 2)), numpyro.sample("sigma", dist.HalfCauchy(2.5))

        def error(before: Any, pair: Any) -> Any:
            now = pair[1] - (mu + phi * pair[0] + theta * before)
            return now, now

        first = y[0] - (mu + phi * mu)
        _, rest = jax.lax.scan(error, first, (y[:-1], y[1:]))
        errors = jnp.concatenate([first[None], rest])
        numpyro.factor("errors", dist.Normal(0, sigma).log_prob(errors).sum())

    return model


def diamonds(data: Mapping[str, np.ndarray]) -> Any:
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    centred, y = jnp.asarray(data["X"] - data["X"].mean(axis=0)), jnp.asarray(data["Y"])

    def model() -> None:
        b = numpyro.sample("b", dist.Normal(0, 1).expand([centred.shape[1]]).to_event(1))
        intercept = numpyro.sample("Intercept", dist.StudentT(3, 8, 10))
        sigma = numpyro.sample("sigma", dist.FoldedDistribution(dist.StudentT(3, 0, 10)))
        numpyro.sample("y", dist.Normal(intercept + centred @ b, sigma), obs=y)

    return model


def schools(data: Mapping[str, np.ndarray]) -> Any:
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    def model() -> None:
        mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([len(data["y"])]).to_event(1))
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("y", dist.Normal(theta, jnp.asarray(data["sigma"])), obs=jnp.asarray(data["y"]))

    return model


def gaussian_process(data: Mapping[str, np.ndarray]) -> Any:
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    x, y = jnp.asarray(data["x"]), jnp.asarray(data["y"])

    def model() -> None:
        rho, alpha = numpyro.sample("rho", dist.Gamma(25, 4)), numpyro.sample("alpha", dist.HalfNormal(2))
        sigma = numpyro.sample("sigma", dist.HalfNormal(1))
        kernel = alpha**2 * jnp.exp(-((x[:, None] - x) ** 2) / (2 * rho**2)) + sigma * jnp.eye(len(x))
        numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), kernel), obs=y)

    return model


def hidden_markov(data: Mapping[str, np.ndarray]) -> Any:
    import jax
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    y = jnp.asarray(data["y"])

    def model() -> None:
        rows = [numpyro.sample(f"theta{i}", dist.Dirichlet(jnp.ones(2))) for i in (1, 2)]
        mu = numpyro.sample("mu", dist.ImproperUniform(dist.constraints.positive_ordered_vector, (), (2,)))
        numpyro.factor("prior of mu", dist.Normal(jnp.array([3.0, 10.0]), 1).log_prob(mu).sum())
        moves = jnp.log(jnp.stack(rows))

        def step(before: Any, datum: Any) -> Any:
            now = jax.scipy.special.logsumexp(before[:, None] + moves, axis=0) + dist.Normal(mu, 1).log_prob(datum)
            return now, None

        last, _ = jax.lax.scan(step, dist.Normal(mu, 1).log_prob(y[0]), y[1:])
        numpyro.factor("data", jax.scipy.special.logsumexp(last))

    return model


def autoregression(data: Mapping[str, np.ndarray]) -> Any:
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    y = data["y"]
    earlier = jnp.asarray(np.column_stack([y[5 - k : -k] for k in range(1, 6)]))

    def model() -> None:
        alpha = numpyro.sample("alpha", dist.Normal(0, 10))
        beta = numpyro.sample("beta", dist.Normal(0, 10).expand([5]).to_event(1))
        sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))
        numpyro.sample("y", dist.Normal(alpha + earlier @ beta, sigma), obs=jnp.asarray(y[5:]))

    return model


def temperatures(data: Mapping[str, Any]) -> Any:
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    def model() -> None:
        alpha = numpyro.sample("alpha", dist.Normal(data["pmualpha"], data["psalpha"]))
        beta = numpyro.sample("beta", dist.Normal(data["pmubeta"], data["psbeta"]))
        sigma = numpyro.sample("sigma", dist.ImproperUniform(dist.constraints.positive, (), ()))
        numpyro.sample("y", dist.Normal(alpha + beta * jnp.asarray(data["x"]), sigma), obs=jnp.asarray(data["y"]))

    return model


def _logs(data: Mapping[str, np.ndarray], *names: str) -> list[np.ndarray]:
    return [np.log(data[name]) for name in names]


def _volume(d: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.asarray(np.log(d["diam1"] * d["diam2"] * d["canopy_height"]))


def _leanings(d: Mapping[str, np.ndarray]) -> np.ndarray:
    ages = ((d["age_discrete"] == age) * 1.0 for age in (2, 3, 4))
    return with_ones(d["real_ideo"], d["race_adj"], *ages, d["educ1"], d["gender"], d["income"])


BUSHES = ("diam1", "diam2", "canopy_height", "total_height", "density")
REGRESSIONS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "earnings-earn_height": lambda d: (with_ones(d["height"]), d["earn"]),
    "earnings-log10earn_height": lambda d: (with_ones(d["height"]), np.log10(d["earn"])),
    "earnings-logearn_height": lambda d: (with_ones(d["height"]), np.log(d["earn"])),
    "earnings-logearn_height_male": lambda d: (with_ones(d["height"], d["male"]), np.log(d["earn"])),
    "kidiq-kidscore_momhs": lambda d: (with_ones(d["mom_hs"]), d["kid_score"], "half_cauchy 2.5"),
    "kidiq-kidscore_momhsiq": lambda d: (with_ones(d["mom_hs"], d["mom_iq"]), d["kid_score"], "half_cauchy 2.5"),
    "kidiq-kidscore_momiq": lambda d: (with_ones(d["mom_iq"]), d["kid_score"], "half_cauchy 2.5"),
    "mesquite-logmesquite": lambda d: (with_ones(*_logs(d, *BUSHES), d["group"]), np.log(d["weight"])),
    "mesquite-logmesquite_logva": lambda d: (
        with_ones(_volume(d), np.log(d["diam1"] * d["diam2"]), d["group"]),
        np.log(d["weight"]),
    ),
    "mesquite-logmesquite_logvolume": lambda d: (with_ones(_volume(d)), np.log(d["weight"])),
    "mesquite-mesquite": lambda d: (with_ones(*[d[name] for name in BUSHES], d["group"]), d["weight"]),
    "nes1972-nes": lambda d: (_leanings(d), d["partyid7"]),
    "sblrc-blr": lambda d: (d["X"], d["y"], "half_normal 10", 10.0),
}
MODELS: dict[str, Callable[[Any], Any]] = {
    "arK-arK": autoregression,
    "arma-arma11": arma,
    "diamonds-diamonds": diamonds,
    "eight_schools-eight_schools_noncentered": schools,
    "gp_pois_regr-gp_regr": gaussian_process,
    "hmm_example-hmm_example": hidden_markov,
    "kilpisjarvi_mod-kilpisjarvi": temperatures,
}


def model_of(name: str, data: Mapping[str, Any]) -> Any:
    return regression(*REGRESSIONS[name](data)) if name in REGRESSIONS else MODELS[name](data)


def run_numpyro(name: str, known: Any, seed: int) -> str:
    """Four chains of a model of this file."""
    # threads that wait for each other would count as work
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    data = {key: np.asarray(value) if isinstance(value, list) else value for key, value in known["data"].items()}
    kernel = NUTS(model_of(name, data), target_accept_prob=0.8, dense_mass=False, max_tree_depth=10)
    settings = {"num_warmup": WARMUP, "num_samples": DRAWS, "num_chains": CHAINS, "progress_bar": False}
    mcmc = MCMC(kernel, chain_method="sequential", **settings)
    spent = []
    for _ in range(2):
        # what is compiled is compiled once
        began = seconds()
        mcmc.run(jax.random.PRNGKey(seed), extra_fields=("num_steps", "diverging"))
        spent.append(seconds() - began)
    took, compiled = spent[1], max(0.0, spent[0] - spent[1])
    draws, extra = mcmc.get_samples(group_by_chain=True), mcmc.get_extra_fields(group_by_chain=True)
    made = {}
    for parameter in known["reference"]:
        base, _, index = parameter.partition("[")
        values = np.asarray(draws[base], dtype=float)
        made[parameter] = values[..., int(index[:-1]) - 1] if index else values
    steps, diverged = int(extra["num_steps"].sum()), int(extra["diverging"].sum())
    return line(name, seed, "numpyro", made, known, steps, diverged=diverged, seconds=took, compiled=compiled)


# ----------------------------------------------------------------------------------------------------------- nutpie


def pymc_regression(columns: np.ndarray, y: np.ndarray, sigma: str = "flat", slopes: float | None = None) -> None:
    """As `regression`, within a model of PyMC."""
    import pymc as pm

    size = columns.shape[1]
    beta = pm.Flat("beta", shape=size) if slopes is None else pm.Normal("beta", 0.0, slopes, shape=size)
    scale = {
        "flat": lambda: pm.HalfFlat("sigma"),
        "half_cauchy 2.5": lambda: pm.HalfCauchy("sigma", 2.5),
        "half_normal 10": lambda: pm.HalfNormal("sigma", 10.0),
    }[sigma]()
    pm.Normal("y", pm.math.dot(columns, beta), scale, observed=y)


def pymc_schools(data: Mapping[str, np.ndarray]) -> None:
    import pymc as pm

    mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
    theta = pm.Deterministic("theta", mu + tau * pm.Normal("z", 0, 1, shape=len(data["y"])))
    pm.Normal("y", theta, data["sigma"], observed=data["y"])


def pymc_gaussian_process(data: Mapping[str, np.ndarray]) -> None:
    import pymc as pm
    import pytensor.tensor as pt

    x = data["x"]
    rho, alpha, sigma = pm.Gamma("rho", 25, 4), pm.HalfNormal("alpha", 2), pm.HalfNormal("sigma", 1)
    kernel = alpha**2 * pt.exp(-((x[:, None] - x) ** 2) / (2 * rho**2)) + sigma * pt.eye(len(x))
    pm.MvNormal("y", np.zeros(len(x)), cov=kernel, observed=data["y"])


PYMC: dict[str, Callable[[Any], None]] = {
    "eight_schools-eight_schools_noncentered": pymc_schools,
    "gp_pois_regr-gp_regr": pymc_gaussian_process,
}


def run_nutpie(name: str, known: Any, seed: int) -> str:
    """Four chains of a model of this file; regressions are those of NumPyro's models."""
    import nutpie
    import pymc as pm

    data = {key: np.asarray(value) if isinstance(value, list) else value for key, value in known["data"].items()}
    with pm.Model() as model:
        if name in PYMC:
            PYMC[name](data)
        else:
            pymc_regression(*REGRESSIONS[name](data))
    began = seconds()
    compiled = nutpie.compile_pymc_model(model)
    settings = {"draws": DRAWS, "tune": WARMUP, "chains": CHAINS, "cores": 1, "progress_bar": False}
    nutpie.sample(compiled, **(settings | {"draws": 10, "tune": 10}), seed=seed)
    spent = seconds() - began
    began = seconds()
    tree = nutpie.sample(compiled, **settings, seed=seed, target_accept=0.8)
    took = seconds() - began
    made = {}
    for parameter in known["reference"]:
        base, _, index = parameter.partition("[")
        values = np.asarray(tree.posterior[base], dtype=float)
        made[parameter] = values[..., int(index[:-1]) - 1] if index else values
    steps, diverged = int(tree.sample_stats["n_steps"].sum()), int(tree.sample_stats["diverging"].sum())
    return line(name, seed, "nutpie", made, known, steps, diverged=diverged, seconds=took, compiled=spent)


# ------------------------------------------------------------------------------------------------------------ table


def table(path: Path) -> None:
    """Medians over the seeds, a line a model, as Markdown."""
    rows = [json.loads(each) for each in path.read_text("utf-8").splitlines()]
    print("| posterior | seeds | ESS a 1,000 steps | NumPyro's | ratio | ESS a second | NumPyro's | nutpie's |")
    print("|---|---|---|---|---|---|---|---|")
    ratios = []
    for name in sorted({row["name"] for row in rows}):
        ours, theirs, rust = (
            [row for row in rows if (row["name"], row["by"]) == (name, by)] for by in ("venture", "numpyro", "nutpie")
        )
        if not ours or not theirs:
            continue
        steps = [statistics.median(1000 * row["ess"] / row["steps"] for row in each) for each in (ours, theirs)]
        ratios.append(steps[0] / steps[1])
        cells = [*(f"{each:.1f}" for each in steps), f"{ratios[-1]:.2f}", a_second(ours), a_second(theirs)]
        print(f"| `{name}` | {len(ours)} | {' | '.join(cells)} | {a_second(rust)} |")
        worst = max((*ours, *theirs, *rust), key=lambda row: row["off"])
        if worst["off"] > 4.0:
            print(f"{name}: a mean of {worst['by']}'s is {worst['off']:.1f} errors off", flush=True)
    if ratios:
        print(f"\nmedian of {len(ratios)} ratios: {statistics.median(ratios):.2f}")


def a_second(rows: list[Any]) -> str:
    """Without what was compiled, and with it."""
    if not rows:
        return ""
    alone, whole = (
        statistics.median(row["ess"] / (row["seconds"] + more * row["compiled"]) for row in rows) for more in (0, 1)
    )
    return f"{alone:,.0f}" if rows[0]["by"] == "venture" else f"{alone:,.0f}, {whole:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("by", choices=("venture", "numpyro", "nutpie", "table"))
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options = parser.parse_intermixed_args()
    if options.by == "table":
        return table(options.out)
    warnings.simplefilter("ignore")
    run = {"venture": run_venture, "numpyro": run_numpyro, "nutpie": run_nutpie}[options.by]
    known_here = {**REGRESSIONS, **(PYMC if options.by == "nutpie" else MODELS)}
    for name in options.names or sorted(known_here):
        known = json.loads((options.folder / f"{name}.json").read_text("utf-8"))
        for seed in options.seeds:
            with options.out.open("a", encoding="utf-8") as out:
                print(run(name, known, seed), file=out, flush=True)
    return None


if __name__ == "__main__":
    main()
