"""Fits that are followed along a path: rounds, trees, epochs, penalties (docs/paths.md).

Import these modules only where a fit is followed: they load scikit-learn and the boosting libraries.
"""
