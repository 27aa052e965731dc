"""The diversity surrogates by name."""

from __future__ import annotations

from typing import Literal, get_args

from cashmere.acquisition.diversity import Measure
from cashmere.exceptions import InvalidParameterError, UnknownNameError
from cashmere.protocols import DiversitySurrogate
from cashmere.surrogates.pairwise import PairwiseSurrogate
from cashmere.surrogates.prediction import PredictionSurrogate

SurrogateName = Literal["prediction", "pairwise", "pairwise_fast"]


def make_diversity_surrogate(name: SurrogateName, measure: Measure) -> DiversitySurrogate:
    """Return an unfitted surrogate of a measure."""
    if name == "prediction":
        return PredictionSurrogate(measure=measure)
    return PairwiseSurrogate(measure=measure) if name == "pairwise" else PairwiseSurrogate.fast(measure=measure)


def check_surrogate(name: str, ensemble_size: int) -> None:
    """Refuse a name that does not exist and a pool without members.

    Raises
    ------
    UnknownNameError, InvalidParameterError
        If so.
    """
    if name not in get_args(SurrogateName):
        raise UnknownNameError("surrogate", name, get_args(SurrogateName))
    if ensemble_size < 1:
        raise InvalidParameterError("ensemble_size", ensemble_size, "at least 1")
