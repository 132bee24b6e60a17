"""Is the sampler of bk-irt calibrated? `make sbc`, or by hand

    sbc.py [--models 1pl,beta,2pl] [--shapes 2x3,16x15x4] [--priors tight,default] [--sets 25] [--seed 0]

Simulation-based calibration (Cook, Gelman and Rubin 2006; Talts et al. 2018, arXiv:1804.06788). Parameters come from
the priors, data from the parameters, draws from a fit of the data under these priors. Whatever the data look like, the
rank of the true value of any quantity among independent draws is uniform, if the sampler is right. Quantities may
depend on the data, and should (Modrak et al. 2023, arXiv:2211.02383).

A shape NxMxA is N models on M items with A attempts at each pair that was tried; NxM has 1 to 5. Between a tenth and a
half of the pairs were not tried. Two tests of uniformity: chi-squared, and the simultaneous envelope of the ranks'
ECDF (Saeilynoja, Buerkner and Vehtari 2022, arXiv:2103.10522), for each quantity at each shape and over all of them.
Exit status 1 if the least p-value, corrected by Holm's method over all tests made, is below .01.

Prints a table and keeps it, with all ranks and p-values, in bench/sbc.txt and bench/sbc.json.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import sys
import time
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc, chdtrc

from benchkit.irt import diagnostics
from benchkit.irt.fit import Fit, fit
from benchkit.irt.model import Priors
from benchkit.irt.pointwise import Draws, cell_loglik
from benchkit.multiplicity import holm

Array = np.ndarray[Any, np.dtype[Any]]

KEPT = 63  # draws that a true value is ranked among: 64 possible ranks
CHAINS, FIRST, LONGEST = 2, 250, 25_000  # draws a chain: at first, at most
ALPHA = 0.01

PRIORS = {"tight": Priors(1.0, 1.0, 1.0, 0.5), "default": Priors()}
OPTIONS: dict[str, dict[str, Any]] = {"1pl": {}, "beta": {"dispersion": "beta"}, "2pl": {"model": "2pl"}}
# more than one attempt is what the beta-binomial is about
SHAPES = {
    "1pl": "2x3,6x7,16x15x4,40x8x1,5x60x1,30x30x2",
    "beta": "2x3,6x7,16x15x4,40x8x2,5x60x3,30x30x2",
    "2pl": "2x3,6x7,16x15x4,40x8x1,5x60x1,30x30x2",
}


class Shape(NamedTuple):
    """models x items, with `attempts` at each pair that was tried; 0: one to five."""

    models: int
    items: int
    attempts: int = 0

    @classmethod
    def parse(cls, text: str) -> Shape:
        return cls(*(int(x) for x in text.split("x")))

    def __str__(self) -> str:
        return "x".join(str(x) for x in self if x)


class Parameters(NamedTuple):
    """S values of everything: hyper (S,) each, theta (S, N), b (S, M), a (S, M) or None; the truth is one row."""

    hyper: dict[str, Array]
    theta: Array
    b: Array
    a: Array | None


class Simulated(NamedTuple):
    """attempts, correct (N, M), and the parameters that made them, as float32 like the draws."""

    attempts: Array
    correct: Array
    truth: Parameters


class Ranks(NamedTuple):
    """One shape under one model and one set of priors.

    ranks: quantity -> (sets,), 0..KEPT. absent: mean share of pairs. Numbers of data sets with a boundary item, with
    all attempts alike (right, or wrong), with tied items. divergences: of all draws. least_ess: of any quantity.
    """

    ranks: dict[str, Array]
    absent: float
    boundary: int
    alike: int
    ties: int
    divergences: int
    least_ess: float
    seconds: float


def simulate(rng: np.random.Generator, kind: str, shape: Shape, priors: Priors) -> Simulated:
    """Parameters from the priors, data from the parameters. No row or column is empty: tables have none."""
    size = shape.models, shape.items
    n = np.zeros(size, np.int64)
    while not (n.any(0).all() and n.any(1).all() and (kind != "beta" or n.max() > 1)):
        made = shape.attempts or rng.integers(1, 6, size)
        n = np.where(rng.random(size) < rng.uniform(0.1, 0.5), 0, made)
    hyper = {
        "mu_b": rng.normal(0, priors.mu_b),
        "sigma_b": abs(rng.normal(0, priors.sigma_b)),
        "sigma_theta": abs(rng.normal(0, priors.sigma_theta)),
    }
    theta = rng.normal(0, hyper["sigma_theta"], shape.models)
    b = rng.normal(hyper["mu_b"], hyper["sigma_b"], shape.items)
    eta, a = theta[:, None] - b, None
    if kind == "2pl":
        hyper["sigma_a"] = abs(rng.normal(0, priors.sigma_a))
        a = np.exp(rng.normal(0, hyper["sigma_a"], shape.items))
        eta = eta * a
    p = 1 / (1 + np.exp(np.minimum(-eta, 700)))
    if kind == "beta":
        hyper["rho"] = rng.random()
        kappa = (1 - hyper["rho"]) / hyper["rho"]
        p = rng.beta(np.maximum(p * kappa, 1e-300), np.maximum((1 - p) * kappa, 1e-300))
    y = rng.binomial(n, p).astype(float)

    def row(x: Any) -> Array:
        return np.asarray(x, np.float32)[None]

    truth = Parameters({k: row(v) for k, v in hyper.items()}, row(theta), row(b), a if a is None else row(a))
    return Simulated(n, y, truth)


def parameters(found: Fit, kind: str, shape: Shape) -> Parameters:
    """The draws of a fit, by name."""
    x = found.draws
    assert x is not None
    k, m = len(found.names), shape.items
    hyper = {name: x[:, i] for i, name in enumerate(found.names)}
    a = x[:, k + m : k + 2 * m] if kind == "2pl" else None
    return Parameters(hyper, x[:, -shape.models :], x[:, k : k + m], a)


def log_likelihood(at: Parameters, n: Array, y: Array) -> Array:
    i, j = np.nonzero(n)
    draws = Draws(at.theta.astype(float), at.b.astype(float), None if at.a is None else at.a.astype(float))
    if "rho" in at.hyper:
        draws = draws._replace(rho=np.clip(at.hyper["rho"].astype(float), 1e-12, 1 - 1e-12))
    return np.asarray(cell_loglik(draws, n[i, j], y[i, j], i, j).sum(0))


def log_prior(at: Parameters, priors: Priors) -> Array:
    """Log density of all parameters (for a of log a), up to a constant."""
    h = {k: v.astype(float) for k, v in at.hyper.items()}
    out = -0.5 * ((h["mu_b"] / priors.mu_b) ** 2)
    groups = [("sigma_b", at.b - h["mu_b"][:, None]), ("sigma_theta", at.theta.astype(float))]
    if at.a is not None:
        groups.append(("sigma_a", np.log(at.a.astype(float))))
    for name, x in groups:
        sigma = h[name]
        out = out - 0.5 * (sigma / getattr(priors, name)) ** 2 - 0.5 * (x**2).sum(1) / sigma**2
        out = out - x.shape[1] * np.log(sigma)
    return np.asarray(out)


def quantities(at: Parameters, n: Array, y: Array, priors: Priors) -> dict[str, Array]:
    """What is ranked, (S,) each. Rows chosen by their scores reach the boundary ones."""
    rate = y.sum(0) / n.sum(0)
    score = y.sum(1) / n.sum(1)
    last, middle = at.b.shape[1] - 1, at.b.shape[1] // 2
    out = dict(at.hyper)
    picked = {"first": 0, "middle": middle, "last": last, "easiest": int(rate.argmax()), "hardest": int(rate.argmin())}
    out |= {f"b {k}": at.b[:, j] for k, j in picked.items()}
    out |= {f"theta {k}": at.theta[:, i] for k, i in {"first": 0, "last": -1, "best": int(score.argmax())}.items()}
    if at.a is not None:
        out |= {f"a {k}": at.a[:, j] for k, j in picked.items()}
    out |= {"b mean": at.b.mean(1, dtype=float), "theta mean": at.theta.mean(1, dtype=float)}
    out["b range"] = np.ptp(at.b, axis=1)
    likelihood = log_likelihood(at, n, y)
    return out | {"log likelihood": likelihood, "log joint": likelihood + log_prior(at, priors)}


def rank(rng: np.random.Generator, draws: Array, true: float) -> int:
    """How many draws are below the true value; a tie counts at random."""
    below, equal = int((draws < true).sum()), int((draws == true).sum())
    return below + int(rng.integers(0, equal + 1))


def calibrate(
    kind: str, shape: Shape, priors: Priors, sets: int, seed: int, fitted_with: Priors | None = None
) -> Ranks:
    """Simulate and fit ``sets`` data sets. fitted_with: other priors for the fit, which then isn't calibrated.

    Chains go on until every quantity's effective sample size is 4 KEPT, so that the draws kept, equally spaced, are
    four autocorrelation times apart.
    """
    start = time.perf_counter()
    label = zlib.crc32(repr((kind, shape, priors)).encode())  # data sets of two cases are independent
    ranks: dict[str, list[int]] = {}
    absent, boundary, alike, ties, divergences, least = 0.0, 0, 0, 0, 0, math.inf
    for k in range(sets):
        rng = np.random.default_rng([seed, label, k])
        n, y, truth = simulate(rng, kind, shape, priors)
        draws, chain_seed = FIRST, int(rng.integers(2**60))
        while True:
            found = fit(
                n,
                y,
                priors=fitted_with or priors,
                chains=CHAINS,
                draws=draws,
                seed=chain_seed,
                **OPTIONS[kind],
            )
            given = quantities(parameters(found, kind, shape), n, y, priors)
            stacked = np.stack(list(given.values()), axis=1)
            ess = float(np.nan_to_num(diagnostics.diagnose(stacked.reshape(CHAINS, draws, -1)).ess_bulk).min())
            if ess >= 4 * KEPT or draws >= LONGEST:
                break
            draws = min(math.ceil(draws * min(max(1.3 * 4 * KEPT / max(ess, 1), 1.3), 5)), LONGEST)
        keep = np.linspace(0, CHAINS * draws - 1, KEPT).astype(int)
        for name, true in quantities(truth, n, y, priors).items():
            ranks.setdefault(name, []).append(rank(rng, given[name][keep], true[0]))
        absent += float((n == 0).mean()) / sets
        boundary += int(found.boundary_items.any())
        alike += int(y.sum() in (0, n.sum()))
        ties += int(len(np.unique((y.sum(0) / n.sum(0)).round(9))) < shape.items)
        divergences += found.diagnostics["divergences"]
        least = min(least, ess)
    found_ranks = {name: np.array(x) for name, x in ranks.items()}
    return Ranks(found_ranks, absent, boundary, alike, ties, divergences, least, time.perf_counter() - start)


def chi_squared(ranks: Array, kept: int = KEPT) -> float:
    """p-value of Pearson's chi-squared test of uniform ranks 0..kept, in at most 16 bins of 10 or more expected."""
    bins = 2
    while bins < 16 and 20 * bins <= len(ranks):
        bins *= 2
    counts = np.bincount(ranks * bins // (kept + 1), minlength=bins)
    expected = len(ranks) / bins
    return float(chdtrc(bins - 1, ((counts - expected) ** 2).sum() / expected))


def envelope(ranks: Array, kept: int = KEPT) -> float:
    """p-value of the ECDF of ranks 0..kept against its simultaneous envelope under uniformity, exact.

    The statistic is the least two-sided binomial p-value of the ECDF over the kept points between possible ranks.
    Its distribution: the counts at the ranks are independent Poisson variables given their sum, so that the
    probability that a path stays inside the envelope follows by convolution from point to point.
    """
    size, points = len(ranks), np.arange(1, kept + 1)[:, None] / (kept + 1)
    x = np.arange(size + 1.0)[None]
    upper = np.where(x > 0, bdtrc(np.maximum(x - 1, 0), size, points), 1.0)
    p = np.minimum(1.0, 2 * np.minimum(bdtr(x, size, points), upper))
    path = np.cumsum(np.bincount(ranks, minlength=kept + 1))[:-1]
    least = p[np.arange(kept), path].min()
    inside = p > least * (1 + 1e-9)
    rate = size / (kept + 1)
    counts = np.arange(size + 1)
    log_factorial = np.append(0.0, np.cumsum(np.log(counts[1:])))
    step = np.exp(counts * math.log(rate) - rate - log_factorial)
    step = step[: int(np.flatnonzero(step > 1e-40)[-1]) + 1]
    state = np.zeros(size + 1)
    state[0] = 1.0
    for allowed in inside:
        state = np.convolve(state, step)[: size + 1] * allowed
    whole = math.exp(size * math.log(size) - size - log_factorial[-1])
    return float(np.clip(1 - np.convolve(state, step)[size] / whole, 0.0, 1.0))


def tests(ranks: dict[str, Array]) -> dict[str, tuple[float, float]]:
    """quantity -> p-values (chi-squared, envelope)."""
    return {name: (chi_squared(x), envelope(x)) for name, x in ranks.items()}


def pooled(results: list[Ranks]) -> dict[str, Array]:
    """The ranks of all shapes together."""
    return {name: np.concatenate([r.ranks[name] for r in results]) for name in results[0].ranks}


def _worst(found: dict[str, tuple[float, float]], which: int) -> str:
    name = min(found, key=lambda k: found[k][which])
    return f"{found[name][which]:<8.2g} {name:<14}"


def main() -> None:
    parser = argparse.ArgumentParser(description="simulation-based calibration of the sampler")
    known = list(OPTIONS) if "model" in inspect.signature(fit).parameters else ["1pl", "beta"]
    parser.add_argument("--models", default=",".join(known), help=f"of {', '.join(known)}")
    parser.add_argument("--shapes", help="NxM or NxMxATTEMPTS, by commas; the default depends on the model")
    parser.add_argument("--priors", default="tight,default", help="of tight, default")
    parser.add_argument("--sets", type=int, default=25, help="data sets for each model, prior and shape (20 or more)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.sets < 20:
        parser.error("--sets: 20 or more")

    lines: list[str] = []
    document: dict[str, Any] = {"sets": args.sets, "seed": args.seed, "kept": KEPT, "cases": []}
    every: list[tuple[str, float]] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    def record(title: str, result: dict[str, Array]) -> dict[str, tuple[float, float]]:
        found = tests(result)
        for name, both in found.items():
            every.extend((f"{title}, {name}, {test}", p) for test, p in zip(("chi2", "ECDF"), both, strict=True))
        return found

    say(
        f"{'model':6}{'priors':9}{'shape':9}{'sets':>5}{'absent':>7}{'boundary':>9}{'alike':>6}{'ties':>5}{'diverg.':>8}"
        f"{'least ESS':>10}{'s':>5}  {'least p chi2':24}{'least p ECDF':24}"
    )
    for kind in args.models.split(","):
        results = []
        for name in args.priors.split(","):
            for text in (args.shapes or SHAPES[kind]).split(","):
                shape = Shape.parse(text)
                r = calibrate(kind, shape, PRIORS[name], args.sets, args.seed)
                results.append(r)
                found = record(f"{kind}, {name}, {text}", r.ranks)
                say(
                    f"{kind:6}{name:9}{text:9}{args.sets:5}{r.absent:7.0%}{r.boundary:9}{r.alike:6}{r.ties:5}"
                    f"{r.divergences:8}{r.least_ess:10.0f}{r.seconds:5.0f}  {_worst(found, 0)} {_worst(found, 1)}"
                )
                case = {"model": kind, "priors": name, "shape": text, **r._asdict(), "p": found}
                document["cases"].append(case | {"ranks": {k: v.tolist() for k, v in r.ranks.items()}})
        found = record(f"{kind}, all", pooled(results))
        say(f"{kind:6}{'all':18}{args.sets * len(results):5}{'':52}{_worst(found, 0)} {_worst(found, 1)}")
        document["cases"].append({"model": kind, "shape": "all", "p": found})

    corrected = holm([p for _, p in every])
    worst = int(np.argmin(corrected))
    name, p = every[worst]
    say(f"{len(every)} tests; the least p {p:.2g} ({name}) is {corrected[worst]:.2g} by Holm's method")
    document |= {"tests": len(every), "least": every[worst], "holm": float(corrected[worst])}
    folder = Path(__file__).parent.parent / "bench"
    folder.mkdir(exist_ok=True)
    (folder / "sbc.txt").write_text("\n".join(lines) + "\n")
    (folder / "sbc.json").write_text(json.dumps(document))
    sys.exit(int(corrected[worst] < ALPHA))


if __name__ == "__main__":
    main()
