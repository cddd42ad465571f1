"""Elect a leader, dispatch due slices, and send messages."""
