"""Fisher's exact test of two success counts: attempts as if independent, on these very items.

It answers another question than a paired test over items: would the same problems, asked again, tell the two apart?
"""

import functools
from typing import Literal

import numpy as np
from numpy.typing import NDArray

RELATIVE = 1.0 + 1e-7  # probabilities this close are equal, as in R's fisher.test


def hypergeometric(x_min: int, x_max: int, drawn: int, other: int, successes: int) -> NDArray[np.float64]:
    """P(X = x) for x = x_min..x_max (the whole support), X = successes among `drawn` of drawn + other trials.

    From the mode outwards by the ratio of neighbours, so that the relative error is about 1e-16 a step.
    """
    x = np.arange(x_min, x_max, dtype=np.float64)
    ratio = (successes - x) * (drawn - x) / ((x + 1.0) * (other - successes + x + 1.0))  # P(x+1) / P(x)
    mode = int(np.count_nonzero(ratio > 1.0))
    up, down = np.cumprod(ratio[mode:]), np.cumprod(1.0 / ratio[:mode][::-1])[::-1]
    mass = np.concatenate([down, [1.0], up])
    return np.asarray(mass / mass.sum())


@functools.lru_cache(maxsize=65536)
def fisher_exact(
    x: int, n: int, y: int, m: int, alternative: Literal["two-sided", "greater", "less"] = "two-sided"
) -> float:
    """p-value of x successes in n against y in m, given x + y (Fisher 1935).

    Two-sided: the probabilities not larger than the observed one, added. ``greater``: x/n larger than y/m.
    """
    total = x + y
    low, high = max(0, total - m), min(n, total)
    mass = hypergeometric(low, high, n, m, total)
    at = x - low
    if alternative == "greater":
        p = mass[at:].sum()
    elif alternative == "less":
        p = mass[: at + 1].sum()
    else:
        p = mass[mass <= mass[at] * RELATIVE].sum()
    return min(1.0, max(float(p), 5e-324))
