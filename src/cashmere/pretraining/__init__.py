"""Build the artefacts through which searches learn from other tables; may need PyTorch."""
