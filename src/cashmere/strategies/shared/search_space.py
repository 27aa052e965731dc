"""What a strategy searches, compiled."""

from __future__ import annotations

from collections.abc import Sequence

from ConfigSpace import Configuration, ConfigurationSpace

from cashmere.space.encoding import CatalogueEncoder, SpaceEncoder


def make_encoder(space: ConfigurationSpace, catalogue: Sequence[Configuration] | None) -> SpaceEncoder:
    """Return the encoder of a space, or of the listed configurations of it only."""
    return SpaceEncoder(space) if catalogue is None else CatalogueEncoder(space, catalogue)
