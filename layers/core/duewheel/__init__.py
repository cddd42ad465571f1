"""Duewheel: tasks handed over with an instant, called back at that instant."""

__version__ = "0.1.0"
