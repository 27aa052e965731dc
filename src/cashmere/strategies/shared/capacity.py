"""How many configurations a part of a search space has, so that it is left when all of them are decided."""

from __future__ import annotations

from collections.abc import Mapping

from cashmere.space.encoding import SpaceEncoder

_LARGEST_COUNTED = 1000
"""Parts with more configurations count as infinite, unless their configurations are listed."""


def capacity(encoder: SpaceEncoder, *, fixed: Mapping[str, int] | None = None) -> int | None:
    """Return the number of configurations of a space, None if it is (nearly) infinite.

    Parameters
    ----------
    encoder : SpaceEncoder
        The space.
    fixed : mapping of str to int
        Codes of categoricals; only configurations with these are counted.
    """
    limit = _LARGEST_COUNTED if encoder.n_listed is None else encoder.n_listed
    everything = encoder.enumerate(limit, fixed=fixed)
    return None if everything is None else len(everything)
