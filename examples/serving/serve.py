"""Serve a model over HTTP: `uvicorn serve:app` in a folder that holds `model`, the model folder of a run."""

from typing import Any

import pandas as pd
from fastapi import FastAPI, HTTPException

from cashmere import Predictor
from cashmere.exceptions import CashmereError

model = Predictor.load("model", verify=False)  # we have put it there ourselves; its checksums are still compared
app = FastAPI()


@app.post("/predict")
async def predict(rows: list[dict[str, Any]]) -> list[Any]:
    """Predict each row, one request at a time; for more at a time, start more processes: `uvicorn --workers`."""
    if len({frozenset(row) for row in rows}) > 1:  # pandas would fill in missing values
        raise HTTPException(422, "All rows must have the same keys. Give null where a value is missing.")
    try:
        return model.predict(pd.DataFrame(rows)).tolist()
    except CashmereError as error:  # it names the column, what was found, and what to try
        raise HTTPException(422, str(error)) from error
