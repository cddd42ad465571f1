"""The developer's controls: clock, time travel, inbox, ingest queue, their routes."""
