"""Diversity surrogates by name."""

from __future__ import annotations

from typing import Literal, get_args

from cashmere.acquisition.diversity import Measure
from cashmere.exceptions import InvalidParameterError, UnknownNameError
from cashmere.protocols import DiversitySurrogate
from cashmere.surrogates.pairwise import PairwiseSurrogate
from cashmere.surrogates.prediction import PredictionSurrogate

SurrogateName = Literal["prediction", "pairwise", "pairwise_openbox", "pairwise_fast", "pairwise_incremental"]


def make_diversity_surrogate(name: SurrogateName, measure: Measure) -> DiversitySurrogate:
    """Return an unfitted surrogate for a measure."""
    match name:
        case "prediction":
            return PredictionSurrogate(measure=measure)
        case "pairwise":
            return PairwiseSurrogate(measure=measure)
        case "pairwise_openbox":
            return PairwiseSurrogate.openbox(measure)
        case "pairwise_fast":
            return PairwiseSurrogate.fast(measure)
        case "pairwise_incremental":
            return PairwiseSurrogate(measure=measure, refit_growth=0.05)


def check_surrogate(name: str, ensemble_size: int) -> None:
    """Check the name of a surrogate and the size of the pool.

    Raises
    ------
    UnknownNameError, InvalidParameterError
        If there is no such surrogate, or the pool would have no members.
    """
    if name not in get_args(SurrogateName):
        raise UnknownNameError("surrogate", name, get_args(SurrogateName))
    if ensemble_size < 1:
        raise InvalidParameterError("ensemble_size", ensemble_size, "at least 1")
