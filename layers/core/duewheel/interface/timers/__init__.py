"""Timers in answers."""
