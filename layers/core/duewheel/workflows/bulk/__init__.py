"""Carry out bulk operations page by page."""
