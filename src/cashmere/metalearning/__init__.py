"""Learn from other tables: observations of sources, meta-features, pre-training and rankings."""
