"""Models of the loss."""
