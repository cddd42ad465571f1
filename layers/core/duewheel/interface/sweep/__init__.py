"""Statistics in answers."""
