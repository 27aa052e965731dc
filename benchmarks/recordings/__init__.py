"""Recorded histories, and strategies that replay them."""
