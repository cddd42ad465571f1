"""Settings, health, limits and secrets of businesses."""
