"""Comparison with other systems."""
