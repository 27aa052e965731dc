"""Which candidate is worth a trial."""
