"""The experiments of the DACOpt paper."""
