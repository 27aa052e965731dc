"""Find, for a table and a budget, the set of models that predicts best together."""

__version__ = "0.1.0"
