"""Statistics of comparisons: pure functions on losses."""
