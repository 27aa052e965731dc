"""A learned opening: what a search of the space ``default`` begins with."""
