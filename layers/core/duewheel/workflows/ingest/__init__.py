"""Create tasks from messages."""
