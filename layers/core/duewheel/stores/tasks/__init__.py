"""Tasks, keys, idempotency records, and the indexes that list tasks."""
