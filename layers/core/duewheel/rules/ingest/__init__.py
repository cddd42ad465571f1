"""Tasks by message."""
