"""One file per search method."""
