"""Splitting a space into sub-spaces."""
