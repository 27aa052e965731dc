"""What a trial saw along its path."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedPath:
    """The values of a hyper-parameter that one trial went through, and which one it kept (docs/paths.md).

    Attributes
    ----------
    parameter : str
        See `cashmere.space.path.PathParameter.name`.
    positions : tuple of float
        The values, in the order in which the fit reached them.
    losses : tuple of float
        At each of them, the loss of the predictions for all validation rows together; for metrics of labels, the Brier
        score.
    chosen : float
        The value with the lowest loss.
    """

    parameter: str
    positions: tuple[float, ...]
    losses: tuple[float, ...]
    chosen: float
