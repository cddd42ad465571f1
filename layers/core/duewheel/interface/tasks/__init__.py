"""Tasks in answers."""
