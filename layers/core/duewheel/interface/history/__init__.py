"""Changes in answers."""
