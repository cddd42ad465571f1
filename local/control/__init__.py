"""What the developer holds: clock, time travel, inbox, ingest queue, their routes."""
