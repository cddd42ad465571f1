"""Callbacks and retry policies as they are stored."""
