"""Faults by chance."""
