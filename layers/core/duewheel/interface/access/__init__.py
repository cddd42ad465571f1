"""API keys in answers."""
