"""The search spaces that can be chosen by name."""
