"""What trials will cost: the seconds of configurations, predicted from the run's own trials."""
