"""Tables that benchmarks run on."""
