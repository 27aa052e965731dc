"""All trials of a search as a data frame: what was run, what happened, and the parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cashmere.base.text import clean_text

if TYPE_CHECKING:
    import pandas as pd

_LONGEST_TEXT = 200


def trials_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a row per trial, failures included.

    The columns are ``trial``, ``status``, ``loss``, ``fold_losses``, ``origin``, ``seed``, ``fidelity`` (share of the
    training rows), ``finished_at`` (seconds since the search began), ``duration_seconds``, ``fit_seconds``,
    ``memory_mib`` and ``error`` (its first line), then ``param_...`` for every parameter; one that is not active in a
    trial is missing.

    Parameters
    ----------
    rows : iterable of mapping
        Keys as in `cashmere.storage.store.RunStore.rows`.
    """
    import pandas as pd

    rows = list(rows)
    columns: dict[str, list[Any]] = {
        "trial": [row["number"] for row in rows],
        "status": [str(row["status"]) for row in rows],
        "loss": [row["loss"] for row in rows],
        "fold_losses": [tuple(row["fold_losses"]) for row in rows],
        "origin": [clean_text(str(row["origin"] or ""), _LONGEST_TEXT) for row in rows],
        **{name: [row[name] for row in rows] for name in ("seed", "fidelity", "finished_at")},
        **{name: [row[name] for row in rows] for name in ("duration_seconds", "fit_seconds", "memory_mib")},
        "error": [None if row["error"] is None else _first_line(str(row["error"])) for row in rows],
    }
    names = dict.fromkeys(name for row in rows for name in row["configuration"])
    columns |= {f"param_{name}": [row["configuration"].get(name) for row in rows] for name in names}
    return pd.DataFrame(columns).astype({"loss": "float64", "memory_mib": "float64"})


def _first_line(text: str) -> str:
    return clean_text(text.partition("\n")[0], _LONGEST_TEXT)
