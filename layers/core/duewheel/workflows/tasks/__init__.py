"""Create, change, cancel, list and redrive tasks."""
