"""Measure what the parts of the package cost in seconds."""
