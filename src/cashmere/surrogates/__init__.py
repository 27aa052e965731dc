"""Models of losses and of predictions."""
