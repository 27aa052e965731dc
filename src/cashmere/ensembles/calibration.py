"""Calibrate class probabilities of the finished ensemble: one temperature, or a scale and an offset for each class.

It is fitted to predictions for rows that did not choose the ensemble. On rows that did, an ensemble looks better than
it is, and a calibration would make it too certain. A temperature moves probabilities away from their mean, or towards
it, rather than from equal probabilities: otherwise the mean probability of a rare class would no longer be its share.

Notation (shapes)
-----------------
p ``(n, C)``: class probabilities; y ``(n,)``: class codes; w ``(n,)``: row weights with sum 1;
z ``(n, C)``: log p, p at least `FLOOR`; a, b ``(C,)``: scales and offsets; q = softmax(a z + b) ``(n, C)``.
c ``(C,)``: logarithms of the mean probabilities, see `centre_of`.
Temperature T: all scales s = 1 / T, offsets (1 - s) c, hence q = softmax(s (z - c) + c). For two classes, scales and
offsets are beta calibration.

References
----------
Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks, ICML, section 4.2.
Kull, Silva Filho, Flach (2017), Beta calibration, AISTATS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.data.row_structure import RowStructure
from cashmere.ensembles.parts import parts_of_rows
from cashmere.ensembles.stopping import Stop, go_on_unless, never
from cashmere.exceptions import InvalidParameterError, ShapeError

FLOOR = 1e-7
"""Smallest probability before the logarithm; the log loss cuts at the same."""

_PARTS = 5
_LEAST_ROWS = 200
"""Fewer rows say too little about a temperature: docs/benchmarks.md#the-last-step."""

_ROWS_PER_PARAMETER = 50
"""Rows that a scale or an offset needs before scales and offsets are tried."""

_MOST_CELLS = 100_000
"""Most rows times classes to use: more would change little, and take more than a tenth of a second."""

_CLEARLY = 2.0
"""A gain counts if it exceeds this many of its standard errors."""

_MOST_SHARPENED, _SHARPENED_ROWS = 0.1, 60.0
"""If new rows are predicted by means of several models, scales are raised by this share, or by these rows divided by
the number of rows, whichever is less. A mean is less certain than its parts, the more so the more they differ, and
models that have learned from more rows differ less: docs/benchmarks.md#the-last-step."""

_LEAST_SCALE, _LARGEST_SCALE = 0.1, 10.0
_PRIOR_ROWS = 5.0
"""Weight r of the prior that scales are 1 and offsets 0: where all rows are predicted well, it bounds the scales."""

_CENTRE_ROWS = 10.0
"""Rows for each class that draw the mean probabilities towards equality: docs/benchmarks.md#rare-classes."""

