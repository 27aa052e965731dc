"""Predictions as small integers, and back: what a recording stores.

Probabilities become their log odds, values stay values; both are squeezed by an inverse hyperbolic sine, which is
linear near zero and logarithmic beyond, and cut into equal steps. A step of log odds is 0.07 near one half, so 256 of
them reach from 5e-8 to 1 - 5e-8. A step of a value is a sixteenth of the lowest root mean squared error among the
configurations. What this does to the losses of ensembles is measured by `benchmarks.experiments.quantisation`.

The steps of a configuration differ little from those of a similar one. So configurations form a tree, and each keeps
only its differences from its parent, which compress well.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, FloatArray, IntArray
from cashmere.data.task import TaskType

LEAST = 5e-8
"""Smallest probability."""

_ODDS_BEND, _VALUE_BEND = 4.0, 8.0
"""Where squeezing begins: in log odds, and in standard deviations of the target."""

_ODDS_STEP = float(np.arcsinh((np.log1p(-LEAST) - np.log(LEAST)) / _ODDS_BEND)) / 128

_LARGEST = 32767
_LARGEST_VALUE = 65504.0
"""Some regressions explode; beyond this, values are cut."""

_ROWS_COMPARED = 512
"""Largest number of predictions by which configurations are compared to find the most similar ones."""

Codes = NDArray[np.int16]
"""Numbers of steps: from -128 to 127 for probabilities."""


def value_step(predictions: FloatArray, y: FloatArray) -> float:
    """Return the step for values: a sixteenth of the lowest root mean squared error, or what the integers can hold."""
    errors = np.sqrt(np.mean(np.square(predictions.astype(np.float64) - y), axis=1))
    furthest = float(np.arcsinh(_LARGEST_VALUE / _VALUE_BEND)) * _VALUE_BEND
    return max(float(errors.min()) / 16, furthest / _LARGEST)


def to_codes(predictions: FloatArray, task_type: TaskType, step: float = 0.0) -> Codes:
    """Return the number of steps of every prediction.

    Parameters
    ----------
    predictions : (n, n_rows, n_classes) or (n, n_rows) array
        Probabilities or values, without NaN. Values beyond 65504 are cut there.
    task_type : TaskType
        Kind of target.
    step : float
        For values, see `value_step`.

    Returns
    -------
    (n, n_rows) or (n, n_rows, n_classes) int16 array
        Of two classes, only the second one is kept. The class with the largest probability stays the same.
    """
    if not task_type.is_classification:
        values = np.clip(predictions.astype(np.float64), -_LARGEST_VALUE, _LARGEST_VALUE)
        squeezed = _VALUE_BEND * np.arcsinh(values / _VALUE_BEND)
        return np.asarray(np.round(squeezed / step), dtype=np.int16)
    if task_type is TaskType.BINARY:
        return _odds_codes(predictions[..., 1], predictions[..., 0])
    codes = _odds_codes(predictions, 1 - predictions.astype(np.float64))
    # Of classes in the same step, the one that was ahead stays ahead.
    first = predictions.argmax(axis=-1)[..., None]
    ahead = np.take_along_axis(codes, first, axis=-1)
    others = codes.copy()
    np.put_along_axis(others, first, np.int16(-_LARGEST), axis=-1)
    np.put_along_axis(codes, first, np.maximum(ahead, others.max(axis=-1, keepdims=True) + 1), axis=-1)
    return np.asarray(np.clip(codes, -128, 127), dtype=np.int16)


def _odds_codes(probability: FloatArray, rest: FloatArray) -> Codes:
    # There is no middle step: of two classes the likelier one stays so. One half belongs to the first class.
    odds = np.log(np.maximum(probability, LEAST, dtype=np.float64)) - np.log(np.maximum(rest, LEAST, dtype=np.float64))
    steps = np.ceil(np.arcsinh(odds / _ODDS_BEND) / _ODDS_STEP) - 1
    return np.asarray(np.clip(steps, -128, 127), dtype=np.int16)


def to_predictions(codes: Codes, task_type: TaskType, step: float = 0.0) -> NDArray[np.float32]:
    """Return the predictions of codes; probabilities of all classes sum to one."""
    if not task_type.is_classification:
        return np.asarray(_VALUE_BEND * np.sinh(codes * (step / _VALUE_BEND)), dtype=np.float32)
    steps = (np.arange(-128, 128) + 0.5) * _ODDS_STEP
    odds = _ODDS_BEND * np.sinh(steps)
    probability = np.exp(-np.logaddexp(0, -odds))[codes + 128].astype(np.float32)
    if task_type is TaskType.BINARY:
        rest = np.exp(-np.logaddexp(0, odds))[codes + 128].astype(np.float32)
        return np.stack([rest, probability], axis=-1)
    return np.asarray(probability / probability.sum(axis=-1, keepdims=True))


def most_similar(codes: Codes) -> IntArray:
    """Return the parent of every configuration in a minimum spanning tree of their differences, -1 for the first."""
    from scipy.spatial.distance import cdist

    flat = codes.reshape(len(codes), -1)
    chosen = np.linspace(0, flat.shape[1] - 1, min(_ROWS_COMPARED, flat.shape[1])).astype(np.int64)
    compared = np.sign(flat[:, chosen]) * np.log2(1 + np.abs(flat[:, chosen].astype(np.float64)))
    distances = cdist(compared, compared, "cityblock")
    parents = np.zeros(len(codes), dtype=np.int64)
    nearest, is_in_tree = distances[0].copy(), np.zeros(len(codes), dtype=np.bool_)
    is_in_tree[0], parents[0] = True, -1
    for _ in range(len(codes) - 1):
        new = int(np.argmin(np.where(is_in_tree, np.inf, nearest)))
        is_in_tree[new] = True
        closer = ~is_in_tree & (distances[new] < nearest)
        nearest[closer], parents[closer] = distances[new][closer], new
    return parents


def differences(codes: Codes, parents: IntArray) -> Codes:
    """Return what each configuration adds to its parent, modulo 2 ** 16."""
    return np.asarray(np.where(_column(parents, codes) < 0, codes, codes - codes[parents]))


def add_up(differences: Codes, parents: IntArray) -> Codes:
    """Return the codes of differences."""
    codes = differences.copy()
    is_done = parents < 0
    while not is_done.all():
        ready = np.flatnonzero(~is_done & is_done[parents])
        if not len(ready):
            raise ValueError("the parents of its configurations are no tree")
        codes[ready] += codes[parents[ready]]
        is_done[ready] = True
    return codes


def _column(values: AnyArray, like: AnyArray) -> AnyArray:
    return values.reshape(-1, *[1] * (like.ndim - 1))
