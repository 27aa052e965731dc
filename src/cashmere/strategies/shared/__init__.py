"""Parts shared by several strategies."""
