"""Compress the predictions of many observations to a few coordinates.

======================  ==========================  =============================================================
symbol                  shape                       meaning
======================  ==========================  =============================================================
P                       ``(n, n_rows[, C])``        predictions of n observations
V                       ``(n, n_values)``           the same, one line per observation, centred over observations
G                       ``(n, n)``                  Gram matrix ``V V' / n_rows``
Z                       ``(n, r)``                  coordinates; ``|Z_i - Z_j|^2`` approximates the mean over rows of
                                                    ``|P_i - P_j|^2``
======================  ==========================  =============================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, Float64, FloatArray
from cashmere.base.threads import one_blas_thread
from cashmere.ensembles.selection import choose_rows

MAX_ROWS, MAX_VALUES = 4000, 100_000
"""Default limits on the validation rows, and numbers (rows times classes), used from each prediction."""

BLOCK_VALUES = 2_000_000
"""Numbers in a block of rows: 16 MiB of float64."""

FARTHEST = 10.0
"""Standard deviations of the target at which predicted values are cut: one diverged model must not mask the others."""

_RANK_TOLERANCE = 1e-12
"""Share of the sum of squares below which a direction is only rounding: for float32 it is about 1e-14."""


def fixed_rows(
    prediction: FloatArray, y: AnyArray, *, max_rows: int = MAX_ROWS, max_values: int = MAX_VALUES
) -> NDArray[np.int64]:
    """Choose the rows to use from all predictions shaped like the given one.

    Parameters
    ----------
    prediction : (n_rows, n_classes) or (n_rows,) array
        Any of the predictions; only its shape counts.
    y : (n_rows,) array
        Targets; the chosen rows are spread evenly over their order.
    max_rows, max_values : int
        Limits on the rows, and numbers (rows times classes), taken from each prediction.

    Returns
    -------
    (n_chosen,) int array
        Row numbers, ascending. They depend only on `y` and the limits, so they stay the same during a study.
    """
    limit = max(1, min(max_rows, max_values // max(1, int(np.prod(prediction.shape[1:])))))
    return choose_rows(y, limit, np.random.default_rng(len(y)))


def stack_rows(
    predictions: Sequence[FloatArray], y: AnyArray, *, max_rows: int, max_values: int
) -> tuple[AnyArray, NDArray[np.int64]]:
    """Copy a fixed choice of rows from all predictions to one array.

    Parameters
    ----------
    predictions : sequence of n arrays (n_rows, n_classes) or (n_rows,)
        Any floats, memory-mapped or not; read only.
    y : (n_rows,) array
        Targets.
    max_rows, max_values : int
        See `fixed_rows`.

    Returns
    -------
    stack : (n, n_chosen[, n_classes]) array
        float32, or float64 if a prediction is.
    rows : (n_chosen,) int array
        From `fixed_rows`.
    """
    first = predictions[0]
    rows = fixed_rows(first, y, max_rows=max_rows, max_values=max_values)
    kind = np.result_type(np.float32, *{prediction.dtype for prediction in predictions})
    stack = np.empty((len(predictions), len(rows), *first.shape[1:]), dtype=kind)
    for line, prediction in zip(stack, predictions, strict=True):
        line[...] = prediction if len(rows) == len(y) else prediction[rows]
    return stack, rows


def cut_values(stack: AnyArray, y: AnyArray) -> None:
    """Cut predicted values, in place, at `FARTHEST` standard deviations of the target; leave probabilities unchanged.

    Parameters
    ----------
    stack : (n, n_rows, n_classes) or (n, n_rows) array
        Predictions.
    y : array
        Targets, of these rows or of more.

    Examples
    --------
    >>> import numpy as np
    >>> stack = np.array([[0.0, 2.0], [1e30, -1e30]])
    >>> cut_values(stack, np.array([1.0, 3.0]))
    >>> stack
    array([[ 0.,  2.],
           [12., -8.]])
    """
    if stack.ndim == 2:
        centre, reach = np.mean(y), FARTHEST * _spread(y)
        np.clip(stack, centre - reach, centre + reach, out=stack)


def row_blocks(stack: AnyArray) -> Iterator[slice]:
    """Cut the rows of a stack ``(n, n_rows[, n_classes])`` into blocks of at most `BLOCK_VALUES` numbers."""
    height = max(1, BLOCK_VALUES * stack.shape[1] // max(1, stack.size))
    for start in range(0, stack.shape[1], height):
        yield slice(start, start + height)


def compress(stack: AnyArray, y: AnyArray, n_coordinates: int, *, row_weights: Float64 | None = None) -> Float64:
    """Return the leading principal scores of predictions.

    Values (regression) are taken in units of the target: minus its mean, over its standard deviation, and cut as by
    `cut_values`. For two classes one is enough, since the other is its complement.

    Parameters
    ----------
    stack : (n, n_rows, n_classes) or (n, n_rows) array
        Predictions.
    y : (n_rows,) array
        Targets.
    n_coordinates : int
        Largest number of coordinates.
    row_weights : (n_rows,) array, optional
        Weights of the rows.

    Returns
    -------
    (n, r) array
        r is at least 1 and at most `n_coordinates` and the rank. Columns are ordered by falling variance, the largest
        number of each is positive. Rounded to float32, so that the result does not depend on the number of BLAS
        threads.

    Examples
    --------
    >>> import numpy as np
    >>> predictions = np.array([[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]])
    >>> compress(predictions, np.array([1.0, 3.0]), 2).round(6) + 0.0
    array([[ 2.], [ 0.], [-2.]])
    """
    n, share = len(stack), _shares(stack, row_weights)
    gram, squares = np.zeros((n, n)), 0.0
    with one_blas_thread():
        for block in row_blocks(stack):
            lines = _lines(stack[:, block], y, share[block])
            squares += float(np.einsum("ij,ij->", lines, lines))
            lines -= lines.mean(axis=0)
            gram += lines @ lines.T
        values, vectors = np.linalg.eigh(gram)
    leading = np.flatnonzero(values > _RANK_TOLERANCE * squares)[::-1][:n_coordinates]
    if not len(leading):
        return np.zeros((n, 1))
    scores = vectors[:, leading] * np.sqrt(values[leading])
    largest = np.abs(scores).argmax(axis=0)
    scores *= np.sign(scores[largest, np.arange(len(leading))])
    rounded: Float64 = scores.astype(np.float32).astype(np.float64)
    return rounded


def distances_to_truth(stack: AnyArray, y: AnyArray, *, row_weights: Float64 | None = None) -> Float64:
    """Return the root mean squared distance of predictions to the targets, in the units of `compress`.

    Parameters
    ----------
    stack, y, row_weights
        As in `compress`.

    Returns
    -------
    (n,) array
    """
    share = _shares(stack, row_weights)
    squares = np.zeros(len(stack))
    for block in row_blocks(stack):
        truth = y[block] if stack.ndim == 2 else np.eye(stack.shape[2])[y[block]]
        error = _lines(stack[:, block], y, share[block]) - _lines(truth[None], y, share[block])
        squares += np.einsum("ij,ij->i", error, error)
    return np.sqrt(squares)


def _shares(stack: AnyArray, row_weights: Float64 | None) -> Float64:
    """Return weights of the rows that sum to one."""
    n_rows = stack.shape[1]
    return np.full(n_rows, 1 / n_rows) if row_weights is None else row_weights / row_weights.sum()


def _spread(y: AnyArray) -> float:
    """Return the standard deviation of targets, or 1 if all are equal."""
    return float(np.std(y)) or 1.0


def _lines(block: AnyArray, y: AnyArray, share: Float64) -> Float64:
    """Return one line ``(n_values,)`` per observation, whose squared length is its share of the mean square."""
    root = np.sqrt(share)
    if block.ndim == 2:
        values = block.astype(np.float64)
        cut_values(values, y)
        scaled: Float64 = (values - np.mean(y)) / _spread(y) * root
        return scaled
    if block.shape[2] == 2:
        # Both classes differ by the same amount.
        lines: Float64 = block[:, :, 1] * (np.sqrt(2) * root)
    else:
        lines = (block * root[:, None]).reshape(len(block), -1)
    return lines
