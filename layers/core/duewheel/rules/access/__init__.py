"""Callers, grants and API keys."""
