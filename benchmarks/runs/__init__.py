"""Make, keep and describe runs."""
