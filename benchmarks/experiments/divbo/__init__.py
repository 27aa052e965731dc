"""The experiments of the papers on DivBO and OptDivBO."""
