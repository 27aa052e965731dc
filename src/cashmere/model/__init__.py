"""What a fitted ensemble is made of, and how it is saved and loaded."""
