"""From the plain data of a summary to its figures, as SVG text."""
