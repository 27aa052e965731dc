"""How the ensemble errs on rows that its models have not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cashmere.analysis.confusion import confusion_matrix, join_small_classes
from cashmere.analysis.out_of_fold import OutOfFold, read_out_of_fold
from cashmere.analysis.ranking_curves import corners, ranking_curves
from cashmere.analysis.reliability import reliability_curve
from cashmere.analysis.residuals import residual_bands, weighted_quantiles
from cashmere.exceptions import CashmereError
from cashmere.report.summary.values import shown_name

CLASSES_IN_MATRIX = 10
"""Largest size of the confusion matrix; with more classes, the smallest are joined."""

CLASSES_WITH_CURVES = 4
"""Largest number of classes with ROC and precision-recall curves: those with the most rows."""

_MOST_ROWS = 20_000
"""Rows that the diagnostics are made from."""

_CORNERS = 120
_POINTS = 700


def diagnostics_section(folder: Path, weights: Mapping[int, float], target: Mapping[str, Any]) -> dict[str, Any]:
    """Return reliability, confusion and ranking curves, or residuals; never make a report fail.

    Parameters
    ----------
    folder : Path
        The run directory.
    weights : mapping
        Of the members of the final ensemble, by trial number; empty while there is none.
    target : mapping
        Classes, from ``schema.json``.

    Returns
    -------
    dict
        ``why_not``: None, or the text to show instead of the rest; ``n_rows``, ``n_validation_rows``; ``weighted``;
        ``classes``: see `_of_classes`, or None; ``values``: see `_of_values`, or None.
    """
    section: dict[str, Any] = {"why_not": None, "classes": None, "values": None}
    if not weights:
        return section | {"why_not": "The final ensemble has not been built yet."}
    if min(weights) < 0:
        return section | {"why_not": "The model predicts the same for every row."}
    try:
        found = read_out_of_fold(folder, max_rows=_MOST_ROWS)
        labels = [shown_name(label) for label in target.get("classes") or ()]
        section |= {
            "n_rows": len(found.y),
            "n_validation_rows": found.n_validation_rows,
            "weighted": found.weight is not None,
        }
        if found.predictions.ndim == 2:
            section["classes"] = _of_classes(found, labels)
        else:
            section["values"] = _of_values(found)
    except (CashmereError, OSError, ValueError, LookupError, TypeError, ArithmeticError):
        section["why_not"] = "The out-of-fold predictions of the ensemble cannot be read."
    return section


def _of_classes(found: OutOfFold, labels: Sequence[str]) -> dict[str, Any]:
    """Return the diagnostics of class probabilities.

    Returns
    -------
    dict
        ``reliability``: ``of`` the class with this label, or None for the most probable class of each row; ``bins``;
        ``error``. ``confusion``: ``labels`` and ``counts``; ``n_joined`` classes in the last row. ``curves``: for the
        second of two classes, or the most frequent of several, ``roc`` and ``precision_recall`` as lists of points,
        ``area``, ``average_precision``, ``share`` of the class; ``decision``: where the model decides, for two classes.
    """
    y, p, weight = found.y.astype(np.int64), found.predictions, found.weight
    n_classes = p.shape[1]
    decided = found.decided
    if n_classes == 2:
        curve = reliability_curve(y == 1, p[:, 1], weight=weight)
    else:
        curve = reliability_curve(p.argmax(axis=1) == y, p.max(axis=1), weight=weight)
    bins = [
        dict(zip(("predicted", "observed", "lower", "upper", "rows"), each, strict=True))
        for each in zip(
            *(part.tolist() for part in (curve.predicted, curve.observed, curve.lower, curve.upper, curve.rows)),
            strict=True,
        )
    ]
    matrix, kept = join_small_classes(confusion_matrix(y, decided, n_classes, weight), CLASSES_IN_MATRIX)
    n_joined = n_classes - len(kept)
    return {
        "reliability": {"of": labels[1] if n_classes == 2 else None, "bins": bins, "error": curve.error},
        "confusion": {
            "labels": [labels[code] for code in kept] + ([f"{n_joined} others"] if n_joined else []),
            "counts": matrix.tolist(),
            "n_joined": n_joined,
        },
        "curves": _ranking(found, labels),
    }


def _ranking(found: OutOfFold, labels: Sequence[str]) -> list[dict[str, Any]]:
    y, p = found.y, found.predictions
    mass = np.bincount(y.astype(np.int64), weights=found.weight, minlength=p.shape[1])
    codes = [1] if p.shape[1] == 2 else np.argsort(-mass, kind="stable")[:CLASSES_WITH_CURVES].tolist()
    curves = []
    for code in codes:
        if not 0 < mass[code] < mass.sum():
            continue
        each = ranking_curves(y == code, p[:, code], weight=found.weight)
        roc = corners(each.false_positive_rate, each.recall, _CORNERS)
        precision = corners(each.recall, each.precision, _CORNERS)
        curves.append(
            {
                "label": labels[code],
                "area": each.area,
                "average_precision": each.average_precision,
                "share": float(mass[code] / mass.sum()),
                "roc": np.column_stack([each.false_positive_rate, each.recall])[roc].tolist(),
                "precision_recall": np.column_stack([each.recall, each.precision])[precision].tolist(),
                "decision": _decision(found) if p.shape[1] == 2 else None,
            }
        )
    return curves


def _decision(found: OutOfFold) -> dict[str, float | None]:
    """Return the point of the curves at which a model of two classes decides."""
    (tn, fp), (fn, tp) = confusion_matrix(found.y.astype(np.int64), found.decided, 2, found.weight)
    return {
        "false_positive_rate": float(fp / (tn + fp)),
        "recall": float(tp / (tp + fn)),
        "precision": float(tp / (tp + fp)) if tp + fp > 0 else None,
    }


def _of_values(found: OutOfFold) -> dict[str, Any]:
    """Return the diagnostics of values.

    Returns
    -------
    dict
        ``points``: some rows as [prediction, truth]; ``bands``: per bin of predictions the residuals' ``lower``,
        ``median`` and ``upper``; ``half`` and ``nine_tenths`` of the rows have an absolute error of at most this.
    """
    y, p = found.y.astype(np.float64), found.predictions
    bands = residual_bands(y, p, weight=found.weight)
    half, most = weighted_quantiles(np.abs(y - p), (0.5, 0.9), found.weight)
    # Evenly along the predictions, so that the picture of a large table looks like that of a small one.
    order = np.argsort(p, kind="stable")
    shown = order[np.unique(np.linspace(0, len(p) - 1, min(_POINTS, len(p))).astype(np.int64))]
    return {
        "points": np.column_stack([p, y])[shown].tolist(),
        "bands": [
            dict(zip(("predicted", "lower", "median", "upper"), each, strict=True))
            for each in zip(
                *(part.tolist() for part in (bands.predicted, bands.lower, bands.median, bands.upper)), strict=True
            )
        ],
        "half": float(half),
        "nine_tenths": float(most),
    }
