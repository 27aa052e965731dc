"""What a fitted ensemble is made of, and how it is saved and loaded."""

from __future__ import annotations

from cashmere.model.trusted import TRUSTED_TYPES

__all__ = ["TRUSTED_TYPES"]
