"""The life of a task: requests, idempotency, placement, changes, lists, death and redrive."""
