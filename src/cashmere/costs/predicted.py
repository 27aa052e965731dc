"""The seconds that trials will take, predicted from the trials of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from ConfigSpace import CategoricalHyperparameter
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from cashmere.base.arrays import Float64, FloatArray
from cashmere.costs.model import LinearModel
from cashmere.costs.relative import choice_name, log_relative_costs
from cashmere.records.trial import Observation, TrialStatus
from cashmere.space.encoding import SpaceEncoder
from cashmere.space.space import ALGORITHM, N_CLASSES

OVERHEAD_SECONDS = 0.05
"""Added to the seconds of every trial, for deciding, dispatching and storing it: no trial is free."""

_ENDED = (TrialStatus.TIMEOUT, TrialStatus.MEMORY, TrialStatus.STOPPED)
"""Trials that were ended would have taken longer to finish. So would those that were cut short."""

_OF_SCALE = 5.0
_OF_ALGORITHM = 0.7
OF_CHOICE = 0.3
_OF_NUMBER = 1.0
_OF_ROWS = 0.3
"""Prior standard deviations of the weights: of the overall scale (which is unknown), of an algorithm and of any other
choice around their relative costs, of a number from one end of its range to the other, and of the exponent of the share
of rows around 1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PredictedSeconds:
    """Predicts the seconds of trials that have not been run, from those of a run's own trials.

    The logarithm of the seconds is a linear function of the algorithm, of other choices, of numbers on their encoded
    scale (so that those with a logarithmic scale act as a power) and of the logarithm of the share of rows. Before the
    first trial it knows what algorithms and some of their choices cost relative to each other, by the number of
    classes, and that costs are proportional to the rows. The overall scale, which depends on the table and the machine,
    comes from the trials. Nothing is drawn: the same trials give the same predictions.

    Attributes
    ----------
    encoder : SpaceEncoder
        The space.
    relative_costs : mapping of str to float
        Logarithm of the relative cost by algorithm and choice, see `log_relative_costs`; 0 for others.
    model : LinearModel
        What was learnt.

    Notes
    -----
    - Seconds are the wall seconds of whole trials, because deadlines are wall time. Load on the machine changes the
      scale, which is learnt.
    - A trial that met a limit, with or without a result, or was stopped after some folds, tells that it would have
      taken longer. One that ended with an error tells nothing: errors happen early or late.
    """

    encoder: SpaceEncoder
    relative_costs: Mapping[str, float]
    model: LinearModel

    @classmethod
    def learn(
        cls,
        encoder: SpaceEncoder,
        observations: Sequence[Observation],
        *,
        relative_costs: Mapping[str, float] | None = None,
    ) -> Self:
        """Learn from trials that ended.

        Parameters
        ----------
        encoder : SpaceEncoder
            The space.
        observations : sequence of Observation
            The trials; there may be none.
        relative_costs : mapping of str to float, optional
            Logarithm of the relative cost by algorithm and choice; by default the table of the package for the space
            and its number of classes.
        """
        if relative_costs is None:
            n_classes = (encoder.space.meta or {}).get(N_CLASSES, 1)
            relative_costs = log_relative_costs(encoder.space.name, n_classes)
        known = [o for o in observations if o.status is not TrialStatus.ERROR]
        rows = encoder.encode(o.trial.configuration for o in known)
        shares = np.array([o.trial.fidelity for o in known], dtype=np.float64)
        seconds = np.array([o.duration_seconds for o in known], dtype=np.float64)
        model = LinearModel.fit(
            _features(encoder, rows, shares),
            np.log(seconds + OVERHEAD_SECONDS) - _expected(encoder, rows, shares, relative_costs),
            np.array([o.status in _ENDED or o.outcome.cut_short is not None for o in known], dtype=np.bool_),
        )
        return cls(encoder=encoder, relative_costs=relative_costs, model=model)

    def mean_log_seconds(self, rows: FloatArray) -> Float64:
        """Return the mean of `log_seconds` with all rows of the table, ``(n,)``; faster."""
        return self._mean(rows, np.ones(len(rows)))

    def log_probability_within(self, seconds: float, rows: FloatArray, share: float = 1.0) -> Float64:
        """Return the log probability that trials on a share of the rows end within some seconds, shape ``(n,)``."""
        if seconds <= 0:
            return np.full(len(rows), -np.inf)
        mean, std = self.log_seconds(rows, share)
        return np.asarray(log_ndtr((np.log(seconds) - mean) / std), dtype=np.float64)

    def log_seconds(self, rows: FloatArray, shares: ArrayLike = 1.0) -> tuple[Float64, Float64]:
        """Return mean and standard deviation of the logarithm of the seconds, `OVERHEAD_SECONDS` included.

        Parameters
        ----------
        rows : (n, d) array
            Encoded configurations.
        shares : float or (n,) array
            Share of the rows of the table that a trial learns from, in (0, 1].

        Returns
        -------
        mean, std : (n,) array
            Of a normal distribution of the logarithm.
        """
        shares = np.broadcast_to(np.asarray(shares, dtype=np.float64), len(rows))
        return self._mean(rows, shares), self.model.std(_features(self.encoder, rows, shares))

    def _mean(self, rows: FloatArray, shares: Float64) -> Float64:
        learnt = self.model.mean(_features(self.encoder, rows, shares))
        return learnt + _expected(self.encoder, rows, shares, self.relative_costs)


def _expected(
    encoder: SpaceEncoder, rows: FloatArray, shares: FloatArray, relative_costs: Mapping[str, float]
) -> Float64:
    """Return the log seconds expected before the first trial, up to the scale, shape ``(n,)``."""
    expected = np.asarray(np.log(shares), dtype=np.float64)
    for column, name in enumerate(encoder.names):
        choice = encoder.space[name]
        if isinstance(choice, CategoricalHyperparameter):
            names = (str(value) if name == ALGORITHM else choice_name(name, value) for value in choice.choices)
            costs = np.array([*(relative_costs.get(each, 0.0) for each in names), 0.0])  # last: inactive
            if costs.any():
                expected = expected + costs[rows[:, column].astype(np.int64)]
    return expected


def _features(encoder: SpaceEncoder, rows: FloatArray, shares: FloatArray) -> Float64:
    """Return the features times the standard deviations of their weights, shape ``(n, p)``.

    A number is centred and 0 where it is inactive; a categorical is one column per choice.
    """
    columns = [np.full(len(rows), _OF_SCALE), _OF_ROWS * np.log(shares)]
    for column, name in enumerate(encoder.names):
        values = rows[:, column]
        if encoder.is_categorical[column]:
            weight = _OF_ALGORITHM if name == ALGORITHM else OF_CHOICE
            columns += [weight * (values == code) for code in range(len(encoder.probabilities(column)))]
        else:
            columns.append(_OF_NUMBER * np.where(values >= 0, values - 0.5, 0.0))
    return np.stack(columns, axis=1)
