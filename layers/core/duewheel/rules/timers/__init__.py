"""Timers: schedules, planning, occurrences, changes."""
