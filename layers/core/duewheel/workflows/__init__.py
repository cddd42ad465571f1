"""Workflows: create, cancel, dispatch, deliver, sweep. Each reads top to bottom."""
