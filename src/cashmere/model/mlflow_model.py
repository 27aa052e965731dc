"""The code that MLflow calls to load a model logged by `cashmere.tracking`, and to predict with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from cashmere.model.predictor import Predictor


class MlflowModel:
    """A model behind MLflow's interface: a table comes in, labels, values or a table of probabilities go out."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Predict a label or a value for each row; with ``params={"proba": True}``, the probability of each class."""
        if params and params.get("proba"):
            columns = [str(label) for label in self._predictor.classes_]
            return pd.DataFrame(self._predictor.predict_proba(model_input), columns=columns)
        return self._predictor.predict(model_input)


def _load_pyfunc(path: str) -> MlflowModel:
    """Load the model folder of a logged model; MLflow looks for a function of this name."""
    return MlflowModel(Predictor.load(path))
