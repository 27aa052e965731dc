"""What the ensemble of a run relies on: importances of columns, and how predictions depend on their values."""

from cashmere.explanations.explaining import explain
from cashmere.explanations.explanation import Explanation, read_explanation
from cashmere.explanations.single_predictions import ExplainedPredictions, explain_predictions

__all__ = ["ExplainedPredictions", "Explanation", "explain", "explain_predictions", "read_explanation"]
