"""What a callback may be, where it may go, how its outcome is judged and when it is retried."""
