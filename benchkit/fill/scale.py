"""Which items are the benchmark, and its scale of difficulty for all others.

Calibrated candidates stand beside the items of a fit. They cover difficulties, but the scale stays that of the
benchmark: a candidate that is easier than its easiest item would else move every other one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit import difficulty
from benchkit.difficulty import Array, Scale

Mask = npt.NDArray[np.bool_]

NORMALIZATIONS = ("minmax", "failure", "logistic")
"""Those with a way back to logits, where a new item is aimed at."""


class Placed(NamedTuple):
    """All items on the scale of the benchmark.

    z        float64 (M,), normalised difficulty; of the benchmark's items in [0,1], of others perhaps outside. None
             where the scale is undefined
    scale    the way back
    reason   why z is None
    """

    z: Array | None
    scale: Scale | None
    reason: str | None

    def inside(self) -> Mask:
        """bool (M,): which items lie on [0,1]."""
        assert self.z is not None
        inside: Mask = (self.z >= 0) & (self.z <= 1)
        return inside


def placed(b: npt.ArrayLike, new: Mask, theta: npt.ArrayLike | None, normalize: str) -> Placed:
    """Put difficulties b (M,), logits, on the scale of the items that are not `new`, bool (M,).

    Raises InputError as `difficulty.normalize` does.
    """
    b = difficulty.check_difficulties(b)
    z, scale, reason = difficulty.normalize(b[~new], normalize, theta)
    if z is None or scale is None:
        return Placed(None, None, reason)
    every = np.empty(b.size)
    every[~new] = z
    every[new] = difficulty.place(b[new], scale)
    return Placed(every, scale, None)
