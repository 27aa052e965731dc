"""Candidates of Bayesian optimisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidates:
    """Configurations that may be suggested, and their expected improvement.

    Attributes
    ----------
    rows : (n_candidates, d) array
        Encoded configurations.
    log_improvement : (n_candidates,) array
        Logarithm of the expected improvement over the best single loss.
    """

    rows: NDArray[np.float64]
    log_improvement: NDArray[np.float64]
