"""Timers, their occurrences and counters."""
