"""From a table to prepared folds."""
