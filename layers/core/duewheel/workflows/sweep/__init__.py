"""Rescue lost tasks, audit, record statistics."""
