"""The table: its size, its columns and its classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cashmere.exceptions import CorruptStoreError
from cashmere.report.summary.values import dictionary, finite_number, one_line, shown_name
from cashmere.storage.directory import read_targets

_COLUMNS_SHOWN = 60
"""Largest number of columns named in the summary."""

CLASSES_SHOWN = 30
"""Largest number of classes listed."""


def data_section(run: Mapping[str, Any], schema: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return sizes of the table, its used and dropped columns, and its classes."""
    table = dictionary(run.get("table"))
    columns = [c for c in dictionary(schema.get("columns")).get("columns", []) if isinstance(c, dict)]
    used = [c for c in columns if c.get("dropped") is None]
    target = dictionary(schema.get("target"))
    classes = list(target.get("classes") or [])
    counts = _class_counts(folder, len(classes)) if classes else None
    total = sum(counts) if counts else 0
    return {
        "rows": finite_number(table.get("rows")),
        "training_rows": finite_number(table.get("training_rows")),
        "columns": len(columns) or finite_number(table.get("columns")),
        "used": len(used),
        "kinds": dict(Counter(one_line(c.get("kind")) for c in used)),
        "used_columns": [
            {
                "name": shown_name(c.get("name")),
                "kind": one_line(c.get("kind")),
                "levels": len(c.get("categories") or ()) or None,
            }
            for c in used[:_COLUMNS_SHOWN]
        ],
        "dropped": [
            {"name": shown_name(c.get("name")), "reason": one_line(c.get("dropped"))}
            for c in columns
            if c.get("dropped") is not None
        ],
        "n_classes": len(classes),
        "classes": [
            {
                "label": shown_name(label),
                "rows": counts[i] if counts else None,
                "share": counts[i] / total if counts and total else None,
            }
            for i, label in enumerate(classes[:CLASSES_SHOWN])
        ],
    }


def _class_counts(folder: Path, n_classes: int) -> list[int] | None:
    """Count the classes in the stored training rows; None where they cannot be read."""
    import numpy as np

    try:
        y, _ = read_targets(folder / "table.npz")
    except CorruptStoreError:
        return None
    if y.ndim != 1 or y.dtype.kind not in "iuf" or not len(y) or not 0 <= y.min() <= y.max() < n_classes:
        return None
    return [int(n) for n in np.bincount(y.astype(np.int64), minlength=n_classes)]
