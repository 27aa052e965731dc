"""The parts of a fitted ensemble, and how they are saved and loaded."""

from __future__ import annotations

from cashmere.model.trusted import TRUSTED_TYPES

__all__ = ["TRUSTED_TYPES"]
