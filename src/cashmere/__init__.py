"""Find the set of models that predict best together, for a table and a budget."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cashmere.comparison import compare_strategies
    from cashmere.estimators import AutoClassifier, AutoRegressor
    from cashmere.evaluation.table_scores import score_table
    from cashmere.explanations import explain, explain_predictions
    from cashmere.export import export_onnx
    from cashmere.inspection import inspect_table
    from cashmere.model.predictor import Predictor
    from cashmere.strategies import cite
    from cashmere.study import Study
    from cashmere.tracking import log_to_mlflow

__version__ = "0.1.0"

__all__ = [
    "AutoClassifier",
    "AutoRegressor",
    "Predictor",
    "Study",
    "cite",
    "compare_strategies",
    "explain",
    "explain_predictions",
    "export_onnx",
    "inspect_table",
    "log_to_mlflow",
    "score_table",
]

_HOMES = {
    "AutoClassifier": "cashmere.estimators",
    "AutoRegressor": "cashmere.estimators",
    "Predictor": "cashmere.model.predictor",
    "Study": "cashmere.study",
    "cite": "cashmere.strategies",
    "compare_strategies": "cashmere.comparison",
    "explain": "cashmere.explanations",
    "explain_predictions": "cashmere.explanations",
    "export_onnx": "cashmere.export",
    "inspect_table": "cashmere.inspection",
    "log_to_mlflow": "cashmere.tracking",
    "score_table": "cashmere.evaluation.table_scores",
}


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that ``import cashmere`` stays light."""
    if name in _HOMES:
        try:
            return getattr(importlib.import_module(_HOMES[name]), name)
        except ModuleNotFoundError as error:
            from cashmere.exceptions import MissingDependencyError

            package = (error.name or str(error)).partition(".")[0]
            raise MissingDependencyError(package, f"cashmere.{name}", None) from error
    raise AttributeError(f"module 'cashmere' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names too, whether or not they have been imported."""
    return sorted({*globals(), *__all__})
