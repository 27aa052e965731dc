"""What a trial will cost: predicted seconds of configurations, from the run's own trials."""
