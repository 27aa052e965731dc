"""Split a space into sub-spaces."""
