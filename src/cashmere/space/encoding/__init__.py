"""Configurations as arrays and back."""
