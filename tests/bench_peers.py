"""One run of another sampler on the 1PL model, as a process of its own; ``bench_irt.py`` starts and times it.

    bench_peers.py numpyro|nutpie|pystan DATA.npz DRAWS.npy --chains 4 --warmup 1000 --draws 1000 --seed 0

DATA holds `attempts` and `correct` (N, M). DRAWS gets float32 (chains, draws, 3 + M + N): mu_b, sigma_b, sigma_theta,
b, theta; what else is known of the run goes to standard output as JSON. Progress goes to standard error.

All have the same posterior: y ~ Binomial(n, sigmoid(theta_i - b_j)), theta ~ N(0, sigma_theta), b ~ N(mu_b, sigma_b),
mu_b ~ N(0, 5), sigma_b, sigma_theta ~ HalfNormal(2.5). Each gets its fastest form that was found: the likelihood as
sums over the matrix without its constant, 4 chains side by side, diagonal mass matrix, target acceptance 0.8, and the
number type that its users get without asking. `--noncentred` and `--dense` are choices that the caller makes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time

import numpy as np

START = time.perf_counter()


def say(text: str) -> None:
    """One line on what happens now; the last one is what a stopped run reached."""
    print(f"{time.perf_counter() - START:.0f} s: {text}", file=sys.stderr, flush=True)


def numpyro_(n, y, args):
    """NumPyro in float32, its default; one virtual CPU device a chain."""
    import numpyro

    numpyro.set_host_device_count(args.chains)
    import jax
    import jax.numpy as jnp
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

    if args.float64:
        numpyro.enable_x64()
    n, y = jnp.asarray(n, float), jnp.asarray(y, float)
    y_theta, y_b = y.sum(1), y.sum(0)

    def model():
        mu_b = numpyro.sample("mu_b", dist.Normal(0, 5))
        sigma_b = numpyro.sample("sigma_b", dist.HalfNormal(2.5))
        sigma_theta = numpyro.sample("sigma_theta", dist.HalfNormal(2.5))
        if args.noncentred:
            b = mu_b + sigma_b * numpyro.sample("z_b", dist.Normal(0, 1).expand([n.shape[1]]))
            theta = sigma_theta * numpyro.sample("z_theta", dist.Normal(0, 1).expand([n.shape[0]]))
            b, theta = numpyro.deterministic("b", b), numpyro.deterministic("theta", theta)
        else:
            b = numpyro.sample("b", dist.Normal(mu_b, sigma_b).expand([n.shape[1]]))
            theta = numpyro.sample("theta", dist.Normal(0, sigma_theta).expand([n.shape[0]]))
        log_odds = theta[:, None] - b[None, :]
        numpyro.factor("likelihood", y_theta @ theta - y_b @ b - (n * jax.nn.softplus(log_odds)).sum())

    mcmc = MCMC(
        NUTS(model, dense_mass=args.dense),
        num_warmup=args.warmup,
        num_samples=args.draws,
        num_chains=args.chains,
        chain_method="parallel",
        progress_bar=n.size > 200_000,  # compiled away where it would cost something
    )
    say("compiling and sampling")
    mcmc.run(jax.random.key(args.seed), extra_fields=("diverging", "num_steps"))
    draws = mcmc.get_samples(group_by_chain=True)
    extra = mcmc.get_extra_fields(group_by_chain=True)
    found = {"divergences": int(extra["diverging"].sum()), "gradients": int(extra["num_steps"].sum())}
    return {name: np.asarray(draws[name]) for name in ("mu_b", "sigma_b", "sigma_theta", "b", "theta")}, found


def nutpie_(n, y, args):
    """PyMC's model, compiled by numba and sampled by nutpie."""
    import nutpie
    import pymc as pm
    from pymc import math

    n, y = n.astype(float), y.astype(float)
    with pm.Model(check_bounds=False) as model:
        mu_b = pm.Normal("mu_b", 0, 5)
        sigma_b, sigma_theta = pm.HalfNormal("sigma_b", 2.5), pm.HalfNormal("sigma_theta", 2.5)
        if args.noncentred:
            b = pm.Deterministic("b", mu_b + sigma_b * pm.Normal("z_b", 0, 1, shape=n.shape[1]))
            theta = pm.Deterministic("theta", sigma_theta * pm.Normal("z_theta", 0, 1, shape=n.shape[0]))
        else:
            b = pm.Normal("b", mu_b, sigma_b, shape=n.shape[1])
            theta = pm.Normal("theta", 0, sigma_theta, shape=n.shape[0])
        log_odds = theta[:, None] - b[None, :]
        linear = math.dot(y.sum(1), theta) - math.dot(y.sum(0), b)
        pm.Potential("likelihood", linear - (n * math.log1pexp(log_odds)).sum())
    say("compiling")
    compiled = nutpie.compile_pymc_model(model)
    say("sampling")
    trace = nutpie.sample(
        compiled,
        draws=args.draws,
        tune=args.warmup,
        chains=args.chains,
        seed=args.seed,
        progress_bar=False,
        save_warmup=False,
        adaptation="low_rank" if args.dense else "diag",
    )
    stats = trace.sample_stats
    found = {"divergences": int(stats["diverging"].sum()), "gradients": int(stats["n_steps"].sum())}
    names = ("mu_b", "sigma_b", "sigma_theta", "b", "theta")
    return {name: trace.posterior[name].values for name in names}, found


