"""From a configuration to a loss."""

from __future__ import annotations

from cashmere.evaluation.metrics import METRICS, Metric, get_metric, metric_from_callable

__all__ = ["METRICS", "Metric", "get_metric", "metric_from_callable"]
