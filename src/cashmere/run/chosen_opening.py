"""The opening that a run is told to begin with: none, that of the package, that of a file or of an earlier run."""

from __future__ import annotations

from pathlib import Path

from cashmere.exceptions import ArtefactError, IncompatibleParametersError, InvalidParameterError
from cashmere.metalearning.opening import SHIPPED, Opening, load_opening, shipped_opening
from cashmere.run.members_opening import opening_of_members
from cashmere.run.settings import RunSettings
from cashmere.space.space import ALGORITHM, Space

SHIPPED_OPENING, NO_OPENING = "learned", "defaults"
"""Values of the setting `opening` that are no path."""


def check_opening(settings: RunSettings, space: Space) -> None:
    """Reject an opening that the search would not begin with.

    Raises
    ------
    IncompatibleParametersError
        If the budget is a number of trials.
    InvalidParameterError
        If the package has none for the space.
    """
    opening = settings.opening
    if opening != NO_OPENING and settings.budget.trials is not None and not _is_of_run(opening):
        raise IncompatibleParametersError(
            f"The opening {opening!r} has no effect if the budget is a number of trials: such a search begins with the "
            "defaults. Give only a time such as '10m' as budget, or leave out the opening, unless it is a run.",
            {"opening": opening, "budget": settings.budget},
        )
    if opening == SHIPPED_OPENING and shipped_opening(space.name) is None:
        raise InvalidParameterError(
            "opening",
            opening,
            f"{NO_OPENING!r} or a file made by `cashmere pretrain --opening` for the space {space.name!r}",
            "Openings that come with the package exist only for: "
            + ", ".join(sorted(path.stem for path in SHIPPED.glob("*.json")))
            + ".",
        )


def _is_of_run(opening: str) -> bool:
    """Return whether an opening is that of an earlier run."""
    return opening not in (SHIPPED_OPENING, NO_OPENING) and Path(opening).is_dir()


def own_opening(path: str, space: Space) -> Opening:
    """Return the opening in the user's file, or the members of an earlier run.

    Raises
    ------
    ArtefactError
        If it is not for the space of the new run, or the file cannot be read.
    """
    opening = opening_of_members(path, space=space.name) if _is_of_run(path) else load_opening(path)
    if opening.space != space.name:
        raise ArtefactError(
            path,
            f"was made for the space {opening.space!r}, but the run searches {space.name!r}. Use it with its space.",
        )
    return opening


def left_out_of(opening: Opening, space: Space) -> str | None:
    """Return a warning that names the algorithms of an earlier run's members that the space lacks; None if none."""
    if not opening.steps_first:
        return None
    offered = {algorithm.name for algorithm in space.algorithms}
    names = sorted({str(step.values[ALGORITHM]) for step in opening.steps} - offered)
    return f"Left out: members of the earlier run with {', '.join(names)}, which this run lacks." if names else None
