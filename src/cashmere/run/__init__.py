"""The whole job in one run directory."""
