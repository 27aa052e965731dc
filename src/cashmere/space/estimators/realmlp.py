"""RealMLP: a network for tables with tuned defaults."""

from __future__ import annotations

import itertools
import math
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from cashmere.base.arrays import AnyArray, FloatArray

_N_WAVES = 16
_N_EMBEDDED = 3
"""Cosines of a column, and the inputs made from them, in addition to the column itself."""

_MOST_EMBEDDED = 128
"""If there are more numeric columns, none is embedded: embeddings would take most of the time."""

_ROWS_AT_ONCE = 2048

WEIGHTS = (
    "frequencies_", "phases_", "mixing_", "shifts_", "front_", "coefs_", "intercepts_", "slopes_",
)  # fmt: skip
"""Attributes learned by gradient descent: arrays, or lists of one array per layer."""


class RealMLP(BaseEstimator):  # type: ignore[misc]
    """Network whose defaults were tuned on many tables, reduced to what matters on a CPU.

    Columns are centred at their median, divided by the distance of their quartiles and clipped smoothly to (-3, 3).
    Columns of more than two values are embedded: three linear functions of cosines of each are added. Then every input
    is scaled by a learned factor. Hidden layers have dropout, and activations that may become linear, neuron by neuron.

    Parameters
    ----------
    n_layers, width : int
        Hidden layers and their neurons.
    learning_rate : float
        Largest of each cycle, for weights of variance one: those of a layer with n inputs are n^(1/2) times smaller,
        and so are their steps.
    dropout : float
        Share of neurons that are left out in a step.
    weight_decay : float
        Decay of all weights except offsets.
    frequency : float
        Initial standard deviation of the frequencies of the cosines.
    n_epochs : int
        Epochs of `fit`.
    random_state : int
        Seed.

    Attributes
    ----------
    center_, scale_ : (n_features_in_,) array
        Centres and scales of the columns.
    embedded_ : (n_embedded,) array
        Positions of the embedded columns.
    frequencies_, phases_ : (n_embedded, 16) array
        Frequencies and phases of the cosines.
    mixing_ : (n_embedded, 16, 3) array
        Weights of the cosines in the embeddings.
    shifts_ : (n_embedded, 3) array
        Offsets of the embeddings.
    front_ : (n_features_in_ + 3 n_embedded,) array
        Factors of the inputs.
    coefs_, intercepts_ : list of arrays
        Weights ``(n_inputs, n_outputs)`` and offsets of the hidden layers and of the output.
    slopes_ : list of (width,) arrays
        Weight of the activation, against the identity, in each neuron of the hidden layers.

    References
    ----------
    Holzmüller, Grinsztajn and Steinwart (2024), Better by default: strong pre-tuned MLPs and boosted trees on tabular
    data, NeurIPS, section 3, https://arxiv.org/abs/2407.04491.

    Notes
    -----
    Unlike there, cycles of the learning rate begin after 4, 12, 28, ... epochs whatever the number of epochs, so that a
    fit can end after each (docs/paths.md); dropout and weight decay stay constant, labels are not smoothed (which is
    worse for the log loss), categories are not embedded, and weights are initialised without regard to the rows.
    """

    def __init__(
        self,
        *,
        n_layers: int = 3,
        width: int = 256,
        learning_rate: float = 0.04,
        dropout: float = 0.15,
        weight_decay: float = 0.02,
        frequency: float = 0.1,
        n_epochs: int = 60,
        random_state: int = 0,
    ) -> None:
        self.n_layers = n_layers
        self.width = width
        self.learning_rate = learning_rate
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.frequency = frequency
        self.n_epochs = n_epochs
        self.random_state = random_state

    def fit(self, X: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None) -> Self:
        """Learn for `n_epochs` epochs from ``(n_rows, n_features)`` without gaps.

        Raises
        ------
        FloatingPointError
            If the weights diverge.
        """
        from cashmere.space.estimators.realmlp_training import RealMLPTraining

        RealMLPTraining(self, X, y, sample_weight).learn(self.n_epochs)
        return self

    def begin(self, X: FloatArray, y: AnyArray) -> AnyArray:
        """Learn how columns are scaled, draw the first weights, and return the target as the network learns it.

        Returns
        -------
        (n_rows,) array
            Codes of the classes, or the values.
        """
        X = np.asarray(X, dtype=np.float64)
        self.n_features_in_ = n_features = X.shape[1]
        self.center_ = np.median(X, axis=0)
        lower, upper = np.quantile(X, [0.25, 0.75], axis=0)
        # Where the quartiles are equal, half the range replaces their distance; constant columns become zero.
        width = np.where(upper > lower, upper - lower, np.ptp(X, axis=0) / 2)
        self.scale_ = np.divide(1.0, width, out=np.zeros_like(width), where=width > 0)
        are_numbers = np.flatnonzero([len(np.unique(column)) > 2 for column in X.T])
        self.embedded_ = are_numbers[: 0 if len(are_numbers) > _MOST_EMBEDDED else None].astype(np.int64)
        n_outputs = self._begin_target(y)
        self._draw_weights(n_features, len(self.embedded_), n_outputs)
        return self._coded(y)

    def _begin_target(self, y: AnyArray) -> int:
        """Learn what to predict; return the number of outputs."""
        raise NotImplementedError

    def _coded(self, y: AnyArray) -> AnyArray:
        return np.asarray(y, dtype=np.float32)

    def _draw_weights(self, n_features: int, n_embedded: int, n_outputs: int) -> None:
        rng = np.random.default_rng(self.random_state)

        def normal(*shape: int, deviation: float = 1.0) -> FloatArray:
            return (deviation * rng.standard_normal(shape)).astype(np.float32)

        def uniform(*shape: int, most: float) -> FloatArray:
            return rng.uniform(-most, most, shape).astype(np.float32)

        self.frequencies_ = normal(n_embedded, _N_WAVES, deviation=2 * math.pi * self.frequency)
        self.phases_ = uniform(n_embedded, _N_WAVES, most=math.pi)
        self.mixing_ = uniform(n_embedded, _N_WAVES, _N_EMBEDDED, most=_N_WAVES**-0.5)
        self.shifts_ = uniform(n_embedded, _N_EMBEDDED, most=_N_WAVES**-0.5)
        n_inputs = n_features + _N_EMBEDDED * n_embedded
        self.front_ = np.ones(n_inputs, dtype=np.float32)
        sizes = [n_inputs, *[self.width] * self.n_layers]
        self.coefs_ = [normal(n, m, deviation=n**-0.5) for n, m in itertools.pairwise(sizes)]
        self.coefs_.append(np.zeros((sizes[-1], n_outputs), dtype=np.float32))
        self.intercepts_ = [normal(n) for n in sizes[1:]]
        self.intercepts_.append(np.zeros(n_outputs, dtype=np.float32))
        self.slopes_ = [np.ones(n, dtype=np.float32) for n in sizes[1:]]

    def scaled(self, X: FloatArray) -> FloatArray:
        """Return centred, scaled and clipped columns, ``(n_rows, n_features)`` as float32."""
        scaled = (np.asarray(X, dtype=np.float64) - self.center_) * self.scale_
        clipped: FloatArray = (scaled / np.hypot(1.0, scaled / 3)).astype(np.float32)
        return clipped

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return the outputs of the last layer for ``(n_rows, n_features)``, ``(n_rows, n_outputs)`` as float32."""
        starts = range(0, max(1, len(X)), _ROWS_AT_ONCE)
        return np.concatenate([self._outputs(self.scaled(X[i : i + _ROWS_AT_ONCE])) for i in starts])

    def _outputs(self, scaled: FloatArray) -> FloatArray:
        values: Any = np.concatenate([scaled, self._embeddings(scaled[:, self.embedded_])], axis=1) * self.front_
        for weights, offset, slope in zip(self.coefs_[:-1], self.intercepts_[:-1], self.slopes_, strict=True):
            values = values @ weights + offset
            values = values + slope * (self._activated(values) - values)
        outputs: FloatArray = values @ self.coefs_[-1] + self.intercepts_[-1]
        return outputs

    def _embeddings(self, columns: FloatArray) -> FloatArray:
        waves = np.cos(columns.T[:, :, None] * self.frequencies_[:, None] + self.phases_[:, None])
        embedded: FloatArray = waves @ self.mixing_ + self.shifts_[:, None]
        return embedded.transpose(1, 0, 2).reshape(len(columns), -1)

    def _activated(self, values: FloatArray) -> FloatArray:
        raise NotImplementedError

    def weights(self) -> dict[str, Any]:
        """Return copies of the weights that training changes."""
        return {
            name: [each.copy() for each in value] if isinstance(value := getattr(self, name), list) else value.copy()
            for name in WEIGHTS
        }


class RealMLPClassifier(ClassifierMixin, RealMLP):  # type: ignore[misc]
    """RealMLP for classes, with SELU."""

    def _begin_target(self, y: AnyArray) -> int:
        self.classes_ = np.unique(y)
        return len(self.classes_) if len(self.classes_) > 2 else 1

    def _coded(self, y: AnyArray) -> AnyArray:
        codes = np.searchsorted(self.classes_, y)
        return codes.astype(np.float32) if len(self.classes_) == 2 else codes

    def _activated(self, values: FloatArray) -> FloatArray:
        """Return the self-normalising function of Klambauer et al. (2017), https://arxiv.org/abs/1706.02515."""
        below = np.float32(1.6732632423543772) * np.expm1(np.minimum(values, 0))
        activated: FloatArray = np.float32(1.0507009873554805) * (np.maximum(values, 0) + below)
        return activated

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return the probabilities of the classes, ``(n_rows, n_classes)``."""
        outputs = self.outputs(X).astype(np.float64)
        if outputs.shape[1] == 1:
            second = expit(outputs[:, 0])
            return np.column_stack([1 - second, second])
        probabilities: FloatArray = softmax(outputs, axis=1)
        return probabilities

    def predict(self, X: FloatArray) -> AnyArray:
        """Return the most probable classes."""
        classes: AnyArray = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return classes


class RealMLPRegressor(RegressorMixin, RealMLP):  # type: ignore[misc]
    """RealMLP for a standardised target, with Mish; predictions stay within the training values."""

    def _begin_target(self, y: AnyArray) -> int:
        self.lowest_, self.highest_ = float(np.min(y)), float(np.max(y))
        return 1

    def _activated(self, values: FloatArray) -> FloatArray:
        """Return x tanh(log(1 + exp(x))) of Misra (2019), https://arxiv.org/abs/1908.08681."""
        activated: FloatArray = values * np.tanh(np.logaddexp(np.float32(0), values))
        return activated

    def predict(self, X: FloatArray) -> FloatArray:
        """Return values, ``(n_rows,)``."""
        values: FloatArray = np.clip(self.outputs(X)[:, 0].astype(np.float64), self.lowest_, self.highest_)
        return values
