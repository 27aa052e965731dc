"""What the ensemble of a run relies on: importances of columns, and how predictions depend on their values."""

from cashmere.explanations.explaining import explain
from cashmere.explanations.explanation import Explanation, read_explanation

__all__ = ["Explanation", "explain", "read_explanation"]
