"""A space cut into sub-spaces."""
