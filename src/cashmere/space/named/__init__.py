"""Search spaces that can be chosen by name."""
