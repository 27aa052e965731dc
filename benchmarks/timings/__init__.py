"""Measure how many seconds the parts of the package take."""
