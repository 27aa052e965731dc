"""Check that the content of permitted types is consistent before anything predicts with it."""

from cashmere.model.content.boosters import check_entries
from cashmere.model.content.fault import ContentError
from cashmere.model.content.objects import check_objects

__all__ = ["ContentError", "check_entries", "check_objects"]
