"""The part of a metric that ensembles and strategies need."""

from __future__ import annotations

from typing import Protocol

from cashmere.base.arrays import AnyArray, FloatArray


class Loss(Protocol):
    """A named loss of predictions; `cashmere.evaluation.metrics.Metric` is one.

    A metric named like a kernel of `cashmere.ensembles.kernels` may carry `clip`, the smallest probability of its log
    loss, and `power`, that of its deviance.
    """

    @property
    def name(self) -> str:
        """Name of the metric; selects the kernel."""
        ...

    def loss(self, y: AnyArray, predictions: AnyArray, weight: FloatArray | None = None, /) -> float:
        """Return the loss of predictions ``(n_rows, n_classes)`` or ``(n_rows,)``; smaller is better."""
        ...
