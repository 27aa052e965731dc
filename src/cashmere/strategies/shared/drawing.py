"""Draw new configurations from the prior, and find the first new one of a list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import Float64, IntArray
from cashmere.exceptions import SpaceError
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import Suggestion
from cashmere.space.encoding import SpaceEncoder
from cashmere.space.space import ALGORITHM

_N_DRAWS = 32
"""Number of configurations drawn, and hashed, together."""

_ENUMERATION_LIMIT = 5000
"""Larger spaces are not searched configuration by configuration."""


def draw_suggestion(encoder: SpaceEncoder, decided: Float64, rng: np.random.Generator) -> Suggestion:
    """Draw a new configuration of one of the least used algorithms.

    Parameters
    ----------
    encoder : SpaceEncoder
        The space.
    decided : (n, d) array
        Encoded configurations of all trials so far.
    rng : numpy.random.Generator
        Source of randomness.
    """
    [suggestion] = draw_suggestions(encoder, decided, rng, 1)
    return suggestion


def draw_suggestions(encoder: SpaceEncoder, decided: Float64, rng: np.random.Generator, n: int) -> list[Suggestion]:
    """Draw several new configurations, one after the other: each of one of the algorithms that are then least used.

    Parameters
    ----------
    encoder, decided, rng
        See `draw_suggestion`.
    n : int
        How many.
    """
    seen = encoder.keys(decided)
    codes = encoder.choices(ALGORITHM)
    counts = np.zeros(0 if len(codes) == 0 else int(codes.max()) + 2, dtype=np.int64)
    if len(codes):
        column = encoder.names.index(ALGORITHM)
        counts = np.bincount(decided[:, column].astype(np.int64), minlength=len(counts))
    drawn: list[Suggestion] = []
    for _ in range(n):
        suggestion = _draw(encoder, codes[np.lexsort([rng.random(len(codes)), counts[codes]])], seen, rng)
        row = encoder.encode([suggestion.configuration])
        seen = np.append(seen, encoder.keys(row))
        if len(codes):
            counts[int(row[0, column])] += 1
        drawn.append(suggestion)
    return drawn


def _draw(encoder: SpaceEncoder, codes: IntArray, seen: NDArray[np.uint64], rng: np.random.Generator) -> Suggestion:
    """Draw an unseen configuration of the first algorithm that has one, else of the whole space."""
    for code in codes:
        rows = encoder.sample(_N_DRAWS, rng, fixed={ALGORITHM: int(code)}, max_tries=20)
        suggestion = first_unseen(encoder, rows, seen, origin=Origin(OriginKind.RANDOM))
        if suggestion is not None:
            return suggestion
    # Every algorithm seems exhausted (or there is none): try the space as a whole, finally one by one.
    rows = encoder.sample(_N_DRAWS if len(codes) == 0 else 1000, rng)
    if len(rows) == 0:
        raise SpaceError(
            f"No allowed configuration of the space {encoder.space.name!r} was found. Check its forbidden clauses.",
            item=encoder.space,
        )
    suggestion = first_unseen(encoder, rows, seen, origin=Origin(OriginKind.RANDOM))
    if suggestion is None:
        everything = encoder.enumerate(_ENUMERATION_LIMIT)
        others = encoder.sample(1000, rng) if everything is None else rng.permutation(everything)
        suggestion = first_unseen(encoder, others, seen, origin=Origin(OriginKind.RANDOM))
    return suggestion or Suggestion(configuration=encoder.decode(rows[0]), origin=Origin(OriginKind.REPEATED))


def first_unseen(
    encoder: SpaceEncoder, rows: Float64, seen: NDArray[np.uint64], *, origin: Origin
) -> Suggestion | None:
    """Return the first of the encoded rows whose configuration is not among the seen keys; None if all are."""
    for start in range(0, len(rows), _N_DRAWS):  # the first row is nearly always new: hash few at a time
        chunk = rows[start : start + _N_DRAWS]
        for row in chunk[~np.isin(encoder.keys(chunk), seen)]:
            configuration = encoder.decode(row)
            # ConfigSpace rounds floats, so a new row may become a known configuration.
            if not np.isin(encoder.keys(encoder.encode([configuration])), seen)[0]:
                return Suggestion(configuration=configuration, origin=origin)
    return None
