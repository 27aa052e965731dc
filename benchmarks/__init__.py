"""Measurements of cashmere; ``python -m benchmarks`` lists the commands."""
