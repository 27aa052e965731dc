"""The target of a table, as the options of a command describe it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cashmere.base.text import counted
from cashmere.cli.terminal import say
from cashmere.exceptions import InvalidParameterError

if TYPE_CHECKING:
    import pandas as pd


def take_target(
    frame: pd.DataFrame,
    name: str,
    *,
    missing: Sequence[str] | None,
    drop_missing: bool = False,
    must_occur: bool = True,
    quiet: bool = False,
) -> tuple[pd.DataFrame, Any]:
    """Remove the target from a table, and rows without one where an option asks for it.

    Parameters
    ----------
    frame : DataFrame
        The table.
    name : str
        Column of the target.
    missing : sequence of str or None
        Values that stand for none (``--missing-target``); rows with them are left out, as are those with a gap.
    drop_missing : bool
        Whether rows with a gap are left out in any case (``--drop-missing-target``).
    must_occur : bool
        Whether a value that the target does not hold is an error.
    quiet : bool
        Whether not to say how many.

    Returns
    -------
    DataFrame, Series or array
        The rows that are left, without the target, and their targets.

    Raises
    ------
    UnknownNameError, DataError
        As `take_column`; also if no row has a target.
    InvalidParameterError
        If the target does not hold one of the values, unless it need not.
    """
    from cashmere.data.reading import take_column
    from cashmere.data.target import rows_with_target, with_missing

    y: Any = take_column(frame, name, "target")
    if missing:
        y, unknown = with_missing(y, missing)
        if unknown and must_occur:
            advice = "Write it as in the table."
            raise InvalidParameterError("missing_target", unknown[0], f"a value of the target {name!r}", advice)
    if missing or drop_missing:
        frame, y, n_missing = rows_with_target(frame, y)
        say(quiet, f"{counted(n_missing, 'row')} without a target left out.")
    return frame, y