_STEPS = 20
_CONVERGED = 1e-4
"""A Newton step shorter than this is the last: the next would be about its square."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A map from class probabilities to class probabilities.

    Attributes
    ----------
    scales : tuple of float
        a, one for each class, positive.
    offsets : tuple of float
        b, one for each class.
    gain : float
        How much it lowers the loss on rows that it was not fitted to. It may be below 0 where new rows are predicted by
        means of more models than these.

    Examples
    --------
    >>> sharper = Calibration(scales=(2.0, 2.0), offsets=(0.0, 0.0), gain=0.01)
    >>> sharper.apply(np.array([[0.2, 0.8], [0.5, 0.5]])).round(3)
    array([[0.059, 0.941],
           [0.5  , 0.5  ]])
    >>> str(sharper)
    'temperature 0.5, which lowers the loss by 0.01 on unseen rows'
    """

    scales: tuple[float, ...]
    offsets: tuple[float, ...]
    gain: float

    def __post_init__(self) -> None:
        if len(self.scales) < 2 or not np.isfinite(self.scales).all() or min(self.scales) <= 0:
            raise InvalidParameterError("scales", self.scales, "a positive number for each of two or more classes")
        if len(self.offsets) != len(self.scales) or not np.isfinite(self.offsets).all():
            raise InvalidParameterError("offsets", self.offsets, f"a number for each of {len(self.scales)} classes")

    def __str__(self) -> str:
        what = (
            "a scale and an offset for each class"
            if self.temperature is None
            else f"temperature {self.temperature:.3g}"
        )
        if self.gain <= 0:
            return f"{what}: means of several models are less certain than they should be"
        return f"{what}, which lowers the loss by {self.gain:.2g} on unseen rows"

    @property
    def temperature(self) -> float | None:
        """T, if there is one for all classes; below 1 probabilities move away from their mean."""
        return 1 / self.scales[0] if len(set(self.scales)) == 1 else None

    def apply(self, probabilities: FloatArray) -> Float64:
        """Return calibrated probabilities, rows sum to one.

        Parameters
        ----------
        probabilities : (n_rows, n_classes) array

        Raises
        ------
        ShapeError
            If they have other classes.
        """
        if probabilities.ndim != 2 or probabilities.shape[1] != len(self.scales):
            raise ShapeError("probabilities", probabilities.shape, f"(n_rows, {len(self.scales)})")
        return _softmax(_logs(probabilities) * np.array(self.scales) + np.array(self.offsets))

    def to_json(self) -> dict[str, Any]:
        """Return plain data for `from_json`."""
        return {"scales": list(self.scales), "offsets": list(self.offsets), "gain": self.gain}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the calibration that `to_json` described."""
        return cls(
            scales=tuple(float(scale) for scale in data["scales"]),
            offsets=tuple(float(offset) for offset in data["offsets"]),
            gain=float(data["gain"]),
        )


def can_calibrate(metric_name: str) -> bool:
    """Return whether a metric judges the probabilities themselves, row by row, as log loss and Brier score do."""
    return metric_name in _ROW_LOSSES


def choose_calibration(
    probabilities: FloatArray,
    y: AnyArray,
    metric_name: str,
    *,
    weight: FloatArray | None = None,
    structure: RowStructure | None = None,
    rng: np.random.Generator,
    is_mean_elsewhere: bool = False,
    stop: Stop = never,
) -> Calibration | None:
    """Fit calibrations, and keep one only if it clearly helps on unseen rows.

    The rows are cut into five parts; each part is calibrated as the other four suggest. A temperature must lower the
    loss by more than two standard errors of that gain. So must scales and offsets, if there are enough rows for them,
    beside the temperature if that is kept. Where new rows will be predicted by means of more models, probabilities will
    be less certain than these: a calibration is then sharpened, and a temperature below 1 kept unless it clearly harms.

    Parameters
    ----------
    probabilities : (n_rows, n_classes) array
        Predictions for rows that chose neither the ensemble nor its members' models.
    y : (n_rows,) array
        Class codes.
    metric_name : str
        One that `can_calibrate` accepts. All calibrations are fitted to the log loss.
    weight : (n_rows,) array, optional
        Row weights.
    structure : RowStructure, optional
        Groups or moments of the rows, see `parts_of_rows`.
    rng : numpy.random.Generator
        Cuts the rows.
    is_mean_elsewhere : bool
        Whether new rows will be predicted by means of more models than these rows, as by those of several folds.
    stop : Stop
        Whether to give up.

    Returns
    -------
    Calibration or None
        None if none is kept, with fewer than 200 rows, or if there is a single class, group or moment.

    Raises
    ------
    StoppedError
        If `stop` says so.
    """
    n_classes = probabilities.shape[1]
    rows = np.sort(rng.permutation(len(y))[: _MOST_CELLS // n_classes])
    z, codes = _logs(probabilities[rows]), np.asarray(y, dtype=np.int64)[rows]
    w = np.ones(len(rows)) if weight is None else np.asarray(weight, dtype=np.float64)[rows]
    n_rows, w = len(rows), w / w.sum()
    if n_rows < _LEAST_ROWS or len(np.unique(codes)) < 2:
        return None
    parts = parts_of_rows(n_rows, _PARTS, rng, None if structure is None else structure.take(rows), classes=codes)
    if not parts:
        return None
    judged = np.sort(np.concatenate([part.validation for part in parts]))
    w_judged = w if len(judged) == n_rows else w[judged] / w[judged].sum()
    row_losses = _ROW_LOSSES[metric_name]
    least = row_losses(_softmax(z), codes)[judged]
    fits: list[Callable[..., tuple[Float64, Float64]]] = [fit_temperature]
    if n_rows >= _ROWS_PER_PARAMETER * 2 * n_classes:
        fits.append(fit_scales_and_offsets)
    sharper = 1 + min(_MOST_SHARPENED, _SHARPENED_ROWS / n_rows) if is_mean_elsewhere else 1.0
    centre, chosen, gain = centre_of(z, w), None, 0.0
    for fit in fits:
        whole = fit(z, codes, w, centre=centre)
        if whole[0].min() <= 0:  # a more probable class would get a lower probability
            continue
        unseen = np.full_like(z, 1 / n_classes)
        for part in parts:
            go_on_unless(stop)
            inside, outside = part.train, part.validation
            w_inside = w[inside] / w[inside].sum()
            centre_inside = centre_of(z[inside], w_inside)
            scales, offsets = fit(
                np.asfortranarray(z[inside]), codes[inside], w_inside, centre=centre_inside, start=whole
            )
            sharpened = sharper * (z[outside] * scales + offsets) + (1 - sharper) * centre_inside
            unseen[outside] = _softmax(sharpened)
        gains = least - row_losses(unseen, codes)[judged]
        mean = float(w_judged @ gains)
        is_expected = is_mean_elsewhere and fit is fit_temperature and sharper * whole[0][0] > 1
        errors = -_CLEARLY if is_expected else _CLEARLY
        if mean > errors * float(np.sqrt(w_judged**2 @ (gains - mean) ** 2)):
            gain, least = gain + mean, least - gains
            scales, offsets = sharper * whole[0], sharper * whole[1] + (1 - sharper) * centre
            chosen = Calibration(scales=tuple(scales.tolist()), offsets=tuple(offsets.tolist()), gain=gain)
    return chosen


def centre_of(z: Float64, w: Float64) -> Float64:
    """Return c, the logarithm of the mean probability of each class ``(n_classes,)``, drawn a little towards equality.

    It is the mean with ten more rows for each class, of equal probabilities: of a class with a handful of rows, the
    mean alone says little.

    Parameters
    ----------
    z : (n_rows, n_classes) array
        Log-probabilities.
    w : (n_rows,) array
        Row weights, with sum 1.
    """
    rows = len(z) * (w @ np.exp(z)) + _CENTRE_ROWS
    return np.asarray(np.log(rows / rows.sum()))


def fit_temperature(
    z: Float64, y: IntArray, w: Float64, *, centre: Float64, start: tuple[Float64, Float64] | None = None
) -> tuple[Float64, Float64]:
    """Return scales and offsets of the temperature with the lowest log loss, drawn a little towards 1.

    With s = 1 / T, u = z - c and the prior of r rows, f(s) = sum_i w_i (log sum_c exp(s u_ic + c_c) - s u_iy - c_y)
    + r / (2 n) (s - 1)^2 is convex. Its derivatives are the means of E_q[u] - u_y and of Var_q[u], plus those of the
    prior: Newton's method, inside the bracket of the scales allowed.

    Parameters
    ----------
    z : (n_rows, n_classes) array
        Log-probabilities.
    y : (n_rows,) int array
        Class codes.
    w : (n_rows,) array
        Row weights, with sum 1.
    centre : (n_classes,) array
        c, see `centre_of`.
    start : tuple, optional
        Result for similar rows.
    """
    u = z - centre
    s, strength = 1.0 if start is None else float(start[0][0]), _PRIOR_ROWS / len(y)
    low, high = _LEAST_SCALE, _LARGEST_SCALE
    own = float(w @ u[np.arange(len(y)), y])
    for _ in range(_STEPS):
        q = _softmax(s * u + centre)
        mean = np.einsum("ij,ij->i", q, u)
        slope = float(w @ mean) - own + strength * (s - 1)
        curvature = float(w @ (np.einsum("ij,ij,ij->i", q, u, u) - mean**2)) + strength
        low, high = (s, high) if slope < 0 else (low, s)
        step = s - slope / curvature
        before, s = s, step if low < step < high else (low + high) / 2
        if abs(s - before) < _CONVERGED:
            break
    return np.full(z.shape[1], s), (1 - s) * centre


def fit_scales_and_offsets(
    z: Float64,
    y: IntArray,
    w: Float64,
    *,
    centre: Float64 | None = None,
    start: tuple[Float64, Float64] | None = None,
) -> tuple[Float64, Float64]:
    """Return the scales and offsets with the lowest log loss, drawn a little towards 1 and 0.

    With x = (z, 1), theta = (a, b) and the prior of r rows, f(theta) = sum_i w_i (log sum_c exp(a_c z_ic + b_c) -
    a_y z_iy - b_y) + r / (2 n) |theta - theta_0|^2 is convex: Newton's method, with shorter steps where f would rise.

    Parameters
    ----------
    z, y, w, start
        As in `fit_temperature`; offsets need no `centre`.
    """
    n, n_classes = z.shape
    identity = np.concatenate([np.ones(n_classes), np.zeros(n_classes)])
    theta = identity if start is None else np.concatenate(start)
    strength = _PRIOR_ROWS / n
    is_class = np.zeros_like(z)
    is_class[np.arange(n), y] = 1.0

    def loss(theta: Float64) -> float:
        x = z * theta[:n_classes] + theta[n_classes:]
        top = x.max(axis=1)
        total = top + np.log(np.exp(x - top[:, None]).sum(axis=1))
        return float(w @ (total - x[np.arange(n), y]) + strength / 2 * np.sum((theta - identity) ** 2))

    value = loss(theta)
    for _ in range(_STEPS):
        q = _softmax(z * theta[:n_classes] + theta[n_classes:])
        slope, curvature = _derivatives(z, q, q - is_class, w)
        slope += strength * (theta - identity)
        curvature[np.diag_indices_from(curvature)] += strength
        step = np.linalg.solve(curvature, slope)
        is_last = np.abs(step).max() < _CONVERGED
        for _ in range(_STEPS):
            moved = loss(theta - step)
            if moved <= value:
                break
            step = step / 2
        theta, value = theta - step, moved
        if is_last:
            break
    return theta[:n_classes], theta[n_classes:]


def _derivatives(z: Float64, q: Float64, error: Float64, w: Float64) -> tuple[Float64, Float64]:
    """Return gradient ``(2 C,)`` and Hessian ``(2 C, 2 C)`` of the weighted log loss in (a, b)."""
    weighted = w[:, None] * error
    slope = np.concatenate([np.einsum("ij,ij->j", weighted, z), weighted.sum(axis=0)])
    both = np.concatenate([q * z, q], axis=1)
    curvature = -(both * w[:, None]).T @ both
    n_classes = z.shape[1]
    a, b = np.arange(n_classes), np.arange(n_classes) + n_classes
    wq = w[:, None] * q
    curvature[a, a] += np.einsum("ij,ij,ij->j", wq, z, z)
    cross = np.einsum("ij,ij->j", wq, z)
    curvature[a, b] += cross
    curvature[b, a] += cross
    curvature[b, b] += wq.sum(axis=0)
    return slope, curvature


def _logs(probabilities: FloatArray) -> Float64:
    # In column-major order, sums over few classes are several times as fast.
    return np.log(np.maximum(np.asarray(probabilities, dtype=np.float64, order="F"), FLOOR))


def _softmax(x: Float64) -> Float64:
    odds = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _log_losses(q: Float64, y: IntArray) -> Float64:
    return -np.log(np.maximum(q[np.arange(len(y)), y], FLOOR))


def _squared_distances(q: Float64, y: IntArray) -> Float64:
    halved = 2 if q.shape[1] == 2 else 1
    return np.asarray(np.square(q).sum(axis=1) - 2 * q[np.arange(len(y)), y] + 1) / halved


_ROW_LOSSES: dict[str, Callable[[Float64, IntArray], Float64]] = {
    "log_loss": _log_losses,
    "brier": _squared_distances,
}
"""Loss of each row, by name of the metric that is its mean."""
