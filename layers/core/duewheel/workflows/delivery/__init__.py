"""Deliver pages: call, limit, park, settle."""
