"""Running trials: here, or in worker processes that are watched."""
