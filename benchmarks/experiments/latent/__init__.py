"""Search in a latent space learned from other tables."""
