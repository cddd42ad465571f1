"""The ingest queue."""
