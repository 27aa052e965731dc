"""What every room may use: array types, seeds, threads, texts, files, cores."""
