"""Candidates of Bayesian optimisation."""

from __future__ import annotations

from dataclasses import dataclass

from cashmere.base.arrays import Float64


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

    rows: Float64
    log_improvement: Float64
