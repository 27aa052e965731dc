"""From a configuration to a loss."""
