"""The prior of a space: draw from it, and list all configurations if there are few."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cashmere.base.arrays import Float64, IntArray
from cashmere.space.encoding.columns import Kind
from cashmere.space.encoding.compiled_space import CompiledSpace

MAX_TRIES = 1000
"""Rounds of rejection before `Prior.sample` gives up: docs/papers/surrogates.md#draws-from-the-prior."""


class Prior:
    """Draw configurations from the distribution of the space, and enumerate them.

    Log-integers are drawn as ConfigSpace draws them, floor(exp(U(log lo, log(hi + 1)))), which is not uniform in the
    encoding. Priors that are not uniform (normal, beta) are drawn by ConfigSpace.

    Parameters
    ----------
    space : CompiledSpace
        The space.
    """

    def __init__(self, space: CompiledSpace) -> None:
        self.space = space
        self._linear_integers = space.rows(lambda column: column.kind is Kind.INTEGER and not column.log)
        self._log_integers = space.rows(lambda column: column.kind is Kind.INTEGER and column.log)
        self._uniform_categorical = space.rows(lambda column: len(set(column.probabilities)) == 1)
        self._weighted_categorical = space.rows(lambda column: len(set(column.probabilities)) > 1)
        self._not_uniform = space.rows(lambda column: not column.is_uniform)

    def probabilities(self, column: int) -> Float64:
        """Return the prior of the choices of a categorical column, shape ``(k,)``."""
        probabilities = np.array(self.space.columns[self.space.kept[column]].probabilities, dtype=np.float64)
        normalised: Float64 = probabilities / probabilities.sum()
        return normalised

    def choices(self, name: str) -> IntArray:
        """Return the codes of a categorical's choices that have positive prior probability; empty for other names."""
        row = self.space.row_of.get(name)
        if row is None or self.space.columns[row].kind is not Kind.CATEGORICAL:
            return np.array([], dtype=np.int64)
        return np.flatnonzero(np.array(self.space.columns[row].probabilities) > 0)

    def sample(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        fixed: Mapping[str, int] | None = None,
        max_tries: int = MAX_TRIES,
    ) -> Float64:
        """Draw encoded configurations from the prior of the space.

        Parameters
        ----------
        n : int
            Number of rows.
        rng : numpy.random.Generator
            Source of randomness.
        fixed : mapping of str to int, optional
            Codes of categoricals to keep fixed.
        max_tries : int
            Rounds of rejection by the forbidden clauses.

        Returns
        -------
        (n, d) array
            Valid rows, possibly repeated; fewer than `n` only if forbidden clauses still reject after `max_tries`.
        """
        accepted: list[Float64] = []
        missing, drawn = n, 0
        size = n
        for _ in range(max_tries):
            if missing <= 0:
                break
            raw = self._draw_raw(size, rng, fixed or {})
            drawn += size
            if self.space.forbidden:
                raw = raw[:, ~self.space.is_forbidden(raw)]
            accepted.append(raw[:, :missing])
            missing -= accepted[-1].shape[1]
            # Enough to get the missing ones at the acceptance rate so far, within memory limits.
            size = min(16 + 2 * missing * drawn // max(n - missing, 1), 4096)
        if not accepted:
            return np.empty((0, len(self.space.kept)))
        return self.space.encode(accepted[0] if len(accepted) == 1 else np.hstack(accepted))

    def _draw_raw(self, n: int, rng: np.random.Generator, fixed: Mapping[str, int]) -> Float64:
        raw = rng.random((len(self.space.columns), n))
        rows = self._linear_integers
        lower, upper = self.space.lower[rows, None], self.space.upper[rows, None]
        raw[rows] = np.minimum(lower + np.floor(raw[rows] * (upper - lower + 1)), upper)
        rows = self._log_integers
        lower, upper = self.space.lower[rows, None], self.space.upper[rows, None]
        # Like ConfigSpace: value v has mass log((v + 1)/v).
        raw[rows] = np.clip(np.floor(lower * np.exp(raw[rows] * np.log((upper + 1) / lower))), lower, upper)
        rows = self._uniform_categorical
        raw[rows] = np.floor(raw[rows] * (self.space.upper[rows, None] + 1))
        for row in self._weighted_categorical:
            edges = np.cumsum(self.space.columns[row].probabilities)
            raw[row] = np.searchsorted(edges / edges[-1], raw[row], side="right")
        for name, code in fixed.items():
            raw[self.space.row_of[name]] = code
        for row in self._not_uniform:
            raw[row] = self.space.columns[row].draw_from_prior(n, rng)
        raw[self.space.constant] = 0.0
        self.space.settle(raw, is_complete=True)
        return raw

    def enumerate(self, limit: int, *, fixed: Mapping[str, int] | None = None) -> Float64 | None:
        """Return all valid configurations, shape ``(n, d)``; None if there are more than `limit` or infinitely many.

        Parameters
        ----------
        limit : int
            Largest number of configurations to list.
        fixed : mapping of str to int, optional
            Codes of categoricals to keep fixed.
        """
        raw = np.empty((0, 1))
        clauses = dict(self.space.conditions)
        for row, column in enumerate(self.space.columns):
            clause = clauses.get(row)
            active = np.ones(raw.shape[1], dtype=np.bool_) if clause is None else clause.holds(raw)
            options = np.array([0.0])
            if active.any() and column.kind is not Kind.CONSTANT:
                size = raw.shape[1] * (column.upper - column.lower + 1)
                if column.kind is Kind.FLOAT or size > 10 * limit:  # forbidden clauses may still remove many
                    return None
                options = np.arange(column.lower, column.upper + 1)
                if fixed and column.name in fixed:
                    options = np.array([float(fixed[column.name])])
            repeats = np.where(active, len(options), 1)
            ends = np.cumsum(repeats)
            position = np.arange(ends[-1]) - np.repeat(ends - repeats, repeats)
            numbers = np.where(np.repeat(active, repeats), options[position], np.nan)
            raw = np.vstack([np.repeat(raw, repeats, axis=1), numbers])
        raw = raw[:, ~self.space.is_forbidden(raw)]
        return self.space.encode(raw) if raw.shape[1] <= limit else None
