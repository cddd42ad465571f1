"""Callbacks in answers."""
