"""What other tables teach: observations of sources, meta-features, pre-training and rankings."""