def pystan_(n, y, args):
    """Stan through PyStan: row by row, with the fused gradients of binomial_logit and bernoulli_logit."""
    import stan

    family = "bernoulli_logit(theta[i] - b)" if (n == 1).all() else "binomial_logit(n[i], theta[i] - b)"
    b, theta = ("<offset=mu_b, multiplier=sigma_b>", "<multiplier=sigma_theta>") if args.noncentred else ("", "")
    code = f"""
    data {{ int N; int M; array[N, M] int n; array[N, M] int y; }}
    parameters {{
      real mu_b; real<lower=0> sigma_b; real<lower=0> sigma_theta;
      vector{b}[M] b; vector{theta}[N] theta;
    }}
    model {{
      mu_b ~ normal(0, 5); sigma_b ~ normal(0, 2.5); sigma_theta ~ normal(0, 2.5);
      b ~ normal(mu_b, sigma_b); theta ~ normal(0, sigma_theta);
      for (i in 1:N) y[i] ~ {family};
    }}
    """
    data = {"N": n.shape[0], "M": n.shape[1], "n": n.tolist(), "y": y.tolist()}
    say("compiling")
    with contextlib.redirect_stdout(sys.stderr):
        posterior = stan.build(code, data=data, random_seed=args.seed + 1)
        say("sampling")
        fit = posterior.sample(num_chains=args.chains, num_warmup=args.warmup, num_samples=args.draws)

    def by_chain(name):
        return np.moveaxis(fit[name].reshape(-1, args.draws, args.chains), (2, 1, 0), (0, 1, 2))

    draws = {name: by_chain(name) for name in ("mu_b", "sigma_b", "sigma_theta", "b", "theta")}
    found = {"divergences": int(fit["divergent__"].sum()), "gradients": int(fit["n_leapfrog__"].sum())}
    return draws, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sampler", choices=("numpyro", "nutpie", "pystan"))
    parser.add_argument("data")
    parser.add_argument("output")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--warmup", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noncentred", action="store_true")
    parser.add_argument("--float64", action="store_true", help="NumPyro: double precision")
    parser.add_argument("--dense", action="store_true", help="NumPyro: a full mass matrix; nutpie: a low-rank one")
    args = parser.parse_args()
    say("importing")
    with np.load(args.data) as data:
        n, y = data["attempts"].astype(int), data["correct"].astype(int)
    draws, found = {"numpyro": numpyro_, "nutpie": nutpie_, "pystan": pystan_}[args.sampler](n, y, args)
    parts = [draws[name].reshape(args.chains, args.draws, -1) for name in ("mu_b", "sigma_b", "sigma_theta")]
    parts += [draws["b"], draws["theta"]]
    np.save(args.output, np.concatenate(parts, axis=2).astype(np.float32))
    print(json.dumps(found))
    say("done")


if __name__ == "__main__":
    main()
