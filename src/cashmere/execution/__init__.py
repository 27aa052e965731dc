"""Run trials in this process or in watched worker processes."""
