"""Configurations as arrays and back; draws and neighbours."""

from cashmere.space.encoding.catalogue import CatalogueEncoder
from cashmere.space.encoding.encoder import SpaceEncoder

__all__ = ["CatalogueEncoder", "SpaceEncoder"]
