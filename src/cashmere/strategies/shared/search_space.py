"""The search space of a strategy: a space, or an encoder of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ConfigSpace import ConfigurationSpace

from cashmere.space.encoding import SpaceEncoder

SearchSpace = ConfigurationSpace | SpaceEncoder
"""The search space of a strategy: a space, or an encoder of it.

Replays of recorded trials pass a `CatalogueEncoder`, which draws only listed configurations.
"""


def encoder_of(searched: SearchSpace) -> SpaceEncoder:
    """Return the encoder by which a strategy draws and reads configurations; a space is compiled.

    Examples
    --------
    >>> encoder_of(ConfigurationSpace({"depth": (1, 4)})).names
    ('depth',)
    """
    return searched if isinstance(searched, SpaceEncoder) else SpaceEncoder(searched)


def restrict_search(
    searched: SearchSpace, part: ConfigurationSpace, allowed: Mapping[str, Collection[Any]]
) -> SearchSpace:
    """Return a part of the search space that draws by the same rules.

    Parameters
    ----------
    searched : ConfigurationSpace or SpaceEncoder
        The whole.
    part : ConfigurationSpace
        The space, restricted to `allowed`; see `cashmere.space.splitting.restriction.restrict`.
    allowed : mapping of str to collection
        Values of categoricals in the part.
    """
    return searched.restrict(part, allowed) if isinstance(searched, SpaceEncoder) else part
