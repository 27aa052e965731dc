"""Functions that score candidates and find the one most worth a trial."""
