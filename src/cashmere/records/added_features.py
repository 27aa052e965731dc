"""The cost of the columns that a trial added to its table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFeatures:
    """Columns that one trial made from those of its table (docs/spaces.md#features).

    Attributes
    ----------
    columns : int
        Added columns, the same in all folds.
    seconds : float
        Time to choose and make them, summed over the folds.
    """

    columns: int
    seconds: float
