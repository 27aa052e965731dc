"""What trials cost, and what a search gains by knowing it."""
