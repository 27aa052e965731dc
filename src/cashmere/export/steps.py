"""Convert the steps before a learner: scaling, bases, features. Each computes in the precision of its library.

A later step may magnify the last digits of an earlier one a million times, so exact results would not be enough.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from cashmere.base.arrays import FloatArray
from cashmere.data.column_values import LARGEST
from cashmere.exceptions import ConversionError
from cashmere.export.graph import Graph, Value
from cashmere.export.normal_quantiles import normal_quantile
from cashmere.space.estimators.combinations import n_arithmetic_features

_AT_THE_ENDS = 1e-7
"""`BOUNDS_THRESHOLD` of scikit-learn: ranks this close to an end are 0 or 1. Normal scores are clipped there."""


def outlier_clipper(graph: Graph, step: Any, matrix: Value) -> Value:
    """Replace numbers beyond the bounds of their columns by these; NaN stay."""
    matrix = graph.where(matrix > step.most_, step.most_, matrix)
    return graph.where(matrix < step.least_, step.least_, matrix)


def standard_scaler(graph: Graph, step: Any, matrix: Value) -> Value:
    """Subtract means and divide by deviations, in the type of the matrix."""
    scaled: Value = (matrix - step.mean_) / step.scale_
    return scaled


def robust_scaler(graph: Graph, step: Any, matrix: Value) -> Value:
    """Subtract medians and divide by distances of quartiles, each in double precision."""
    centred = (matrix.cast(np.float64) - step.center_).cast(matrix.dtype)
    scaled: Value = (centred.cast(np.float64) / step.scale_).cast(matrix.dtype)
    return scaled


def quantile_transformer(graph: Graph, step: Any, matrix: Value) -> Value:
    """Replace values by the normal scores of their ranks, which are interpolated between quantiles."""
    if step.output_distribution != "normal":
        raise ConversionError({"scaler": f"makes columns {step.output_distribution}, for which there is no converter"})
    quantiles, references = step.quantiles_.astype(np.float64), step.references_.astype(np.float64)
    exact = matrix.cast(np.float64)
    # If quantiles are equal, the rank is the mean of the interpolations in both directions.
    upwards = _interpolated(graph, exact, quantiles, references)
    downwards = _interpolated(graph, -exact, -quantiles[::-1], -references[::-1])
    ranks = ((upwards - downwards) * 0.5).cast(matrix.dtype).cast(np.float64)
    ranks = graph.where(matrix - _AT_THE_ENDS < quantiles[0], 0.0, ranks)
    ranks = graph.where(matrix + _AT_THE_ENDS > quantiles[-1], 1.0, ranks)
    return normal_quantile(graph, ranks, least=_AT_THE_ENDS - np.spacing(1)).cast(matrix.dtype)


def _interpolated(graph: Graph, matrix: Value, knots: FloatArray, heights: FloatArray) -> Value:
    """Return ``numpy.interp`` of each column between its own knots ``(n_knots, n_columns)``, found by bisection."""
    n_knots, n_columns = knots.shape
    size = 1 << n_knots.bit_length()
    n_more = size - n_knots
    table = np.concatenate([knots, np.full((n_more, n_columns), np.inf)]).T.ravel()
    widths = np.diff(knots, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.where(widths > 0, np.diff(heights)[:, None] / widths, 0.0)
    slopes = np.concatenate([slopes, np.zeros((n_more + 1, n_columns))]).T.ravel()  # beyond the last knot it is level
    levels = np.tile(np.concatenate([heights, np.full(n_more, heights[-1])]), n_columns)
    place = matrix.is_missing().cast(np.int64) + np.arange(n_columns) * size  # nothing is missing
    step = size // 2
    while step:
        tried = place + step
        place = graph.where(matrix >= graph.node("Gather", table, tried), tried, place)
        step //= 2
    beyond = matrix.at_least(knots[0]) - graph.node("Gather", table, place)
    return beyond * graph.node("Gather", slopes, place) + graph.node("Gather", levels, place)


def piecewise_linear_columns(graph: Graph, step: Any, matrix: Value) -> Value:
    """Replace columns by their positions within bins."""
    bins: list[tuple[float, ...]] = []
    for number, padded in enumerate(step.edges_.T):
        edges = padded[~np.isnan(padded)].tolist()
        if len(edges) < 2:
            bins.append((number, False, 0.0, 1.0, -np.inf, np.inf))
            continue
        for start, end in itertools.pairwise(edges):
            bins.append((number, True, start, end - start, edges[0], edges[-1]))
    origin, is_bent, starts, widths, lows, highs = np.array(bins).T
    chosen = matrix.cast(np.float64).columns(origin)
    shares = (chosen.at_least(lows).at_most(highs) - starts) / widths
    return graph.where(is_bent > 0, shares.at_least(0.0).at_most(1.0), chosen)


def double_precision(graph: Graph, step: Any, matrix: Value) -> Value:
    """Continue in double precision."""
    return matrix.cast(np.float64)


def similarities(graph: Graph, step: Any, matrix: Value) -> Value:
    """Compare rows with some of the training rows by a Gaussian kernel (Nyström's method)."""
    if step.kernel != "rbf":
        raise ConversionError({"basis": f"compares rows by the kernel {step.kernel!r}, not by the Gaussian one"})
    compared: Value = gaussian_kernel(graph, matrix, step.components_, step.gamma) @ step.normalization_.T
    return compared


def gaussian_kernel(graph: Graph, matrix: Value, rows: FloatArray, gamma: float) -> Value:
    """Return ``exp(-gamma d**2)`` for the distances d to some rows, ``(n_rows, n_compared)``, float64."""
    exact, rows = matrix.cast(np.float64), np.asarray(rows, dtype=np.float64)
    squares = exact @ (-2.0 * rows.T) + graph.sum_over(exact * exact, 1, keep=True) + np.square(rows).sum(axis=1)
    return graph.node("Exp", squares.at_least(0.0) * -float(gamma))


def arithmetic_features(graph: Graph, step: Any, matrix: Value) -> Value:
    """Add combinations of pairs of columns."""
    n_made, n_used = n_arithmetic_features(step.categorical), len(step.combinations_)
    if n_made == 0:
        return matrix
    first, second, operation = np.zeros((3, n_made), dtype=np.int64)
    first[:n_used], second[:n_used], operation[:n_used] = step.combinations_.T
    exact, is_under = matrix.cast(np.float64), operation == 4
    a = exact.columns(np.where(is_under, second, first))
    b = exact.columns(np.where(is_under, first, second))
    result = graph.where(graph.node("Equal", b, np.array(0.0)), (a + b) * 0.0, a / b)
    for number, value in enumerate((a + b, a - b, a * b)):
        result = graph.where(operation == number, value, result)
    result = graph.where(result > LARGEST, LARGEST, result)
    result = graph.where(result < -LARGEST, -LARGEST, result)
    result = graph.where(np.arange(n_made) >= n_used, 0.0, result)
    return graph.side_by_side(matrix, result.cast(matrix.dtype))
