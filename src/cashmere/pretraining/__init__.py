"""Making what searches learn from other tables; may need PyTorch."""
