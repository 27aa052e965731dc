"""Prepare values from the files of a run for the summary: clean, bounded, finite."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from cashmere.base.text import clean_text, redact
from cashmere.evaluation.metrics import ScoreScale

NAME_LIMIT = 80
"""Largest number of characters of a name."""


def dictionary(value: object) -> dict[str, Any]:
    """Return a value if it is a dictionary, otherwise an empty one: files may contain anything."""
    return value if isinstance(value, dict) else {}


def finite_number(value: object) -> float | int | None:
    """Return a finite number, else None: JSON has no NaN."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None


def one_line(value: object, default: str | None = "") -> Any:
    """Return a value as one clean line without private paths."""
    return default if value is None else redact(clean_text(value, NAME_LIMIT))


def shown_name(value: object) -> str:
    """Return the name of a column or class, cleaned."""
    return clean_text(value, NAME_LIMIT) or "(blank)"


def shown_setting(value: object) -> str:
    """Return a setting as text, without memory addresses in descriptions of objects."""
    if value is None:
        return "default"
    return redact(clean_text(re.sub(r" at 0x[0-9A-Fa-f]+", "", str(value)[:2000]), 160))


def score_of(scale: ScoreScale | None, loss: object) -> float | None:
    """Return the score of a loss, or None if the loss is unknown or not finite; without a scale, the loss itself."""
    number = finite_number(loss)
    return None if number is None else float(number) if scale is None else float(scale.score(number))


def succeeded(row: Mapping[str, Any]) -> bool:
    """Return whether a trial has a loss to show."""
    return row["status"] == "success" and finite_number(row["loss"]) is not None


def failed(row: Mapping[str, Any]) -> bool:
    """Return whether a trial failed; trials stopped early did not."""
    return not succeeded(row) and row["status"] != "stopped"
