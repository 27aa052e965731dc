"""What several strategies have in common."""
